//! The provider of runs whose calls are batch jobs, and the replies of jobs, in files.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use cog_json::{Node, Value, Writer};
use cog_provider::{
    HttpProvider, ModelFuture, ModelRequest, ModelStream, Provider, ProviderError, ProviderInfo, WireRequest,
    batch::{BatchOutcome, BatchReply, BatchResult, batch_interface},
};
use cog_spec::Code;

use super::{Job, limits};
use crate::RowHash;

/// Takes the request of a run, or gives it the reply of its job. A call outside a row is an error.
pub struct VendorBatchProvider {
    inner: Arc<HttpProvider>,
    answers: OnceLock<Arc<Answers>>,
    retries_live: bool,
}

impl VendorBatchProvider {
    /// Creates the provider. If `retries_live` is set, a request without a good reply is sent live.
    #[must_use]
    pub fn new(inner: HttpProvider, retries_live: bool) -> Self {
        Self { inner: Arc::new(inner), answers: OnceLock::new(), retries_live }
    }

    /// Returns the provider of live calls.
    #[must_use]
    pub fn inner(&self) -> &Arc<HttpProvider> {
        &self.inner
    }

    /// Whether requests without a good reply are sent live.
    pub(crate) fn retries_live(&self) -> bool {
        self.retries_live
    }

    /// Returns the replies, once the jobs have ended.
    pub(crate) fn answers(&self) -> Option<&Arc<Answers>> {
        self.answers.get()
    }

    /// Sets the replies.
    pub(crate) fn set_answers(&self, answers: Answers) {
        self.answers.get_or_init(|| Arc::new(answers));
    }

    /// Returns the reply of the job, or the reason why there is none.
    async fn reply(&self, slot: &Slot, request: &ModelRequest) -> Result<BatchReply, ProviderError> {
        let Some(answers) = self.answers.get().cloned() else { return Err(no_answer("its job is not read")) };
        let row = slot.row;
        if answers.has_changed(row, slot.hash) {
            return Err(no_answer("it was another row when it was sent"));
        }
        // The disk may be slow, and a thread of the runtime must not wait for it.
        let found = tokio::task::spawn_blocking(move || answers.get(row)).await;
        match found.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into())) {
            Ok(Some(outcome)) => outcome.reply(),
            Ok(None) => Err(self.refused(request)?.unwrap_or_else(|| self.missing(row))),
            Err(error) => Err(no_answer(&format!("its reply cannot be read: {error}"))),
        }
    }

    /// Returns why the request cannot be part of a job, if it cannot.
    fn refused(&self, request: &ModelRequest) -> Result<Option<ProviderError>, ProviderError> {
        let Some(wire) = self.inner.render(request)? else { return Ok(None) };
        let Some(interface) = batch_interface(self.inner.vendor().name) else { return Ok(None) };
        let mut part = cog_provider::batch::BatchPart::new(limits(interface));
        let error = interface.add(&mut part, "", &wire).err();
        Ok(error.map(|error| ProviderError::Other { code: error.code(), message: error.to_string() }))
    }

    fn missing(&self, row: u64) -> ProviderError {
        let reason = self.answers.get().and_then(|answers| answers.reason(row));
        no_answer(&reason.unwrap_or_else(|| "it was not sent".to_owned()))
    }

    async fn answer(&self, slot: &Slot, request: &ModelRequest) -> Result<ModelStream, ProviderError> {
        if slot.count() > 0 {
            return Err(no_answer("a job has one call for each row"));
        }
        let reply = self.reply(slot, request).await?;
        self.inner.read_batch_reply(request, reply).await
    }
}

impl Provider for VendorBatchProvider {
    fn info(&self) -> &ProviderInfo {
        self.inner.info()
    }

    fn render(&self, request: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        self.inner.render(request)
    }

    fn check(&self, request: &ModelRequest) -> Result<(), ProviderError> {
        self.inner.check(request)
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            match Slot::current() {
                Some(slot) if slot.is_captured() => {
                    if let Some(wire) = self.inner.render(request)? {
                        slot.put(wire);
                    }
                    Err(no_answer("it is about to be sent"))
                }
                Some(slot) => match self.answer(&slot, request).await {
                    Err(_) if self.retries_live => self.inner.call(request).await,
                    answered => answered,
                },
                None => Err(no_answer("a part of a module cannot be sent in a job")),
            }
        })
    }
}

/// Returns the error of a request without a reply. Its code is not one of the provider's, which would end the batch.
fn no_answer(reason: &str) -> ProviderError {
    let message = format!("the batch job has no answer for the row: {reason}");
    ProviderError::Other { code: Code::StreamInterrupted, message }
}

// The row for which the provider is called.

tokio::task_local! {
    static SLOT: Arc<Slot>;
}

/// The row that runs.
pub(crate) struct Slot {
    row: u64,
    hash: RowHash,
    /// The number of calls so far.
    calls: AtomicU32,
    /// Where the request goes that would be sent.
    request: Option<Mutex<Option<WireRequest>>>,
}

impl Slot {
    /// Creates the slot of a row that takes its reply from a job.
    pub(crate) fn answered(row: u64, hash: RowHash) -> Arc<Self> {
        Arc::new(Self { row, hash, calls: AtomicU32::new(0), request: None })
    }

    /// Creates the slot of a row whose request is captured.
    pub(crate) fn captured(row: u64, hash: RowHash) -> Arc<Self> {
        Arc::new(Self { row, hash, calls: AtomicU32::new(0), request: Some(Mutex::default()) })
    }

    /// Runs a future for this row.
    pub(crate) async fn run<T>(self: Arc<Self>, run: impl Future<Output = T>) -> T {
        SLOT.scope(self, run).await
    }

    /// Returns the row that runs.
    fn current() -> Option<Arc<Self>> {
        SLOT.try_with(Arc::clone).ok()
    }

    /// Counts a call. Returns the number of those before it.
    fn count(&self) -> u32 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    fn is_captured(&self) -> bool {
        self.request.is_some()
    }

    /// Stores the request, unless there is one already.
    fn put(&self, request: WireRequest) {
        if let Some(slot) = &self.request {
            slot.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(request);
        }
    }

    /// Returns the request.
    pub(crate) fn take(&self) -> Option<WireRequest> {
        self.request.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The replies of the jobs, by row.
pub(crate) struct Answers {
    /// The files, which are opened for each reply: there may be more than a process may hold open.
    paths: Vec<PathBuf>,
    /// The entries, sorted by row.
    index: Vec<Entry>,
    jobs: Vec<Job>,
}

/// Where the reply of a row is.
#[derive(Debug, Clone, Copy)]
struct Entry {
    row: u64,
    hash: u32,
    file: u32,
    offset: u64,
    length: u32,
    crc: u32,
    /// Whether there is another reply that differs.
    is_ambiguous: bool,
}

impl Answers {
    /// Opens the files with the replies of each job.
    pub(crate) fn open(jobs: &[Job], paths: Vec<PathBuf>) -> io::Result<Self> {
        let mut index = Vec::new();
        for (number, path) in (0..).zip(&paths) {
            let mut file = BufReader::new(open(path)?);
            let mut offset = 0;
            let mut line = Vec::new();
            while file.read_until(b'\n', &mut line)? > 0 {
                index.extend(entry(&line, number, offset));
                offset += line.len() as u64;
                line.clear();
            }
        }
        // Vendors return results in any order, and sometimes one twice. Two that differ make the row ambiguous: neither counts.
        index.sort_by_key(|entry: &Entry| entry.row);
        index.dedup_by(|later, kept| {
            let is_same = later.row == kept.row;
            kept.is_ambiguous |= is_same && later.crc != kept.crc;
            is_same
        });
        Ok(Self { paths, index, jobs: jobs.to_vec() })
    }

    /// Returns whether the row was another one when it was sent.
    pub(crate) fn has_changed(&self, row: u64, hash: RowHash) -> bool {
        self.find(row).is_some_and(|entry| entry.hash != hash.to_u32())
    }

    /// Returns what became of a row; none if its job has no result for it. Blocks.
    pub(super) fn get(&self, row: u64) -> io::Result<Option<BatchOutcome>> {
        let Some(entry) = self.find(row) else { return Ok(None) };
        if entry.is_ambiguous {
            return Ok(Some(BatchOutcome::Missing("there are two different results for it".to_owned())));
        }
        let Some(path) = self.paths.get(entry.file as usize) else { return Ok(None) };
        let mut line = vec![0; entry.length as usize];
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(entry.offset))?;
        file.read_exact(&mut line)?;
        let value = Value::parse_bytes(&line).map_err(io::Error::other)?;
        Ok(Some(outcome(value.node())))
    }

    /// Returns why the job of a row has no result for it.
    pub(super) fn reason(&self, row: u64) -> Option<String> {
        let job = self.jobs.iter().find(|job| (job.first..=job.last).contains(&row))?;
        let id = job.id.as_deref().unwrap_or_default();
        let message = job.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        Some(format!("the job {id} ended as `{}`{message}", job.state))
    }

    fn find(&self, row: u64) -> Option<&Entry> {
        let at = self.index.binary_search_by_key(&row, |entry| entry.row).ok()?;
        self.index.get(at)
    }
}

#[expect(clippy::disallowed_methods, reason = "the file is the batch's own")]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn entry(line: &[u8], file: u32, offset: u64) -> Option<Entry> {
    let value = Value::parse_bytes(line).ok()?;
    Some(Entry {
        row: value.get("row")?.as_u64()?,
        hash: u32::try_from(value.get("hash")?.as_u64()?).ok()?,
        file,
        offset,
        length: u32::try_from(line.len()).ok()?,
        crc: crc32fast::hash(line),
        is_ambiguous: false,
    })
}

fn outcome(line: Node<'_>) -> BatchOutcome {
    let status = line.get("status").and_then(Node::as_u64).and_then(|status| u16::try_from(status).ok());
    match (status, line.get("body"), line.get("lost").and_then(Node::as_str)) {
        (Some(status), Some(body), _) => BatchOutcome::Replied(BatchReply { status, body: body.to_string() }),
        (_, _, Some("expired")) => BatchOutcome::Expired,
        (_, _, Some("cancelled")) => BatchOutcome::Cancelled,
        _ => {
            let reason = line.get("reason").and_then(Node::as_str);
            BatchOutcome::Missing(reason.unwrap_or_default().to_owned())
        }
    }
}

/// Returns the ID of a row in a job.
pub(crate) fn entry_id(name: &str, row: u64, hash: RowHash) -> String {
    format!("{name}-{row}-{:08x}", hash.to_u32())
}

/// Returns the row with an ID; `None` if it is not one of the job.
fn row_of(name: &str, id: &str) -> Option<(u64, u32)> {
    let (row, hash) = id.strip_prefix(name)?.strip_prefix('-')?.split_once('-')?;
    Some((row.parse().ok()?, u32::from_str_radix(hash, 16).ok()?))
}

/// Writes a result as a line. Returns false if its ID is not one of the job.
pub(crate) fn write(out: &mut impl Write, job: &Job, result: BatchResult) -> io::Result<bool> {
    let rows = job.first..=job.last;
    let Some((row, hash)) = row_of(&job.name, &result.id).filter(|(row, _)| rows.contains(row)) else {
        return Ok(false);
    };
    let mut line = String::new();
    Writer::compact(&mut line).object(|w| {
        w.field("row", &row).field("hash", &u64::from(hash));
        match &result.outcome {
            BatchOutcome::Replied(reply) => {
                let body = Value::parse(&reply.body).unwrap_or_default();
                w.field("status", &u64::from(reply.status)).field("body", &body);
            }
            BatchOutcome::Expired => drop(w.field("lost", "expired")),
            BatchOutcome::Cancelled => drop(w.field("lost", "cancelled")),
            BatchOutcome::Missing(reason) => drop(w.field("lost", "missing").field("reason", reason)),
        }
    });
    line.push('\n');
    out.write_all(line.as_bytes())?;
    Ok(true)
}
