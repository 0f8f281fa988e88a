//! The steps before the call of a run that collects evidence: its first run, the further ones, and the judge.

use std::sync::{Arc, OnceLock};

use cog_module::Module;
use cog_spec::{Code, ErrorBody, EvidenceRequest, Generation, WarningCode};

use super::{collected, prepare, prepare_with_events, run};
use crate::{
    Budget, RunContext, RunInput, RunOptions,
    composition::{CompositionMode, PartRun, StartPart},
    evidence::{self, CollectedRun, Collection, Collector, Judge, JudgementSlot, StartNext},
    plan::PreparedRun,
    runtime_state::RuntimeState,
};

/// Prepares a run, and the others that the evidence about its answer needs. Most runs need none.
///
/// # Errors
/// The errors of [`prepare`], and of evidence that cannot be collected.
pub(super) fn prepare_collection(
    state: &Arc<RuntimeState>,
    module: &Arc<Module>,
    input: RunInput,
    options: &RunOptions,
    context: RunContext,
    mode: &CompositionMode,
) -> Result<PreparedRun, ErrorBody> {
    let request = evidence::requested(options, &module.manifest);
    if !evidence::needs_collection(request) {
        return prepare(state, module, input, options, context, mode);
    }
    let mut request = request.clone();
    // A run that continues has messages of its own, which no other run would repeat.
    if options.approval.is_some() {
        request.agreement = None;
    }
    let mut options = RunOptions { evidence: Some(evidence::of_one_run(&request)), ..options.clone() };
    // All runs share one budget.
    options.budgets.extend(Budget::for_run(state.budget, &options.budgets));
    let context = RunContext { collected: Some(request), ..context };
    Round { state, module, input, options, context, mode: mode.clone() }.prepare()
}

/// The runs of a collection that ask the same providers.
struct Round<'a> {
    state: &'a Arc<RuntimeState>,
    module: &'a Arc<Module>,
    input: RunInput,
    options: RunOptions,
    context: RunContext,
    mode: CompositionMode,
}

impl Round<'_> {
    fn prepare(self) -> Result<PreparedRun, ErrorBody> {
        let Self { state, module, input, options, context, mode } = &self;
        let request = context.collected.clone().unwrap_or_default();
        let composition = mode.composition(&state.compositions, &state.modules, module)?;
        evidence::admit(&request, module, composition.as_deref(), &options.budgets)?;
        let mut first = prepare(state, module, input.clone(), options, context.clone(), mode)?;
        if first.rules.warnings.iter().any(|warning| warning.code == WarningCode::NoModelCalled) {
            first.rules.defers_confidence = false;
            return Ok(first);
        }
        first.rules.is_part = true;
        first.plan.judgement_slot = Some(JudgementSlot::default());
        let others = Others { state, module, options, context, first: &first };
        let samples = others.samples(&request, input, mode);
        let judge = others.judge(&request)?;
        let media = first.plan.media.is_some().then(|| Arc::new(OnceLock::new()));
        first.plan.media_slot.clone_from(&media);
        let generation = &first.plan.request.generation;
        let collector = Collector {
            module: Arc::clone(module),
            is_deterministic: generation.temperature == Some(0.0),
            request,
            input: first.rules.input.clone().unwrap_or_default(),
            judge,
            media,
            context: first.plan.context.take(),
            cancellation: options.cancellation.clone(),
            timeout: first.plan.timeout,
            is_streamed: !context.is_folded,
        };
        let next = self.next(&first);
        first.collection = Some(Box::new(Collection { samples, collector, next }));
        Ok(first)
    }

    /// Returns what starts the same runs with the next providers; none if the gate of the answer cannot ask one.
    fn next(self, first: &PreparedRun) -> Option<StartNext> {
        let Self { state, module, input, options, mut context, mode } = self;
        // A run that continues has been taken by the first provider.
        if !first.rules.defers_confidence || first.plan.others.is_empty() || options.approval.is_some() {
            return None;
        }
        let state = Arc::clone(state);
        let module = Arc::clone(module);
        let providers: Vec<String> =
            first.plan.others.iter().map(|provider| provider.info().name.clone().into_owned()).collect();
        context.session_id = Some(first.rules.session_id.clone());
        context.resume_from = None; // the stream has begun
        Some(Box::new(move |asked, timeout| {
            // The first provider is not in the list.
            let left = providers.get(asked.saturating_sub(1)..).unwrap_or_default();
            let options = RunOptions {
                provider: Some(left.join(",")),
                model: None, // the one of a request is for the first provider
                timeout: Some(timeout),
                ..options
            };
            let mut prepared =
                Round { state: &state, module: &module, input, options, context, mode }.prepare()?;
            let collection = prepared.collection.take().ok_or_else(|| {
                ErrorBody::new(Code::ProviderUnavailable, "the next provider calls no model")
            })?;
            Ok((collected(prepared), collection))
        }))
    }
}

/// Returns what starts the judge of a collection, which stores nothing for later runs.
fn start_judge(state: &Arc<RuntimeState>) -> StartPart {
    let state = Arc::clone(state);
    Arc::new(move |PartRun { module, input, options, context, mode }| {
        let prepared = prepare_with_events(&state, &module, input, &options, context, &mode)?;
        Ok(of_collection(prepared).chunks)
    })
}

/// Starts another run of a collection, which stores nothing for later runs.
fn of_collection(mut prepared: PreparedRun) -> CollectedRun {
    prepared.rules.is_part = true; // its calls without tokens count in the sum
    prepared.plan.context = None;
    let judgement = JudgementSlot::default();
    prepared.plan.judgement_slot = Some(judgement.clone());
    CollectedRun { chunks: run(prepared), judgement }
}

/// What the other runs of a collection are made from.
struct Others<'a> {
    state: &'a Arc<RuntimeState>,
    module: &'a Arc<Module>,
    options: &'a RunOptions,
    context: &'a RunContext,
    first: &'a PreparedRun,
}

impl Others<'_> {
    /// Returns the further runs of the request.
    fn samples(
        &self,
        request: &EvidenceRequest,
        input: &RunInput,
        mode: &CompositionMode,
    ) -> Vec<Result<CollectedRun, ErrorBody>> {
        let contract = &self.module.contract;
        let runs = request.agreement.unwrap_or(1);
        // Runs that cannot be compared are not worth their price.
        if !cog_answer::evidence::has_deciding_fields(contract, &self.module.manifest.evidence) {
            return Vec::new();
        }
        let options = RunOptions { events: Vec::new(), ..self.options.clone() };
        let sample = |number: u32| {
            let mut context = self.nested(number);
            context.collected.clone_from(&self.context.collected);
            let prepared =
                prepare_with_events(self.state, self.module, input.clone(), &options, context, mode)?;
            Ok(of_collection(prepared))
        };
        (1..runs).map(sample).collect()
    }

    /// Returns the run that judges the answer.
    ///
    /// # Errors
    /// E4006 if there is no such module.
    fn judge(&self, request: &EvidenceRequest) -> Result<Option<Judge>, ErrorBody> {
        let Some(name) = &request.judge else { return Ok(None) };
        let of_run = self.options;
        let options = RunOptions {
            provider: of_run.provider.clone(),
            model: of_run.model.clone(),
            generation: Generation { service_tier: of_run.generation.service_tier, ..Generation::default() },
            owner: of_run.owner.clone(),
            trace_id: of_run.trace_id.clone(),
            cancellation: of_run.cancellation.clone(),
            budgets: of_run.budgets.clone(),
            client: of_run.client.clone(),
            // A judge is not judged.
            evidence: Some(EvidenceRequest::default()),
            ..RunOptions::default()
        };
        let module = self.state.modules.load_name(name)?;
        Ok(Some(Judge { module, options, context: self.nested(0), start: start_judge(self.state) }))
    }

    /// Returns what surrounds the other runs. Nothing of them is recorded, and none waits for a person.
    fn nested(&self, sample: u32) -> RunContext {
        // A part of a composition can collect evidence within the sample of a collection.
        const MAX_RUNS: u32 = 32;
        RunContext {
            sample: self.context.sample.wrapping_mul(MAX_RUNS).wrapping_add(sample),
            parent_span: self.context.parent_span.clone(),
            session_id: Some(self.first.rules.session_id.clone()),
            is_folded: true,
            stored_media: Arc::clone(&self.context.stored_media),
            callers: self.context.callers.clone(),
            is_tool: true,
            is_nested: true,
            is_uncached: self.context.is_uncached,
            is_calibration: self.context.is_calibration,
            ..RunContext::default()
        }
    }
}
