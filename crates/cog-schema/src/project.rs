//! The schema that a model is called with, in the dialect of its provider.
//!
//! Providers support subsets of JSON Schema. A projection contains what a provider supports, and lists the rest as losses.
//! Answers are always checked with the module's own contract.

mod defs;
mod describe;
mod loss;
mod merge;
mod nulls;
mod parts;
mod shown;
mod walk;

use cog_spec::Dialect;
use serde_json::Value;

use crate::contract::Contract;
use crate::dialect::profile;

use self::walk::{Unsupported, Walk};

pub(crate) use self::describe::is_describable;
pub use self::loss::{Loss, LossKind};
pub(crate) use self::merge::{flattened, merge};

/// A contract in the dialect of a provider.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Projection {
    /// The dialect: the requested one, or the next weaker one that can express this contract.
    pub dialect: Dialect,
    /// The schema, an object; none if the dialect has no schema.
    pub schema: Option<Value>,
    /// Whether the provider shows the schema to the model.
    pub is_shown: bool,
    /// What is not sent, or is sent in another form. All of it is enforced when the answer is checked.
    pub lost: Vec<Loss>,
}

impl Contract {
    /// Projects the contract to a dialect (docs/spec/modules.md).
    ///
    /// Since v2.2 the schema is a choice of two envelopes, success and failure, each with `ok`, `meta`, `data`, `error`, in
    /// this order, all required. It is the root, or the value of [`Contract::wrapper`]. In older formats the root is the
    /// data. The rationale, and the insights if overflow is enabled, are included even if the schema does not define
    /// them.
    ///
    /// If a dialect cannot express the contract (maps in a strict mode, recursion, limits), the next weaker dialect is
    /// used, and the losses contain the reason.
    pub fn project(&self, dialect: Dialect) -> Projection {
        self.project_with(dialect, |walk| walk.root(self))
    }

    /// Projects the input to a dialect, as the arguments of a tool (docs/tools.md). A dialect without schemas describes
    /// tools in JSON Schema.
    pub fn project_input(&self, dialect: Dialect) -> Projection {
        let dialect = if profile(dialect).is_some() { dialect } else { Dialect::JsonSchema };
        self.project_with(dialect, |walk| walk.input(self))
    }

    fn project_with(
        &self,
        mut dialect: Dialect,
        root: impl Fn(&mut Walk<'_>) -> Result<Value, Unsupported>,
    ) -> Projection {
        let mut lost = Vec::new();
        loop {
            let Some(profile) = profile(dialect) else { return without_schema(dialect, lost) };
            let mut walk = Walk::new(self.document(), profile);
            match root(&mut walk) {
                Ok(schema) => {
                    lost.extend(walk.into_lost());
                    return Projection {
                        dialect,
                        schema: Some(schema),
                        is_shown: profile.shows_schema,
                        lost,
                    };
                }
                Err(reason) => {
                    lost.push(Loss::for_dialect(dialect, &reason));
                    dialect = profile.weaker;
                }
            }
        }
    }
}

impl Contract {
    /// Returns the key that contains the envelope in replies to a projection to this dialect; none if the envelope is the
    /// root, as in dialects whose root may be a choice, or if the format has no envelope.
    pub fn wrapper(&self, dialect: Dialect) -> Option<&'static str> {
        profile(dialect)?.wrapper().filter(|_| self.rules().format.asks_for_envelope())
    }
}

fn without_schema(dialect: Dialect, mut lost: Vec<Loss>) -> Projection {
    lost.push(Loss::for_dialect(dialect, "it takes no schema; the prompt contains the contract"));
    Projection { dialect, schema: None, is_shown: false, lost }
}

#[cfg(test)]
mod tests;
