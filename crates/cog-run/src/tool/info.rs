use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use cog_harmony::ToolDefinition;
use cog_json::{Node, Value};
use cog_module::Module;
use cog_schema::{Contract, Rules, Violation, without_unsupported_patterns};
use cog_spec::{Dialect, Format, Manifest, Tier};
use serde_json::{Map, json};
use thiserror::Error;

use crate::changes::{Change, with_changes};

/// The maximum length of a tool's name, as vendors accept it.
const MAX_NAME: usize = 64;

/// The name of a tool, the schema of its arguments, and what a call may do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// What a call may do, which the policies of a module allow or deny.
    pub effects: ToolEffects,
    /// Whether a person must confirm each call (appendix A, exercise 2).
    pub needs_confirmation: bool,
    /// The time limit of a call, if it is shorter than the runtime's.
    pub timeout: Option<Duration>,
    pub(crate) schema: Arc<ArgumentsSchema>,
}

/// What a call of a tool may do (docs/spec/modules.md, `policies`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolEffects {
    /// It uses the network.
    pub network: bool,
    /// It writes files.
    pub filesystem_write: bool,
    /// It changes something outside the run.
    pub side_effects: bool,
    /// It runs code.
    pub code_execution: bool,
}

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidTool {
    /// The name is not one that vendors accept.
    #[error("`{name}` is not a valid tool name; use 1 to 64 letters, digits, `_` or `-`")]
    Name {
        /// The name.
        name: String,
    },
    /// The schema of the arguments is not a valid JSON Schema.
    #[error("the parameters of the tool `{name}` are not a valid schema: {problems}")]
    Parameters {
        /// The name of the tool.
        name: String,
        /// Every problem with its location.
        problems: String,
    },
}

impl ToolInfo {
    /// Describes a tool without effects. `parameters` is the JSON Schema of the arguments, which are an object; it is
    /// compiled once.
    ///
    /// # Errors
    /// A name that vendors do not accept, or a schema that is not valid.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: &Value,
    ) -> Result<Self, InvalidTool> {
        let name = name.into();
        if !is_name(&name) {
            return Err(InvalidTool::Name { name });
        }
        let schema = ArgumentsSchema::compile(&parameters.to_serde());
        let schema = schema.map_err(|problems| InvalidTool::Parameters { name: name.clone(), problems })?;
        Ok(Self::with_schema(name, description.into(), schema))
    }

    /// Describes a module as a tool: its input is the arguments.
    pub(crate) fn from_module(module: &Module) -> Self {
        let manifest: &Manifest = &module.manifest;
        let schema = ArgumentsSchema::from_contract(Arc::clone(&module.contract));
        Self {
            effects: ToolEffects::from(manifest),
            ..Self::with_schema(manifest.name.clone(), manifest.responsibility.clone(), schema)
        }
    }

    fn with_schema(name: String, description: String, schema: ArgumentsSchema) -> Self {
        Self {
            name,
            description,
            effects: ToolEffects::default(),
            needs_confirmation: false,
            timeout: None,
            schema: Arc::new(schema),
        }
    }

    /// Sets what a call may do.
    #[must_use]
    pub fn with_effects(mut self, effects: ToolEffects) -> Self {
        self.effects = effects;
        self
    }

    /// Requires that a person confirms each call.
    #[must_use]
    pub fn with_confirmation(mut self) -> Self {
        self.needs_confirmation = true;
        self
    }

    /// Returns the definition for a provider, in the dialect of its schemas.
    pub(crate) fn definition(&self, dialect: Dialect) -> ToolDefinition {
        let (parameters, strict) = self.schema.projected(dialect);
        let name = self.name.clone();
        let description = self.description.clone();
        ToolDefinition { name, description, parameters, strict }
    }
}

impl ToolEffects {
    /// Returns whether a call can change anything.
    pub const fn changes_something(self) -> bool {
        self.filesystem_write || self.side_effects || self.code_execution
    }
}

/// A module may do what its own tools may do.
impl From<&Manifest> for ToolEffects {
    fn from(manifest: &Manifest) -> Self {
        let policies = &manifest.policies;
        Self {
            network: manifest.allows_network(),
            filesystem_write: policies.filesystem_write_allowed,
            side_effects: manifest.allows_side_effects(),
            code_execution: policies.code_execution_allowed,
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_letter)
}

// The schema of a tool's arguments: checked locally, and sent in the dialect of each provider.

/// The members of a schema that references start from.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The compiled schema of a tool's arguments.
#[derive(Debug)]
pub(crate) struct ArgumentsSchema {
    /// A contract whose input is the arguments.
    contract: Arc<Contract>,
    /// The projection to each dialect, created on first use, and whether the provider enforces it.
    projected: Vec<OnceLock<(Value, bool)>>,
}

impl ArgumentsSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Every problem of the schema with its location.
    pub(crate) fn compile(parameters: &serde_json::Value) -> Result<Self, String> {
        // The tool checks its arguments itself, so what cannot be checked here is no reason to do without the tool.
        let parameters = &without_unsupported_patterns(parameters);
        let mut document = Map::new();
        for key in DEFINITIONS {
            document.extend(parameters.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        document.insert("input".to_owned(), parameters.clone());
        let manifest = Manifest::with_defaults("tool", Format::V25, Some(Tier::Exploration));
        let contract = Contract::compile(&serde_json::Value::Object(document), &Rules::from(&manifest));
        let contract = contract.map_err(|problems| {
            problems.iter().map(|problem| problem.to_string()).collect::<Vec<_>>().join("; ")
        })?;
        Ok(Self::from_contract(Arc::new(contract)))
    }

    /// Returns the schema of a module's input.
    pub(crate) fn from_contract(contract: Arc<Contract>) -> Self {
        Self { contract, projected: Dialect::ALL.iter().map(|_| OnceLock::new()).collect() }
    }

    /// Returns the schema in a dialect, and whether the provider enforces it.
    pub(crate) fn projected(&self, dialect: Dialect) -> (Value, bool) {
        let index = Dialect::ALL.iter().position(|known| *known == dialect);
        match index.and_then(|index| self.projected.get(index)) {
            Some(slot) => slot.get_or_init(|| self.project(dialect)).clone(),
            None => self.project(dialect),
        }
    }

    fn project(&self, dialect: Dialect) -> (Value, bool) {
        let projection = self.contract.project_input(dialect);
        let schema = projection.schema.unwrap_or_else(|| json!({ "type": "object" }));
        (Value::from(schema), projection.dialect.adds_nulls())
    }

    /// Returns every violation of the arguments, with paths from `arguments`.
    pub(crate) fn check(&self, arguments: Node<'_>) -> Vec<Violation> {
        let mut violations = self.contract.check_input(arguments);
        for violation in &mut violations {
            if let Some(path) = violation.path.strip_prefix("input") {
                violation.path = format!("arguments{path}");
            }
        }
        violations
    }

    /// Returns the arguments without the nulls that stand for omitted members; none if there are no such nulls.
    pub(crate) fn without_nulls(&self, arguments: Node<'_>) -> Option<Value> {
        let nulls = self.contract.added_nulls("input", arguments);
        let omitted = nulls.iter().map(|path| {
            let pointer = path.pointer();
            Some((pointer.strip_prefix("/input")?.to_owned(), Change::Omit))
        });
        let omitted: HashMap<String, Change> = omitted.collect::<Option<_>>()?;
        (!omitted.is_empty()).then(|| with_changes(arguments, &omitted))
    }
}

#[cfg(test)]
mod tests {
    use cog_spec::Format;
    use serde_json::json;

    use super::*;

    fn info(name: &str, parameters: serde_json::Value) -> Result<ToolInfo, InvalidTool> {
        ToolInfo::new(name, "Adds.", &Value::from(parameters))
    }

    #[test]
    fn tool_with_a_pattern_of_another_engine_is_offered() {
        let look_ahead = r"^(?!\.)[a-z]+@[a-z.]+$";
        let parameters = json!({
            "type": "object",
            "properties": { "mail": { "type": "string", "pattern": look_ahead, "description": "Who." } },
            "patternProperties": { "^(?=x)": { "type": "integer" } },
            "additionalProperties": false,
        });
        let info = info("send", parameters).unwrap();
        let sent = info.definition(Dialect::JsonSchema).parameters.to_string();
        assert!(
            sent.contains("Who. The tool checks it against a pattern.") && !sent.contains("(?!"),
            "{sent}"
        );
        let arguments = Value::parse(r#"{"mail": "a@b.c", "x1": 1}"#).unwrap();
        assert_eq!(info.schema.check(arguments.node()), []);
        let arguments = Value::parse(r#"{"mail": 7}"#).unwrap();
        assert_eq!(info.schema.check(arguments.node()).len(), 1);
    }

    #[test]
    fn rejects_names_that_vendors_do_not_accept() {
        let long = "x".repeat(65);
        for name in ["", "a b", "a.b", "ä", "a/b", long.as_str()] {
            assert!(matches!(info(name, json!({})), Err(InvalidTool::Name { .. })), "{name}");
        }
        assert!(info(&"x".repeat(64), json!({})).is_ok());
    }

    #[test]
    fn module_has_no_effect_that_its_constraints_forbid() {
        let mut manifest = Manifest::with_defaults("m", Format::V1, None);
        (manifest.policies.network_allowed, manifest.policies.side_effects_allowed) = (true, true);
        let side_effects = ToolEffects { side_effects: true, ..ToolEffects::default() };
        assert_eq!(ToolEffects::from(&manifest), ToolEffects { network: true, ..side_effects });
        manifest.constraints.no_network = true;
        assert_eq!(ToolEffects::from(&manifest), side_effects);
        manifest.constraints.no_side_effects = true;
        assert_eq!(ToolEffects::from(&manifest), ToolEffects::default());
    }

    #[test]
    fn rejects_invalid_schema_with_its_location() {
        let error = info("add", json!({ "type": "objekt" })).unwrap_err();
        assert!(error.to_string().contains("type"), "{error}");
    }

    #[test]
    fn definition_is_in_the_dialect_of_the_provider() {
        let parameters = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
        let info = info("add", parameters.clone()).unwrap();
        let strict = info.definition(Dialect::OpenAiStrict);
        assert!(strict.strict);
        assert_eq!(strict.parameters.to_serde()["required"], json!(["a"]));
        for dialect in [Dialect::JsonSchema, Dialect::Prompt, Dialect::JsonObject] {
            let plain = info.definition(dialect);
            assert!(!plain.strict);
            assert_eq!(plain.parameters.to_serde(), parameters);
        }
    }

    #[test]
    fn definitions_of_the_schema_resolve() {
        let parameters = json!({ "type": "object", "properties": { "at": { "$ref": "#/$defs/point" } },
            "$defs": { "point": { "type": "array", "items": { "type": "number" } } } });
        let info = info("draw", parameters).unwrap();
        let valid = Value::parse(r#"{"at": [1, 2]}"#).unwrap();
        let invalid = Value::parse(r#"{"at": ["x"]}"#).unwrap();
        assert!(info.schema.check(valid.node()).is_empty());
        assert_eq!(info.schema.check(invalid.node())[0].path, "arguments.at[0]");
    }
}
