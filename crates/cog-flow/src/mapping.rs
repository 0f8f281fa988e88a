//! `mapping`: the fields of a target, each with its value: paths, and constants.

mod operand;

use cog_json::{Limits, Value};
use cog_spec::Aggregate;

pub(crate) use self::operand::Operand;
use crate::{Condition, PathError, json_path::Document};

/// The maximum size of all values of a mapping, as JSON: 64 MB.
const MAX_MAPPED: usize = 64 << 20;

/// A parsed mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    fields: Vec<MappedField>,
    /// Whether it has all fields of the manifest: no value was invalid.
    pub(crate) is_complete: bool,
}

/// A field of the target and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MappedField {
    pub(crate) name: String,
    /// The value as it is written.
    pub(crate) text: String,
    /// What gives the value: the first that finds one.
    pub(crate) operands: Vec<Operand>,
}

impl Mapping {
    pub(crate) fn new(fields: Vec<MappedField>, is_complete: bool) -> Self {
        Self { fields, is_complete }
    }

    pub(crate) fn fields(&self) -> &[MappedField] {
        &self.fields
    }

    /// Returns the object for the target. A field whose paths find nothing is absent.
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
            let Some(value) = field.value(&document)? else { continue };
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

impl MappedField {
    /// Returns whether a path reads the source of this name. A constant reads none, and belongs to each.
    pub(crate) fn reads(&self, source: &str) -> bool {
        let mut paths = self.operands.iter().filter_map(Operand::path).peekable();
        paths.peek().is_none() || paths.any(|path| path.first_key().is_none_or(|key| key == source))
    }

    /// Returns the value of the last operand, or of an earlier one that finds a value other than null.
    fn value(&self, document: &Document<'_>) -> Result<Option<Value>, PathError> {
        let Some((last, first)) = self.operands.split_last() else { return Ok(None) };
        for operand in first {
            let value = operand.value(document)?.filter(|value| !value.is_null());
            if value.is_some() {
                return Ok(value);
            }
        }
        last.value(document)
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
            operands: Operand::parse_all(text).unwrap(),
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
    fn first_operand_with_a_value_counts() {
        let document = Value::parse(r#"{"null": null, "a": 1, "list": []}"#).unwrap();
        for (text, expected) in [
            ("$.none ?? 'x?? y'", r#"{"f":"x?? y"}"#),
            ("$.null ?? $.none ?? 2.50", r#"{"f":2.50}"#),
            ("$.none ?? $.a ?? 2", r#"{"f":1}"#),
            ("$.none ?? $.null", r#"{"f":null}"#),
            ("$.null ?? $.none", "{}"),
            ("$.none ?? null", r#"{"f":null}"#),
            ("$.list[0]??\"\\u00e9\"", r#"{"f":"é"}"#),
            ("'formal'", r#"{"f":"formal"}"#),
            ("[1, {\"a\": \"??\"}]", r#"{"f":[1,{"a":"??"}]}"#),
            ("true", r#"{"f":true}"#),
        ] {
            assert_eq!(mapping(&[("f", text)]).apply(&document).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn values_of_all_fields_are_bounded() {
        let document = Value::parse(&format!("{{\"text\": \"{}\"}}", "x".repeat(100))).unwrap();
        let twice = mapping(&[("a", "$.text"), ("b", "$.text")]);
        assert_eq!(twice.apply_within(&document, 200), Err(PathError { max_bytes: 200 }));
        assert!(twice.apply_within(&document, 300).is_ok());
    }
}
