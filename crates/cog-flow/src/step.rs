//! A step of the dataflow.

use cog_spec::Aggregate;

use crate::{Callee, Condition, Mapping};

/// A step: values of its sources for its target.
#[derive(Debug)]
pub struct Step {
    /// Its index in `composition.dataflow`.
    pub index: usize,
    /// The values that it reads.
    pub from: Selection,
    /// Where its values go.
    pub to: Target,
    /// The values of the target's fields; none for the complete payload.
    pub mapping: Option<Mapping>,
    /// The condition under which it runs; none is always true.
    pub condition: Option<Condition>,
    /// Whether it runs only when a route names its target.
    pub is_routed: bool,
}

impl Step {
    /// Returns the modules that it runs.
    pub(crate) fn targets(&self) -> &[Callee] {
        self.to.modules()
    }
}

/// The sources of a step, and how they become one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The sources, at least one.
    pub sources: Vec<Source>,
    /// The way several sources become one; none is an object with a member for each.
    pub aggregate: Option<Aggregate>,
}

/// A source of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The input of the module.
    Input,
    /// The result of a call: its envelope.
    Output(Callee),
}

/// The target of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The modules, which run at the same time with the same values.
    Modules(Vec<Callee>),
    /// The answer.
    Output,
}

impl Target {
    pub(crate) fn modules(&self) -> &[Callee] {
        match self {
            Target::Modules(targets) => targets,
            Target::Output => &[],
        }
    }
}
