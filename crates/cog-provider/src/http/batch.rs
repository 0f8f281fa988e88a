//! The client of a vendor's batch interface.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use cog_json::{Node, Value};
use cog_spec::ModelEvent;
use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;
use url::Url;

use super::{HttpProvider, call::Call};
use crate::{
    ModelRequest, ModelStream, ProviderError, WireRequest,
    batch::{BatchInterface, BatchJob, BatchPart, BatchReply, BatchResult, Upload, batch_interface},
    transport::{SendFuture, Transport, WireReply},
    vendors::ProviderSettings,
};

/// The time limit for a request without a large body.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for a request with the entries of a job, and for its results.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(1_800);
/// The maximum number of pages of the list of jobs that are searched.
const MAX_PAGES: usize = 100;
/// The maximum size of one result.
const MAX_RESULT: usize = 32 << 20;
/// The maximum size of a body with all results of a job.
const MAX_RESULTS: usize = 256 << 20;
/// The header with the URL to which the content of a file is sent.
const UPLOAD_URL: &str = "x-goog-upload-url";
/// The class of service of a batch, for its price.
const TIER: &str = "batch";

/// Creates, finds and reads batch jobs of a vendor.
///
/// No request is sent again by itself: the caller looks for the job before it creates it again.
#[derive(Clone)]
pub struct BatchClient {
    provider: Arc<HttpProvider>,
    interface: &'static dyn BatchInterface,
}

impl BatchClient {
    /// Returns the client of the vendor's batch interface; `None` if it has none.
    #[must_use]
    pub fn new(provider: Arc<HttpProvider>) -> Option<Self> {
        let interface = batch_interface(provider.vendor.name)?;
        Some(Self { provider, interface })
    }

    /// Returns the form of the interface.
    #[must_use]
    pub fn interface(&self) -> &'static dyn BatchInterface {
        self.interface
    }

    /// Returns the provider, which has the same base URL and key.
    #[must_use]
    pub fn provider(&self) -> &Arc<HttpProvider> {
        &self.provider
    }

    /// Uploads the entries, and creates the job with this name.
    ///
    /// # Errors
    /// Fails as a live call does. After an error that can be temporary, the job may exist.
    pub async fn create(&self, name: &str, part: &BatchPart) -> Result<BatchJob, ProviderError> {
        let base_url = self.provider.base_url();
        let file = match self.interface.upload(base_url, name, part) {
            Some(upload) => self.uploaded(upload).await?,
            None => String::new(),
        };
        let request = self.interface.create(base_url, name, part, &file);
        self.job_in(&self.body(request, TRANSFER_TIMEOUT).await?)
    }

    async fn uploaded(&self, upload: Upload) -> Result<String, ProviderError> {
        let body = match upload.content {
            None => self.body(upload.request, TRANSFER_TIMEOUT).await?,
            Some(content) => {
                self.provider.check_key()?;
                let url = self.call(upload.request, TIMEOUT).header(UPLOAD_URL).await?;
                let url = url.and_then(|url| self.own_url(&url));
                let url = url.ok_or_else(|| self.malformed("the reply has no URL for the upload"))?;
                let headers = vec![
                    ("x-goog-upload-command", "upload, finalize".to_owned()),
                    ("x-goog-upload-offset", "0".to_owned()),
                ];
                let request = WireRequest { method: "POST", url, headers, auth: None, body: content };
                self.body(request, TRANSFER_TIMEOUT).await?
            }
        };
        self.interface.file(body.node()).ok_or_else(|| self.malformed("the file has no valid ID"))
    }

    /// Returns a URL of a reply at the host that the operator has set, the only one that receives the key.
    fn own_url(&self, url: &str) -> Option<String> {
        let url = Url::parse(url).ok()?;
        let mut own = Url::parse(self.provider.base_url()).ok()?;
        own.set_path(url.path());
        own.set_query(url.query());
        Some(own.into())
    }

    /// Returns the newest jobs, from the newest on, until `is_last` returns true for one, which is the last.
    ///
    /// # Errors
    /// Fails as a live call does.
    pub async fn newest(&self, is_last: impl Fn(&BatchJob) -> bool) -> Result<Vec<BatchJob>, ProviderError> {
        let mut jobs = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let request = self.interface.list(self.provider.base_url(), cursor.as_deref());
            let page = self.interface.page(self.body(request, TIMEOUT).await?.node());
            for job in page.jobs {
                let ends = is_last(&job);
                jobs.push(job);
                if ends {
                    return Ok(jobs);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(jobs)
    }

    /// Returns the state of a job.
    ///
    /// # Errors
    /// Fails as a live call does.
    pub async fn job(&self, id: &str) -> Result<BatchJob, ProviderError> {
        let request = self.interface.status(self.provider.base_url(), id);
        self.job_in(&self.body(request, TIMEOUT).await?)
    }

    /// Cancels a job. Answers that it has already are kept.
    ///
    /// # Errors
    /// Fails as a live call does.
    pub async fn cancel(&self, id: &str) -> Result<(), ProviderError> {
        self.body(self.interface.cancel(self.provider.base_url(), id), TIMEOUT).await.map(drop)
    }

    /// Deletes the files of a job: its entries and its results. Nothing happens at a vendor that deletes them itself.
    ///
    /// # Errors
    /// Fails as a live call does. The other files are deleted.
    pub async fn delete_files(&self, job: &BatchJob) -> Result<(), ProviderError> {
        let mut deleted = Ok(());
        for file in job.upload.iter().chain(&job.files) {
            if let Some(request) = self.interface.delete(self.provider.base_url(), file)
                && let Err(error) = self.body(request, TIMEOUT).await
            {
                deleted = Err(error);
            }
        }
        deleted
    }

    /// Reads the results of a job that has ended, in the vendor's order. Entries that are not JSON or have no ID are
    /// counted; the number is returned. `sink` returns false to stop.
    ///
    /// # Errors
    /// Fails as a live call does.
    pub async fn results(
        &self,
        job: &BatchJob,
        mut sink: impl FnMut(BatchResult) -> bool,
    ) -> Result<u64, ProviderError> {
        let mut unreadable = 0;
        for request in self.interface.results(self.provider.base_url(), job) {
            let is_done = match self.interface.results_pointer(job) {
                Some(pointer) => self.listed(request, pointer, &mut sink, &mut unreadable).await?,
                None => self.lines(request, &mut sink, &mut unreadable).await?,
            };
            if is_done {
                break;
            }
        }
        Ok(unreadable)
    }

    /// Reads results that are members of one body.
    async fn listed(
        &self,
        request: WireRequest,
        pointer: &str,
        sink: &mut impl FnMut(BatchResult) -> bool,
        unreadable: &mut u64,
    ) -> Result<bool, ProviderError> {
        let body = self.call(request, TRANSFER_TIMEOUT).limited_body(MAX_RESULTS).await?;
        for entry in body.pointer(pointer).into_iter().flat_map(Node::elements) {
            match self.interface.result(entry) {
                Some(result) => {
                    if !sink(result) {
                        return Ok(true);
                    }
                }
                None => *unreadable += 1,
            }
        }
        Ok(false)
    }

    /// Reads results that are lines of a body, as they arrive.
    async fn lines(
        &self,
        request: WireRequest,
        sink: &mut impl FnMut(BatchResult) -> bool,
        unreadable: &mut u64,
    ) -> Result<bool, ProviderError> {
        let mut is_done = false;
        let call = self.call(request, TRANSFER_TIMEOUT);
        call.lines(MAX_RESULT, |line| {
            let entry = Value::parse_bytes(line).ok();
            match entry.and_then(|entry| self.interface.result(entry.node())) {
                Some(result) => is_done |= !sink(result),
                None => *unreadable += u64::from(!line.trim_ascii().is_empty()),
            }
            !is_done
        })
        .await?;
        Ok(is_done)
    }

    fn job_in(&self, body: &Value) -> Result<BatchJob, ProviderError> {
        self.interface.job(body.node()).ok_or_else(|| self.malformed("the job has no valid `id` or `name`"))
    }

    fn malformed(&self, message: &str) -> ProviderError {
        ProviderError::Malformed { vendor: self.provider.vendor.title, message: message.to_owned() }
    }

    async fn body(&self, request: WireRequest, timeout: Duration) -> Result<Value, ProviderError> {
        self.provider.check_key()?;
        self.call(request, timeout).body().await
    }

    fn call(&self, mut wire: WireRequest, timeout: Duration) -> Call {
        wire.auth = self.provider.auth();
        let mut setup = self.provider.setup(wire, self.provider.info.model.to_string(), Some(timeout));
        setup.settings = ProviderSettings { first_token_timeout: timeout, ..setup.settings };
        Call::new(setup, Instant::now())
    }
}

impl HttpProvider {
    /// Reads the reply to a request from a batch job, as if the vendor had sent it now. Its usage has the price of a
    /// batch.
    ///
    /// # Errors
    /// Fails as a live call does.
    pub async fn read_batch_reply(
        &self,
        request: &ModelRequest,
        reply: BatchReply,
    ) -> Result<ModelStream, ProviderError> {
        let context = self.context(request)?;
        let mut setup = self.setup(self.wire(request)?, context.model.to_owned(), request.timeout);
        // The reply is stored, so that another attempt would read the same.
        setup.settings.retries = 0;
        setup.transport = Arc::new(StoredReply(reply));
        let events = Call::new(setup, Instant::now()).start(context.reply_format(), None).await?;
        Ok(events.map(|event| event.map(with_tier)).boxed())
    }
}

fn with_tier(event: ModelEvent) -> ModelEvent {
    match event {
        // The vendors report the class of the live interface, or none.
        ModelEvent::Usage(mut usage) => {
            usage.service_tier = Some(TIER.to_owned());
            ModelEvent::Usage(usage)
        }
        event => event,
    }
}

/// A transport with one reply.
struct StoredReply(BatchReply);

impl Transport for StoredReply {
    fn send<'a>(&'a self, _request: &'a WireRequest) -> SendFuture<'a> {
        let chunks = VecDeque::from([Ok(Bytes::from(self.0.body.clone()))]);
        let headers = vec![("content-type", "application/json".to_owned())];
        let reply = WireReply { status: self.0.status, headers, body: stream::iter(chunks).boxed() };
        Box::pin(async { Ok(reply) })
    }
}
