//! Where the constraints of a contract are enforced, for each provider.

use cog_spec::{Dialect, Form};
use serde::Serialize;
use serde_json::Value;

use crate::constraints::{Constraint, constraints, constraints_at};
use crate::contract::Contract;
use crate::enforcement::Enforcement;
use crate::project::is_describable;

/// Where a constraint is enforced. The check of the answer enforces all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnforcedBy {
    /// The provider enforces it while the model writes.
    Provider,
    /// The model reads it, in the prompt or in a description. Nothing enforces it before the check.
    Words,
    /// Only the check of the answer.
    Check,
}

/// A constraint of a contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortableConstraint {
    /// The field: `data.issues[].title`.
    pub path: String,
    /// The keyword of its schema.
    pub keyword: String,
    /// The value of the keyword.
    pub value: Value,
    /// Where it is enforced.
    pub enforced_by: EnforcedBy,
}

/// The constraints of a contract for one provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Portability {
    /// The dialect in which the contract is sent.
    pub dialect: Dialect,
    /// The constraints of `data`, and of `meta` and `error` if the module defines them. Only the first 4,000 schemas are
    /// read.
    pub constraints: Vec<PortableConstraint>,
}

impl Contract {
    /// Returns where each constraint is enforced by a provider with this dialect and engine.
    pub fn portability(&self, dialect: Dialect, engine: Option<&Enforcement>) -> Portability {
        let projection = self.project(dialect);
        let root = self
            .wrapper(projection.dialect, Form::ENVELOPE)
            .map_or_else(String::new, |key| format!("{key}."));
        let mut sent = projection.schema.as_ref().map(|schema| constraints(schema, "")).unwrap_or_default();
        for constraint in &mut sent {
            if let Some(path) = constraint.path.strip_prefix(&root) {
                constraint.path = path.to_owned();
            }
        }
        let schemas = if projection.is_shown { Vec::new() } else { self.prompt_schemas(Form::ENVELOPE) };
        let prompted = schemas.iter().flat_map(|(name, schema)| constraints_at(schema, "", name)).collect();
        let request = Request {
            sent,
            prompted,
            describes: projection.is_shown,
            explains: self.rules().format.asks_for_envelope(),
            engine,
        };
        let all = self.own_constraints();
        let portable = all.iter().map(|constraint| PortableConstraint {
            path: constraint.path.clone(),
            keyword: constraint.keyword.to_owned(),
            value: constraint.value.clone(),
            enforced_by: request.enforced_by(constraint),
        });
        Portability { dialect: projection.dialect, constraints: portable.collect() }
    }

    /// Returns the constraints of the parts of an answer. `allOf` stands for the constraints of its schemas.
    fn own_constraints(&self) -> Vec<Constraint<'_>> {
        let parts = ["meta", "data", "error"].into_iter();
        let parts = parts.filter_map(|name| Some((name, self.part(name)?)));
        let in_envelope = self.rules().format.asks_for_envelope();
        parts
            .flat_map(|(name, part)| {
                constraints_at(self.document(), &part.pointer, if in_envelope { name } else { "" })
            })
            .filter(|constraint| !matches!(constraint.keyword, "allOf" | "prefixItems"))
            .collect()
    }
}

/// What a model receives about a contract.
struct Request<'a> {
    /// The constraints of the schema that is sent.
    sent: Vec<Constraint<'a>>,
    /// The constraints that the prompt describes.
    prompted: Vec<Constraint<'a>>,
    /// Whether the fields of the schema have descriptions that the model reads.
    describes: bool,
    /// Whether the prompt explains the envelope.
    explains: bool,
    engine: Option<&'a Enforcement>,
}

impl Request<'_> {
    fn enforced_by(&self, constraint: &Constraint<'_>) -> EnforcedBy {
        let same_path: Vec<_> = self.sent.iter().filter(|sent| sent.path == constraint.path).collect();
        match same_path.iter().find(|sent| is_form_of(sent.keyword, constraint.keyword)) {
            Some(sent) if self.engine.is_none_or(|engine| engine.enforces(sent)) => EnforcedBy::Provider,
            // A field that is not sent has no description.
            None if self.describes
                && !same_path.is_empty()
                && is_describable(constraint.keyword, constraint.value) =>
            {
                EnforcedBy::Words
            }
            _ if self.is_in_prompt(constraint) => EnforcedBy::Words,
            _ => EnforcedBy::Check,
        }
    }

    fn is_in_prompt(&self, constraint: &Constraint<'_>) -> bool {
        let mut prompted = self.prompted.iter();
        prompted.any(|one| one.path == constraint.path && one.keyword == constraint.keyword)
            || (self.explains && is_explained(constraint))
    }
}

/// Returns whether the text of every prompt about the envelope explains a constraint.
fn is_explained(constraint: &Constraint<'_>) -> bool {
    let keywords: &[&str] = match constraint.path.as_str() {
        "meta" | "error" => &["type", "required"],
        "meta.confidence" => &["type", "minimum", "maximum"],
        "meta.risk" | "error.code" => &["type", "enum", "pattern"],
        "meta.explain" => &["type", "maxLength"],
        "error.message" => &["type"],
        _ => &[],
    };
    keywords.contains(&constraint.keyword)
}

/// Returns whether a keyword is sent as another, with the same effect: bounds and patterns can be sent as a list of values.
fn is_form_of(sent: &str, keyword: &str) -> bool {
    let is_other_form = matches!(
        (sent, keyword),
        ("enum", "const" | "pattern" | "minimum" | "maximum")
            | ("anyOf", "oneOf")
            | ("prefixItems", "items" | "additionalItems")
    );
    sent == keyword || is_other_form
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::Rules;

    fn enforced(dialect: Dialect, engine: Option<&str>) -> Vec<String> {
        let schema = json!({
            "input": { "type": "object" },
            "data": { "type": "object", "required": ["n"], "properties": {
                "n": { "type": "number", "minimum": 1 },
                "tags": { "$ref": "#/$defs/Tags" },
            } },
            "$defs": { "Tags": { "type": "array", "uniqueItems": true, "items": { "type": "string" } } },
        });
        enforced_of(&schema, dialect, engine)
    }

    fn enforced_of(schema: &Value, dialect: Dialect, engine: Option<&str>) -> Vec<String> {
        let manifest =
            cog_spec::Manifest::with_defaults("m", cog_spec::Format::V22, Some(cog_spec::Tier::Decision));
        let contract = Contract::compile(schema, &Rules::from(&manifest)).unwrap();
        let found = contract.portability(dialect, engine.and_then(Enforcement::by_engine));
        let of_fields = found.constraints.iter().filter(|one| one.keyword != "type");
        of_fields.map(|one| format!("{} {} {:?}", one.path, one.keyword, one.enforced_by)).collect()
    }

    #[test]
    fn provider_enforces_what_its_dialect_supports() {
        assert_eq!(
            enforced(Dialect::OpenAiStrict, None),
            ["data required Provider", "data.n minimum Provider", "data.tags uniqueItems Words"]
        );
        assert_eq!(
            enforced(Dialect::Anthropic, None),
            ["data required Provider", "data.n minimum Words", "data.tags uniqueItems Words"]
        );
    }

    #[test]
    fn constraint_without_a_description_is_only_checked() {
        let data = json!({
            "type": "object",
            "properties": {
                "map": { "type": "object", "minProperties": 1 },
                "text": { "type": "string", "not": { "$ref": "#/$defs/Word" }, "minLength": 1 },
                "one": { "type": "string", "const": "a" },
            },
        });
        let schema = json!({ "data": data, "$defs": { "Word": { "const": "word" } } });
        assert_eq!(
            enforced_of(&schema, Dialect::OpenAiStrict, None),
            [
                "data.map minProperties Check",
                "data.text not Check",
                "data.text minLength Words",
                "data.one const Provider"
            ]
        );
        assert_eq!(enforced_of(&schema, Dialect::Gemini, None).last().unwrap(), "data.one const Provider");
    }

    #[test]
    fn every_prompt_explains_the_fields_of_the_envelope() {
        let meta = json!({ "type": "object", "required": ["confidence"], "properties": {
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "risk": { "type": "string", "enum": ["none", "low", "medium", "high"] },
            "explain": { "type": "string", "maxLength": 280 },
        } });
        let schema = json!({ "data": { "type": "object" }, "meta": meta });
        let found = enforced_of(&schema, Dialect::Prompt, None);
        assert_eq!(
            found,
            [
                "meta required Words",
                "meta.confidence minimum Words",
                "meta.confidence maximum Words",
                "meta.risk enum Words",
                "meta.explain maxLength Words",
            ]
        );
        // The text explains them also where the provider shows the schema, and the engine ignores a part of it.
        let shown = enforced_of(&schema, Dialect::OpenAiStrict, Some("llamacpp"));
        assert!(shown.contains(&"meta.confidence minimum Words".to_owned()), "{shown:?}");
    }

    #[test]
    fn engine_enforces_what_was_measured() {
        assert_eq!(
            enforced(Dialect::JsonSchema, Some("llamacpp")),
            ["data required Provider", "data.n minimum Words", "data.tags uniqueItems Words"]
        );
    }

    #[test]
    fn constraint_that_the_prompt_does_not_mention_is_only_checked() {
        let manifest =
            cog_spec::Manifest::with_defaults("m", cog_spec::Format::V22, Some(cog_spec::Tier::Decision));
        let schema = json!({
            "input": { "type": "object" },
            "data": { "type": "object" },
            "error": { "type": "object", "required": ["code"], "properties": {
                "code": { "type": "string" },
                "message": { "type": "string", "minLength": 1 },
                "details": { "type": "object" },
                "recoverable": { "type": "boolean" },
            } },
        });
        let contract = Contract::compile(&schema, &Rules::from(&manifest)).unwrap();
        let checked = |dialect| {
            let found = contract.portability(dialect, None).constraints.into_iter();
            let checked = found.filter(|one| one.enforced_by == EnforcedBy::Check);
            checked.map(|one| format!("{} {}", one.path, one.keyword)).collect::<Vec<_>>()
        };
        assert_eq!(
            checked(Dialect::Prompt),
            ["error.message minLength", "error.details type", "error.recoverable type"]
        );
        assert_eq!(checked(Dialect::LlamaCpp), ["error.details type"]);
    }

    #[test]
    fn prompt_contains_everything_without_a_schema() {
        assert!(enforced(Dialect::Prompt, None).iter().all(|line| line.ends_with("Words")));
    }
}
