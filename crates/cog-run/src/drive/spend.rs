//! Counts the calls of a run in its budgets.

use std::{sync::Arc, time::Duration};

use cog_answer::Assembler;
use cog_provider::{Deadline, ProviderError};
use cog_spec::{Code, ErrorBody};
use tokio::time::Instant;

use super::{Driver, State};
use crate::{budget::OpenCall, preflight, request};

impl Driver {
    /// Counts a call to a model.
    ///
    /// # Errors
    /// E4002 if a budget is spent.
    pub(super) fn admit(&mut self) -> Result<(), ErrorBody> {
        let run = &self.run;
        if run.budgets.is_empty() || !preflight::calls_model(run.provider.as_ref()) {
            return Ok(());
        }
        let model = request::model_of(&run.request, run.provider.as_ref());
        let input_tokens = preflight::estimate(&run.request, model);
        let provider = Arc::clone(&run.provider);
        let module = &run.spec.module.manifest.name;
        let call = OpenCall::new(
            &run.budgets,
            module,
            provider,
            model,
            input_tokens,
            run.request.generation.max_tokens,
        )?;
        let counter = call.counter();
        let hook = run.spec.listeners.retry_hook(run.provider.info(), move || counter.admit_retry());
        self.run.request.on_retry = Some(hook);
        self.counted = Some(call);
        Ok(())
    }

    /// Ends a run whose next call a budget refuses. Another run can spend the budget after [`Self::limit_attempts`].
    pub(super) fn refuse(&mut self, mut assembler: Box<Assembler>, error: ErrorBody) -> State {
        self.set_cost(&mut assembler);
        self.spend(&assembler);
        self.record_answer(&assembler);
        assembler.refuse(error, self.started.elapsed(), &mut self.out);
        State::Ended
    }

    /// Makes this attempt the last one if a budget is spent, so that a failure of the answer is not lost.
    pub(super) fn limit_attempts(&self, assembler: &mut Assembler) {
        if !preflight::calls_model(self.run.provider.as_ref()) {
            return;
        }
        if let Some(error) = self.run.budgets.iter().find_map(|budget| budget.check().err()) {
            assembler.end_attempts(error);
        }
    }

    /// Adds the tokens and the cost of the current call, and reports its end.
    pub(super) fn spend(&mut self, assembler: &Assembler) {
        if let Some(mut call) = self.call.take() {
            call.set_usage(assembler.reply_usage());
        }
        if let Some(call) = self.counted.take() {
            call.end(assembler.reply_usage().filter(|_| !assembler.is_uncounted()));
        }
    }

    /// Ends the current call without tokens, because the provider rejected it. Returns the error of the budget that refused to
    /// retry it, if one did.
    pub(super) fn refund(&mut self) -> Option<ErrorBody> {
        self.counted.take().and_then(OpenCall::reject)
    }
}

// The time limit of a run.

impl Driver {
    pub(super) fn timeout_error(&self) -> ErrorBody {
        let message = format!("the run took longer than {:?}", self.run.timeout);
        ErrorBody::new(Code::StreamTimeout, message).suggest(self.more_time())
    }

    /// Returns the error of a call. If the time of the run has passed, it names the setting of that time.
    pub(super) fn error_of(&self, error: &ProviderError) -> ErrorBody {
        let body = ErrorBody::from(error);
        match error {
            ProviderError::Timeout { deadline: Deadline::Total, .. } => body.suggest(self.more_time()),
            _ => body,
        }
    }

    fn more_time(&self) -> String {
        format!("Raise {}, or request a shorter answer.", self.run.timeout_setting)
    }

    /// Returns the time remaining for the run.
    pub(super) fn remaining(&self) -> Duration {
        self.run.timeout.saturating_sub(self.started.elapsed())
    }

    pub(super) fn deadline(&self) -> Instant {
        self.instant_at(self.run.timeout)
    }

    /// Returns the instant after this time of the run, or one far in the future when it overflows.
    pub(super) fn instant_at(&self, elapsed: Duration) -> Instant {
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.started.checked_add(elapsed).unwrap_or_else(|| self.started + FAR)
    }
}
