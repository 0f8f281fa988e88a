//! The replies of jobs, in files.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
};

use cog_json::{Node, Value, Writer};
use cog_provider::batch::{BatchJob, BatchOutcome, BatchPhase, BatchReply, BatchResult};
use tokio::time::sleep;

use super::{FIRST_PAUSE, Job, Jobs, Via, ViaError, jobs::replace};
use crate::RowHash;

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
    pub(super) fn open(jobs: &[Job], paths: Vec<PathBuf>) -> io::Result<Self> {
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
    let number = |key: &str| value.get(key).and_then(Node::as_u64);
    Some(Entry {
        row: number("row")?,
        hash: u32::try_from(number("hash")?).ok()?,
        file,
        offset,
        length: u32::try_from(line.len()).ok()?,
        crc: crc32fast::hash(line),
        is_ambiguous: false,
    })
}

fn outcome(line: Node<'_>) -> BatchOutcome {
    let status = line.get("status").and_then(Node::as_u64).and_then(|status| u16::try_from(status).ok());
    let text = |key: &str| line.get(key).and_then(Node::as_str).unwrap_or_default().to_owned();
    match (status, line.get("body"), text("lost").as_str()) {
        (Some(status), Some(body), _) => BatchOutcome::Replied(BatchReply { status, body: body.to_string() }),
        (_, _, "expired") => BatchOutcome::Expired,
        (_, _, "cancelled") => BatchOutcome::Cancelled,
        _ => BatchOutcome::Missing(text("reason")),
    }
}

/// Returns the ID of a row in a job.
pub(super) fn entry_id(name: &str, row: u64, hash: RowHash) -> String {
    format!("{name}-{row}-{:08x}", hash.to_u32())
}

/// Returns the row with an ID; `None` if it is not one of the job.
fn row_of(name: &str, id: &str) -> Option<(u64, u32)> {
    let (row, hash) = id.strip_prefix(name)?.strip_prefix('-')?.split_once('-')?;
    Some((row.parse().ok()?, u32::from_str_radix(hash, 16).ok()?))
}

/// Writes a result as a line. Returns false if its ID is not one of the job.
pub(super) fn write(out: &mut impl Write, job: &Job, result: BatchResult) -> io::Result<bool> {
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

// Jobs until they have ended, and their results.

/// How often the results of a job are read, if fewer arrive than the vendor has.
const MAX_READS: u32 = 3;

/// The results of a job, in a temporary file.
struct Read {
    spool: File,
    /// The results of the job.
    own: u64,
    /// The results that belong to no row of the job.
    strange: u64,
    /// The lines without a result.
    unreadable: u64,
}

impl Read {
    /// Returns whether as many results have arrived as the vendor has answers.
    fn is_complete(&self, job: &BatchJob) -> bool {
        self.unreadable == 0 && job.counts.succeeded.is_none_or(|answers| self.own >= answers)
    }
}

impl Via {
    /// Requests the state of each job that has not ended. A failure that can be temporary leaves the state as it is. Nothing is
    /// stored, so that several programs may do this at the same time.
    ///
    /// # Errors
    /// The vendor does not know a job or rejects the key.
    pub async fn refresh(&mut self) -> Result<(), ViaError> {
        let running: Vec<(usize, String)> = self.running();
        for (number, id) in running {
            let found = match self.client.job(&id).await {
                Ok(found) => found,
                Err(error) if error.recoverable() => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(job) = self.jobs.list_mut().get_mut(number) {
                (job.state, job.is_ended) = (found.state, found.phase == BatchPhase::Ended);
                (job.succeeded, job.failed) = (found.counts.succeeded, found.counts.failed);
                job.message = found.message;
            }
        }
        Ok(())
    }

    fn running(&self) -> Vec<(usize, String)> {
        let jobs = self.jobs.list().iter().enumerate().filter(|(_, job)| !job.is_ended);
        jobs.filter_map(|(number, job)| Some((number, job.id.clone()?))).collect()
    }

    /// Waits until all jobs have ended.
    ///
    /// # Errors
    /// As [`Via::refresh`], or some rows have not been sent.
    pub async fn wait(&mut self, mut show: impl FnMut(&Jobs)) -> Result<(), ViaError> {
        if !self.jobs.is_complete() {
            return Err(ViaError::Incomplete { path: self.jobs.path().to_owned() });
        }
        let mut pause = FIRST_PAUSE.min(self.max_pause);
        loop {
            self.refresh().await?;
            show(&self.jobs);
            if self.running().is_empty() {
                return Ok(());
            }
            sleep(pause).await;
            pause = (pause * 3 / 2).min(self.max_pause);
        }
    }

    /// Cancels the jobs that have not ended. Their rows without a result are errors.
    ///
    /// # Errors
    /// The vendor rejects it.
    pub async fn cancel(&mut self) -> Result<(), ViaError> {
        // A vendor rejects the cancellation of a job that has ended.
        self.refresh().await?;
        for (_, id) in self.running() {
            if let Err(error) = self.client.cancel(&id).await
                && self.client.job(&id).await?.phase == BatchPhase::Running
            {
                return Err(error.into());
            }
        }
        self.refresh().await
    }

    /// Stores the results of the jobs, all of which have ended. Returns the number of results that belong to no row.
    ///
    /// # Errors
    /// The vendor does not return them, or a file cannot be written.
    pub async fn fetch(&mut self) -> Result<u64, ViaError> {
        let mut strange = 0;
        for number in 0..self.jobs.list().len() {
            strange += self.fetch_job(number).await?;
        }
        let paths: Vec<_> = (0..self.jobs.list().len()).map(|number| self.jobs.replies(number)).collect();
        let answers = Answers::open(self.jobs.list(), paths);
        let path = || self.jobs.path().to_owned();
        self.provider.set_answers(answers.map_err(|source| ViaError::File { path: path(), source })?);
        Ok(strange)
    }

    async fn fetch_job(&mut self, number: usize) -> Result<u64, ViaError> {
        let Some(job) = self.jobs.list().get(number).filter(|job| !job.is_fetched).cloned() else {
            return Ok(0);
        };
        let path = self.jobs.replies(number);
        let found = self.client.job(job.id.as_deref().unwrap_or_default()).await?;
        let mut tries = 0;
        let mut read = loop {
            let read = self.read(&job, &found, &path).await;
            let is_good = match &read {
                Ok(read) => read.is_complete(&found),
                Err(ViaError::Provider(error)) => !error.recoverable(),
                Err(_) => true,
            };
            tries += 1;
            if is_good || tries >= MAX_READS {
                break read?;
            }
            sleep(self.pause(tries)).await;
        };
        let error = |source: io::Error| ViaError::File { path: path.clone(), source };
        replace(&path, |out| io::copy(&mut read.spool, out).map(drop)).map_err(error)?;
        if let Some(job) = self.jobs.list_mut().get_mut(number) {
            job.is_fetched = true;
        }
        self.jobs.save()?;
        Ok(read.strange + read.unreadable)
    }

    /// Reads the results of a job into a temporary file.
    async fn read(&self, job: &Job, found: &BatchJob, path: &Path) -> Result<Read, ViaError> {
        let error = |source: io::Error| ViaError::File { path: path.to_owned(), source };
        let mut spool = tempfile::tempfile().map(io::BufWriter::new).map_err(error)?;
        let (mut own, mut strange, mut failed) = (0, 0, None);
        let unreadable = self.client.results(found, |result| match write(&mut spool, job, result) {
            Ok(is_own) => {
                own += u64::from(is_own);
                strange += u64::from(!is_own);
                true
            }
            Err(error) => {
                failed = Some(error);
                false
            }
        });
        let unreadable = unreadable.await?;
        if let Some(failed) = failed {
            return Err(error(failed));
        }
        let mut spool = spool.into_inner().map_err(|failed| error(failed.into_error()))?;
        io::Seek::rewind(&mut spool).map_err(error)?;
        Ok(Read { spool, own, strange, unreadable })
    }
}
