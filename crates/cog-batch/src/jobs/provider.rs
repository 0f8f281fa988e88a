//! The provider of runs whose calls are batch jobs.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use cog_provider::{
    HttpProvider, ModelFuture, ModelRequest, ModelStream, Provider, ProviderError, ProviderInfo, WireRequest,
    batch::{BatchReply, batch_interface},
};
use cog_spec::Code;

use super::{Answers, limits};
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
