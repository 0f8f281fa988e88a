//! A schema as it is written, but for its references.

use serde_json::Value;

use super::Walk;
use crate::subschema::{children, target};

impl Walk<'_> {
    pub(super) fn copied(&mut self, schema: &Value) -> Value {
        let mut copy = schema.clone();
        let mut open = vec![String::new()];
        while let Some(pointer) = open.pop() {
            let Some(schema) = copy.pointer_mut(&pointer) else { continue };
            if let Some(local) = schema.get("$ref").and_then(Value::as_str).and_then(target) {
                *schema = self.defs.refer(&local);
                continue;
            }
            open.extend(children(schema).into_iter().map(|child| format!("{pointer}{}", child.pointer)));
        }
        copy
    }
}
