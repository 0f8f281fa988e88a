//! The schemas that a prompt shows to a model.

use serde_json::{Map, Value};

use super::parts::{self, PartSchema};
use super::walk::Walk;
use crate::contract::Contract;
use crate::dialect::AS_WRITTEN;

impl Contract {
    /// Returns the schemas that a prompt contains for a model that does not see the projected schema, by the name of their
    /// part: `data`, and `meta` and `error` if the module defines fields beyond those of the specification. In formats
    /// without an envelope it is the answer, without a name.
    ///
    /// Each schema contains the definitions that it refers to.
    pub fn prompt_schemas(&self) -> Vec<(&'static str, Value)> {
        let mut lost = Vec::new();
        if !self.rules().format.asks_for_envelope() {
            return self.shown("", parts::bare(self, &mut lost)).into_iter().collect();
        }
        let data = parts::data(self, &mut lost);
        let meta = parts::meta(self, &mut lost);
        let error = parts::error(self, &mut lost);
        let parts = [
            ("data", Some(data)),
            ("meta", Some(meta).filter(|meta| defines_more(meta, &META))),
            ("error", Some(error).filter(|error| defines_more(error, &ERROR))),
            ("_emitted_context", parts::emitted(self)),
        ];
        parts.into_iter().filter_map(|(name, part)| self.shown(name, part?)).collect()
    }

    fn shown(&self, name: &'static str, part: PartSchema) -> Option<(&'static str, Value)> {
        Some((name, Walk::new(self.document(), AS_WRITTEN).alone(part).ok()?))
    }
}

/// The fields of `meta` that the text of a prompt explains.
const META: [&str; 3] = ["confidence", "risk", "explain"];
/// The fields of `error` that the text of a prompt explains, or that a model need not write.
const ERROR: [&str; 5] = ["code", "message", "recoverable", "suggestion", "details"];

fn defines_more(part: &PartSchema, known: &[&str]) -> bool {
    let properties = part.schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).any(|name| !known.contains(&name.as_str()))
}
