//! The order of the calls: which task may start when others have ended.

use std::collections::HashSet;

use crate::{Callee, Plan, Source, Step, Target};
use cog_spec::Pattern;

/// The tasks of a phase, and which of them must end before another one starts.
#[derive(Debug)]
pub(super) struct Schedule {
    tasks: Vec<Task>,
}

/// A unit of work: its index is that of the call of the prompt, or of the step in the plan.
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
    /// Returns the calls of the prompt, in its order. A call waits for those before it that are not `async`.
    pub(super) fn calls(plan: &Plan) -> Self {
        let sync = |index: &usize| plan.calls.get(*index).is_some_and(|call| !call.is_async);
        let tasks = (0..plan.calls.len()).map(|index| Task::new(index, (0..index).filter(sync).collect()));
        Self { tasks: tasks.collect() }
    }

    /// Returns the steps that wait for no route. In the pattern parallel, a step waits for the steps that it reads from;
    /// otherwise for all steps before it.
    pub(super) fn steps(plan: &Plan) -> Self {
        let selected: Vec<usize> = (0..plan.steps.len()).filter(|index| !is_routed(plan, *index)).collect();
        let after = |position: usize, index: usize| match plan.pattern {
            Pattern::Parallel => sources(plan, index, &selected),
            _ => (0..position).collect(),
        };
        let tasks = selected.iter().enumerate();
        Self { tasks: tasks.map(|(position, index)| Task::new(*index, after(position, *index))).collect() }
    }

    /// Takes the next task that may start: its number, and the index of its call or step. If no task runs and none may
    /// start, the first one that waits starts, so that a composition always ends.
    pub(super) fn take_ready(&mut self) -> Option<(usize, usize)> {
        let is_ended = |task: &usize| self.tasks.get(*task).is_none_or(|task| task.state == State::Ended);
        let is_ready = |task: &Task| task.state == State::Waiting && task.after.iter().all(is_ended);
        let is_idle = !self.tasks.iter().any(|task| matches!(task.state, State::Running(_)));
        let first = || self.tasks.iter().position(|task| task.state == State::Waiting);
        let number = self.tasks.iter().position(is_ready).or_else(|| is_idle.then(first).flatten())?;
        let task = self.tasks.get_mut(number)?;
        task.state = State::Ended;
        Some((number, task.index))
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

fn is_routed(plan: &Plan, index: usize) -> bool {
    plan.steps.get(index).is_none_or(|step| step.is_routed)
}

/// Returns the tasks whose results a step reads.
fn sources(plan: &Plan, index: usize, selected: &[usize]) -> Vec<usize> {
    let Some(step) = plan.steps.get(index) else { return Vec::new() };
    let read: HashSet<Callee> = step
        .from
        .sources
        .iter()
        .filter_map(|source| match source {
            Source::Input => None,
            Source::Output(callee) => Some(*callee),
        })
        .collect();
    let writes = |other: &Step| match &other.to {
        Target::Modules(callees) => callees.iter().any(|callee| read.contains(callee)),
        Target::Output => false,
    };
    let is_source =
        |(_, other): &(usize, &usize)| **other != index && plan.steps.get(**other).is_some_and(writes);
    selected.iter().enumerate().filter(is_source).map(|(task, _)| task).collect()
}
