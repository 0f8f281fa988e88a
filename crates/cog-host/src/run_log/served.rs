//! The runs of the clients of a server.

use std::sync::Arc;

use cog_run::{RunOptions, events::RunEvents, feedback::Feedback};
use cog_server::{FeedbackReceipt, RunRecords};
use cog_spec::{Code, ErrorBody};

use super::{Entry, Labels, RequestedModel, RunFacts, RunLog};
use crate::settings::Settings;

/// The log of the settings, for the runs of clients and their labels.
pub struct ServedRuns {
    log: Arc<RunLog>,
    labels: Labels,
}

impl ServedRuns {
    /// Returns the log of the settings; none if runs of clients are not logged.
    pub fn new(settings: &Settings) -> Option<Self> {
        let log = RunLog::new(settings).filter(|_| settings.logs.server.value)?;
        let labels = Labels::in_directory(&log.directory, log.redactor.clone());
        Some(Self { log: Arc::new(log), labels })
    }

    /// Returns the run of a client with this session, otherwise with this trace, request, or reply of a vendor's interface.
    ///
    /// # Errors
    /// E1006 if the log cannot be read, or if several runs have the trace or the request.
    fn find(&self, client: &str, id: &str) -> Result<Option<Entry>, ErrorBody> {
        if id.is_empty() {
            return Ok(None);
        }
        let request = request_of(id);
        let mut of_session = None;
        let mut of_other: Option<Entry> = None;
        let mut is_ambiguous = false;
        self.log.each_line(&mut |line| {
            // Most lines are of other runs, and need not be parsed.
            let entry = std::str::from_utf8(line)
                .ok()
                .filter(|line| line.contains(request))
                .and_then(|_| Entry::read(line));
            let Some(entry) = entry.filter(|entry| entry.client.as_deref() == Some(client)) else { return };
            if entry.session_id.as_deref() == Some(id) {
                of_session = Some(entry);
            } else if entry.trace_id.as_deref() == Some(id) || entry.request_id.as_deref() == Some(request) {
                // A run that was resumed has an entry for each part, with the same session.
                is_ambiguous |= of_other.as_ref().is_some_and(|other| other.session_id != entry.session_id);
                of_other = Some(entry);
            }
        })?;
        match of_session.or(of_other.filter(|_| !is_ambiguous)) {
            None if is_ambiguous => {
                let error = ErrorBody::new(Code::InvalidReference, "several runs have this trace or request");
                Err(error.suggest(
                    "Name the run by its session, or send each run with a traceparent and X-Request-Id of its own.",
                ))
            }
            found => Ok(found),
        }
    }
}

/// Returns the request that the id of a reply of OpenAI's or Anthropic's interface names; any other id as it is.
fn request_of(id: &str) -> &str {
    REPLIES.iter().find_map(|prefix| id.strip_prefix(prefix)).filter(|id| !id.is_empty()).unwrap_or(id)
}

/// How the ids of these replies begin.
const REPLIES: [&str; 3] = ["chatcmpl-", "resp_", "msg_"];

impl RunRecords for ServedRuns {
    fn listener(&self, client: &str, request_id: &str, options: &RunOptions) -> Arc<dyn RunEvents> {
        let requested = RequestedModel { provider: options.provider.clone(), model: options.model.clone() };
        let request_id = Some(request_id.to_owned()).filter(|id| !id.is_empty());
        let run = RunFacts { requested, client: Some(client.to_owned()), request_id, ..RunFacts::default() };
        self.log.listener(run, |error| tracing::warn!(%error, "a run is not in the log"))
    }

    fn label(
        &self,
        client: &str,
        id: &str,
        feedback: Feedback,
        check: &dyn Fn(&str, &Feedback) -> Result<(), ErrorBody>,
    ) -> Result<Option<FeedbackReceipt>, ErrorBody> {
        let Some(entry) = self.find(client, id)? else { return Ok(None) };
        check(&entry.module, &feedback)?;
        let added = self.labels.add(&entry.id, entry.labelled(), Some(client.to_owned()), feedback)?;
        Ok(Some(FeedbackReceipt {
            run: added.label.run,
            label: added.label.label,
            time: added.label.time,
            module: entry.module,
            is_new: added.is_new,
        }))
    }
}
