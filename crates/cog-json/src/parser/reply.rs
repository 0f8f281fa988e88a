//! A model's reply: the document, and what stands around it.

use crate::error::SyntaxKind;
use crate::limits::Limits;
use crate::parser::machine::Machine;
use crate::parser::seek::Seeker;
use crate::parser::sink::{Silent, Sink};
use crate::parser::tolerance::{Ledger, Tolerance};
use crate::parser::{End, Fault};

/// How far the reading of a reply has come.
pub(super) struct Reply {
    stage: Stage,
    depth: usize,
    several: bool,
}

enum Stage {
    /// The document has not begun.
    Before(Seeker),
    /// An object was found here, but inside a string that the reply begins with: its end will tell whether that
    /// string is all there is.
    Quoted {
        found: usize,
        body: usize,
    },
    Inside,
    /// The document is over; another one may come.
    After(Seeker),
}

impl Reply {
    pub(super) fn new(limits: Limits) -> Self {
        let depth = limits.depth as usize;
        Reply { stage: Stage::Before(Seeker::new(depth)), depth, several: false }
    }

    /// Whether a second object was seen.
    pub(super) fn several(&self) -> bool {
        self.several
    }

    /// Reads as far as the text goes.
    pub(super) fn run<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<(), Fault> {
        if let Stage::Before(seeker) = &mut self.stage {
            let Some(found) = seeker.seek(&machine.tape.text) else { return Ok(()) };
            let body = body(&machine.tape.text, seeker.body());
            let opening = machine.tape.text.as_bytes().get(body).copied();
            match opening {
                Some(b'[') if stands_in(body, seeker.pos(), machine) => self.enter(body, machine),
                Some(b'"') if stands_in(body, seeker.pos(), machine) => {
                    self.stage = Stage::Quoted { found, body }
                }
                _ => {
                    outside_any(body, found, machine)?;
                    self.enter(found, machine);
                }
            }
        }
        if let Stage::Inside = self.stage {
            machine.run(sink)?;
            if !machine.is_over() {
                return Ok(());
            }
            self.stage = Stage::After(Seeker::after(machine.pos, self.depth));
        }
        if let Stage::After(seeker) = &mut self.stage {
            self.several = self.several || seeker.seek(&machine.tape.text).is_some();
        }
        Ok(())
    }

    /// The text is over.
    pub(super) fn finish<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<End, Fault> {
        match &mut self.stage {
            Stage::Before(seeker) => {
                if seeker.is_reasoning() {
                    return Ok(End::Truncated);
                }
                let cut = seeker.candidate();
                let found = seeker.seek_at_end(&machine.tape.text);
                let body = body(&machine.tape.text, seeker.body());
                self.settle(body, found, cut, machine)?;
            }
            Stage::Quoted { found, body } => {
                let (found, body) = (*found, *body);
                self.settle(body, Some(found), None, machine)?;
            }
            Stage::Inside | Stage::After(_) => {}
        }
        self.run(machine, sink)?;
        if !machine.finish(sink)? {
            return Ok(End::Truncated);
        }
        if let Stage::After(seeker) = &mut self.stage {
            self.several = self.several || seeker.seek_at_end(&machine.tape.text).is_some();
        }
        note_after(&mut machine.ledger, machine.tape.text.get(machine.pos..).unwrap_or_default());
        Ok(End::Complete)
    }

    /// Decides where the document starts, now that all is known. The whole `body` may be a value that says nothing
    /// sooner: a scalar, an empty object, an array without objects. Else it is the object that was `found`, or the
    /// array or object that the reply was `cut` in.
    fn settle(
        &mut self,
        body: usize,
        found: Option<usize>,
        cut: Option<usize>,
        machine: &mut Machine,
    ) -> Result<(), Fault> {
        if is_alone(body, machine) {
            self.enter(body, machine);
            return Ok(());
        }
        let start = found.or(cut).unwrap_or(body);
        if let Some(found) = found {
            outside_any(body, found, machine)?;
        } else {
            machine.restart(start);
            let container = matches!(machine.tape.text.as_bytes().get(start), Some(b'{' | b'['));
            match machine.run(&mut Silent) {
                Err(fault) if container => return Err(fault),
                Ok(()) if container && !machine.is_over() => {}
                _ => return Err((SyntaxKind::Nothing, 0)),
            }
        }
        self.enter(start, machine);
        Ok(())
    }

    fn enter(&mut self, start: usize, machine: &mut Machine) {
        machine.restart(start);
        note_before(&mut machine.ledger, machine.tape.text.get(..start).unwrap_or_default());
        self.stage = Stage::Inside;
    }
}

/// Whether there is one whole value at `body` and nothing after it but a fence.
fn is_alone(body: usize, machine: &mut Machine) -> bool {
    machine.restart(body);
    let whole = machine.run(&mut Silent).and_then(|()| machine.finish(&mut Silent));
    let rest = machine.tape.text.get(machine.pos..).unwrap_or_default().trim();
    whole == Ok(true) && (rest.is_empty() || rest == FENCE)
}

/// Whether what begins at `body` goes on at `pos`. Only what stands before `pos` decides, so that the split does
/// not matter.
fn stands_in(body: usize, pos: usize, machine: &mut Machine) -> bool {
    let later = machine.tape.text.split_off(pos);
    machine.restart(body);
    let inside = machine.run(&mut Silent).is_ok() && !machine.is_over();
    machine.tape.text.push_str(&later);
    inside
}

/// Refuses an object that was `found` within one whose keys have no quotes, such as `{ok: false, data: {"a": 1}}`: it
/// is a part of what cannot be read, and must not be taken for the whole (supplement R25).
fn outside_any(body: usize, found: usize, machine: &mut Machine) -> Result<(), Fault> {
    let prose = machine.tape.text.get(body..found).unwrap_or_default();
    let mut open = Vec::new();
    for (at, byte) in prose.bytes().enumerate() {
        match byte {
            b'{' => open.push(at),
            b'}' => drop(open.pop()),
            _ => {}
        }
    }
    let has_member = |at: &usize| prose.get(at + 1..).is_some_and(begins_with_bare_key);
    let Some(outer) = open.into_iter().find(has_member) else { return Ok(()) };
    machine.restart(body + outer);
    machine.run(&mut Silent)
}

/// Whether a text begins with a key without quotes and its colon.
fn begins_with_bare_key(text: &str) -> bool {
    let text = text.trim_start();
    let key = text.trim_start_matches(|char: char| char.is_alphanumeric() || matches!(char, '_' | '$' | '-'));
    key.len() < text.len() && key.trim_start().starts_with(':')
}

const FENCE: &str = "```";

/// Where the document starts if it is all there is apart from a fence.
fn body(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default().trim_start();
    let inner = match rest.strip_prefix(FENCE).and_then(|rest| rest.split_once('\n')) {
        Some((word, inner)) if is_info(word) => inner.trim_start(),
        _ => rest,
    };
    text.len() - inner.len()
}

/// Whether this may follow the opening fence on its line.
fn is_info(word: &str) -> bool {
    word.trim().bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn note_before(ledger: &mut Ledger, text: &str) {
    let text = text.trim();
    let line = text.rfind('\n').map_or(0, |newline| newline + 1);
    let (prose, last) = text.split_at_checked(line).unwrap_or((text, ""));
    let fence = last.trim().strip_prefix(FENCE).is_some_and(is_info);
    ledger.note_around(Tolerance::SurroundingText, if fence { prose.trim().len() } else { text.len() });
    ledger.note_around(Tolerance::CodeFence, if fence { last.trim().len() } else { 0 });
}

fn note_after(ledger: &mut Ledger, text: &str) {
    let text = text.trim();
    let prose = text.strip_prefix(FENCE).unwrap_or(text).trim();
    ledger.note_around(Tolerance::CodeFence, if text.starts_with(FENCE) { FENCE.len() } else { 0 });
    ledger.note_around(Tolerance::SurroundingText, prose.len());
}
