//! Batch jobs of the mock, whose state is stored in a directory, so that it survives a restart.
//!
//! The entries are answered when a job ends, in reverse order, by the replies of the mock. Texts in an entry change its
//! result: `MOCK-EXPIRED`, `MOCK-CANCELLED`, `MOCK-LOST`, `MOCK-TWICE`,
//! `MOCK-DIFFER` for two different results, and `MOCK-STRANGER` for a further result with an unknown ID.

mod anthropic;
mod gemini;
mod openai;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use crate::{Reply, Wire};

/// The settings of the batch interfaces of a mock.
#[derive(Debug, Clone)]
pub struct Batches {
    pub(crate) directory: PathBuf,
    pub(crate) polls: u64,
    pub(crate) holds: Option<BatchStep>,
    /// The jobs that may run at the same time.
    room: usize,
    /// How many bodies with results are still cut.
    cuts: Arc<AtomicUsize>,
}

/// A step of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchStep {
    /// It uploads a file.
    Upload,
    /// It creates a job.
    Create,
    /// It lists the jobs.
    List,
    /// It requests the state of a job.
    Status,
    /// It cancels a job.
    Cancel,
    /// It requests results.
    Results,
}

impl Batches {
    /// Stores the jobs in this directory. Each ends with the second request for its state.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), polls: 1, holds: None, room: usize::MAX, cuts: Arc::default() }
    }

    /// Sets how often the state of a job is requested before it has ended.
    #[must_use]
    pub fn polls(self, polls: u64) -> Self {
        Self { polls, ..self }
    }

    /// Refuses a job of OpenAI while this number of jobs run, as an account with a limit of tokens in the queue does.
    #[must_use]
    pub fn room(self, jobs: usize) -> Self {
        Self { room: jobs, ..self }
    }

    /// Returns the IDs of the files that were deleted, in order.
    pub fn deleted(&self) -> Vec<String> {
        let text = fs::read_to_string(self.directory.join("deleted")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns only the first half of the first bodies with results.
    #[must_use]
    pub fn cuts(self, bodies: usize) -> Self {
        Self { cuts: Arc::new(AtomicUsize::new(bodies)), ..self }
    }

    fn cut(&self, step: BatchStep, mut body: String) -> String {
        let is_cut = step == BatchStep::Results
            && self
                .cuts
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok();
        if is_cut {
            body.truncate(body.len() / 2);
        }
        body
    }

    /// Executes a step, but never answers it.
    #[must_use]
    pub fn holds(self, step: BatchStep) -> Self {
        Self { holds: Some(step), ..self }
    }

    /// Returns the jobs, from the oldest on.
    pub fn jobs(&self) -> Vec<Value> {
        (1..).map_while(|number| read(&self.path(number))).collect()
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("job-{number}.json"))
    }

    /// Stores a new job, and returns it.
    pub(crate) fn create(&self, mut job: Value, entries: &[Value]) -> Value {
        let number = self.jobs().len() as u64 + 1;
        job["number"] = json!(number);
        job["entries"] = json!(entries);
        job["polls"] = json!(self.polls);
        let running = self.jobs().iter().filter(|job| job["state"] == "running").count();
        job["state"] = json!(if running < self.room { "running" } else { "refused" });
        self.store(&job);
        job
    }

    fn store(&self, job: &Value) {
        let number = job["number"].as_u64().unwrap_or_default();
        let _ = fs::create_dir_all(&self.directory);
        let next = self.directory.join("next");
        let _ = fs::write(&next, job.to_string()).and_then(|()| fs::rename(&next, self.path(number)));
    }

    fn cancel(&self, mut job: Value, form: Form) -> Value {
        if job["state"] == "running" {
            job["state"] = json!("cancelled");
            let entries = job["entries"].as_array().cloned().unwrap_or_default();
            job["results"] =
                entries.iter().map(|entry| json!({ "id": (form.id)(entry), "kind": "cancelled" })).collect();
            self.store(&job);
        }
        job
    }

    /// Returns a job as it is now. A request for its state brings it nearer to its end.
    fn poll(&self, mut job: Value, form: Form, answer: &mut dyn FnMut(&Value) -> Reply) -> Value {
        if job["state"] != "running" {
            return job;
        }
        match job["polls"].as_u64().unwrap_or_default() {
            0 => {
                job["state"] = json!("ended");
                job["results"] = results(&job, form, answer).into();
            }
            left => job["polls"] = json!(left - 1),
        }
        self.store(&job);
        job
    }
}

/// How a vendor's entries are read.
#[derive(Clone, Copy)]
struct Form {
    wire: fn(&Value) -> Wire,
    id: fn(&Value) -> &str,
    body: fn(&Value) -> &Value,
}

fn results(job: &Value, form: Form, answer: &mut dyn FnMut(&Value) -> Reply) -> Vec<Value> {
    let mut results = Vec::new();
    for entry in job["entries"].as_array().into_iter().flatten().rev() {
        let id = (form.id)(entry);
        let body = (form.body)(entry);
        let text = entry.to_string();
        if text.contains("MOCK-LOST") {
            continue;
        }
        let result = if text.contains("MOCK-EXPIRED") {
            json!({ "id": id, "kind": "expired" })
        } else if text.contains("MOCK-CANCELLED") {
            json!({ "id": id, "kind": "cancelled" })
        } else {
            answered(id, (form.wire)(job), &answer(body))
        };
        if text.contains("MOCK-STRANGER") {
            results.push(json!({ "id": "a-stranger", "kind": "expired" }));
        }
        if text.contains("MOCK-DIFFER") {
            results.push(json!({ "id": id, "kind": "expired" }));
        }
        if text.contains("MOCK-TWICE") {
            results.push(result.clone());
        }
        results.push(result);
    }
    results
}

fn answered(id: &str, wire: Wire, reply: &Reply) -> Value {
    let body = match &reply.error {
        Some(message) => wire.error_body(reply.status, message),
        None => wire.complete(reply),
    };
    json!({ "id": id, "kind": "reply", "status": reply.status, "body": body })
}

/// A request to a batch interface.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) bytes: &'a [u8],
    pub(crate) body: &'a Value,
}

impl Request<'_> {
    /// Returns a parameter of the query.
    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    fn cancels_ended_job(&self, batches: &Batches) -> bool {
        let path = self.path.strip_suffix("/cancel").or_else(|| self.path.strip_suffix(":cancel"));
        let job = path.filter(|_| self.method == "POST").and_then(|path| self.job(batches, path));
        job.is_some_and(|job| job["state"] != "running")
    }

    /// Returns the job with the number at the end of an ID.
    fn job(&self, batches: &Batches, id: &str) -> Option<Value> {
        let number = id.rsplit(['-', '_']).next()?.parse().ok()?;
        read(&batches.path(number))
    }
}

/// Returns a page of the list, from the newest on, and whether there are more.
fn page(batches: &Batches, after: Option<u64>, limit: usize) -> (Vec<Value>, bool) {
    let all = batches.jobs().into_iter().rev();
    let older = all.filter(|job| after.is_none_or(|after| job["number"].as_u64() < Some(after)));
    let mut jobs: Vec<Value> = older.collect();
    let has_more = jobs.len() > limit;
    jobs.truncate(limit);
    (jobs, has_more)
}

fn count(job: &Value, kinds: &[&str]) -> usize {
    let all = job["results"].as_array().into_iter().flatten();
    all.filter(|result| kinds.contains(&kind(result))).count()
}

fn kind(result: &Value) -> &str {
    let is_error = result["status"].as_u64().is_some_and(|status| status >= 300);
    if is_error { "error" } else { result["kind"].as_str().unwrap_or_default() }
}

/// Returns the ID of a job in a list; null if there is none.
fn id_of(job: Option<&Value>) -> Value {
    job.map_or(Value::Null, |job| job["id"].clone())
}

fn lines(values: impl Iterator<Item = Value>) -> String {
    values.map(|value| format!("{value}\n")).collect()
}

fn number(id: &str) -> Option<u64> {
    id.rsplit(['-', '_']).next()?.parse().ok()
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The first of the times at which jobs are created.
const CREATED: u64 = 1_790_000_000;

/// Returns the headers of the answer.
pub(crate) fn headers(request: &Request<'_>) -> Vec<(String, String)> {
    let url = gemini::upload_url(request).map(|url| ("x-goog-upload-url".to_owned(), url));
    url.into_iter().collect()
}

/// Answers a request to a batch interface: the step, the status and the body. None if the path is another.
pub(crate) fn respond(
    batches: &Batches,
    request: &Request<'_>,
    answer: &mut dyn FnMut(&Value) -> Reply,
) -> Option<(BatchStep, u16, String)> {
    if request.cancels_ended_job(batches) {
        let body =
            r#"{"error": {"code": 400, "message": "The job has ended.", "type": "invalid_request_error"}}"#;
        return Some((BatchStep::Cancel, 400, body.to_owned()));
    }
    let (step, body) = openai::respond(batches, request, answer)
        .or_else(|| anthropic::respond(batches, request, answer))
        .or_else(|| gemini::respond(batches, request, answer))?;
    Some((step, 200, batches.cut(step, body)))
}
