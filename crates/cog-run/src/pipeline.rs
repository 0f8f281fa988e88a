//! The pipeline of one run: from a module and an input to chunks.
//!
//! ```text
//! Module → CheckedInput → Conversation → ModelRequest → ModelEvent* → Chunk* → Envelope
//! ```
//!
//! Each step is a function from one type to the next; `docs/flow.md` links each to its file. [`prepare`]
//! returns every error that is known before the provider is called (ruling R54). Later errors are chunks, and
//! [`ChunkStream::fold`] folds the chunks into one envelope.

mod part;

use std::{borrow::Cow, collections::VecDeque, sync::Arc, time::Duration};

use cog_module::Module;
use cog_provider::Provider;
use cog_spec::{ErrorBody, Warning};

use crate::{
    Budget, ChunkStream, RunInput, RunOptions, cache,
    composition::{self, Composed, ComposedModule, PartsReply, PendingParts},
    context::Shared,
    drive::Driver,
    input::CheckedInput,
    media::{MediaSink, Sources},
    module_context::Given,
    offline,
    plan::{Plan, Prepared, answer_rules, handoff_rules, misaddressed},
    preflight,
    prompt::image_request,
    recorder::Recorder,
    request::RequestSpec,
    session,
    stream::Outlet,
    tools::{self, Restored, ToolRun},
};

/// Runs every step before the call to the provider. `composed` is [`Composed::Unknown`] for a run that is not part of another.
///
/// # Errors
/// Errors that are known before the provider is called: a caller without permission, an invalid input, or
/// content that the runtime or the provider does not support.
pub(crate) fn prepare(
    shared: &Arc<Shared>,
    module: &Arc<Module>,
    input: RunInput,
    options: &RunOptions,
    composed: &Composed,
) -> Result<Prepared, ErrorBody> {
    preflight::caller(&module.manifest, options.caller)?;
    let texts = composed.texts();
    let composed = composition::composed_module(shared, module, composed)?;
    let Restored { options, input, continued, halted_parts } =
        tools::restore(shared, module, input, options)?;
    let options = &*with_budget(shared, options);
    let session_id = session::given_or_new_id(options.session_id.as_deref())?;
    let input = CheckedInput::new(module, input)?;
    let parts = (input.given_context(), input.without_context());
    let context = Given::read(shared, module, options, &session_id, parts)?;
    let input = input.with_context(module, context.value)?;
    let handoff = handoff_rules(module, input.packet().cloned(), options)?;
    let chosen = shared.providers.choose(options.provider.as_deref())?;
    let is_offline = chosen.is_empty();
    let (provider, others, mut warnings) = providers(chosen, composed.as_deref(), module, &input)?;
    warnings.extend(misaddressed(module, input.packet()));
    let model = options.model.as_deref().unwrap_or_default();
    warnings.extend(preflight::media_output(module, provider.as_ref(), model, options)?);
    let compiled = shared.compilations.get(module);
    let media = Sources::new(shared, module, &input, options)?;
    let media_sink = Arc::new(MediaSink::new(shared, module, options, is_offline));
    let (chosen, preferred) = (options.generation.clone(), shared.generation.or(&module.manifest.generation));
    let observer = shared.observer.clone();
    let image = image_request::from_input(module, &input).map(Arc::new);
    let (mut tools, missing) = ToolRun::new(shared, module, &input, options, continued.as_deref());
    warnings.extend(missing);
    if let Some(tools) = &tools {
        tools.check_price(provider.as_ref(), model)?;
    }
    for other in &others {
        preflight::media_output(module, other.as_ref(), "", options)?;
        preflight::requirements(&module.manifest, other.as_ref(), "", tools.is_some())?;
    }
    warnings.extend(preflight::requirements(&module.manifest, provider.as_ref(), model, tools.is_some())?);
    let set = tools.as_ref().map(|tools| tools.set());
    let spec = RequestSpec {
        module: Arc::clone(module),
        compiled,
        chosen,
        preferred,
        image,
        texts,
        tools: set,
        observer,
    };
    let limit = composed.as_ref().and_then(|composed| composed.timeout());
    let timeout = options.timeout.unwrap_or(shared.timeout).min(limit.unwrap_or(Duration::MAX));
    let (mut request, omitted) = spec.first_request(provider.as_ref(), model, &others, &input, timeout)?;
    request.messages.0.extend(continued.iter().flat_map(|continued| continued.messages()));
    warnings.extend(omitted);
    let mut rules = answer_rules(module, &request, provider.as_ref(), options, session_id);
    rules.warnings.extend(warnings);
    rules.handoff = handoff;
    rules.input = Some(input.for_prompt().clone());
    rules.keys = others.iter().chain([&provider]).filter_map(|one| one.info().key.clone()).collect();
    rules.calls_tools = tools.is_some();
    if let Some(tools) = &mut tools {
        tools.set_session(&rules.session_id);
    }
    let is_cached = composed.is_none() && continued.is_none() && !is_offline;
    let answers = shared.cache.as_ref().filter(|_| is_cached);
    let cached = cache::lookup(answers, module, &input, (provider.as_ref(), &request), options);
    rules.runtime.cache = cached.hit;
    rules.warnings.extend(cached.warning);
    let (provider, others, budgets) = called(cached.replay, provider, others, options);
    preflight::budgets(&budgets, (provider.as_ref(), model), &others)?;
    let halted_runs = (!options.is_tool).then(|| shared.tools.halted.clone());
    let start = |composed| {
        PendingParts::new(part::starter(shared), composed, options, input, halted_runs, halted_parts)
    };
    let parts = composed.map(|composed| Box::new(start(composed)));
    Ok(Prepared {
        plan: Plan {
            provider,
            others,
            spec,
            request,
            media,
            media_sink,
            parts,
            parts_state: None,
            budgets,
            cache: cached.sink,
            tools,
            recorder: Recorder::new(options, &rules.session_id),
            context: Some(context.sink),
            timeout,
            cancellation: options.cancellation.clone(),
        },
        rules,
        claim: continued.and_then(|continued| continued.claim),
    })
}

/// Calls the provider, and returns the chunks of the answer as they arrive.
pub(crate) fn run(run: Prepared) -> ChunkStream {
    let session_id = run.rules.session_id.clone();
    let outlet = Outlet::default();
    let driver = Driver::new(run.plan, run.rules, outlet.clone());
    ChunkStream::new(session_id, outlet, driver.run())
}

/// Adds the budget of the run to its options, so that its parts and tools share it.
fn with_budget<'a>(shared: &Shared, options: Cow<'a, RunOptions>) -> Cow<'a, RunOptions> {
    match Budget::for_run(shared.budget, &options.budgets) {
        Some(budget) => Cow::Owned(options.into_owned().budget(budget)),
        None => options,
    }
}

/// The first provider, its fallbacks, and the budgets that their calls are counted in.
type Called = (Arc<dyn Provider>, VecDeque<Arc<dyn Provider>>, Vec<Budget>);

/// Returns the providers of a run and the budgets that their calls are counted in. A stored reply takes the place of all.
fn called(
    replay: Option<Arc<dyn Provider>>,
    provider: Arc<dyn Provider>,
    others: VecDeque<Arc<dyn Provider>>,
    options: &RunOptions,
) -> Called {
    match replay {
        Some(replay) => (replay, VecDeque::new(), Vec::new()),
        None => (provider, others, options.budgets.clone()),
    }
}

/// The first provider, its fallbacks, and the warnings of the choice.
type Chain = (Arc<dyn Provider>, VecDeque<Arc<dyn Provider>>, Vec<Warning>);

/// Returns the providers of a run. A composed module whose parts give the answer calls none itself.
fn providers(
    chosen: Vec<Arc<dyn Provider>>,
    composed: Option<&dyn ComposedModule>,
    module: &Module,
    input: &CheckedInput,
) -> Result<Chain, ErrorBody> {
    if composed.is_some_and(|composed| !composed.uses_own_prompt()) {
        return Ok((Arc::new(PartsReply::new(String::new())), VecDeque::new(), Vec::new()));
    }
    or_offline(chosen, module, input)
}

/// Returns the providers in their order, or the offline provider when there are none.
fn or_offline(
    chosen: Vec<Arc<dyn Provider>>,
    module: &Module,
    input: &CheckedInput,
) -> Result<Chain, ErrorBody> {
    let mut chosen = VecDeque::from(chosen);
    if let Some(first) = chosen.pop_front() {
        return Ok((first, chosen, Vec::new()));
    }
    let (offline, warning) = offline::provider(module, input)?;
    Ok((offline, chosen, vec![warning]))
}
