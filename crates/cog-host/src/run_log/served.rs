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

    /// Returns the run of a client with this session, otherwise with this trace.
    ///
    /// # Errors
    /// E1006 if the log cannot be read, or if several runs have the trace.
    fn find(&self, client: &str, id: &str) -> Result<Option<Entry>, ErrorBody> {
        if id.is_empty() {
            return Ok(None);
        }
        let mut of_session = None;
        let mut of_trace: Option<Entry> = None;
        let mut is_ambiguous = false;
        self.log.each_line(&mut |line| {
            // Most lines are of other runs, and need not be parsed.
            let entry = std::str::from_utf8(line)
                .ok()
                .filter(|line| line.contains(id))
                .and_then(|_| Entry::read(line));
            let Some(entry) = entry.filter(|entry| entry.client.as_deref() == Some(client)) else { return };
            if entry.session_id.as_deref() == Some(id) {
                of_session = Some(entry);
            } else if entry.trace_id.as_deref() == Some(id) {
                // A run that was resumed has an entry for each part, with the same session.
                is_ambiguous |= of_trace.as_ref().is_some_and(|other| other.session_id != entry.session_id);
                of_trace = Some(entry);
            }
        })?;
        match of_session.or(of_trace.filter(|_| !is_ambiguous)) {
            None if is_ambiguous => {
                let error = ErrorBody::new(Code::InvalidReference, "several runs have this trace");
                Err(error
                    .suggest("Name the run by its session, or send each run with a traceparent of its own."))
            }
            found => Ok(found),
        }
    }
}

impl RunRecords for ServedRuns {
    fn listener(&self, client: &str, options: &RunOptions) -> Arc<dyn RunEvents> {
        let requested = RequestedModel { provider: options.provider.clone(), model: options.model.clone() };
        let run = RunFacts { requested, client: Some(client.to_owned()), ..RunFacts::default() };
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
