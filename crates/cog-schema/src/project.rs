//! The schema that a model is asked with, in the dialect of its vendor.
//!
//! Vendors take subsets of JSON Schema. A projection says what a vendor can be reported and accounts for the rest;
//! what is checked is always the module's own contract.

mod account;
mod defs;
mod merge;
mod nulls;
mod parts;
mod walk;

use cog_spec::Dialect;
use serde_json::{Map, Value, json};

use crate::contract::Contract;
use crate::dialect::{Profile, anthropic, gemini, json_schema, ollama, openai_strict};

use self::walk::Walk;

pub use self::account::{Loss, LossKind};

/// What a vendor is reported of a contract.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Projection {
    /// The dialect it is in: the one asked for, or the next weaker one that can take this contract.
    pub dialect: Dialect,
    /// The schema, an object of its own; none where the dialect has no place for one.
    pub schema: Option<Value>,
    /// What the vendor is not reported, or reported otherwise. All of it is enforced when the answer is checked.
    pub lost: Vec<Loss>,
}

impl Contract {
    /// Projects the contract to a dialect (docs/spec/modules.md, *What it is asked for*).
    ///
    /// From v2.2 on the root is the envelope: `ok`, `meta`, `data`, `error`, in that order, all required, the
    /// last two nullable. Before, it is the data as it stands. The rationale, which is always due, and the
    /// insights, where overflow is on, are reported even if the schema does not name them.
    ///
    /// Where a contract is beyond a dialect (a map in a strict mode, a recursion, a limit), the projection is in
    /// the next weaker one, and says so in the account.
    pub fn project(&self, dialect: Dialect) -> Projection {
        let mut lost = Vec::new();
        let mut dialect = dialect;
        loop {
            let Some(profile) = profile(dialect) else { return unreported(dialect, lost) };
            let mut walk = Walk::new(self.document(), profile);
            match walk.root(self) {
                Ok(schema) => {
                    lost.extend(walk.into_lost());
                    return Projection { dialect, schema: Some(schema), lost };
                }
                Err(reason) => {
                    lost.push(Loss::for_dialect(dialect, &reason));
                    dialect = profile.weaker;
                }
            }
        }
    }
}

fn profile(dialect: Dialect) -> Option<&'static Profile> {
    match dialect {
        Dialect::OpenAiStrict => Some(&openai_strict::PROFILE),
        Dialect::JsonSchema => Some(&json_schema::PROFILE),
        Dialect::Anthropic => Some(&anthropic::PROFILE),
        Dialect::Gemini => Some(&gemini::PROFILE),
        Dialect::Ollama => Some(&ollama::PROFILE),
        Dialect::JsonObject | Dialect::Prompt => None,
    }
}

fn unreported(dialect: Dialect, mut lost: Vec<Loss>) -> Projection {
    lost.push(Loss::for_dialect(dialect, "it takes no schema; the prompt contains the contract"));
    Projection { dialect, schema: None, lost }
}

/// A schema without `$ref` and `allOf` at its top, as far as they can be merged.
pub(crate) fn flattened(document: &Value, schema: &Value) -> Value {
    merge::flattened(document, schema, "", &mut Vec::new())
}

/// Adds to a schema what another says of the same value, as far as it can be merged.
pub(crate) fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    merge::merge(into, from, "", &mut Vec::new());
}

/// A schema for null.
fn null_type() -> Value {
    json!({ "type": "null" })
}

#[cfg(test)]
mod tests;
