//! The order of the calls: which task may start when others have ended.

use std::collections::HashMap;

use cog_flow::{Callee, Plan, PromptCall, Source, Target};
use cog_module::PromptPart;
use cog_spec::Pattern;

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
