//! The form of a document: checked against a part of a published schema.

use std::sync::OnceLock;

use cog_json::Node;
use cog_schema::{Contract, Rules, Violation};
use cog_spec::{Format, Manifest, Schema};
use serde_json::{Value, json};

use super::violations::below;
use crate::error::violation;

/// The part of a published schema that applies to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Success,
    Failure,
    Meta,
    FirstChunk,
    Delta,
    Snapshot,
    ProgressChunk,
    FinalChunk,
    ErrorChunk,
    MediaUrl,
    MediaBase64,
    MediaFile,
    MediaUpload,
}

impl Form {
    const COUNT: usize = Self::MediaUpload as usize + 1;

    /// Checks a value at `path`. Skips violations whose path is reported already, or is among `decided`: paths that other
    /// rules decide.
    ///
    /// The rule of a violation is `required` for a missing member and otherwise `type`.
    pub(super) fn check(self, value: Node<'_>, path: &str, decided: &[&str], found: &mut Vec<Violation>) {
        for one in self.contract().into_iter().flat_map(|contract| contract.check_input(value)) {
            let path = join(path, &one.path);
            let is_decided = decided.iter().any(|decided| is_within(&path, decided));
            // An arm of the other outcome is checked by `envelope::refuse`, for which null is absent.
            let is_arm = one.rule == "not";
            if !is_decided && !is_arm && !found.iter().any(|other| other.path == path) {
                let rule = if one.rule == "required" { "required" } else { "type" };
                found.push(violation(&path, rule, one.message));
            }
        }
    }

    /// Returns the compiled schema. The published schemas compile, which a test checks.
    fn contract(self) -> Option<&'static Contract> {
        static COMPILED: [OnceLock<Option<Contract>>; Form::COUNT] = [const { OnceLock::new() }; Form::COUNT];
        COMPILED.get(self as usize)?.get_or_init(|| self.compile()).as_ref()
    }

    fn compile(self) -> Option<Contract> {
        let (schema, pointer) = self.location();
        let document: Value = serde_json::from_str(schema.text()).ok()?;
        let part =
            json!({ "input": document.pointer(pointer)?, "definitions": document.get("definitions")? });
        let manifest = Manifest::with_defaults("none", Format::V25, None);
        Contract::compile(&part, &Rules::from(&manifest)).ok()
    }

    fn location(self) -> (Schema, &'static str) {
        match self {
            Self::Success => (Schema::Envelope, "/oneOf/0"),
            Self::Failure => (Schema::Envelope, "/oneOf/1"),
            Self::Meta => (Schema::Envelope, "/definitions/meta"),
            Self::FirstChunk => (Schema::Chunk, "/definitions/metaChunk"),
            Self::Delta => (Schema::Chunk, "/definitions/delta"),
            Self::Snapshot => (Schema::Chunk, "/definitions/snapshot"),
            Self::ProgressChunk => (Schema::Chunk, "/definitions/progressChunk"),
            Self::FinalChunk => (Schema::Chunk, "/definitions/finalChunk"),
            Self::ErrorChunk => (Schema::Chunk, "/definitions/errorChunk"),
            Self::MediaUrl => (Schema::Media, "/definitions/url"),
            Self::MediaBase64 => (Schema::Media, "/definitions/base64"),
            Self::MediaFile => (Schema::Media, "/definitions/file"),
            Self::MediaUpload => (Schema::Media, "/definitions/upload_ref"),
        }
    }
}

/// Moves a path of the contract, which starts at `input`, to the path of the value.
fn join(base: &str, path: &str) -> String {
    let rest = path.strip_prefix("input").unwrap_or(path);
    match rest.strip_prefix('.') {
        Some(key) => below(base, key),
        None => format!("{base}{rest}"),
    }
}

fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_compiles() {
        for form in [
            Form::Success,
            Form::Failure,
            Form::Meta,
            Form::FirstChunk,
            Form::Delta,
            Form::Snapshot,
            Form::ProgressChunk,
            Form::FinalChunk,
            Form::ErrorChunk,
            Form::MediaUrl,
            Form::MediaBase64,
            Form::MediaFile,
            Form::MediaUpload,
        ] {
            assert!(form.contract().is_some(), "{form:?}");
        }
    }
}
