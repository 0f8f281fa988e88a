//! The steps before the call to the provider.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use cog_answer::{AnswerRules, HandoffRules};
use cog_media::{Access, Delivery};
use cog_module::{Module, Origin};
use cog_provider::{ModelRequest, Provider};
use cog_spec::{Code, ErrorBody, Secret, Warning, WarningCode};

use crate::{
    Budget, Providers, RunContext, RunInput, RunOptions,
    cache::{self, Cached},
    composition::{Composition, CompositionMode, CompositionProvider, PendingComposition},
    confidence::RequiredConfidence,
    events::{Recorder, RunScope},
    evidence, form,
    input::CheckedInput,
    media::{MediaSink, MissingMedia, Sources},
    module_context::{ContextSink, ContextSources, InputContext},
    offline,
    plan::{Plan, PreparedRun, answer_rules, handoff_rules, misaddressed},
    preflight, prompt,
    request::RequestSpec,
    runtime_state::RuntimeState,
    session,
    tools::{self, Continued, ContinuedPart, Restored, ToolRun, ToolSources},
};

/// Runs every step before the call to the provider. `mode` is [`CompositionMode::Find`] for a run that is not part of another.
///
/// # Errors
/// Errors that are known before the provider is called: a caller without permission, an invalid input, or
/// content that the runtime or the provider does not support.
pub(crate) fn prepare(
    state: &Arc<RuntimeState>,
    module: &Arc<Module>,
    input: RunInput,
    options: &RunOptions,
    context: RunContext,
    mode: &CompositionMode,
) -> Result<PreparedRun, ErrorBody> {
    preflight::caller(&module.manifest, options.caller)?;
    let composition = mode.composition(&state.compositions, &state.modules, module)?;
    // First of all: a run that continues has the input and the options of the run before it.
    let Restored { mut options, context, input, continued, halted_parts } =
        tools::restore(&state.tools.halted, module, input, options, context)?;
    // The parts of the run and the modules that it calls as tools share its budget.
    if let Some(budget) = Budget::for_run(state.budget, &options.budgets) {
        options.to_mut().budgets.push(budget);
    }
    if let Some(access) = access_to_module(options.media.as_ref().unwrap_or(&state.media), module) {
        options.to_mut().media = Some(access);
    }
    let texts = mode.texts();
    let run = Run { state, module, options: &options, context: &context, composition, texts };
    let accepted = run.accept(input)?;
    let call = run.call(&accepted, continued.as_deref())?;
    let cached = run.cached(&accepted.input, &call, continued.is_some());
    let confidence = run.confidence();
    let mut rules = run.rules(&accepted, &call, &cached);
    rules.defers_confidence = confidence.is_some() && run.context.collected.is_some();
    rules.confidence =
        confidence.as_ref().map(|required| required.rules(module, call.chain.first.as_ref(), &call.request));
    let plan = run.plan(accepted, call, cached, halted_parts)?;
    let claim = continued.and_then(|continued| continued.claim);
    let client = options.client.clone();
    Ok(PreparedRun { plan: Plan { claim, confidence, ..plan }, rules, collection: None, open: None, client })
}

/// Returns the access with the directory of the module, if a run may open its files. The parts and tools of the run get the same
/// access: a path in their input comes from the input of this module, and stays relative to it.
fn access_to_module(access: &Access, module: &Module) -> Option<Access> {
    let directory = match &module.origin {
        Origin::Directory(directory) => Some(directory.as_path()),
        _ => None,
    };
    access.opens_module_files.then(|| access.clone().for_module(directory))
}

/// A run that is being prepared.
struct Run<'a> {
    state: &'a Arc<RuntimeState>,
    module: &'a Arc<Module>,
    options: &'a RunOptions,
    context: &'a RunContext,
    /// The parts of the module, if it calls other modules.
    composition: Option<Arc<Composition>>,
    /// The texts that replace the calls and references of the prompt.
    texts: Arc<[String]>,
}

/// An input that was checked, with what was given with it.
struct Accepted {
    session_id: String,
    input: CheckedInput,
    /// Stores the context that the answer emits.
    context: ContextSink,
    handoff: HandoffRules,
}

/// The first request, and who receives it.
struct Call {
    chain: Chain,
    tools: Option<Box<ToolRun>>,
    media: Option<Sources>,
    spec: RequestSpec,
    request: ModelRequest,
    timeout: Duration,
    timeout_setting: &'static str,
    warnings: Vec<Warning>,
    /// The optional media of the answer that the model cannot generate.
    not_generated: Vec<MissingMedia>,
}

impl Run<'_> {
    /// Checks the input, its context and its handoff packet.
    fn accept(&self, input: RunInput) -> Result<Accepted, ErrorBody> {
        let Self { state, module, options, .. } = self;
        let session_id = session::given_or_new_id(self.context.session_id.as_deref())?;
        let input = CheckedInput::new(module, input)?
            .with_instructions(options.instructions.clone())
            .with_history(options.messages.clone());
        let sources = ContextSources {
            store: &state.context,
            modules: &state.modules,
            owner: options.owner.as_deref(),
            session_id: &session_id,
            scope: options.context.as_ref(),
        };
        let InputContext { value, sink: context } =
            InputContext::read(module, &sources, input.given_context(), input.without_context())?;
        let input = input.with_context(module, value)?;
        let handoff = handoff_rules(module, input.packet().cloned(), options.handoff_to.clone())?;
        Ok(Accepted { session_id, input, context, handoff })
    }

    /// Chooses the providers and the tools, checks that they have what the module requires, and builds the first request.
    fn call(&self, accepted: &Accepted, continued: Option<&Continued>) -> Result<Call, ErrorBody> {
        let Self { state, module, options, composition, .. } = self;
        let input = &accepted.input;
        let (chain, offline) = Chain::new(&state.providers, module, options, composition.as_deref(), input)?;
        let mut warnings = Vec::from_iter(offline);
        warnings.extend(misaddressed(module, input.packet()));
        let media = self.media(input)?;
        // Before the checks of the model: a model may accept no schema together with tools.
        let (tools, missing) = self.tools(&chain, accepted, continued)?;
        warnings.extend(missing);
        let (not_generated, preferences) =
            chain.check(module, self.model(), &options.delivery, tools.is_some())?;
        warnings.extend(preferences);
        let mut spec = self.spec(input, tools.as_deref());
        let (timeout, timeout_setting) = self.timeout();
        let first = chain.first.as_ref();
        let requested = spec.first_request(first, self.model(), &chain.others, input, timeout);
        let (mut request, omitted) = match requested {
            Err(error) if error.code == Code::InputTooLarge.into() && spec.example_input.take().is_some() => {
                warnings.push(Warning::new(
                    WarningCode::SettingOmitted,
                    "The examples were left out: with them, the prompt exceeds the context window.",
                ));
                spec.first_request(first, self.model(), &chain.others, input, timeout)?
            }
            requested => requested?,
        };
        // A run that continues creates the prompt and the input again; its other messages are stored.
        request.messages.0.extend(continued.iter().flat_map(|continued| continued.messages()));
        warnings.extend(omitted);
        warnings.extend(spec.form_choice(first, self.model()).warning);
        Ok(Call { chain, tools, media, spec, request, timeout, timeout_setting, warnings, not_generated })
    }

    /// Returns the media and text files that the input names; none if it names none.
    fn media(&self, input: &CheckedInput) -> Result<Option<Sources>, ErrorBody> {
        if !input.has_files() {
            return Ok(None);
        }
        let context = self.context;
        let mut access = self.access().clone();
        access.owner.clone_from(&self.options.owner);
        access.stored = Arc::clone(&context.stored_media);
        let is_resumed = context.resume_from.is_some();
        Sources::new(self.module, input, access, context.call_log.clone(), is_resumed).map(Some)
    }

    /// Returns the media that the run may open from its input.
    fn access(&self) -> &Access {
        self.options.media.as_ref().unwrap_or(&self.state.media)
    }

    /// Returns the tools of the run, with the warnings about those that do not exist.
    fn tools(
        &self,
        chain: &Chain,
        accepted: &Accepted,
        continued: Option<&Continued>,
    ) -> Result<(Option<Box<ToolRun>>, Vec<Warning>), ErrorBody> {
        let sources = ToolSources {
            settings: &self.state.tools,
            modules: Arc::<RuntimeState>::clone(self.state),
            scope: self.scope(),
            session_id: &accepted.session_id,
            options: self.options,
            context: self.context,
        };
        let (tools, missing) = ToolRun::new(sources, self.module, &accepted.input, continued);
        if let Some(tools) = &tools {
            tools.check_price(chain.first.as_ref(), self.model())?;
        }
        Ok((tools, missing))
    }

    fn spec(&self, input: &CheckedInput, tools: Option<&ToolRun>) -> RequestSpec {
        let Self { state, module, options, context, texts, .. } = self;
        let mut chosen = options.generation.clone();
        let mut preferred = state.generation.or(&module.manifest.generation);
        // With the same seed, the runs of one request would give the same answer.
        for generation in [&mut chosen, &mut preferred] {
            generation.seed = generation.seed.map(|seed| seed.wrapping_add(i64::from(context.sample)));
        }
        RequestSpec {
            module: Arc::clone(module),
            compiled: state.compilations.get(module),
            example_input: form::may_have_examples(
                options.generation.ask.or(preferred.ask).unwrap_or_default(),
                module,
            )
            .then(|| input.original()),
            chosen,
            preferred,
            image: prompt::image_request(module, input).map(Arc::new),
            texts: Arc::clone(texts),
            tools: tools.map(ToolRun::set),
            wants_probabilities: evidence::requested(options, &module.manifest).logprob,
            may_explain: options.budgets.iter().all(|budget| budget.has_room_for(2)),
            listeners: self.context.listeners.clone(),
        }
    }

    /// Returns the stored answer to the request. Only a complete run of one module has one.
    fn cached(&self, input: &CheckedInput, call: &Call, is_continued: bool) -> Cached {
        let Self { options, context, .. } = self;
        let is_new = !is_continued && options.approval.is_none() && context.resume_from.is_none();
        let is_cached =
            self.composition.is_none() && is_new && !call.chain.is_offline && !context.is_uncached;
        let answers = self.state.cache.as_ref().filter(|_| is_cached);
        let answers = answers.map(|answers| answers.for_sample(context.sample));
        let provider = call.chain.first.as_ref();
        cache::lookup(answers.as_ref(), self.module, input, provider, &call.request, options)
    }

    /// Returns what the run requires of the confidence of its answer. A calibration measures it as it is.
    fn confidence(&self) -> Option<RequiredConfidence> {
        match self.context.is_calibration {
            true => None,
            false => {
                let evidence = self.context.collected.as_ref();
                let evidence =
                    evidence.unwrap_or_else(|| evidence::requested(self.options, &self.module.manifest));
                RequiredConfidence::new(&self.state.calibrations, self.module, self.options, evidence)
            }
        }
    }

    /// Returns the rules by which the answer is checked.
    fn rules(&self, accepted: &Accepted, call: &Call, cached: &Cached) -> AnswerRules {
        let Accepted { session_id, input, handoff, .. } = accepted;
        let first = call.chain.first.as_ref();
        let mut rules =
            answer_rules(self.module, &call.request, first, self.options, self.context, session_id.clone());
        rules.warnings.extend(call.warnings.iter().chain(&cached.warning).cloned());
        rules.handoff = handoff.clone();
        rules.input = Some(input.for_prompt().clone());
        rules.keys = call.chain.keys();
        rules.calls_tools = call.tools.is_some();
        rules.runtime.cache = cached.hit;
        rules
    }

    /// Returns the plan of the run. A stored answer takes the place of the providers.
    fn plan(
        self,
        accepted: Accepted,
        call: Call,
        cached: Cached,
        halted_parts: Vec<ContinuedPart>,
    ) -> Result<Plan, ErrorBody> {
        let Self { state, module, options, context, .. } = self;
        let scope = self.scope();
        let mut media_sink = MediaSink::new(
            module,
            self.access(),
            options.delivery.clone(),
            options.owner.clone(),
            call.chain.is_offline,
        );
        media_sink.not_generated = call.not_generated;
        let Chain { first: provider, others, budgets, .. } = call.chain.or_replay(cached.replay);
        preflight::budgets(&budgets, provider.as_ref(), self.model(), &others)?;
        let parts = self.composition.map(|composition| {
            Box::new(PendingComposition {
                composition: Some(composition),
                module: Arc::clone(module),
                options: options.clone(),
                context: context.clone(),
                input: accepted.input,
                media: Vec::new(),
                halted_parts,
                pending_approvals: (!context.is_tool).then(|| state.tools.halted.clone()),
                start_part: super::start_part(state),
            })
        });
        Ok(Plan {
            provider,
            others,
            spec: call.spec,
            request: call.request,
            media: call.media,
            media_slot: None,
            judgement_slot: None,
            claim: None,
            media_sink: Arc::new(media_sink),
            parts,
            confidence: None,
            parts_state: None,
            budgets,
            cache: cached.sink,
            tools: call.tools,
            checks: options.checks.clone(),
            recorder: Recorder::new(&context.listeners, &accepted.session_id, options.trace_id.as_deref()),
            scope,
            context: Some(accepted.context),
            timeout: call.timeout,
            timeout_setting: call.timeout_setting,
            cancellation: options.cancellation.clone(),
        })
    }

    /// Returns who learns of the calls of the run.
    fn scope(&self) -> RunScope {
        RunScope { listeners: self.context.listeners.clone(), span: self.context.parent_span.clone() }
    }

    /// Returns the model that the first provider is called with; empty for its default.
    fn model(&self) -> &str {
        self.options.model.as_deref().unwrap_or_default()
    }

    /// Returns the time limit of the run, and its setting.
    fn timeout(&self) -> (Duration, &'static str) {
        let of_run = self.options.timeout.unwrap_or(self.state.timeout);
        match self.composition.as_ref().map(|composition| composition.timeout()) {
            Some(limit) if limit <= of_run => (limit, "`composition.timeout_ms` in the manifest"),
            _ => (of_run, "--timeout"),
        }
    }
}

// The providers of a run, in the order in which they are called.

/// The providers of a run.
struct Chain {
    /// The provider that is called first.
    first: Arc<dyn Provider>,
    /// The fallback providers, in order.
    others: VecDeque<Arc<dyn Provider>>,
    /// The budgets that the calls are counted in.
    budgets: Vec<Budget>,
    /// Whether no provider is configured.
    is_offline: bool,
}

impl Chain {
    /// Returns the providers of a run, with the warning of an answer without a model. A composed module whose parts give
    /// the answer calls none itself.
    fn new(
        providers: &Providers,
        module: &Module,
        options: &RunOptions,
        composition: Option<&Composition>,
        input: &CheckedInput,
    ) -> Result<(Self, Option<Warning>), ErrorBody> {
        let mut others = VecDeque::from(allowed(providers, options)?);
        let is_offline = others.is_empty();
        let mut warning = None;
        let first: Arc<dyn Provider> =
            if composition.is_some_and(|composition| !composition.uses_own_prompt()) {
                others.clear();
                Arc::new(CompositionProvider::new(String::new()))
            } else if let Some(first) = others.pop_front() {
                first
            } else {
                let (sample, is_sample) = offline::provider(module, input)?;
                warning = Some(is_sample);
                sample
            };
        Ok((Self { first, others, budgets: options.budgets.clone(), is_offline }, warning))
    }

    /// Returns the providers that a stored reply replaces, if there is one.
    fn or_replay(self, replay: Option<Arc<dyn Provider>>) -> Self {
        match replay {
            Some(first) => Self { first, others: VecDeque::new(), budgets: Vec::new(), ..self },
            None => self,
        }
    }

    /// Checks that each provider has what the module requires. Returns what the first one, which is called with this model, cannot
    /// generate, and the warnings about it.
    fn check(
        &self,
        module: &Module,
        model: &str,
        delivery: &Delivery,
        has_tools: bool,
    ) -> Result<(Vec<MissingMedia>, Vec<Warning>), ErrorBody> {
        let found = check(module, self.first.as_ref(), model, delivery, has_tools)?;
        for other in &self.others {
            // The driver calls each fallback with its own model.
            check(module, other.as_ref(), "", delivery, has_tools)?;
        }
        Ok(found)
    }

    /// Returns the keys of all providers, which never appear in an answer.
    fn keys(&self) -> Vec<Secret> {
        self.others.iter().chain([&self.first]).filter_map(|provider| provider.info().key.clone()).collect()
    }
}

/// Returns the providers that a run calls, in order, after a check that its client may name them.
fn allowed(providers: &Providers, options: &RunOptions) -> Result<Vec<Arc<dyn Provider>>, ErrorBody> {
    let requested = options.provider.as_deref();
    let Some(access) = &options.client.models else { return providers.choose(requested) };
    let default_order = providers.default_order();
    access.check_names(requested, default_order)?;
    let chosen = providers.choose(requested)?;
    // The model of a request is for the first provider. Each other one is called with its own.
    let models = std::iter::once(options.model.as_deref()).chain(std::iter::repeat(None));
    for (provider, model) in chosen.iter().zip(models) {
        let is_default = default_order.iter().any(|one| Arc::ptr_eq(one, provider));
        access.check_model(provider.as_ref(), model, is_default)?;
    }
    Ok(chosen)
}

fn check(
    module: &Module,
    provider: &dyn Provider,
    model: &str,
    delivery: &Delivery,
    has_tools: bool,
) -> Result<(Vec<MissingMedia>, Vec<Warning>), ErrorBody> {
    let not_generated = preflight::media_output(module, provider, model, delivery)?;
    let warnings = preflight::requirements(&module.manifest, provider, model, has_tools)?;
    Ok((not_generated, warnings))
}
