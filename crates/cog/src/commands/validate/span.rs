//! The place of a finding in its line.

use cog_module::Diagnostic;

/// Returns the line of a finding, and its first and last column; both in characters, from 1.
pub(super) fn span(found: &Diagnostic) -> Option<(u32, u32, u32)> {
    let location = found.location.as_ref()?;
    let marked = location.excerpt.get(location.marked.clone()).unwrap_or_default();
    let length = u32::try_from(marked.chars().count()).unwrap_or(0);
    Some((location.line, location.column, location.column.saturating_add(length)))
}
