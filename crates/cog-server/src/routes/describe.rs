//! Modules as JSON, without their path on disk.

use cog_json::{ToJson, Value, Writer};
use cog_module::{ListedModule, Module};
use cog_spec::Manifest;

/// An entry of the list of modules.
pub(super) struct Entry<'a>(pub(super) &'a ListedModule);

/// Written by hand: a module that does not load has only an error.
impl ToJson for Entry<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.0.name);
            match &self.0.manifest {
                Ok(manifest) => facts(w, manifest),
                Err(error) => {
                    w.field("error", error.code().as_str());
                }
            }
        });
    }
}

/// A module: its description and its contract.
pub(super) struct Shown<'a>(pub(super) &'a Module);

/// Written by hand: its members are those of the manifest and the contract.
impl ToJson for Shown<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Module { manifest, contract, .. } = self.0;
        let schema = |schema: Option<&serde_json::Value>| schema.map(Value::from);
        w.object(|w| {
            w.field("name", &manifest.name);
            facts(w, manifest);
            w.field("excludes", &manifest.excludes);
            w.field("chunk_type", manifest.response.chunk_type.as_str());
            w.field("input_modalities", &manifest.modalities.input);
            w.field("output_modalities", &manifest.modalities.output);
            w.optional("input", &schema(contract.input_schema()));
            w.optional("data", &schema(contract.data_schema()));
            w.optional("meta", &schema(contract.meta_schema()));
            w.optional("error", &schema(contract.error_schema()));
        });
    }
}

fn facts(w: &mut Writer<'_>, manifest: &Manifest) {
    w.field("version", &manifest.version);
    w.field("format", manifest.format.as_str());
    w.optional("tier", &manifest.tier.map(|tier| tier.as_str()));
    w.field("responsibility", &manifest.responsibility);
    w.field("response_mode", manifest.response.mode.as_str());
}
