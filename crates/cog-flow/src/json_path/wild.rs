//! The part of a path that can be compared with a schema: members, elements and `[*]`.

use crate::cursor::Cursor;

/// A step that can be compared with a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WildStep {
    Key(String),
    Index,
    /// All elements or members.
    All,
}

/// The beginning of a path, up to the first selector that a schema cannot decide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WildPath {
    pub(crate) steps: Vec<WildStep>,
    /// Whether it is the complete path.
    pub(crate) is_complete: bool,
}

impl WildPath {
    pub(super) fn read(text: &str) -> Self {
        let mut cursor = Cursor::new(text.trim());
        let mut path = WildPath::default();
        cursor.take("$");
        while let Some(step) = step(&mut cursor) {
            path.steps.push(step);
        }
        path.is_complete = cursor.is_at_end();
        path
    }
}

/// Reads a step; none, without moving, if a schema cannot decide it.
fn step(cursor: &mut Cursor<'_>) -> Option<WildStep> {
    let mut ahead = cursor.clone();
    let step = if ahead.take("[") {
        ahead.skip_space();
        let step = selector(&mut ahead)?;
        ahead.skip_space();
        ahead.take("]").then_some(step)?
    } else {
        ahead.take(".").then_some(())?;
        if ahead.take("*") { WildStep::All } else { name(&mut ahead)? }
    };
    *cursor = ahead;
    Some(step)
}

fn selector(cursor: &mut Cursor<'_>) -> Option<WildStep> {
    if cursor.take("*") {
        return Some(WildStep::All);
    }
    match cursor.string() {
        Some(key) => key.ok().map(WildStep::Key),
        None => cursor.integer().map(|_| WildStep::Index),
    }
}

fn name(cursor: &mut Cursor<'_>) -> Option<WildStep> {
    let name = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    (!name.is_empty()).then(|| WildStep::Key(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_up_to_the_first_other_selector() {
        let key = |name: &str| WildStep::Key(name.to_owned());
        for (text, steps, is_complete) in [
            ("$.data.issues[*].id", vec![key("data"), key("issues"), WildStep::All, key("id")], true),
            ("$['a b'].*", vec![key("a b"), WildStep::All], true),
            ("$.a[0][?@.b]", vec![key("a"), WildStep::Index], false),
            ("$.a..b", vec![key("a")], false),
            ("$[0,1]", vec![], false),
        ] {
            assert_eq!(WildPath::read(text), WildPath { steps, is_complete }, "{text}");
        }
    }
}
