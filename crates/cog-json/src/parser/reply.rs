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
            let Some(start) = seeker.seek(&machine.tape.text) else { return Ok(()) };
            let start = array_around(start, seeker, machine);
            self.enter(start, machine);
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
        if let Stage::Before(seeker) = &mut self.stage {
            let cut = seeker.candidate();
            if let Some(start) = seeker.seek_at_end(&machine.tape.text) {
                let start = array_around(start, seeker, machine);
                self.enter(start, machine);
                self.run(machine, sink)?;
            } else if seeker.is_reasoning() {
                return Ok(End::Truncated);
            } else {
                let start = cut.unwrap_or_else(|| body(&machine.tape.text, seeker.body()));
                self.settle(start, machine, sink)?;
            }
        }
        if !machine.finish(sink)? {
            return Ok(End::Truncated);
        }
        if let Stage::After(seeker) = &mut self.stage {
            self.several = self.several || seeker.seek_at_end(&machine.tape.text).is_some();
        }
        note_after(&mut machine.ledger, machine.tape.text.get(machine.pos..).unwrap_or_default());
        Ok(End::Complete)
    }

    fn enter(&mut self, start: usize, machine: &mut Machine) {
        machine.restart(start);
        note_before(&mut machine.ledger, machine.tape.text.get(..start).unwrap_or_default());
        self.stage = Stage::Inside;
    }

    /// No object with a member was found. A scalar, an empty object or an array without objects is the document
    /// only if it is all there is; an array or object may also be cut there.
    fn settle<S: Sink>(&mut self, start: usize, machine: &mut Machine, sink: &mut S) -> Result<(), Fault> {
        let container = matches!(machine.tape.text.as_bytes().get(start), Some(b'{' | b'['));
        machine.restart(start);
        let tried = machine.run(&mut Silent).and_then(|()| machine.finish(&mut Silent));
        let rest = machine.tape.text.get(machine.pos..).unwrap_or_default().trim();
        let alone = rest.is_empty() || rest == FENCE;
        match tried {
            Ok(true) if alone => {}
            Ok(false) if container => {}
            Err(fault) if container => return Err(fault),
            _ => return Err((SyntaxKind::Nothing, 0)),
        }
        self.enter(start, machine);
        machine.run(sink)
    }
}

/// The start of an array that the reply begins with and that the object found at `found` stands in, else `found`.
fn array_around(found: usize, seeker: &Seeker, machine: &mut Machine) -> usize {
    let start = body(&machine.tape.text, seeker.body());
    if start >= found || machine.tape.text.as_bytes().get(start) != Some(&b'[') {
        return found;
    }
    // Only what was looked at decides, so that the split does not matter.
    let later = machine.tape.text.split_off(seeker.pos());
    machine.restart(start);
    let inside = machine.run(&mut Silent).is_ok() && !machine.is_over();
    machine.tape.text.push_str(&later);
    if inside { start } else { found }
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
