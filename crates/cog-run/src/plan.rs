//! The plan of a run that is ready to call the model.

mod handoff;
mod reduce;
mod rules;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use cog_answer::AnswerRules;
use cog_media::Processed;
use cog_provider::{ModelRequest, Provider};
use cog_spec::ErrorBody;

pub(crate) use self::{
    handoff::{handoff_rules, misaddressed},
    rules::answer_rules,
};
use crate::{
    Budget, Cancellation,
    cache::CacheSink,
    composition::{PartsState, PendingParts},
    error,
    media::{self, Collected, MediaSink, Sources},
    module_context::ContextSink,
    prompt,
    recorder::Recorder,
    request::{self, RequestSpec},
    spans::{OpenRun, SpanScope},
    tools::{Claim, ToolRun},
};

/// A run that passed every check before the call.
pub(crate) struct PreparedRun {
    pub(crate) plan: Plan,
    /// The rules by which the answer is checked.
    pub(crate) rules: AnswerRules,
    /// The span of the run, if there is a tracer.
    pub(crate) span: Option<OpenRun>,
}

/// The providers, the request and the limits of a run.
pub(crate) struct Plan {
    /// The provider that is called first.
    pub(crate) provider: Arc<dyn Provider>,
    /// The fallback providers, in order.
    pub(crate) others: VecDeque<Arc<dyn Provider>>,
    pub(crate) spec: RequestSpec,
    /// The request to the current provider.
    pub(crate) request: ModelRequest,
    /// The media to open before the first call.
    pub(crate) media: Option<Sources>,
    /// The halted run that this one continues, until its media are open.
    pub(crate) claim: Option<Claim>,
    /// The handling of media that the model generates.
    pub(crate) media_sink: Arc<MediaSink>,
    /// The parts that run before the first call.
    pub(crate) parts: Option<Box<PendingParts>>,
    /// The parts that have run.
    pub(crate) parts_state: Option<PartsState>,
    /// Stores the reply of a successful answer.
    pub(crate) cache: Option<CacheSink>,
    /// The budgets that the calls are counted in.
    pub(crate) budgets: Vec<Budget>,
    /// The tools that the model may call.
    pub(crate) tools: Option<Box<ToolRun>>,
    /// Records the messages of the run.
    pub(crate) recorder: Option<Box<Recorder>>,
    /// Where the spans of calls belong, if there is a tracer.
    pub(crate) spans: Option<SpanScope>,
    /// Stores the context that the answer emits.
    pub(crate) context: Option<ContextSink>,
    pub(crate) timeout: Duration,
    /// The setting of `timeout`, for messages.
    pub(crate) timeout_setting: &'static str,
    pub(crate) cancellation: Cancellation,
}

impl Plan {
    /// Adds the media of the input, and the texts of its artifacts, to the request.
    ///
    /// # Errors
    /// The provider does not support the media.
    pub(crate) async fn add_media(
        &mut self,
        collected: &Collected,
        all: Vec<Processed>,
    ) -> Result<Vec<Processed>, ErrorBody> {
        let encode = move || (media::parts_of(&all), all);
        let encoded = tokio::task::spawn_blocking(encode).await;
        let (parts, all) = encoded.map_err(|error| error::from_task(&error))?;
        let mut parts = parts.map_err(|error| ErrorBody::from(&error))?;
        parts.extend(collected.texts().parts());
        if let Some(composed) = &mut self.parts {
            composed.media.clone_from(&parts);
        }
        let instructions = request::instructions(self.request.output.as_deref());
        let (module, texts) = (&self.spec.module, &self.spec.texts);
        let messages = prompt::conversation(module, instructions, collected.input(), texts, parts)?;
        let initial = messages.messages().len();
        let former = std::mem::replace(&mut self.request.messages, messages);
        self.request.messages.0.extend(former.0.into_iter().skip(initial));
        self.provider.check(&self.request).map_err(|error| ErrorBody::from(&error))?;
        Ok(all)
    }
}
