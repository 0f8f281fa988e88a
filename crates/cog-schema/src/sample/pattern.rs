//! Text that a pattern matches.

use fastrand::Rng;
use regex_syntax::hir::{Class, Hir, HirKind};

/// How often something that may be repeated without end is repeated at most beyond its least.
const REPEATS: u32 = 3;
/// Characters in all.
const MAX_LEN: usize = 10_000;

/// A text that the pattern matches as a whole, where it has no look-around; none for a pattern that does not parse.
pub(super) fn matching(rng: &mut Rng, pattern: &str) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    push(rng, &hir, &mut text)?;
    Some(text)
}

fn push(rng: &mut Rng, hir: &Hir, text: &mut String) -> Option<()> {
    if text.len() > MAX_LEN {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => text.push(char_of(rng, class)?),
        HirKind::Repetition(repetition) => {
            let most = repetition
                .max
                .unwrap_or(repetition.min + REPEATS)
                .min(repetition.min.saturating_add(REPEATS));
            for _ in 0..rng.u32(repetition.min..=most) {
                push(rng, &repetition.sub, text)?;
            }
        }
        HirKind::Capture(capture) => push(rng, &capture.sub, text)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| push(rng, part, text))?,
        HirKind::Alternation(parts) => push(rng, rng.clone().choice(parts)?, text)?,
    }
    Some(())
}

/// A letter or digit where the class has one, else its first character.
fn char_of(rng: &mut Rng, class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.ranges().iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    };
    let is_in = |char: &char| ranges.iter().any(|(start, end)| (start..=end).contains(&char));
    let plain: Vec<char> = ('a'..='z').chain('0'..='9').chain('A'..='Z').filter(is_in).collect();
    rng.choice(plain).or_else(|| ranges.first().map(|(start, _)| *start))
}
