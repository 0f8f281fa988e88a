//! The golden tests of two versions of a module.

use cog_json::{ToJson, Writer};
use cog_module::{
    Module,
    golden::{Expected, GoldenCase, discover},
};

/// A golden test that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldenChange {
    /// The name of the test.
    pub name: String,
    /// How it differs.
    pub kind: GoldenChangeKind,
}

/// How a golden test differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoldenChangeKind {
    /// Only the new version has it.
    Added,
    /// Only the old version has it.
    Removed,
    /// Its input is another one.
    InputChanged,
    /// The same input has another expected answer.
    ExpectationChanged,
}

impl GoldenChangeKind {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::InputChanged => "input_changed",
            Self::ExpectationChanged => "expectation_changed",
        }
    }
}

/// Written by hand: an enum as its name.
impl ToJson for GoldenChange {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", self.name.as_str());
            w.field("kind", self.kind.as_str());
        });
    }
}

/// Returns the golden tests that differ, in the order of the new module.
pub(super) fn changes(old: &Module, new: &Module) -> Vec<GoldenChange> {
    let old = discover(old).cases;
    let new = discover(new).cases;
    let named = |cases: &[GoldenCase], name: &str| cases.iter().position(|case| case.name == name);
    let mut changes = Vec::new();
    for case in &new {
        let before = named(&old, &case.name).and_then(|index| old.get(index));
        let kind = match before {
            None => GoldenChangeKind::Added,
            Some(before) if before.input != case.input => GoldenChangeKind::InputChanged,
            Some(before) if !expects_the_same(before, case) => GoldenChangeKind::ExpectationChanged,
            Some(_) => continue,
        };
        changes.push(GoldenChange { name: case.name.clone(), kind });
    }
    for case in old.iter().filter(|case| named(&new, &case.name).is_none()) {
        changes.push(GoldenChange { name: case.name.clone(), kind: GoldenChangeKind::Removed });
    }
    changes
}

fn expects_the_same(old: &GoldenCase, new: &GoldenCase) -> bool {
    let is_equal = match (&old.expected, &new.expected) {
        (Expected::Exact(old), Expected::Exact(new)) => old == new,
        (
            Expected::Schemas { fields: old, example: old_example },
            Expected::Schemas { fields: new, example: new_example },
        ) => old == new && old_example == new_example,
        (
            Expected::Assertions { assertions: old, example: old_example },
            Expected::Assertions { assertions: new, example: new_example },
        ) => old == new && old_example == new_example,
        _ => false,
    };
    is_equal && old.criteria == new.criteria
}
