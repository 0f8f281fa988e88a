//! The named types of a module.

use std::collections::HashSet;

use cog_module::Module;
use serde_json::Value;

use super::{
    insights,
    model::Definition,
    names::{Namer, Style},
};

/// A module with names for its types.
#[derive(Debug)]
pub(super) struct Described {
    /// The name of the module.
    pub(super) name: String,
    pub(super) responsibility: String,
    /// The names of the types of its parts.
    pub(super) input: String,
    pub(super) data: String,
    pub(super) meta: String,
    pub(super) error: String,
    /// The types, each after those that it uses.
    pub(super) definitions: Vec<Definition>,
}

impl Described {
    /// Names the types of a module; `taken` has the names of other modules.
    pub(super) fn new(module: &Module, style: Style, prefix: String, taken: &mut HashSet<String>) -> Self {
        let contract = &module.contract;
        let document = contract.document();
        let parts = [
            ("Input", contract.input_schema()),
            ("Data", contract.data_schema()),
            ("Meta", contract.meta_schema()),
            ("Error", contract.error_schema()),
        ];
        let parts =
            parts.map(|(word, schema)| (word, schema.and_then(|schema| pointer_of(schema, document))));
        let mut namer = Namer::new(document, style, prefix, taken);
        for (word, pointer) in &parts {
            pointer.iter().for_each(|pointer| namer.reserve(pointer, word));
        }
        if let [_, (_, Some(data)), ..] = &parts
            && contract.rules().overflow.enabled
        {
            namer.add_insights(data, insights::field(contract.rules().overflow.require_suggested_mapping));
        }
        let [input, data, meta, error] = parts.map(|(word, pointer)| match pointer {
            Some(pointer) => namer.root(&pointer),
            None => namer.any(word),
        });
        let name = module.manifest.name.clone();
        let responsibility = module.manifest.responsibility.clone();
        Self { name, responsibility, input, data, meta, error, definitions: namer.finish() }
    }
}

/// Returns the pointer of a schema that is a member of the document.
fn pointer_of(schema: &Value, document: &Value) -> Option<String> {
    let members = document.as_object()?;
    members.iter().find(|(_, value)| std::ptr::eq(*value, schema)).map(|(key, _)| format!("/{key}"))
}
