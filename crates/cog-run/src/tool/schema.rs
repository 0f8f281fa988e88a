//! The schema of a tool's arguments: checked locally, and sent in the dialect of each provider.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use cog_json::{Node, Value};
use cog_schema::{Contract, Rules, Violation};
use cog_spec::{Dialect, Format, Manifest, Tier};
use serde_json::{Map, json};

use crate::changes::{Change, with_changes};

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
