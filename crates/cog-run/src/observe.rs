//! CallGuard an operator what runs do: how the calls to providers went, and how runs ended.

mod call;
mod run;

use std::{sync::Arc, time::Duration};

use cog_provider::Provider;
use cog_spec::{Code, ErrorCode, Fallback, Usage};

pub(crate) use run::{RunObserver, refused};

/// Is told what runs do, for metrics and logs. It is called on the way of the run: what it does should be short.
pub trait Observer: Send + Sync {
    /// A call to a provider is over.
    fn called(&self, call: &Call<'_>);

    /// A run is over, or was refused before the provider was asked.
    fn ended(&self, run: &Ended<'_>);
}

/// A call to a provider that is over: its retries included, fallbacks not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// How it went.
    pub outcome: CallOutcome,
    /// From the question to the first token; none where there was none.
    pub first_token: Option<Duration>,
}

/// How a call to a provider went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The reply is there.
    Answered,
    /// The provider, or the way to it, failed.
    Failed(Code),
    /// The run did not want the rest: it was cancelled, or stopped at a violation.
    Dropped,
}

/// A run that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended<'a> {
    /// The module's name.
    pub module: &'a str,
    /// How it ended.
    pub outcome: RunOutcome<'a>,
    /// The tokens of all attempts, where they are known.
    pub usage: Option<Usage>,
    /// How often the model was asked.
    pub attempts: u32,
    /// How many repairs the answer needed.
    pub repairs: usize,
    /// Who was asked before and gave no answer.
    pub fallbacks: &'a [Fallback],
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RunOutcome<'a> {
    /// With an answer.
    Answered,
    /// With an error.
    Failed(&'a ErrorCode),
    /// Its stream was dropped before the end: nobody waits for it.
    Dropped,
}

/// The provider, with its calls told.
pub(crate) fn provider(provider: Arc<dyn Provider>, observer: &Arc<dyn Observer>) -> Arc<dyn Provider> {
    Arc::new(call::Observed::new(provider, Arc::clone(observer)))
}
