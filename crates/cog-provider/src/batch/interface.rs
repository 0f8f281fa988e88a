//! What a batch interface does.

use cog_json::Node;

use super::{
    entry::EntryError,
    job::{BatchJob, JobPage, id},
    part::{BatchLimits, BatchPart, Upload},
    result::BatchResult,
};
use crate::WireRequest;

/// The batch interface of a vendor.
pub trait BatchInterface: Send + Sync {
    /// Returns the limits of a job.
    fn limits(&self) -> BatchLimits;

    /// Returns what all requests of a job have in common: an endpoint or a model. None if the vendor has no batches for
    /// such a request.
    fn target(&self, request: &WireRequest) -> Option<String>;

    /// Returns the entry for a request, as JSON. The answer is not streamed.
    ///
    /// # Errors
    /// Fails if a job cannot contain the request.
    fn entry(&self, id: &str, request: &WireRequest) -> Result<String, EntryError>;

    /// Returns how the entries are uploaded; `None` if [`BatchInterface::create`] sends them.
    fn upload(&self, base_url: &str, name: &str, part: &BatchPart) -> Option<Upload>;

    /// Reads the ID of the uploaded file.
    fn file(&self, body: Node<'_>) -> Option<String> {
        id(body, "/id")
    }

    /// Returns the request that creates a job, with the ID of the uploaded file.
    fn create(&self, base_url: &str, name: &str, part: &BatchPart, file: &str) -> WireRequest;

    /// Returns the request for a page of the list of jobs, from the newest on. `cursor` is that of the page before.
    fn list(&self, base_url: &str, cursor: Option<&str>) -> WireRequest;

    /// Reads a page of the list of jobs.
    fn page(&self, body: Node<'_>) -> JobPage;

    /// Returns the request for the state of a job.
    fn status(&self, base_url: &str, id: &str) -> WireRequest;

    /// Returns the request that cancels a job.
    fn cancel(&self, base_url: &str, id: &str) -> WireRequest;

    /// Reads the state of a job. None if it has no ID that can be part of a path.
    fn job(&self, body: Node<'_>) -> Option<BatchJob>;

    /// Returns the requests for the results of a job that has ended.
    fn results(&self, base_url: &str, job: &BatchJob) -> Vec<WireRequest>;

    /// Returns the JSON pointer of the list of results in their body; `None` if each line is a result.
    fn results_pointer(&self, _job: &BatchJob) -> Option<&'static str> {
        None
    }

    /// Reads a result. None if it has no ID.
    fn result(&self, entry: Node<'_>) -> Option<BatchResult>;

    /// Returns whether a job has the name that [`BatchInterface::create`] gives it.
    fn has_names(&self) -> bool {
        true
    }

    /// Adds the entry for a request to a part. Returns false if the part has no room for it, or has requests to another
    /// endpoint or model.
    ///
    /// # Errors
    /// Fails if no job can contain the request.
    fn add(&self, part: &mut BatchPart, id: &str, request: &WireRequest) -> Result<bool, EntryError> {
        let target = self.target(request).ok_or(EntryError::Endpoint)?;
        part.push(target, self.entry(id, request)?)
    }
}
