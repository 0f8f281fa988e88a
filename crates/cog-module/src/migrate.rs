//! Migrates modules from old formats to v2.2 and v2.5 (docs/spec/modules.md, *Migration*).
//!
//! [`plan`] writes nothing; the plan can be shown as a diff and then applied. The comments and the
//! order of keys in existing files stay, because text is inserted and not regenerated.

mod apply;
mod change;
mod draft;
mod error;
mod manifest;
mod prompt;
mod schema;
mod v0;

use std::path::PathBuf;

use cog_json::{Array, ToJson, Writer};
use cog_spec::{Format, Manifest};

use self::draft::Draft;
pub use self::{change::FileChange, error::MigrateError};
use crate::{Module, Origin, load};

/// The target format of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// v2.2: envelope and tier.
    V22,
    /// v2.5: a response mode as well.
    #[default]
    V25,
}

/// The changes of a migration, not yet written.
#[derive(Debug, Clone)]
pub struct Migration {
    /// The module's name.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// Its current format.
    pub from: Format,
    /// Its format afterwards.
    pub to: Format,
    /// Every changed file; empty if there is nothing to do.
    pub changes: Vec<FileChange>,
    /// Notes for review.
    pub notes: Vec<String>,
}

/// Plans the migration of a module without writing.
///
/// A module that already has the target format needs no change.
///
/// # Errors
/// If the module does not load, is built in, or cannot be edited.
pub fn plan(origin: &Origin, target: Target) -> Result<Migration, MigrateError> {
    let module = load(origin)?;
    let Origin::Directory(directory) = origin else {
        return Err(MigrateError::BuiltIn { name: module.manifest.name.clone() });
    };
    let mut draft = Draft::new(origin);
    let from = module.manifest.format;
    let mut to = from;
    if from < Format::V22 {
        to_v22(&module, &mut draft)?;
        to = Format::V22;
    }
    if module.manifest.tier.is_none() {
        manifest::add_tier(&mut draft)?;
    }
    if target == Target::V25 && from < Format::V25 {
        manifest::add_response(&mut draft)?;
        to = Format::V25;
    }
    let (changes, notes) = draft.finish();
    Ok(Migration {
        name: module.manifest.name.clone(),
        directory: directory.clone(),
        from,
        to,
        changes,
        notes,
    })
}

fn to_v22(module: &Module, draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    match module.manifest.format {
        Format::V0 => v0::gather(draft)?,
        Format::V1 => v0::split_module_md(draft)?,
        Format::V21 | Format::V22 | Format::V25 => {}
    }
    schema::to_v22(draft, output_key(&module.manifest))?;
    prompt::add_envelope(draft)?;
    v0::move_examples(draft)
}

/// Returns the name of the data section in the schema of an old module.
fn output_key(manifest: &Manifest) -> &'static str {
    if manifest.format == Format::V0 { "data" } else { "output" }
}

impl Migration {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the changes as a unified diff with paths from the module's directory.
    pub fn diff(&self) -> String {
        let directory = self.directory.to_string_lossy().replace('\\', "/");
        let directory = directory.trim_start_matches("./").trim_matches('/');
        self.changes.iter().map(|change| change.diff(directory)).collect()
    }
}

/// Written by hand: the path is written as text.
impl ToJson for Migration {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.name);
            w.field("path", self.directory.to_string_lossy().as_ref());
            w.field("from", self.from.as_str());
            w.field("to", self.to.as_str());
            w.field("changes", &Array(&self.changes));
            w.field("notes", &self.notes);
        });
    }
}

#[cfg(test)]
mod tests;
