mod context;
mod enums;
mod error;
mod input;
mod insights;
mod meta;
mod partial;
mod rationale;
mod strictness;

use cog_json::{Path, Value as Tree};
use cog_spec::{EnumStrategy, Format, Manifest, Strictness, Tier};
use serde_json::{Value, json};

use crate::{Contract, DataCheck, Rules, Violation};

fn rules(tier: Tier) -> Rules {
    Rules::from(&Manifest::with_defaults("test", Format::V22, Some(tier)))
}

fn contract(document: Value, rules: &Rules) -> Contract {
    Contract::compile(&document, rules).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Returns a contract with these properties and a rationale.
fn data_contract(properties: Value, rules: &Rules) -> Contract {
    let mut properties = properties;
    properties["rationale"] = json!({ "type": "string" });
    contract(
        json!({ "data": { "type": "object", "required": ["rationale"], "properties": properties } }),
        rules,
    )
}

fn check(contract: &Contract, data: Value) -> DataCheck {
    contract.check_data(Tree::from(data).node())
}

/// Returns `path rule code` of each violation.
fn lines(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(|one| format!("{} {} {}", one.path, one.rule, one.code)).collect()
}
