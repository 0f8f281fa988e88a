//! Reads a [`Manifest`] from YAML and resolves every default (SPEC 2.2, 5.2; docs/spec/modules.md).

mod composition;
mod context;
mod fields;
mod sections;

use cog_spec::{Format, Manifest, Tier};

pub(crate) use self::context::schemas as context_schemas;
use self::fields::Fields;
use crate::{
    Rule,
    diagnostic::{Findings, shown},
    layout::Family,
    name::{is_module_name, similar_module_name},
    yaml::Node,
};

/// The other files of the module that decide its format and its defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadContext<'a> {
    /// The layout of the module.
    pub(crate) family: Family,
    /// The schema, if it could be read.
    pub(crate) schema: Option<&'a serde_json::Value>,
}

/// Reads a manifest and reports every error to `findings`.
///
/// The manifest is complete even then, with defaults for invalid values, so that the other files can be checked
/// against it.
pub(crate) fn read(root: &Node, context: LoadContext<'_>, findings: &Findings<'_>) -> Manifest {
    let fields = Fields::from_root(root, findings);
    let format = format_of(root, context);
    let tier: Option<Tier> = fields.keyword("tier");
    let mut manifest = Manifest::with_defaults(identity(&fields), format, tier);
    manifest.version = fields.version().unwrap_or(manifest.version);
    manifest.responsibility = fields.required_text("responsibility").unwrap_or_default();
    manifest.excludes = excludes(&fields, format);
    if let Some(strictness) = fields.keyword("schema_strictness") {
        manifest.strictness = strictness;
    }
    sections::read(&fields, &mut manifest, context);
    if format.asks_for_envelope() && tier.is_none() && !fields.has("tier") {
        let help = Some(format!("Add `tier:` with one of: {}.", Tier::NAMES.join(", ")));
        fields.missing_but_optional("tier", help);
    }
    fields.finish();
    manifest
}

/// Reads the `constraints.yaml` of v0 over the constraints of the manifest.
pub(crate) fn read_constraints(root: &Node, manifest: &mut Manifest, findings: &Findings<'_>) {
    sections::constraints_of_file(root, manifest, findings);
}

/// Returns the format, decided by files and keys only (ruling R5).
pub(crate) fn format_of(root: &Node, context: LoadContext<'_>) -> Format {
    let has_meta_schema = context.schema.is_some_and(|schema| schema.get("meta").is_some());
    match context.family {
        Family::V0 => Format::V0,
        Family::V1 => Format::V1,
        Family::V2 if root.get("response").is_some() || root.get("modalities").is_some() => Format::V25,
        Family::V2 if root.get("tier").is_some() || has_meta_schema => Format::V22,
        Family::V2 => Format::V21,
    }
}

fn identity(fields: &Fields<'_>) -> String {
    let Some(name) = fields.required_text("name") else { return "unnamed".to_owned() };
    if !is_module_name(&name) {
        let help = similar_module_name(&name).map(|similar| format!("Rename it to `{similar}`."));
        let message = format!(
            "`{}` is not a valid module name: use lower case letters, digits and hyphens, starting with a letter",
            shown(&name)
        );
        fields.error_at("name", Rule::NameForm, message, help);
    }
    name
}

fn excludes(fields: &Fields<'_>, format: Format) -> Vec<String> {
    let excludes = fields.texts("excludes");
    if excludes.is_none() && !fields.has("excludes") {
        let help = Some("Add `excludes:` with a list of things that the module must not do.".to_owned());
        match format {
            Format::V0 | Format::V1 => fields.missing("excludes", help),
            Format::V21 | Format::V22 | Format::V25 => fields.missing_but_optional("excludes", help),
        }
    }
    excludes.unwrap_or_default()
}
