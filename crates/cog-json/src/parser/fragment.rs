//! Refusing a part of an answer that cannot be read.
//!
//! An object inside something that opens like an object or array is a part of it, and must not be taken for the whole
//! (ruling R25, R76). Prose has brackets too, so only those count that are open where the object begins, and what
//! is written around the object as around the value of a member.

use crate::error::SyntaxErrorKind;
use crate::parser::ErrorAt;
use crate::parser::Silent;
use crate::parser::machine::Machine;
use crate::parser::opening::{self, Lead, Look};

/// The end of a value that begins before a given offset.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Beyond the offset.
    Beyond,
    /// To this offset.
    To(usize),
}

/// The maximum number of values before an object whose brackets need the parser to be counted.
const MAX_VALUES: usize = 16;

/// An object that was found in the text.
#[derive(Clone, Copy)]
pub(super) struct Found {
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
pub(super) fn start(from: usize, found: Found, machine: &mut Machine) -> Result<usize, ErrorAt> {
    if from == found.start && !found.is_wider {
        return Ok(found.start);
    }
    let later = machine.tape.text.split_off(found.pos);
    let start = outermost(from, found.start, machine);
    machine.restart(found.start);
    machine.tape.text.push_str(&later);
    start
}

/// Returns the end of the value that begins at `start`, judged by the text before `pos`.
///
/// # Errors
/// When that text cannot be read.
pub(super) fn reach(start: usize, pos: usize, machine: &mut Machine) -> Result<Reach, ErrorAt> {
    let later = machine.tape.text.split_off(pos);
    let reach = reach_in(start, machine);
    machine.restart(start);
    machine.tape.text.push_str(&later);
    reach
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

fn outermost(mut from: usize, found: usize, machine: &mut Machine) -> Result<usize, ErrorAt> {
    for _ in 0..MAX_VALUES {
        let before = machine.tape.text.get(from..found).unwrap_or_default();
        let brackets = Brackets::scan(before);
        let Some(&(_, outer)) = brackets.open.first() else {
            check_before(before, found, &brackets)?;
            reach_in(found, machine)?;
            return Ok(found);
        };
        match reach_in(from + outer, machine)? {
            Reach::Beyond => return Ok(from + outer),
            // A string in it has a bracket.
            Reach::To(end) => from = end,
        }
    }
    Err((SyntaxErrorKind::Fragment, found))
}

fn reach_in(start: usize, machine: &mut Machine) -> Result<Reach, ErrorAt> {
    machine.restart(start);
    machine.run(&mut Silent)?;
    Ok(if machine.is_complete() { Reach::To(machine.pos) } else { Reach::Beyond })
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

/// The brackets of a text in which strings cannot be distinguished from prose.
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
