//! `mapping`: the fields of a target, each with the path of its value.

use cog_json::{Limits, Value};
use cog_spec::Aggregate;

use crate::{
    Condition, PathError,
    json_path::{Document, JsonPath},
};

/// The maximum size of all values of a mapping, as JSON: 64 MB.
const MAX_MAPPED: usize = 64 << 20;

/// A parsed mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    fields: Vec<MappedField>,
    /// Whether it has all fields of the manifest: no path was invalid.
    pub(crate) is_complete: bool,
}

/// A field of the target and the path of its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MappedField {
    pub(crate) name: String,
    /// The path as it is written.
    pub(crate) text: String,
    pub(crate) path: JsonPath,
}

impl Mapping {
    pub(crate) fn new(fields: Vec<MappedField>, is_complete: bool) -> Self {
        Self { fields, is_complete }
    }

    pub(crate) fn fields(&self) -> &[MappedField] {
        &self.fields
    }

    /// Returns the object for the target. A field whose path finds nothing is absent.
    ///
    /// # Errors
    /// When a path, or all of them, select too much.
    pub(crate) fn apply(&self, document: &Value) -> Result<Value, PathError> {
        self.apply_within(document, MAX_MAPPED)
    }

    fn apply_within(&self, document: &Value, max_bytes: usize) -> Result<Value, PathError> {
        let document = Document::new(document);
        let mut text = String::from("{");
        for field in &self.fields {
            let Some(value) = field.path.select(&document)? else { continue };
            if text.len() > 1 {
                text.push(',');
            }
            text += &serde_json::Value::from(field.name.as_str()).to_string();
            text.push(':');
            value.node().write(&mut text);
            // After each field, so that a mapping that selects too much stops before it has copied everything.
            if text.len() > max_bytes {
                return Err(PathError { max_bytes });
            }
        }
        text.push('}');
        Value::parse_within(text.as_bytes(), Limits::unbounded()).map_err(|_| PathError { max_bytes })
    }
}

// A step of the dataflow.

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

/// The index of a plan in its [`Flow`](crate::Flow).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlanId(pub(crate) u32);

/// What a step, a route or a prompt calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Callee {
    /// The module's own prompt.
    Own,
    /// A part, by its index in [`Plan::parts`](crate::Plan::parts).
    Part(usize),
}

impl PlanId {
    /// Returns the index, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Callee {
    /// Returns its index among the envelopes.
    pub(crate) const fn slot(self) -> usize {
        match self {
            Callee::Own => 0,
            Callee::Part(index) => index + 1,
        }
    }
}

/// Where the answer of a composed module comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The steps to `output`, without a model. Confidence is the minimum of the parts, unless the own prompt ran.
    Output,
    /// The module's own prompt, which runs last with the module's own input.
    OwnPrompt,
    /// The result so far.
    Result,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(fields: &[(&str, &str)]) -> Mapping {
        let field = |(name, text): &(&str, &str)| MappedField {
            name: (*name).to_owned(),
            text: (*text).to_owned(),
            path: JsonPath::parse(text).unwrap(),
        };
        Mapping::new(fields.iter().map(field).collect(), true)
    }

    #[test]
    fn absent_fields_are_left_out_and_names_are_escaped() {
        let document = Value::parse(r#"{"a": [1, 2.50], "b": {"c": "x"}}"#).unwrap();
        let fields = [("none", "$.d"), ("a \"b\"", "$.b.c"), ("list", "$.a[*]"), ("all", "$.a")];
        let found = mapping(&fields).apply(&document).unwrap();
        assert_eq!(found.to_string(), r#"{"a \"b\"":"x","list":[1,2.5],"all":[1,2.50]}"#);
        assert_eq!(mapping(&[]).apply(&document).unwrap().to_string(), "{}");
    }

    #[test]
    fn values_of_all_fields_are_bounded() {
        let document = Value::parse(&format!("{{\"text\": \"{}\"}}", "x".repeat(100))).unwrap();
        let twice = mapping(&[("a", "$.text"), ("b", "$.text")]);
        assert_eq!(twice.apply_within(&document, 200), Err(PathError { max_bytes: 200 }));
        assert!(twice.apply_within(&document, 300).is_ok());
    }
}
