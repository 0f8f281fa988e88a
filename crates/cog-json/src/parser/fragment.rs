//! Refusing a part of an answer that cannot be read.
//!
//! An object inside something that opens like an object or array is a part of it, and must not be taken for the whole
//! (ruling R25, R76). Prose has brackets too, so only those count that are open where the object begins, and what
//! is written around the object as around the value of a member.

use crate::error::SyntaxErrorKind;
use crate::parser::machine::Machine;
use crate::parser::opening::{self, Lead, Look};
use crate::parser::{ErrorAt, Silent};

/// The maximum number of values before an object whose brackets need the parser to be counted.
const MAX_VALUES: usize = 16;

/// An object that was found in the text.
#[derive(Clone, Copy)]
pub(super) struct FoundObject {
    pub(super) start: usize,
    /// The text before this offset decides, so that the split does not matter.
    pub(super) pos: usize,
    /// Whether it has another form than JSON.
    pub(super) is_wider: bool,
}

/// Returns the start of the document: the outermost bracket that is open where an object was `found`, in the text that
/// begins at `from`.
///
/// # Errors
/// When the object is a part of something that cannot be read.
pub(super) fn start(from: usize, found: FoundObject, machine: &Machine) -> Result<usize, ErrorAt> {
    if from == found.start && !found.is_wider {
        return Ok(found.start);
    }
    let start = outermost(found.start - from, &mut machine.excerpt(from, found.pos));
    start.map(|at| from + at).map_err(|(kind, at)| (kind, from + at))
}

/// Returns whether a value begins at `start` and does not end before `pos`, judged by the text up to there.
pub(super) fn reaches(start: usize, pos: usize, machine: &Machine) -> bool {
    reach(0, &mut machine.excerpt(start, pos)) == Ok(Reach::Beyond)
}

/// Refuses the document that began at `start` and is complete if the text goes on as if it were a part of something:
/// with another member, or with a closing bracket where the document looks like a value. It does so too where
/// `is_value` is known.
pub(super) fn check_after(start: usize, is_value: bool, machine: &Machine) -> Result<(), ErrorAt> {
    let text = machine.tape.text.as_str();
    let (before, after) =
        (text.get(..start).unwrap_or_default(), text.get(machine.pos..).unwrap_or_default());
    let more = after.trim_start_matches(opening::is_space).strip_prefix(',');
    if more.is_some_and(|more| matches!(opening::member(more), Look::Yes(_))) {
        return Err((SyntaxErrorKind::Fragment, start));
    }
    match Brackets::scan(after).surplus {
        Some(at) if is_value || more.is_some() || opening::lead(before).is_some() => {
            Err((SyntaxErrorKind::TrailingText, machine.pos + at))
        }
        _ => Ok(()),
    }
}

/// Returns the outermost bracket of an excerpt that is open at the object at `found`.
fn outermost(found: usize, excerpt: &mut Machine) -> Result<usize, ErrorAt> {
    let mut from = 0;
    for _ in 0..MAX_VALUES {
        let before = excerpt.tape.text.get(from..found).unwrap_or_default();
        let brackets = Brackets::scan(before);
        let Some(&(_, outer)) = brackets.open.first() else {
            check_before(before, found, &brackets)?;
            reach(found, excerpt)?;
            return Ok(found);
        };
        match reach(from + outer, excerpt)? {
            Reach::Beyond => return Ok(from + outer),
            // A string in it has a bracket.
            Reach::To(end) => from = end,
        }
    }
    Err((SyntaxErrorKind::Fragment, found))
}

/// The end of a value in an excerpt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Beyond the excerpt.
    Beyond,
    /// At this offset.
    To(usize),
}

fn reach(start: usize, excerpt: &mut Machine) -> Result<Reach, ErrorAt> {
    excerpt.restart(start);
    excerpt.run(&mut Silent)?;
    Ok(if excerpt.is_complete() { Reach::To(excerpt.pos) } else { Reach::Beyond })
}

/// Refuses an object that is the value of a member whose brace is missing, as in YAML, or an argument.
fn check_before(before: &str, found: usize, brackets: &Brackets) -> Result<(), ErrorAt> {
    match opening::lead(before) {
        Some(Lead::QuotedKey) => Err((SyntaxErrorKind::Fragment, found)),
        _ if opening::ends_in_block(before) => Err((SyntaxErrorKind::Fragment, found)),
        Some(_) if brackets.parentheses > 0 => Err((SyntaxErrorKind::Fragment, found)),
        _ => Ok(()),
    }
}

/// The brackets of text in which strings cannot be distinguished from prose.
#[derive(Default)]
struct Brackets {
    /// The brackets that are open at the end, with their offsets.
    open: Vec<(u8, usize)>,
    braces: usize,
    squares: usize,
    parentheses: usize,
    /// The first closing one without its opening one.
    surplus: Option<usize>,
}

impl Brackets {
    fn scan(text: &str) -> Self {
        let mut brackets = Brackets::default();
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'{' | b'[' => brackets.open(byte, at),
                b'}' => brackets.close(b'{', at),
                b']' => brackets.close(b'[', at),
                b'(' => brackets.parentheses += 1,
                b')' => brackets.parentheses = brackets.parentheses.saturating_sub(1),
                _ => {}
            }
        }
        brackets
    }

    fn open(&mut self, byte: u8, at: usize) {
        *self.count(byte) += 1;
        self.open.push((byte, at));
    }

    /// Closes the last bracket of this kind, and what was opened after it.
    fn close(&mut self, opening: u8, at: usize) {
        if *self.count(opening) == 0 {
            self.surplus.get_or_insert(at);
            return;
        }
        while let Some((byte, _)) = self.open.pop() {
            *self.count(byte) -= 1;
            if byte == opening {
                return;
            }
        }
    }

    fn count(&mut self, byte: u8) -> &mut usize {
        match byte {
            b'{' => &mut self.braces,
            _ => &mut self.squares,
        }
    }
}
