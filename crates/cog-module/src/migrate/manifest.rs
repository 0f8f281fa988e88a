//! Inserts keys into `module.yaml` between existing lines.

use super::{Draft, MigrateError};
use crate::{
    LoadError,
    edit::{Edits, after_line, line_end},
    source::Source,
    yaml::{self, Node},
};

const TIER: &str = "\
# The tier decides which answers succeed. `cog migrate` chose decision: a person reviews the answer.
# exec: a program acts on it (confidence of at least 0.9, risk none or low); exploration: any idea is welcome.
tier: decision
";

const RESPONSE: &str = "\
# Response mode: sync (one envelope), streaming, or both.
response:
  mode: sync
";

pub(super) const FILE: &str = "module.yaml";

/// Adds the tier after `responsibility`.
pub(super) fn add_tier(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    add(draft, "responsibility", TIER)
}

/// Adds the response mode after the tier.
pub(super) fn add_response(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    add(draft, "tier", RESPONSE)
}

/// Inserts lines after the line on which the value of `key` ends.
fn add(draft: &mut Draft<'_>, key: &str, lines: &str) -> Result<(), MigrateError> {
    let source = draft.require(FILE)?;
    let root = parse(&source)?;
    let is_flow = source.text.get(root.span.start..).is_some_and(|text| text.starts_with('{'));
    if is_flow {
        return Err(MigrateError::FlowStyle);
    }
    let end = root.get(key).map_or(source.text.len(), |value| value.span.end);
    let at = after_line(&source.text, end);
    let mut edits = Edits::default();
    let newline = line_end(&source.text);
    if at == source.text.len() && !source.text.ends_with('\n') {
        edits.insert(at, newline);
    }
    edits.insert(at, lines.replace('\n', newline));
    draft.put(FILE, edits.apply(&source.text))
}

pub(super) fn parse(source: &Source) -> Result<Node, MigrateError> {
    yaml::parse(source).map_err(|problem| MigrateError::Load(LoadError { diagnostics: vec![problem] }))
}
