//! Arrays: what their items are.

use serde_json::{Map, Value, json};

use super::{Untold, Walk};
use crate::project::account::LossKind;

impl Walk<'_> {
    pub(super) fn items(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        reported: &mut Map<String, Value>,
    ) -> Result<(), Untold> {
        let items = match members.get("items") {
            Some(Value::Array(tuple)) => self.tuple(tuple, members, at)?,
            Some(schema) => self.schema(schema, &format!("{at}/items"))?,
            None if self.profile.types_all => self.anything(at),
            None => return Ok(()),
        };
        reported.insert("items".to_owned(), items);
        Ok(())
    }

    /// A tuple is reported as an array of any of its items.
    fn tuple(&mut self, tuple: &[Value], members: &Map<String, Value>, at: &str) -> Result<Value, Untold> {
        self.lose(at, "items", LossKind::Projected, "the positions of the items are not sent");
        let mut schemas = Vec::new();
        for (index, schema) in tuple.iter().enumerate() {
            schemas.push(self.schema(schema, &format!("{at}/items/{index}"))?);
        }
        if let Some(schema @ Value::Object(_)) = members.get("additionalItems") {
            schemas.push(self.schema(schema, &format!("{at}/additionalItems"))?);
        }
        schemas.dedup();
        match schemas.as_slice() {
            [only] => Ok(only.clone()),
            _ => Ok(json!({ "anyOf": schemas })),
        }
    }
}
