#![doc = include_str!("../README.md")]

mod answer;
mod check;
mod condition;
mod cursor;
mod draw;
mod finding;
mod flow;
mod graph;
mod id;
mod json_path;
mod lookup;
mod mapping;
mod plan;
mod results;
mod run;
mod step;
#[cfg(test)]
mod testing;
mod typing;
mod value_path;

pub use answer::Answer;
pub use check::{Checked, check};
pub use condition::Condition;
pub use cursor::TextError;
pub use draw::{Diagram, DiagramEdge, DiagramField, DiagramNode, EdgeKind, NodeKind};
pub use finding::Finding;
pub use flow::Flow;
pub use id::{Callee, PlanId};
pub use json_path::PathError;
pub use lookup::{Lookup, LookupError};
pub use mapping::Mapping;
pub use plan::{Iteration, Mention, Part, Plan, PromptCall, Route, called_modules};
pub use results::Results;
pub use run::Flows;
pub use step::{Selection, Source, Step, Target};
