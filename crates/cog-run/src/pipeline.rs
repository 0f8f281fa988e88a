//! One run, told once: from a module and an input to chunks.
//!
//! ```text
//! Module → CheckedInput → Conversation → ModelRequest → ModelEvent* → Chunk* → Envelope
//! ```
//!
//! Each step is a function from one type to the next; `docs/flow.md` links each to its file. What can
//! be known before the provider is asked is known when [`prepare`] returns (supplement R54); after
//! that everything is a chunk, and [`ChunkStream::fold`] makes one envelope of them again.

use std::{sync::Arc, time::Duration};

use cog_answer::AnswerRules;
use cog_harmony::Conversation;
use cog_module::Module;
use cog_provider::{ModelRequest, OutputSchema, Provider};
use cog_spec::{Code, ErrorBody, Response, Warning};
use futures_util::stream;

use crate::{
    ChunkStream, Providers, RunInput, RunOptions, Stop, drive::Driver, input::CheckedInput, media,
    offline::Offline, options, permit, prompt, session,
};

/// A run that nothing stands in the way of any more, but for the model.
pub(crate) struct Prepared {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) request: ModelRequest,
    /// What the vendor's dialect cannot say of the contract.
    pub(crate) lost: Vec<cog_schema::Loss>,
    pub(crate) rules: AnswerRules,
    pub(crate) timeout: Duration,
    pub(crate) stop: Stop,
}

/// Everything up to the question.
///
/// # Errors
/// What is known before the provider is asked: who may not run the module, an input that does not
/// fit, what neither this runtime nor the provider can take.
pub(crate) fn prepare(
    providers: &Providers,
    module: &Arc<Module>,
    input: RunInput,
    options: &RunOptions,
) -> Result<Prepared, ErrorBody> {
    permit::caller(&module.manifest, options.caller)?;
    permit::prompt(module)?;
    let input = CheckedInput::new(module, input)?;
    permit::context(&module.manifest, &input)?;
    media::refuse(module, &input)?;
    let chosen = providers.choose(options.provider.as_deref())?.into_iter().next();
    let (provider, warnings) = answering(chosen, module, &input)?;
    permit::structured_output(&module.manifest, provider.as_ref())?;
    let messages = prompt::conversation(module, &input);
    let (request, lost) = request(module, provider.as_ref(), messages, options);
    provider.render(&request).map_err(|error| ErrorBody::from(&error))?;
    let rules = rules(module, &request, provider.as_ref(), options, warnings)?;
    let timeout = options.timeout.unwrap_or(Duration::MAX);
    Ok(Prepared { provider, request, lost, rules, timeout, stop: options.stop.clone() })
}

/// Asks, and tells the answer as it comes.
pub(crate) fn run(run: Prepared) -> ChunkStream {
    let session_id = run.rules.session_id.clone();
    ChunkStream::new(session_id, stream::unfold(Driver::new(run), Driver::next))
}

/// Who answers: the provider, else what can be answered without one.
fn answering(
    provider: Option<Arc<dyn Provider>>,
    module: &Module,
    input: &CheckedInput,
) -> Result<(Arc<dyn Provider>, Vec<Warning>), ErrorBody> {
    if let Some(provider) = provider {
        return Ok((provider, Vec::new()));
    }
    let offline = Offline::new(module, input).ok_or_else(|| {
        let message = "no model was asked: no golden answer fits the input, and the schema admits no sample";
        ErrorBody::new(Code::ProviderUnavailable, message)
            .suggest("set a provider's key; `cog doctor` lists them")
    })?;
    let warning = offline.warning();
    Ok((Arc::new(offline), vec![warning]))
}

/// The question, in the dialect of the provider, and what is lost in it.
fn request(
    module: &Module,
    provider: &dyn Provider,
    messages: Conversation,
    options: &RunOptions,
) -> (ModelRequest, Vec<cog_schema::Loss>) {
    let projection = module.contract.project(provider.dialect());
    let output = OutputSchema {
        name: module.manifest.name.clone(),
        dialect: projection.dialect,
        schema: projection.schema,
    };
    let request = ModelRequest {
        model: options.model.clone().unwrap_or_default(),
        messages,
        output: Some(output),
        generation: options::merge(&module.manifest.generation, &options.generation),
        timeout: options.timeout,
    };
    (request, projection.lost)
}

/// What the answer will be held to.
fn rules(
    module: &Module,
    request: &ModelRequest,
    provider: &dyn Provider,
    options: &RunOptions,
    warnings: Vec<Warning>,
) -> Result<AnswerRules, ErrorBody> {
    let session_id = options.session_id.clone().map_or_else(session::fresh_id, Ok).map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("the system gives no random numbers: {error}"))
    })?;
    let own = module.manifest.response;
    let mut rules = AnswerRules::new(session_id, Arc::clone(&module.manifest), Arc::clone(&module.contract));
    rules.response = Response {
        on_violation: options.on_violation.unwrap_or(own.on_violation),
        max_attempts: options.max_attempts.unwrap_or(own.max_attempts),
        chunk_type: options.chunk_type.unwrap_or(own.chunk_type),
        ..own
    };
    rules.provider = provider.name().to_owned();
    let model = if request.model.is_empty() { provider.model() } else { &request.model };
    rules.runtime.model = Some(format!("{}/{model}", provider.name()));
    rules.runtime.trace_id = options.trace_id.clone();
    rules.asked = request.output.as_ref().map_or(provider.dialect(), |output| output.dialect);
    rules.strict = options.strict;
    rules.warnings = warnings;
    rules.resume_from = options.resume_from;
    rules.recovery = options.recovery;
    Ok(rules)
}
