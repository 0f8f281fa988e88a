//! Whether the answers of several runs agree: in their enums, booleans, numbers and ids, or in the fields that the manifest names.

use std::collections::BTreeMap;

use cog_json::Node;
use cog_rules::SearchText;
use cog_schema::{Contract, Member, Shape, Types};
use cog_spec::{Agreement, ErrorCode, EvidenceRule};

use super::{EXPLANATIONS, is_within, joined};

/// The depth to which a schema is searched for fields that decide: schemas can be recursive.
const MAX_DEPTH: usize = 6;

/// What an answer decides: the values of its deciding fields by their paths. Two answers agree if these are equal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision(BTreeMap<String, String>);

/// The largest group of answers that agree.
#[derive(Debug, Clone, PartialEq)]
pub struct Majority {
    /// The number of its first answer.
    pub index: usize,
    /// How many answers are in it, and how many agree with it in each field.
    pub agreement: Agreement,
}

impl Decision {
    /// Returns what the data of an answer decide.
    pub fn of_data(data: Node<'_>, contract: &Contract, rule: &EvidenceRule) -> Self {
        let mut decision = Self::default();
        if rule.fields.is_empty() {
            decision.add_members(data, contract.shape("data").as_ref(), "");
        } else {
            decision.add_named(data, "", "", &rule.fields);
        }
        decision
    }

    /// Returns what an error that a model reports decides: its code.
    pub fn of_error(code: &ErrorCode) -> Self {
        Self(BTreeMap::from([("error.code".to_owned(), code.as_str().to_owned())]))
    }

    /// Adds the deciding members of an object. Lists of objects have no order that runs would share, so they do not decide.
    fn add_members(&mut self, object: Node<'_>, shape: Option<&Shape<'_>>, path: &str) {
        for (name, member) in object.members() {
            if path.is_empty() && EXPLANATIONS.contains(&name) {
                continue;
            }
            let shape = match shape.map(|shape| shape.member(name)) {
                Some(Member::Known(shape)) if shape.is_media() => continue,
                Some(Member::Known(shape)) => Some(shape),
                _ => None,
            };
            let path = joined(path, name);
            let is_listed = shape.as_ref().is_some_and(|shape| shape.listed_values().is_some());
            if is_listed || decides(member) || member.is_string() && is_id(name) {
                self.add(path, member);
            } else if member.is_object() {
                self.add_members(member, shape.as_ref(), &path);
            } else if member.is_array() {
                let elements = shape.and_then(|shape| shape.elements());
                self.add_set(path, member, elements.as_ref());
            }
        }
    }

    /// Adds a list of enums, booleans or numbers, in whatever order they are.
    fn add_set(&mut self, path: String, list: Node<'_>, elements: Option<&Shape<'_>>) {
        let is_listed = elements.is_some_and(|shape| shape.listed_values().is_some());
        if is_listed || (!list.is_empty() && list.elements().all(decides)) {
            let mut values: Vec<String> = list.elements().map(written).collect();
            values.sort_unstable();
            self.0.insert(path, values.join(","));
        }
    }

    /// Adds the values of the fields that the manifest names. `name` is the path without the numbers of elements.
    fn add_named(&mut self, node: Node<'_>, path: &str, name: &str, fields: &[String]) {
        if !name.is_empty() && is_within(name, fields) && !node.is_object() && !node.is_array() {
            self.add(path.to_owned(), node);
        }
        for (key, member) in node.members() {
            self.add_named(member, &joined(path, key), &joined(name, key), fields);
        }
        for (index, element) in node.elements().enumerate() {
            self.add_named(element, &format!("{path}[{index}]"), name, fields);
        }
    }

    /// Adds a value. A null says as much as no value.
    fn add(&mut self, path: String, node: Node<'_>) {
        if !node.is_null() {
            self.0.insert(path, written(node));
        }
    }
}

/// Returns whether a value decides by its type.
fn decides(node: Node<'_>) -> bool {
    node.as_bool().is_some() || node.as_number().is_some()
}

/// Returns whether a member of this name is an id.
fn is_id(name: &str) -> bool {
    name == "id" || name.ends_with("_id") || name.ends_with("Id")
}

/// Returns a value so that equal values are written alike: `1` and `1.0`, and strings that differ only in case or white space.
fn written(node: Node<'_>) -> String {
    match (node.as_str(), node.as_f64()) {
        (Some(text), _) => format!("\"{}\"", SearchText::new(text).as_str()),
        (_, Some(number)) => number.to_string(),
        _ => node.to_sorted_json(),
    }
}

/// Returns whether the answers of a module have fields that decide. Runs of one that has none cannot be compared.
pub fn has_deciding_fields(contract: &Contract, rule: &EvidenceRule) -> bool {
    !rule.fields.is_empty() || contract.shape("data").is_some_and(|shape| has_deciding_member(&shape, 0))
}

fn has_deciding_member(shape: &Shape<'_>, depth: usize) -> bool {
    let names = shape.member_names().into_iter().filter(|name| depth > 0 || !EXPLANATIONS.contains(name));
    names
        .filter_map(|name| match shape.member(name) {
            Member::Known(member) if !member.is_media() => Some((name, member)),
            _ => None,
        })
        .any(|(name, member)| {
            let types = member.types();
            may_decide(&member)
                || (types == Types::STRING && is_id(name))
                || member.elements().is_some_and(|element| may_decide(&element))
                || (depth < MAX_DEPTH && types.meet(Types::OBJECT) && has_deciding_member(&member, depth + 1))
        })
}

/// Returns whether a value of this shape decides by its type.
fn may_decide(shape: &Shape<'_>) -> bool {
    let types = shape.types();
    shape.listed_values().is_some() || (types != Types::ANY && types.meet(Types::BOOLEAN.or(Types::NUMBER)))
}

/// Returns the largest group of answers that agree; of several, the one with the first answer. Answers that violate their contract
/// are none: they count as runs, and agree with no other. None if there is no answer.
pub fn majority(answers: &[Option<Decision>]) -> Option<Majority> {
    let mut largest: Option<(usize, u32)> = None;
    for (index, answer) in answers.iter().enumerate() {
        let Some(answer) = answer else { continue };
        let size = count(answers, |other| other == answer);
        if largest.is_none_or(|(_, before)| size > before) {
            largest = Some((index, size));
        }
    }
    let (index, size) = largest?;
    let chosen = answers.get(index)?.as_ref()?;
    let fields = chosen
        .0
        .iter()
        .map(|(path, value)| (path.clone(), count(answers, |other| other.0.get(path) == Some(value))));
    let runs = u32::try_from(answers.len()).unwrap_or(u32::MAX);
    let value = super::logprob::rounded(f64::from(size) / f64::from(runs));
    Some(Majority { index, agreement: Agreement { value, runs, fields: fields.collect() } })
}

fn count(answers: &[Option<Decision>], is_counted: impl Fn(&Decision) -> bool) -> u32 {
    let counted = answers.iter().flatten().filter(|answer| is_counted(answer)).count();
    u32::try_from(counted).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::Code;

    use super::*;
    use crate::testing::contract_of;

    const DATA: &str = r#"{
        "verdict": {"enum": ["yes", "no"]}, "score": {"type": "number"}, "sure": {"type": ["boolean", "null"]},
        "order_id": {"type": "string"}, "summary": {"type": "string"}, "rationale": {"type": "string"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}, "name": {"type": "string"}}}},
        "customer": {"type": "object", "properties": {"vip": {"type": "boolean"}, "name": {"type": "string"}}}
    }"#;

    fn fields(data: &str, named: &[&str]) -> Vec<(String, String)> {
        let rule = EvidenceRule {
            fields: named.iter().map(|&it| it.to_owned()).collect(),
            ..EvidenceRule::default()
        };
        let data = Value::parse(data).unwrap();
        Decision::of_data(data.node(), &contract_of(DATA), &rule).0.into_iter().collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn enums_booleans_numbers_and_ids_decide() {
        let data = r#"{"verdict": "yes", "score": 2.0, "sure": null, "order_id": "A-1 ", "summary": "Fine.", "rationale": "x",
            "tags": ["b", "a"], "items": [{"n": 1}], "customer": {"vip": true, "name": "Ada"}}"#;
        assert_eq!(
            fields(data, &[]),
            pairs(&[
                ("customer.vip", "true"),
                ("order_id", "\"a-1\""),
                ("score", "2"),
                ("tags", "\"a\",\"b\""),
                ("verdict", "\"yes\"")
            ])
        );
    }

    #[test]
    fn manifest_can_name_the_fields() {
        let data = r#"{"verdict": "yes", "items": [{"n": 1, "name": "Bolt"}, {"name": "nut"}], "customer": {"name": " ADA "}}"#;
        assert_eq!(
            fields(data, &["items.name", "data.customer"]),
            pairs(&[
                ("customer.name", "\"ada\""),
                ("items[0].name", "\"bolt\""),
                ("items[1].name", "\"nut\"")
            ])
        );
        assert_eq!(fields(data, &["item"]), []);
    }

    #[test]
    fn module_without_deciding_fields_is_known_before_its_runs() {
        let has = |properties: &str| has_deciding_fields(&contract_of(properties), &EvidenceRule::default());
        assert!(has(DATA));
        for (properties, decides) in [
            (r#"{"text": {"type": "string"}, "rationale": {"type": "string"}}"#, false),
            (r#"{"text": {}}"#, false),
            (
                r#"{"list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}}"#,
                false,
            ),
            (r#"{"list": {"type": "array", "items": {"type": "number"}}}"#, true),
            (r#"{"id": {"type": "string"}}"#, true),
            (r#"{"a": {"type": "object", "properties": {"b": {"type": "boolean"}}}}"#, true),
            (r##"{"a": {"$ref": "#/data"}}"##, false),
        ] {
            assert_eq!(has(properties), decides, "{properties}");
        }
        let rule = EvidenceRule { fields: vec!["text".to_owned()], ..EvidenceRule::default() };
        assert!(has_deciding_fields(&contract_of(r#"{"text": {"type": "string"}}"#), &rule));
    }

    fn decided(verdict: &str, score: &str) -> Option<Decision> {
        Some(Decision(BTreeMap::from([
            ("verdict".to_owned(), verdict.to_owned()),
            ("score".to_owned(), score.to_owned()),
        ])))
    }

    #[test]
    fn answer_is_the_first_one_of_the_largest_group() {
        let answers =
            [decided("no", "1"), decided("yes", "1"), None, decided("yes", "1"), decided("yes", "2")];
        let found = majority(&answers).unwrap();
        assert_eq!((found.index, found.agreement.value, found.agreement.runs), (1, 0.4, 5));
        assert_eq!(
            found.agreement.fields.into_iter().collect::<Vec<_>>(),
            [("score".to_owned(), 3), ("verdict".to_owned(), 3)]
        );
        let tie = [decided("no", "1"), decided("yes", "1")];
        assert_eq!(majority(&tie).map(|found| (found.index, found.agreement.value)), Some((0, 0.5)));
        assert_eq!(majority(&[None, None]), None);
    }

    #[test]
    fn error_of_the_model_is_an_answer() {
        let refused = || Some(Decision::of_error(&Code::InsufficientContext.into()));
        let found = majority(&[decided("no", "1"), refused(), refused()]).unwrap();
        assert_eq!((found.index, found.agreement.fields.get("error.code")), (1, Some(&2)));
    }
}
