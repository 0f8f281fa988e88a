//! The contract for a model that generates media beside its text.

use serde_json::Value;

use crate::contract::Contract;
use crate::graph::{Id, SchemaNode};

impl Contract {
    /// Returns the contract without its media fields, and their names, for a model that generates media beside its text;
    /// none if there are no media fields.
    pub fn without_media_outputs(&self) -> Option<(Contract, Vec<String>)> {
        let mut document = self.document().clone();
        let mut omitted: Vec<String> = Vec::new();
        for shape in self.graph.iter() {
            let fields = shape.properties().filter(|(_, id)| self.is_media_output(*id)).map(|(name, _)| name);
            let fields: Vec<&str> = fields.collect();
            if let Some(schema) = document.pointer_mut(&shape.pointer).filter(|_| !fields.is_empty()) {
                omit(schema, &fields);
                omitted.extend(fields.into_iter().map(str::to_owned));
            }
        }
        omitted.sort_unstable();
        omitted.dedup();
        let contract = Contract::compile(&document, &self.rules).ok()?;
        (!omitted.is_empty()).then_some((contract, omitted))
    }

    fn is_media_output(&self, id: Id) -> bool {
        let is_output = |id: Id| self.graph.possible(id).any(|shape| shape.is_output);
        is_output(id) || self.graph.possible(id).filter_map(SchemaNode::list_items).any(is_output)
    }
}

fn omit(schema: &mut Value, fields: &[&str]) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !fields.contains(&name.as_str()));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(|name| fields.contains(&name)));
    }
}
