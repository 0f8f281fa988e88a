//! The contract as a model is reported of it that makes media: they are not for it to write.

use serde_json::Value;

use crate::contract::Contract;
use crate::shape::{Id, SchemaNode};

impl Contract {
    /// The same contract without the fields for media, and the names of those: what a model is to write that makes media
    /// beside its text. None where there are no such fields.
    pub fn without_media_outputs(&self) -> Option<(Contract, Vec<String>)> {
        let mut document = self.document().clone();
        let mut left_out: Vec<String> = Vec::new();
        for shape in self.shapes.iter() {
            let fields = shape.properties().filter(|(_, id)| self.is_for_media(*id)).map(|(name, _)| name);
            let fields: Vec<&str> = fields.collect();
            if let Some(schema) = document.pointer_mut(&shape.pointer).filter(|_| !fields.is_empty()) {
                leave_out(schema, &fields);
                left_out.extend(fields.into_iter().map(str::to_owned));
            }
        }
        left_out.sort_unstable();
        left_out.dedup();
        let contract = Contract::compile(&document, &self.rules).ok()?;
        (!left_out.is_empty()).then_some((contract, left_out))
    }

    fn is_for_media(&self, id: Id) -> bool {
        let is_medium = |id: Id| self.shapes.possible(id).any(|shape| shape.is_output);
        is_medium(id) || self.shapes.possible(id).filter_map(SchemaNode::list_items).any(is_medium)
    }
}

fn leave_out(schema: &mut Value, fields: &[&str]) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !fields.contains(&name.as_str()));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(|name| fields.contains(&name)));
    }
}
