#![doc = include_str!("../README.md")]

mod check;
mod draw;
mod finding;
mod flow;
mod json_path;
mod mapping;
mod plan;
mod results;
#[cfg(test)]
mod testing;
mod typing;

pub use self::flow::{Lookup, LookupError};
pub use check::{CheckResult, check};
pub use cog_rules::{Condition, TextError};
pub use draw::{Diagram, DiagramEdge, DiagramField, DiagramNode, EdgeKind, NodeKind};
pub use finding::Finding;
pub use flow::Flow;
pub use json_path::PathError;
pub use mapping::{Answer, Callee, Each, Items, Mapping, PlanId, Selection, Source, Step, Target};
pub use plan::{Iteration, Mention, Part, Plan, PromptCall, Route, called_modules};
pub use results::{Results, as_text};
