//! The evidence of a run: what supports its answer besides what the model states (docs/evidence.md).
//!
//! A run that collects evidence is a run around others. [`Collector`] passes the chunks of the first one on, except for its end.
//! Meanwhile it runs the samples, which are further runs of the same request. Then it compares the answers, searches for the strings
//! of the chosen one in the input, has it judged, and ends the stream. A calibrated confidence and its gate come last, because they
//! may depend on all evidence. If they ask the next provider, all of this is done once more with the providers that are left.

mod answers;
mod held;
mod judge;
mod rounds;

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use cog_answer::{
    DeferredJudgement,
    evidence::{self, Decision, GroundingSource},
};
use cog_json::Value;
use cog_module::Module;
use cog_spec::{
    Agreement, Chunk, Code, Envelope, ErrorBody, Evidence, EvidenceRequest, Grounding, Manifest,
    PassedChecks, Progress, Warning, WarningCode,
};
use futures_util::{
    StreamExt as _,
    future::{join, join_all},
};
use tokio::time::{Instant, timeout_at};

use self::{
    answers::{Answers, Costs},
    held::Held,
    rounds::{Asked, Rounds},
};
pub(crate) use self::{judge::Judge, rounds::StartNext};
use crate::{
    Budget, Cancellation, ChunkStream, RunOptions,
    composition::Composition,
    media::{CitedMedia, MediaText},
    module_context::ContextSink,
    stream::ChunkQueue,
};

/// Where a run leaves the media of its input once they are open.
pub(crate) type MediaSlot = Arc<OnceLock<Arc<CitedMedia>>>;

/// Where a run leaves the judgement of its answer, which waits for the evidence.
#[derive(Clone, Default)]
pub(crate) struct JudgementSlot(Arc<Mutex<Option<DeferredJudgement>>>);

impl JudgementSlot {
    /// Sets the judgement of the last answer of the run.
    pub(crate) fn set(&self, judgement: Option<DeferredJudgement>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = judgement;
    }

    fn take(&self) -> Option<DeferredJudgement> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A run of a collection.
pub(crate) struct CollectedRun {
    pub(crate) chunks: ChunkStream,
    pub(crate) judgement: JudgementSlot,
}

/// Returns what a run collects: what its options request, otherwise its manifest.
pub(crate) fn requested<'a>(options: &'a RunOptions, manifest: &'a Manifest) -> &'a EvidenceRequest {
    options.evidence.as_ref().unwrap_or(&manifest.evidence.request)
}

/// Returns whether other calls or searches are needed for it. The probabilities of tokens come with the answer.
pub(crate) fn needs_collection(request: &EvidenceRequest) -> bool {
    let EvidenceRequest { agreement, grounding, judge, logprob: _ } = request;
    agreement.is_some() || *grounding || judge.is_some()
}

/// Returns the evidence that a single run of the model gives itself, for the runs of a collection.
pub(crate) fn of_one_run(request: &EvidenceRequest) -> EvidenceRequest {
    EvidenceRequest { logprob: request.logprob, ..EvidenceRequest::default() }
}

/// Checks that the runs of a request may be repeated, and that the budgets have room for their calls.
///
/// # Errors
/// E1001 if a tool could change something with each run, E4002 for a budget.
pub(crate) fn admit(
    request: &EvidenceRequest,
    module: &Module,
    composition: Option<&Composition>,
    budgets: &[Budget],
) -> Result<(), ErrorBody> {
    let mut parts = composition.into_iter().flat_map(Composition::manifests);
    if request.agreement.is_some() && (may_change(&module.manifest) || parts.any(may_change)) {
        let name = &module.manifest.name;
        let message =
            format!("agreement repeats the run, and the tools of {name} may change something each time");
        return Err(ErrorBody::new(Code::InvalidInput, message).suggest(
            "Collect other evidence, such as `grounding` or `judge`, or deny `side_effects` in `policies`.",
        ));
    }
    let calls = u64::from(request.calls());
    budgets.iter().try_for_each(|budget| budget.check_calls(calls))
}

/// Whether a run of the module may change something outside.
fn may_change(manifest: &Manifest) -> bool {
    let policies = &manifest.policies;
    policies.tools_allowed
        && (manifest.allows_side_effects()
            || policies.filesystem_write_allowed
            || policies.code_execution_allowed)
}

/// Returns the warning about evidence that is absent, or says little.
fn warning(message: impl Into<String>) -> Warning {
    Warning::new(WarningCode::EvidenceAbsent, message)
}

/// Rounds to four digits, as all evidence.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// The further runs of a run that collects evidence, and what is collected.
pub(crate) struct Collection {
    /// The further runs, or why one could not be started.
    pub(crate) samples: Vec<Result<CollectedRun, ErrorBody>>,
    pub(crate) collector: Collector,
    /// Starts the runs with the next providers; none if no other provider can be asked.
    pub(crate) next: Option<StartNext>,
}

/// Collects the evidence about the answer of a run.
pub(crate) struct Collector {
    pub(crate) module: Arc<Module>,
    pub(crate) request: EvidenceRequest,
    /// The input as the model receives it, with numbers instead of media.
    pub(crate) input: Value,
    pub(crate) judge: Option<Judge>,
    /// The media of the input; none if it names none.
    pub(crate) media: Option<MediaSlot>,
    /// Stores the context that the answer emits.
    pub(crate) context: Option<ContextSink>,
    pub(crate) cancellation: Cancellation,
    pub(crate) timeout: Duration,
    pub(crate) is_streamed: bool,
    /// Whether the model is called at temperature 0.
    pub(crate) is_deterministic: bool,
}

impl Collection {
    /// Returns the stream of a run, from its first run.
    pub(crate) fn collect(self, first: CollectedRun) -> ChunkStream {
        let queue = ChunkQueue::default();
        ChunkStream::new(queue.clone(), self.run(first, queue))
    }

    async fn run(self, mut first: CollectedRun, out: ChunkQueue) {
        let started = Instant::now();
        let mut rounds = Rounds::default();
        let Self { mut samples, mut collector, mut next } = self;
        let deadline = started + collector.timeout;
        loop {
            let is_streamed = collector.is_streamed;
            let can_ask_next = next.is_some();
            let asked = collector.run(first, samples, can_ask_next, &mut rounds, &out).await;
            let (envelope, is_first) = match (asked, next.take()) {
                (Asked::Next { envelope, provider, fallbacks }, Some(start)) => {
                    let skipped = rounds.add(envelope, provider, fallbacks);
                    match start(skipped, deadline.saturating_duration_since(Instant::now())) {
                        Ok((run, collection)) => {
                            rounds.held = std::mem::take(&mut rounds.held).restart(is_streamed, &out);
                            first = run;
                            Self { samples, collector, next } = *collection;
                            continue;
                        }
                        Err(error) => (Envelope::failure(error), false),
                    }
                }
                (Asked::Next { envelope, .. }, None) => (envelope, false),
                (Asked::Ended { envelope, is_first }, _) => (envelope, is_first),
            };
            let held = std::mem::take(&mut rounds.held);
            let (envelope, is_first) = rounds.end(envelope, is_first, started.elapsed());
            return held.end(envelope, is_first, is_streamed, &out);
        }
    }
}

impl Collector {
    /// Runs one round, whose providers are asked the same.
    async fn run(
        &mut self,
        first: CollectedRun,
        samples: Vec<Result<CollectedRun, ErrorBody>>,
        can_ask_next: bool,
        rounds: &mut Rounds,
        out: &ChunkQueue,
    ) -> Asked {
        let started = Instant::now();
        let Rounds { costs, held, .. } = rounds;
        let CollectedRun { chunks, judgement } = first;
        let samples: Vec<_> = samples.into_iter().map(split).collect();
        let mut judgements = vec![judgement];
        judgements.extend(samples.iter().map(|(_, judgement)| judgement.clone()));
        let samples = join_all(samples.into_iter().map(|(sample, _)| fold(sample)));
        let first = async {
            forward(chunks, held, out).await;
            self.tell(out);
        };
        let ((), samples) = join(first, samples).await;
        let mut answers = Answers::new(held.take_envelope(), samples, costs);
        let chosen = self.choose(&answers);
        let mut envelope = answers.take(chosen.run);
        let mut is_first = chosen.run == 0;
        if envelope.is_ok()
            && let Some(reason) = self.cancellation.reason()
        {
            envelope = Envelope::failure(reason.error());
            is_first = false;
        }
        if envelope.is_ok() {
            envelope.warnings.extend(chosen.warnings);
        }
        // Without a model there is nothing to support.
        let is_of_model = envelope.warnings.iter().all(|warning| warning.code != WarningCode::NoModelCalled);
        if envelope.is_ok() && is_of_model {
            self.add_evidence(&mut envelope, chosen.agreement, costs, started).await;
        }
        let judgement = judgements.get(chosen.run).and_then(JudgementSlot::take);
        if let Some(judgement) = judgement.filter(|_| envelope.is_ok()) {
            let provider = judgement.provider().to_owned();
            if judgement.judge(&mut envelope, can_ask_next) {
                let fallbacks = std::mem::take(&mut envelope.meta.runtime.fallbacks);
                return Asked::Next { envelope, provider, fallbacks };
            }
        }
        self.store(&mut envelope).await;
        Asked::Ended { envelope, is_first }
    }

    /// Says that the answer is there, and what the run waits for.
    fn tell(&self, out: &ChunkQueue) {
        if self.is_streamed {
            let message = Some("Collecting evidence".to_owned());
            let stage = Some("evidence".to_owned());
            out.push(Chunk::Progress(Progress { percent: 90, stage, message, ..Progress::default() }));
        }
    }

    /// Returns which answer counts.
    fn choose(&self, answers: &Answers) -> Chosen {
        if self.request.agreement.is_none() {
            return Chosen::default();
        }
        let rule = &self.module.manifest.evidence;
        if !evidence::has_deciding_fields(&self.module.contract, rule) {
            let message = "There is no agreement: the answers of this module have no enum, boolean, number or id to compare. Name fields in `confidence.fields`.";
            return Chosen { warnings: vec![warning(message)], ..Chosen::default() };
        }
        let decisions = answers.decisions(|data| Decision::of_data(data.node(), &self.module.contract, rule));
        let mut chosen = Chosen::default();
        let failed = answers.len() - decisions.len();
        let runs: Vec<usize> = decisions.iter().map(|decided| decided.run).collect();
        let decisions: Vec<_> = decisions.into_iter().map(|decided| decided.decision).collect();
        if let Some(majority) = evidence::majority(&decisions) {
            chosen.run = runs.get(majority.index).copied().unwrap_or_default();
            chosen.agreement = (runs.len() > 1).then_some(majority.agreement);
        }
        if failed > 0 {
            let why = answers.first_failure().unwrap_or_default();
            chosen.warnings.push(warning(format!(
                "{failed} of {} runs gave no answer to compare: {why}",
                answers.len()
            )));
        }
        if self.is_deterministic && chosen.agreement.is_some() {
            let message = "The agreement says little: at temperature 0, runs mostly repeat the same answer.";
            chosen.warnings.push(warning(message));
        }
        chosen
    }

    /// Adds the evidence to a successful answer.
    async fn add_evidence(
        &self,
        envelope: &mut Envelope,
        agreement: Option<Agreement>,
        costs: &mut Costs,
        started: Instant,
    ) {
        let Some(data) = envelope.data().cloned() else { return };
        let deadline = started + self.timeout;
        let mut found = envelope.meta.runtime.evidence.take().unwrap_or_default();
        found.agreement = agreement;
        if self.request.grounding {
            match self.ground(&data, deadline).await {
                Ok(grounding) => found.grounding = grounding,
                Err(why) => envelope.warnings.push(warning(format!("There is no grounding: {why}."))),
            }
        }
        if let Some(judge) = &self.judge {
            let remaining = deadline.saturating_duration_since(Instant::now());
            match judge.run(&self.input, &data, remaining, costs).await {
                Ok(judgement) => found.judge = Some(judgement),
                Err(why) => envelope.warnings.push(warning(format!("There is no judgement: {why}"))),
            }
        }
        self.add_free(&mut found, envelope);
        envelope.meta.runtime.evidence = Some(found);
    }

    /// Adds what is known without another call.
    fn add_free(&self, found: &mut Evidence, envelope: &Envelope) {
        let runtime = &envelope.meta.runtime;
        found.repairs = u32::try_from(runtime.repairs.len()).ok();
        found.attempts = Some(runtime.attempts.unwrap_or(1));
        let of = self.module.checks.iter().count();
        let failed =
            envelope.warnings.iter().filter(|warning| warning.code == WarningCode::CheckFailed).count();
        let (Ok(of), Ok(failed)) = (u32::try_from(of), u32::try_from(failed)) else { return };
        if of > 0 {
            let passed = of.saturating_sub(failed);
            let value = rounded(f64::from(passed) / f64::from(of));
            found.checks = Some(PassedChecks { value, passed, of });
        }
    }

    /// Searches for the strings of an answer.
    ///
    /// # Errors
    /// A source cannot be searched, with the reason.
    async fn ground(&self, data: &Value, deadline: Instant) -> Result<Option<Grounding>, String> {
        let texts = tokio::select! {
            biased;
            reason = self.cancellation.wait() => return Err(reason.error().message),
            texts = timeout_at(deadline, self.texts()) => texts.map_err(|_| "the time of the run has passed")??,
        };
        let module = Arc::clone(&self.module);
        let input = self.input.clone();
        let data = data.clone();
        // The preparation of a long document takes longer than the rest of a run.
        let searched = tokio::task::spawn_blocking(move || {
            let mut sources = GroundingSource::of_input(input.node());
            sources.extend(texts.iter().map(|text| GroundingSource::new(&*text.name, text.page, &text.text)));
            sources.extend(GroundingSource::of_citations(data.node()));
            evidence::ground(data.node(), &module.contract, &module.manifest.evidence, &sources)
        });
        searched.await.map_err(|error| error.to_string())?
    }

    /// Returns the texts of the documents in the input.
    async fn texts(&self) -> Result<Vec<MediaText>, String> {
        let Some(slot) = &self.media else { return Ok(Vec::new()) };
        let media = slot.get().ok_or("the media of the input were not opened")?;
        media.texts().await
    }

    /// Stores the context that the answer emits. The runs of the collection store none.
    async fn store(&mut self, envelope: &mut Envelope) {
        let Some(sink) = self.context.take().filter(ContextSink::is_needed) else { return };
        let Some(data) = envelope.data().cloned() else { return };
        let emitted = envelope.emitted_context.clone();
        let stored = tokio::task::spawn_blocking(move || sink.add(emitted.as_ref(), &data));
        envelope.warnings.extend(stored.await.unwrap_or_default());
    }
}

/// The answer that counts.
#[derive(Default)]
struct Chosen {
    /// The number of its run; 0 for the first one, whose chunks were passed on.
    run: usize,
    agreement: Option<Agreement>,
    warnings: Vec<Warning>,
}

/// Returns a sample without its judgement, and where that will be.
fn split(sample: Result<CollectedRun, ErrorBody>) -> (Result<ChunkStream, ErrorBody>, JudgementSlot) {
    match sample {
        Ok(CollectedRun { chunks, judgement }) => (Ok(chunks), judgement),
        Err(error) => (Err(error), JudgementSlot::default()),
    }
}

async fn fold(sample: Result<ChunkStream, ErrorBody>) -> Envelope {
    match sample {
        Ok(chunks) => chunks.fold().await,
        Err(error) => Envelope::failure(error),
    }
}

/// Passes the chunks of a run on, and holds its end back.
async fn forward(mut chunks: ChunkStream, held: &mut Held, out: &ChunkQueue) {
    while let Some(chunk) = next(&mut chunks, out).await {
        held.pass(chunk, out);
        out.make_room().await;
    }
}

/// Waits for the next chunk. Once the first run calls its provider, so does the run around it.
async fn next(chunks: &mut ChunkStream, out: &ChunkQueue) -> Option<Chunk> {
    poll_fn(|context| {
        let next = chunks.poll_next_unpin(context);
        if chunks.is_prepared() {
            out.set_prepared();
        }
        next
    })
    .await
}
