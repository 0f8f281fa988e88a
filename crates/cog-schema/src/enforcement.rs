//! What the grammar of an engine enforces of a schema while a model writes.
//!
//! Engines accept keywords that their grammars ignore. `cargo xtask probe` measures them: it requests answers for each
//! schema of `probes.json`, and counts those that violate it.

mod feature;
mod llamacpp;

use serde_json::Value;

use crate::constraints::{Constraint, constraints};
use crate::project::{Loss, LossKind};

use self::feature::feature;

/// The measured behaviour of an engine. It covers the engine's own structured output, whatever the model.
#[derive(Debug)]
pub struct Enforcement {
    /// The engine's name, as its server reports it: `llamacpp`.
    pub engine: &'static str,
    /// The version that was measured.
    pub version: &'static str,
    /// The day of the measurement, `2026-11-22`.
    pub date: &'static str,
    features: &'static [Measured],
}

/// The answers of an engine for a schema that depends on one feature.
#[derive(Debug)]
struct Measured {
    feature: &'static str,
    /// Answers that conform to the schema.
    valid: u32,
    /// Answers that violate it.
    invalid: u32,
    /// The engine refuses the schema.
    is_refused: bool,
}

impl Enforcement {
    /// Returns the measurements of an engine, by the name that a provider's row has for it.
    pub fn by_engine(name: &str) -> Option<&'static Enforcement> {
        [&llamacpp::LLAMACPP].into_iter().find(|measured| measured.engine == name)
    }

    /// Returns the keywords of a schema that the engine does not enforce. The pointers are those of this schema.
    pub fn losses(&self, schema: &Value) -> Vec<Loss> {
        let lost = |constraint: &Constraint<'_>| {
            Some(Loss {
                reason: self.reason(constraint)?,
                pointer: constraint.pointer.clone(),
                keyword: constraint.keyword.to_owned(),
                kind: LossKind::NotEnforced,
            })
        };
        constraints(schema, "").iter().filter_map(lost).collect()
    }

    /// Returns whether the engine enforces a constraint.
    pub(crate) fn enforces(&self, constraint: &Constraint<'_>) -> bool {
        self.reason(constraint).is_none()
    }

    /// Returns why a constraint is not enforced.
    fn reason(&self, constraint: &Constraint<'_>) -> Option<String> {
        let engine = self.engine;
        let feature = feature(constraint);
        let Some(measured) = self.features.iter().find(|measured| measured.feature == feature) else {
            return Some(format!("whether {engine} enforces it was not measured"));
        };
        let Measured { valid, invalid, .. } = *measured;
        let answers = valid + invalid;
        if measured.is_refused {
            return Some(format!("{engine} refuses it"));
        }
        // A few violations come from bytes that are not UTF-8, not from the grammar.
        (invalid * 10 > answers || answers == 0)
            .then(|| format!("{engine} does not enforce it: {invalid} of {answers} answers violated it"))
    }
}

#[cfg(test)]
mod tests;
