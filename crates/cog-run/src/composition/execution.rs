//! The execution of a composition: one loop over the calls in flight.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use cog_answer::PartsSummary;
use cog_flow::{Answer, Callee, Iteration, Plan, PromptCall, Results, Route, Source, Target};
use cog_json::Value;
use cog_module::PromptPart;
use cog_spec::{ErrorBody, PartAnswer, PartProgress, PartReport, PartStatus, Pattern, Warning, WarningCode};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{sync::OwnedSemaphorePermit, task::yield_now, time::timeout};

use super::{
    answer::{self, CompositionAnswer, Reports, describe},
    call::{Call, CallResult, Context},
    error::{self, CompositionError},
    mapped::MappedCalls,
};
use crate::{
    CancelReason,
    parts_state::{CompositionState, HaltedPart},
};

/// The progress of a composition whose parts are done, in percent. The rest is its answer.
const PARTS_PERCENT: usize = 90;

/// What a composition returns.
pub(crate) struct CompositionResult {
    /// The reports about the parts.
    pub(crate) summary: PartsSummary,
    /// The answer. If a part waits for a confirmation, the error is the one of the part.
    pub(crate) answer: Result<CompositionAnswer, CompositionError>,
    /// The data of the parts that are done, for a failure of the module.
    pub(crate) partial_data: Option<Value>,
    /// The state from which the composition continues.
    pub(crate) state: CompositionState,
    /// What the run holds while the module's own prompt runs, so that it counts as one of the parts that call a model.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// The execution of one composition.
pub(crate) struct Execution {
    pub(super) context: Arc<Context>,
    pub(super) results: Results,
    reports: Reports,
    /// Calls that wait because too many run.
    pub(super) queue: VecDeque<Call>,
    /// The steps that run for each element of a list.
    pub(super) mapped: Vec<MappedCalls>,
    /// The number of calls that lists add to one call for each part.
    pub(super) expected: usize,
    running: FuturesUnordered<RunningCall>,
    /// The number of calls of each callee so far, for each element of a list.
    pub(super) counts: HashMap<(Callee, Option<usize>), usize>,
    /// The step of the result so far.
    pub(super) latest_step: usize,
    /// The best of the rounds that have ended.
    best: Option<BestRound>,
    /// The answers of the calls that are done, by their paths.
    finished: Vec<(String, PartAnswer)>,
    /// The calls that wait for a confirmation, with their errors.
    pub(super) halted: Vec<(HaltedPart, ErrorBody)>,
    /// What the own prompt holds while it runs after the parts.
    slot: Option<OwnedSemaphorePermit>,
}

/// A round whose results may give the answer.
struct BestRound {
    round: u32,
    score: f64,
    results: Results,
}

type RunningCall = Pin<Box<dyn Future<Output = CallResult> + Send>>;

/// What a task calls: the calls of the prompt, or the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    PromptCalls,
    Steps,
}

impl Execution {
    pub(super) fn new(context: Context) -> Self {
        Self {
            results: Results::new(context.plan(), context.input().to_value()),
            context: Arc::new(context),
            reports: Reports::default(),
            queue: VecDeque::new(),
            mapped: Vec::new(),
            expected: 0,
            running: FuturesUnordered::new(),
            counts: HashMap::new(),
            latest_step: 0,
            best: None,
            finished: Vec::new(),
            halted: Vec::new(),
            slot: None,
        }
    }

    /// Runs the parts until there is an answer or an error, the run is cancelled, or its time has passed.
    pub(crate) async fn run(mut self) -> CompositionResult {
        let context = Arc::clone(&self.context);
        let cancellation = context.options.cancellation.clone();
        let timeout = context.timeout;
        let answer = tokio::select! {
            // The answer comes last: parts that all end at once must not outrun a cancellation or the time limit.
            biased;
            reason = cancellation.wait() => Err(CompositionError::from(reason.error())),
            () = tokio::time::sleep(timeout) => Err(error::timeout(context.plan(), timeout)),
            answer = self.answer() => answer,
        };
        let answer = match answer {
            Ok(answer) => {
                self.skip_rest();
                Ok(answer)
            }
            Err(failure) => {
                let failure = self.fail(failure, cancellation.reason()).await;
                self.best_answer(context.plan(), &failure).ok_or(failure)
            }
        };
        self.end(answer)
    }

    /// Cancels what still runs. A part that waits for a confirmation decides about the end, unless the run was cancelled.
    async fn fail(&mut self, failure: CompositionError, cancelled: Option<CancelReason>) -> CompositionError {
        let context = Arc::clone(&self.context);
        self.stop(context.plan(), cancelled.unwrap_or(CancelReason::Cancelled)).await;
        self.keep_elements();
        match self.check_halted() {
            Err(halted) if cancelled.is_none() => halted,
            _ => failure,
        }
    }

    fn end(self, answer: Result<CompositionAnswer, CompositionError>) -> CompositionResult {
        let is_halted = matches!(&answer, Err(error) if error.is_halted);
        let halted = self.halted.into_iter().filter(|_| is_halted).map(|(part, _)| part).collect();
        CompositionResult {
            summary: self.reports.close(),
            answer,
            partial_data: answer::partial(self.context.plan(), &self.results),
            state: CompositionState { finished: self.finished.into_iter().collect(), halted },
            permit: self.slot,
        }
    }

    async fn answer(&mut self) -> Result<CompositionAnswer, CompositionError> {
        self.announce();
        let context = Arc::clone(&self.context);
        let plan = context.plan();
        self.perform(plan, Phase::PromptCalls).await?;
        self.perform_rounds(plan).await?;
        let ends_early = match plan.route(&self.results) {
            Some(Route { next: Some(next), .. }) => {
                self.perform_route(plan, *next).await?;
                false
            }
            Some(Route { next: None, .. }) => true,
            None => false,
        };
        let answer = answer::answer(plan, &self.results, &self.reports, ends_early)?;
        if matches!(answer, CompositionAnswer::Texts(_)) {
            self.slot = Arc::clone(&context.slots).acquire_owned().await.ok();
        }
        Ok(answer)
    }

    /// Runs the steps once, or in rounds until the condition of the iteration is true.
    async fn perform_rounds(&mut self, plan: &Plan) -> Result<(), CompositionError> {
        let Some(iteration) = &plan.iteration else { return self.perform(plan, Phase::Steps).await };
        for round in 1..=iteration.max_rounds {
            self.latest_step = 0;
            self.reports.round = round;
            self.perform(plan, Phase::Steps).await?;
            self.reports.counted_round = round;
            if plan.is_accepted(iteration, &self.results) {
                self.best = None;
                break;
            }
            self.keep_best(plan, iteration, round);
            if round == iteration.max_rounds {
                self.use_last_or_best(iteration);
            }
        }
        self.reports.round = 0;
        Ok(())
    }

    /// Keeps the results of a round that is better than those before it.
    fn keep_best(&mut self, plan: &Plan, iteration: &Iteration, round: u32) {
        let Some(score) = plan.score(iteration, &self.results) else { return };
        if self.best.as_ref().is_none_or(|best| score > best.score) {
            self.best = Some(BestRound { round, score, results: self.results.clone() });
        }
    }

    /// Ends the rounds whose condition was never true: the best one counts, or else the last one.
    fn use_last_or_best(&mut self, iteration: &Iteration) {
        let rounds = iteration.max_rounds;
        let counts = match self.best.take() {
            Some(best) => {
                self.results = best.results;
                self.reports.counted_round = best.round;
                format!("round {} is the best", best.round)
            }
            None => "the last one counts".to_owned(),
        };
        if iteration.until.is_some() {
            let message =
                format!("The rounds ended after `max_rounds` ({rounds}) before `until` was true: {counts}.");
            self.reports.warn(Warning::new(WarningCode::RoundsEnded, message));
        }
    }

    /// Returns the answer of the best round, if a budget or the time limit ended the rounds.
    fn best_answer(&mut self, plan: &Plan, failure: &CompositionError) -> Option<CompositionAnswer> {
        // A rule or the module's own prompt would need another call.
        let is_complete = plan.routes.is_empty() && plan.answer != Answer::OwnPrompt;
        let best = self.best.take().filter(|_| failure.is_limit && is_complete)?;
        self.results = best.results;
        self.reports.counted_round = best.round;
        let answer = answer::answer(plan, &self.results, &self.reports, false).ok()?;
        let message =
            format!("The rounds ended early: {}. Round {} is the best.", failure.error.message, best.round);
        self.reports.warn(Warning::new(WarningCode::RoundsEnded, message));
        Some(answer)
    }

    /// Runs the tasks of a phase, each as soon as those before it have ended.
    async fn perform(&mut self, plan: &Plan, phase: Phase) -> Result<(), CompositionError> {
        let mut schedule = match phase {
            Phase::PromptCalls => Schedule::calls(plan),
            Phase::Steps => Schedule::steps(plan),
        };
        loop {
            self.queue_ready(plan, phase, &mut schedule)?;
            self.queue_elements(plan)?;
            let Some(ended) = self.next_ended().await else { return self.check_halted() };
            let task = ended.call.task;
            if self.finish(plan, ended)?
                && let Some(index) = schedule.end(task)
                && phase == Phase::Steps
            {
                self.set_latest(plan, index);
            }
            // The answer is stored before the calls that follow it begin, so that no later interruption loses it.
            yield_now().await;
        }
    }

    /// Queues the calls of the tasks that may start: none once a part waits for a confirmation.
    fn queue_ready(
        &mut self,
        plan: &Plan,
        phase: Phase,
        schedule: &mut Schedule,
    ) -> Result<(), CompositionError> {
        while self.halted.is_empty()
            && let Some((task, index)) = schedule.take_ready()
        {
            let calls = match phase {
                Phase::PromptCalls => self.prompt_call(plan, task, index)?,
                Phase::Steps => self.step_calls(plan, task, index)?,
            };
            let mapped = self.mapped.iter().filter(|mapped| mapped.task == task).count();
            schedule.start(task, calls.len() + mapped);
            self.queue.extend(calls);
        }
        Ok(())
    }

    /// Returns the error of the first part that waits for a confirmation.
    fn check_halted(&self) -> Result<(), CompositionError> {
        match self.halted.first() {
            Some((_, error)) => Err(CompositionError {
                error: error.clone(),
                is_interrupted: false,
                is_halted: true,
                is_limit: false,
            }),
            None => Ok(()),
        }
    }

    /// Runs the module that a rule of the routing names.
    async fn perform_route(&mut self, plan: &Plan, next: Callee) -> Result<(), CompositionError> {
        match plan.routed_step(next).filter(|step| step.each.is_some()) {
            Some(step) => {
                let index = plan.steps.iter().position(|other| other.index == step.index).unwrap_or_default();
                self.start_mapped(plan, 0, index, &[next])?;
            }
            None => {
                let values = plan.routed_values(next, &self.results);
                let values = values.map_err(|found| error::mapping(&plan.module, &found))?;
                let call = self.call(plan, 0, next, None, values);
                self.queue.push_back(call);
            }
        }
        self.queue_elements(plan)?;
        while let Some(ended) = self.next_ended().await {
            self.finish(plan, ended)?;
            self.queue_elements(plan)?;
        }
        self.check_halted()?;
        self.results.set_latest(next);
        Ok(())
    }

    /// Stores the result of a call. Returns whether its task has one call less; a fallback takes the place of a call. Once a part
    /// waits for a confirmation, no task ends.
    ///
    /// # Errors
    /// The part is required and failed (E3002).
    fn finish(&mut self, plan: &Plan, ended: CallResult) -> Result<bool, CompositionError> {
        self.record(plan, &ended);
        let callee = ended.call.result_of;
        let Some(ended) = self.keep(ended)? else {
            return Ok(self.halted.is_empty() && !self.is_mapping(callee));
        };
        if !self.halted.is_empty() {
            return Ok(false); // it runs again when the composition continues
        }
        if let Some(fallback) = self.fallback(plan, &ended.call) {
            self.queue.push_front(fallback);
            return Ok(false);
        }
        if !ended.call.optional {
            return Err(error::part_failed(plan, &ended));
        }
        if let Some(index) = ended.call.element {
            self.end_element(index, &ended)?;
            return Ok(!self.is_mapping(callee));
        }
        let (code, message) = ended.error().unwrap_or_default();
        let message = format!("The optional part `{}` failed: {code}: {message}", ended.call.path);
        self.reports.warn(Warning::new(WarningCode::OptionalPartFailed, message));
        self.results.set(ended.call.result_of, Value::null());
        Ok(true)
    }

    /// Keeps the result of a call, or the confirmation that it waits for. Returns a call that has neither.
    fn keep(&mut self, ended: CallResult) -> Result<Option<CallResult>, CompositionError> {
        if ended.is_ok() {
            if let Some(emitted) = ended.emitted() {
                self.reports.emit(&ended.call.path, emitted);
            }
            match ended.call.element {
                Some(index) => self.end_element(index, &ended)?,
                None => self.results.set(ended.call.result_of, ended.envelope),
            }
            return Ok(None);
        }
        let Some(part) = ended.halted() else { return Ok(Some(ended)) };
        self.halted.push((part, error::part_failed(self.context.plan(), &ended).error));
        Ok(None)
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        self.reports.warn(warning);
    }

    /// Adds a call that has ended to the reports, and sends it as progress with its answer.
    fn record(&mut self, plan: &Plan, ended: &CallResult) {
        let reports = ended.reports();
        let Some(report) = reports.first().cloned() else { return };
        self.reports.end(reports);
        for (code, message) in ended.warnings() {
            self.reports.warn(Warning::new(code, format!("{}: {message}", report.path)));
        }
        self.update_percent(plan);
        let answer = ended.key.clone().filter(|_| ended.is_ok());
        let answer = answer.map(|key| PartAnswer { key, envelope: ended.envelope.clone() });
        self.finished.extend(answer.clone().map(|answer| (report.path.clone(), answer)));
        let answer = answer.filter(|_| !ended.restored);
        let status = Some(report.status);
        let message = describe(&report);
        self.context.report(
            Some(message),
            PartProgress {
                path: report.path.clone(),
                status,
                report: Some(Box::new(report)),
                answer,
                ..PartProgress::default()
            },
        );
    }

    fn update_percent(&self, plan: &Plan) {
        let total = (plan.parts.len() + self.expected).max(self.reports.len());
        let percent = self.reports.ended() * PARTS_PERCENT / total.max(1);
        self.context.percent.store(u8::try_from(percent).unwrap_or(u8::MAX), Ordering::Relaxed);
    }

    /// Sends the parts that wait.
    fn announce(&self) {
        for part in &self.context.plan().parts {
            self.send_status(&part.name, PartStatus::Waiting);
        }
    }

    /// Reports the parts that no condition selected.
    fn skip_rest(&mut self) {
        let context = Arc::clone(&self.context);
        let parts = context.plan().parts.iter().enumerate();
        let called: HashSet<Callee> = self.counts.keys().map(|(callee, _)| *callee).collect();
        for (_, part) in parts.filter(|(index, _)| !called.contains(&Callee::Part(*index))) {
            self.reports.start(PartReport::new(&part.name, &part.module, PartStatus::Skipped));
            self.send_status(&part.name, PartStatus::Skipped);
        }
    }

    fn send_status(&self, path: &str, status: PartStatus) {
        let part = PartProgress { path: path.to_owned(), status: Some(status), ..PartProgress::default() };
        self.context.report(Some(format!("{path}: {status}")), part);
    }
}

// The calls in flight: they start within the limits, end, and are cancelled.

/// The maximum time in which cancelled calls report their tokens. They end at once, unless they are writing a file.
const STOP_TIME: Duration = Duration::from_secs(1);

impl Execution {
    /// Starts the calls of the queue within the limits, and returns the next call that ends; none if none runs.
    async fn next_ended(&mut self) -> Option<CallResult> {
        loop {
            self.fill();
            if self.next_call().is_none() {
                return self.running.next().await;
            }
            let slots = Arc::clone(&self.context.slots);
            tokio::select! {
                // A call that has ended comes first: what it returns may end the composition.
                biased;
                Some(ended) = self.running.next() => return Some(ended),
                slot = slots.acquire_owned() => self.start_next(slot.ok()),
            }
        }
    }

    /// Starts calls until one has to wait for a slot.
    fn fill(&mut self) {
        while let Some(call) = self.next_call() {
            let slot = match self.context.needs_slot(call) {
                true => match Arc::clone(&self.context.slots).try_acquire_owned() {
                    Ok(slot) => Some(slot),
                    Err(_) => return,
                },
                false => None,
            };
            self.start_next(slot);
        }
    }

    /// Returns the next call of the queue, unless too many run. Once a part waits for a confirmation, no other one starts.
    fn next_call(&self) -> Option<&Call> {
        let may_start = self.halted.is_empty() && self.running.len() < self.context.max_parallel();
        self.queue.front().filter(|_| may_start)
    }

    fn start_next(&mut self, slot: Option<OwnedSemaphorePermit>) {
        let Some(call) = self.queue.pop_front() else { return };
        let mut report = PartReport::new(&call.path, &call.name, PartStatus::Running);
        report.version = call.module.as_ref().map(|module| module.manifest.version.clone());
        self.reports.start(report);
        self.send_status(&call.path, PartStatus::Running);
        let context = Arc::clone(&self.context);
        self.running.push(Box::pin(async move {
            let _slot = slot;
            context.run(call).await
        }));
    }

    /// Cancels the calls that run, and waits until they have reported their tokens.
    async fn stop(&mut self, plan: &Plan, reason: CancelReason) {
        self.context.cancellation.cancel(reason);
        let ended = async {
            while let Some(ended) = self.running.next().await {
                self.record(plan, &ended);
                // The composition fails already, with another error.
                let _ = self.keep(ended);
            }
        };
        let _ = timeout(STOP_TIME, ended).await;
        self.running.clear();
    }
}

// The order of the calls: which task may start when others have ended.

/// The tasks of a phase, and which of them must end before another one starts.
#[derive(Debug)]
pub(super) struct Schedule {
    tasks: Vec<Task>,
    /// The number of tasks at the beginning that have started. The search for the next one skips them, so that a long sequence of
    /// steps takes linear time.
    started: usize,
}

/// A unit of work: a call of the prompt or a step, by its index in the plan.
#[derive(Debug)]
struct Task {
    index: usize,
    after: Vec<usize>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// This number of its calls is in flight.
    Running(usize),
    Ended,
}

impl Schedule {
    /// Returns the calls of the prompt, in its order. A call waits for those before it that are not `async`, and for those whose
    /// results its arguments read.
    pub(super) fn calls(plan: &Plan) -> Self {
        let mut last_sync = None;
        let tasks = plan.calls.iter().enumerate().map(|(index, call)| {
            // The one before has itself waited for those before it.
            let after = last_sync.into_iter().chain(read_calls(plan, call)).collect();
            if !call.is_async {
                last_sync = Some(index);
            }
            Task::new(index, after)
        });
        Self { tasks: tasks.collect(), started: 0 }
    }

    /// Returns the steps that wait for no route. In the pattern parallel, a step waits for the steps that it reads from;
    /// otherwise for all steps before it.
    pub(super) fn steps(plan: &Plan) -> Self {
        let steps = plan.steps.iter().enumerate().filter(|(_, step)| !step.is_routed);
        let selected: Vec<usize> = steps.map(|(index, _)| index).collect();
        let writers = match plan.pattern {
            Pattern::Parallel => writers(plan, &selected),
            _ => HashMap::new(),
        };
        let tasks = selected.iter().enumerate().map(|(task, index)| {
            let after = match plan.pattern {
                Pattern::Parallel => sources(plan, *index, task, &writers),
                _ => task.checked_sub(1).into_iter().collect(),
            };
            Task::new(*index, after)
        });
        Self { tasks: tasks.collect(), started: 0 }
    }

    /// Takes the next task that may start: its number, and the index of its call or step. If no task runs and none may
    /// start, the first one that waits starts, so that a composition always ends.
    pub(super) fn take_ready(&mut self) -> Option<(usize, usize)> {
        let open = self.tasks.get(self.started..).unwrap_or_default();
        let ready = open.iter().position(|task| self.is_ready(task)).map(|position| self.started + position);
        let number = ready.or_else(|| self.first_waiting_if_idle())?;
        let task = self.tasks.get_mut(number)?;
        // A task without calls is over at once; `start` corrects the state of one that has calls.
        task.state = State::Ended;
        let found = (number, task.index);
        while self.tasks.get(self.started).is_some_and(|task| task.state != State::Waiting) {
            self.started += 1;
        }
        Some(found)
    }

    fn is_ready(&self, task: &Task) -> bool {
        let is_ended = task
            .after
            .iter()
            .all(|before| self.tasks.get(*before).is_none_or(|before| before.state == State::Ended));
        task.state == State::Waiting && is_ended
    }

    /// Returns the first task that waits, unless another one runs.
    fn first_waiting_if_idle(&self) -> Option<usize> {
        let is_idle = !self.tasks.iter().any(|task| matches!(task.state, State::Running(_)));
        is_idle.then(|| self.tasks.iter().position(|task| task.state == State::Waiting)).flatten()
    }

    /// Sets the number of calls that a task has started.
    pub(super) fn start(&mut self, task: usize, calls: usize) {
        if let Some(task) = self.tasks.get_mut(task).filter(|_| calls > 0) {
            task.state = State::Running(calls);
        }
    }

    /// Counts a call of a task that has ended. Returns the index of its call or step if all of them have.
    pub(super) fn end(&mut self, task: usize) -> Option<usize> {
        let task = self.tasks.get_mut(task)?;
        task.state = match task.state {
            State::Running(calls @ 2..) => State::Running(calls - 1),
            _ => State::Ended,
        };
        (task.state == State::Ended).then_some(task.index)
    }
}

impl Task {
    fn new(index: usize, after: Vec<usize>) -> Self {
        Self { index, after, state: State::Waiting }
    }
}

/// Returns the calls whose results the arguments of a call read.
fn read_calls(plan: &Plan, call: &PromptCall) -> Vec<usize> {
    let arguments = call.arguments.iter().flat_map(|arguments| arguments.parts());
    let read = arguments.filter_map(|part| match part {
        PromptPart::Reference { module, .. } => plan.callee_named(module),
        _ => None,
    });
    read.filter_map(|callee| plan.calls.iter().position(|other| Callee::Part(other.part) == callee)).collect()
}

/// Returns the tasks that run each callee.
fn writers(plan: &Plan, selected: &[usize]) -> HashMap<Callee, Vec<usize>> {
    let mut writers: HashMap<Callee, Vec<usize>> = HashMap::new();
    for (task, index) in selected.iter().enumerate() {
        let Some(Target::Modules(callees)) = plan.steps.get(*index).map(|step| &step.to) else { continue };
        for callee in callees {
            writers.entry(*callee).or_default().push(task);
        }
    }
    writers
}

/// Returns the other tasks whose results a step reads.
fn sources(plan: &Plan, index: usize, task: usize, writers: &HashMap<Callee, Vec<usize>>) -> Vec<usize> {
    let Some(step) = plan.steps.get(index) else { return Vec::new() };
    let read = step.from.sources.iter().filter_map(|source| match source {
        Source::Input => None,
        Source::Output(callee) => writers.get(callee),
    });
    read.flatten().copied().filter(|other| *other != task).collect()
}
