//! What changed between two versions of a module, and for whom.
//!
//! A change is compatible only with a proof, and breaking with a document that shows it, wherever the schemas decide.
//!
//! ```
//! use cog_contract::diff::{Verdict, VersionStep, diff};
//! use cog_module::Module;
//!
//! let manifest = "name: sort\nversion: 1.0.0\nresponsibility: Sorts\ntier: decision\nexcludes: []\n";
//! let module = |most: u32| {
//!     let schema = format!(r#"{{"input": {{"properties": {{"text": {{"type": "string", "maxLength": {most}}}}}}}, "data": {{}}, "meta": {{}}}}"#);
//!     Module::from_parts(manifest, "Sort $ARGUMENTS.", schema)
//! };
//! let difference = diff(&module(9)?, &module(5)?);
//! assert_eq!(difference.verdict(), Verdict::Breaking);
//! assert_eq!(difference.version_step(), VersionStep::Major);
//! assert_eq!(difference.changes[0].path, "input.text");
//! # Ok::<(), cog_module::LoadError>(())
//! ```

mod golden;
mod manifest;
mod strictness;
mod version;

use cog_json::{Array, ToJson, Value, Writer};
use cog_module::Module;
use cog_schema::{ComparedPart, SchemaChange, SchemaEffect};

pub use self::{
    golden::{GoldenChange, GoldenChangeKind},
    version::VersionStep,
};

/// What differs between two versions of a module.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The name and version of the old one.
    pub old: Identity,
    /// The name and version of the new one.
    pub new: Identity,
    /// Each change, by part.
    pub changes: Vec<Change>,
    /// The golden tests that were added, removed or changed.
    pub golden_tests: Vec<GoldenChange>,
}

/// The name and version of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The part of the module.
    pub part: Part,
    /// The field of a document, such as `data.issues[].title`, or the key of the manifest.
    pub path: String,
    /// What changed, such as `required_added` or `max_length_changed`.
    pub kind: String,
    /// What it does to callers and readers.
    pub effect: Effect,
    /// A document of the part that shows it: valid in one version, and not in the other one.
    pub example: Option<Value>,
    /// The value before the change, if it is short.
    pub old: Option<Value>,
    /// The value after it, if it is short.
    pub new: Option<Value>,
}

/// A part of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What callers send.
    Input,
    /// The data of an answer.
    Data,
    /// Its meta.
    Meta,
    /// An error.
    Error,
    /// The manifest.
    Manifest,
    /// The prompt.
    Prompt,
}

impl Part {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Data => "data",
            Self::Meta => "meta",
            Self::Error => "error",
            Self::Manifest => "manifest",
            Self::Prompt => "prompt",
        }
    }
}

/// What a change does to those who rely on the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that a caller or reader can see.
    None,
    /// Nobody has to change anything.
    Compatible,
    /// An input that was valid is refused, or the module can no longer be called as before.
    BreaksCallers,
    /// A document can occur that the old version refused.
    BreaksReaders,
    /// Not decided: a person must look.
    Unknown,
}

impl Effect {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Compatible => "compatible",
            Self::BreaksCallers => "breaks_callers",
            Self::BreaksReaders => "breaks_readers",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether somebody has to change something.
    pub const fn is_breaking(self) -> bool {
        matches!(self, Self::BreaksCallers | Self::BreaksReaders)
    }
}

/// The verdict on all changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No change has an effect.
    Equal,
    /// Every change is compatible.
    Compatible,
    /// A change is breaking.
    Breaking,
    /// No change is known to be breaking, and some are not decided.
    Unknown,
}

impl Verdict {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Compatible => "compatible",
            Self::Breaking => "breaking",
            Self::Unknown => "unknown",
        }
    }
}

/// Returns the changes from one version of a module to another one.
pub fn diff(old: &Module, new: &Module) -> Difference {
    let mut changes = Vec::new();
    for part in ComparedPart::ALL {
        let found = old.contract.changes_to(&new.contract, part);
        changes.extend(found.into_iter().map(|change| Change::of_schema(part, change)));
    }
    strictness::apply(&mut changes, old, new);
    changes.extend(manifest::changes(old, new));
    changes.extend(prompt_change(old, new));
    Difference {
        old: Identity::of(old),
        new: Identity::of(new),
        changes,
        golden_tests: golden::changes(old, new),
    }
}

impl Identity {
    fn of(module: &Module) -> Self {
        Self { name: module.manifest.name.clone(), version: module.manifest.version.clone() }
    }
}

impl Change {
    fn of_schema(compared: ComparedPart, change: SchemaChange) -> Self {
        let (part, breaking) = match compared {
            ComparedPart::Input => (Part::Input, Effect::BreaksCallers),
            ComparedPart::Data => (Part::Data, Effect::BreaksReaders),
            ComparedPart::Meta => (Part::Meta, Effect::BreaksReaders),
            ComparedPart::Error => (Part::Error, Effect::BreaksReaders),
        };
        let effect = match change.effect {
            SchemaEffect::None => Effect::None,
            SchemaEffect::Compatible => Effect::Compatible,
            SchemaEffect::Breaking => breaking,
            SchemaEffect::Unknown => Effect::Unknown,
        };
        Self {
            part,
            path: change.path,
            kind: change.kind,
            effect,
            example: change.example,
            old: change.old.map(Value::from),
            new: change.new.map(Value::from),
        }
    }
}

/// Compares the prompts. Another prompt gives other answers, within the same contract.
fn prompt_change(old: &Module, new: &Module) -> Option<Change> {
    if old.prompt.text() == new.prompt.text() {
        return None;
    }
    let words =
        |module: &Module| module.prompt.text().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let effect = if words(old) == words(new) { Effect::None } else { Effect::Compatible };
    Some(Change {
        part: Part::Prompt,
        path: "prompt".to_owned(),
        kind: "text_changed".to_owned(),
        effect,
        example: None,
        old: None,
        new: None,
    })
}

impl Difference {
    /// Returns the verdict on all changes.
    pub fn verdict(&self) -> Verdict {
        let has = |effect: fn(Effect) -> bool| self.changes.iter().any(|change| effect(change.effect));
        if has(Effect::is_breaking) {
            Verdict::Breaking
        } else if has(|effect| effect == Effect::Unknown) {
            Verdict::Unknown
        } else if has(|effect| effect == Effect::Compatible) {
            Verdict::Compatible
        } else {
            Verdict::Equal
        }
    }

    /// Returns the step of the version that these changes need. What is not decided counts as breaking.
    pub fn version_step(&self) -> VersionStep {
        self.changes.iter().map(Change::step).max().unwrap_or(VersionStep::None)
    }

    /// Returns the lowest version that the new module should have; none if the old version is not a semantic version.
    pub fn next_version(&self) -> Option<String> {
        self.version_step().after(&self.old.version)
    }

    /// Returns whether the version of the new module is at least [`Difference::next_version`].
    pub fn is_version_raised(&self) -> bool {
        self.version_step().is_reached(&self.old.version, &self.new.version)
    }
}

impl Change {
    /// Returns the step of the version that this change needs.
    pub fn step(&self) -> VersionStep {
        match self.effect {
            Effect::BreaksCallers | Effect::BreaksReaders | Effect::Unknown => VersionStep::Major,
            Effect::Compatible if self.part != Part::Prompt => VersionStep::Minor,
            // The version itself needs no further step.
            Effect::None if self.part == Part::Manifest && self.path == "version" => VersionStep::None,
            Effect::Compatible | Effect::None => VersionStep::Patch,
        }
    }
}

/// Written by hand: it has members that follow from its fields.
impl ToJson for Difference {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("verdict", self.verdict().as_str());
            w.field("version_step", self.version_step().as_str());
            w.optional("next_version", &self.next_version().as_deref());
            w.field("old", &self.old);
            w.field("new", &self.new);
            w.field("changes", &Array(&self.changes));
            w.field("golden_tests", &Array(&self.golden_tests));
        });
    }
}

/// Written by hand: values that are long are left out.
impl ToJson for Change {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("part", self.part.as_str());
            w.field("path", self.path.as_str());
            w.field("kind", self.kind.as_str());
            w.field("effect", self.effect.as_str());
            w.optional("example", &self.example.as_ref());
            w.optional("old", &self.old.as_ref());
            w.optional("new", &self.new.as_ref());
        });
    }
}

/// Written by hand, as the others.
impl ToJson for Identity {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", self.name.as_str());
            w.field("version", self.version.as_str());
        });
    }
}

#[cfg(test)]
mod tests;
