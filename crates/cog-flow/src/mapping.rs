//! `mapping`: the fields of a target, each with its value: paths, and constants.

mod operand;

use cog_json::{Limits, Value};
use cog_spec::Aggregate;

pub(crate) use self::operand::Operand;
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
        let document = Document::new(document);
        self.write(MAX_MAPPED, |operand, _| operand.value(&document))
    }

    /// Returns the values that do not depend on the element of a list, for each operand in order.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub(crate) fn shared(&self, document: &Value) -> Result<Vec<Option<Value>>, PathError> {
        let document = Document::new(document);
        let operands = self.fields.iter().flat_map(|field| &field.operands);
        operands.map(|operand| operand.value(&document)).collect()
    }

    /// Returns the object for the target that receives one element.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub(crate) fn apply_to(
        &self,
        shared: &[Option<Value>],
        element: &Value,
        index: usize,
    ) -> Result<Value, PathError> {
        let element = Document::new(element);
        self.write(MAX_MAPPED, |operand, number| match operand {
            Operand::Item(path) => path.select(&element),
            Operand::Index => Ok(Some(Value::from(serde_json::Value::from(index)))),
            Operand::Path(_) | Operand::Constant(_) => Ok(shared.get(number).cloned().flatten()),
        })
    }

    /// Writes the object with the values that `value` returns for operands and their numbers.
    fn write(
        &self,
        max_bytes: usize,
        value: impl Fn(&Operand, usize) -> Result<Option<Value>, PathError>,
    ) -> Result<Value, PathError> {
        let mut text = String::from("{");
        let mut first = 0;
        for field in &self.fields {
            let found = field.value(|operand, number| value(operand, first + number))?;
            first += field.operands.len();
            let Some(value) = found else { continue };
            if text.len() > 1 {
                text.push(',');
            }
            text += &serde_json::Value::from(field.name.as_str()).to_string();
            text.push(':');
            value.node().write(&mut text);
            // After each field, so that a mapping that selects too much stops before it has copied everything.
            if text.len() > max_bytes {
                return Err(PathError::TooLarge(max_bytes));
            }
        }
        text.push('}');
        Value::parse_within(text.as_bytes(), Limits::unbounded()).map_err(|_| PathError::TooLarge(max_bytes))
    }
}

impl MappedField {
    /// Returns whether a path reads the source of this name. A constant reads none, and belongs to each.
    pub(crate) fn reads(&self, source: &str) -> bool {
        let mut paths = self.operands.iter().filter_map(Operand::path).peekable();
        paths.peek().is_none() || paths.any(|path| path.first_key().is_none_or(|key| key == source))
    }

    /// Returns the value of the last operand, or of an earlier one that finds a value other than null.
    fn value(
        &self,
        value: impl Fn(&Operand, usize) -> Result<Option<Value>, PathError>,
    ) -> Result<Option<Value>, PathError> {
        let mut found = None;
        for (number, operand) in self.operands.iter().enumerate() {
            found = value(operand, number)?;
            if found.as_ref().is_some_and(|found| !found.is_null()) {
                break;
            }
        }
        Ok(found)
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
    /// The list for each of whose elements its target runs; none runs it once.
    pub each: Option<Each>,
}

/// `each`: a step that runs its target for each element of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Each {
    pub(crate) path: JsonPath,
    /// The path as it is written.
    pub(crate) text: String,
    /// The maximum number of elements at the same time; none for the runtime's own.
    pub max_parallel: Option<usize>,
}

/// The elements for which a step runs, and the values that all of them receive.
#[derive(Debug)]
pub struct Items {
    pub(crate) elements: Vec<Value>,
    /// The values of the mapping that do not depend on the element, for each operand in order.
    pub(crate) shared: Vec<Option<Value>>,
}

impl Items {
    /// Returns the number of elements, at most 10,000.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
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
            operands: Operand::parse_all(text, true).unwrap(),
        };
        Mapping::new(fields.iter().map(field).collect(), true)
    }

    #[test]
    fn absent_fields_are_left_out_and_names_are_escaped() {
        let document = Value::parse(r#"{"a": [1, 2.50], "b": {"c": "x"}}"#).unwrap();
        let fields = [("none", "$.d"), ("a \"b\"", "$.b.c"), ("list", "$.a[*]"), ("all", "$.a")];
        let found = mapping(&fields).apply(&document).unwrap();
        assert_eq!(found.to_string(), r#"{"a \"b\"":"x","list":[1,2.50],"all":[1,2.50]}"#);
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
        let document = Document::new(&document);
        let within = |max_bytes| twice.write(max_bytes, |operand, _| operand.value(&document));
        assert_eq!(within(200), Err(PathError::TooLarge(200)));
        assert!(within(300).is_ok());
    }

    #[test]
    fn element_and_shared_values_are_mapped() {
        let document = Value::parse(r#"{"lang": "de", "kind": null}"#).unwrap();
        let fields = [
            ("text", "item.text"),
            ("lang", "item.lang ?? $.lang"),
            ("kind", "$.kind ?? item.kind"),
            ("number", "index"),
            ("all", "item"),
        ];
        let mapping = mapping(&fields);
        let shared = mapping.shared(&document).unwrap();
        let element = Value::parse(r#"{"text": "a", "kind": 1}"#).unwrap();
        let found = mapping.apply_to(&shared, &element, 3).unwrap();
        let expected = r#"{"text":"a","lang":"de","kind":1,"number":3,"all":{"text": "a", "kind": 1}}"#;
        assert_eq!(found, Value::parse(expected).unwrap());
    }
}
