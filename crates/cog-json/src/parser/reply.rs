//! A model's reply: the document, and what stands around it.

use crate::error::SyntaxKind;
use crate::event::{Event, EventKind};
use crate::limits::Limits;
use crate::parser::machine::Machine;
use crate::parser::seek::{Seeker, closing_tag};
use crate::parser::sink::{Silent, Sink};
use crate::parser::tolerance::{Ledger, Tolerance};
use crate::parser::{End, Fault};
use crate::path::Path;
use crate::value::Value;

/// How far the reading of a reply has come.
pub(super) struct Reply {
    stage: Stage,
    depth: usize,
    several: bool,
    /// Text stood before the document.
    doubt: Option<Doubt>,
}

/// What was taken for the document may be a draft in reasoning, whose opening tag the template kept for itself. It is
/// one if the closing tag follows it, and another document follows that.
enum Doubt {
    /// The closing tag is looked for from here on.
    Tag(usize),
    /// The other document is.
    Document(Seeker),
}

enum Stage {
    /// The document has not begun.
    Before(Seeker),
    /// An object was found here, but inside a string that the reply begins with: its end will tell whether that
    /// string is all there is.
    Quoted {
        found: usize,
        bodies: Bodies,
    },
    Inside,
    /// The document is over; another one may come.
    After(Seeker),
    /// What was taken for the document is none, but there is doubt.
    Lost(Fault),
}

impl Reply {
    pub(super) fn new(limits: Limits) -> Self {
        let depth = limits.depth as usize;
        Reply { stage: Stage::Before(Seeker::new(depth)), depth, several: false, doubt: None }
    }

    /// Whether a second object was seen, and both belong to the answer.
    pub(super) fn several(&self) -> bool {
        self.several && self.doubt.is_none()
    }

    /// Whether all that was told may still be withdrawn.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Reads as far as the text goes.
    pub(super) fn run<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<(), Fault> {
        match self.read(machine, sink) {
            Err(fault) if self.doubt.is_some() => self.stage = Stage::Lost(fault),
            read => read?,
        }
        let has_ended = matches!(self.stage, Stage::After(_) | Stage::Lost(_));
        let Some(doubt) = self.doubt.as_mut().filter(|_| has_ended) else { return Ok(()) };
        match doubt.resolve(machine, self.depth) {
            Some(end) => self.withdraw(end, machine, sink),
            None => Ok(()),
        }
    }

    /// All so far was reasoning: reads on where the tag ends.
    fn withdraw<S: Sink>(&mut self, end: usize, machine: &mut Machine, sink: &mut S) -> Result<(), Fault> {
        if let Some(node) = machine.root() {
            sink.tell(Event { path: &Path::root(), node, kind: EventKind::Withdrawn });
        }
        machine.restart(end);
        *self = Reply {
            stage: Stage::Before(Seeker::after_reasoning(end, self.depth)),
            several: false,
            doubt: None,
            ..*self
        };
        self.run(machine, sink)
    }

    fn read<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<(), Fault> {
        if let Stage::Before(seeker) = &mut self.stage {
            let Some(found) = seeker.seek(&machine.tape.text) else { return Ok(()) };
            let bodies = Bodies::of(&machine.tape.text, seeker);
            let pos = seeker.pos();
            let start = bodies.each().find(|body| begins_with(b"[", *body, pos, machine));
            let mut quoted = || bodies.each().any(|body| begins_with(b"\"", body, pos, machine));
            if let Some(start) = start {
                self.enter(start, machine);
            } else if quoted() {
                self.stage = Stage::Quoted { found, bodies };
            } else {
                self.doubt = (found > bodies.tail && seeker.tail() == 0).then_some(Doubt::Tag(found));
                outside_any(bodies.tail, found, machine)?;
                self.enter(found, machine);
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
                let bodies = Bodies::of(&machine.tape.text, seeker);
                self.settle(bodies, found, cut, machine)?;
            }
            Stage::Quoted { found, bodies } => {
                let (found, bodies) = (*found, *bodies);
                self.settle(bodies, Some(found), None, machine)?;
            }
            Stage::Inside | Stage::After(_) | Stage::Lost(_) => {}
        }
        if let Some(end) = self.doubt.take().and_then(|doubt| doubt.resolve_at_end(&machine.tape.text)) {
            self.withdraw(end, machine, sink)?;
            return self.finish(machine, sink);
        }
        if let Stage::Lost(fault) = self.stage {
            return Err(fault);
        }
        self.read(machine, sink)?;
        if !machine.finish(sink)? {
            return Ok(End::Truncated);
        }
        if let Stage::After(seeker) = &mut self.stage {
            self.several = self.several || seeker.seek_at_end(&machine.tape.text).is_some();
        }
        note_after(&mut machine.ledger, machine.tape.text.get(machine.pos..).unwrap_or_default());
        Ok(End::Complete)
    }

    /// Decides where the document starts, now that all is known. A whole body may be a value that says nothing
    /// sooner: a scalar, an empty object, an array without objects. Else it is the object that was `found`, or the
    /// array or object that the reply was `cut` in.
    fn settle(
        &mut self,
        bodies: Bodies,
        found: Option<usize>,
        cut: Option<usize>,
        machine: &mut Machine,
    ) -> Result<(), Fault> {
        if let Some(body) = bodies.each().find(|body| is_alone(*body, machine)) {
            self.enter(body, machine);
            return Ok(());
        }
        let start = found.or(cut).unwrap_or(bodies.tail);
        if let Some(found) = found {
            outside_any(bodies.tail, found, machine)?;
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

impl Doubt {
    /// Where the reply proper starts, once it is known that the document is none.
    fn resolve(&mut self, machine: &Machine, depth: usize) -> Option<usize> {
        let text = &machine.tape.text;
        if let Doubt::Tag(from) = self {
            // A tag inside a whole document is a part of it.
            let from = if machine.is_over() { machine.pos.max(*from) } else { *from };
            *self = match closing_tag(text, from) {
                Ok(end) => Doubt::Document(Seeker::after_reasoning(end, depth)),
                Err(looked_at) => Doubt::Tag(looked_at),
            };
        }
        match self {
            Doubt::Document(seeker) => seeker.seek(text).map(|_| seeker.tail()),
            Doubt::Tag(_) => None,
        }
    }

    /// The same when the text is over: what follows may be a value that shows itself only now.
    fn resolve_at_end(self, text: &str) -> Option<usize> {
        let Doubt::Document(mut seeker) = self else { return None };
        let rest = text.get(body(text, seeker.tail())..).unwrap_or_default().trim_end();
        let is_value = Value::parse(rest.strip_suffix(FENCE).unwrap_or(rest)).is_ok();
        (is_value || seeker.seek_at_end(text).is_some()).then_some(seeker.tail())
    }
}

/// Whether there is one whole value at `body` and nothing after it but a fence.
fn is_alone(body: usize, machine: &mut Machine) -> bool {
    machine.restart(body);
    let whole = machine.run(&mut Silent).and_then(|()| machine.finish(&mut Silent));
    let rest = machine.tape.text.get(machine.pos..).unwrap_or_default().trim();
    whole == Ok(true) && (rest.is_empty() || rest == FENCE)
}

/// Whether a value with this opening begins at `body` and goes on at `pos`. Only what stands before `pos` decides, so that the split does
/// not matter.
fn begins_with(opening: &[u8], body: usize, pos: usize, machine: &mut Machine) -> bool {
    if !machine.tape.text.get(body..).is_some_and(|rest| rest.as_bytes().starts_with(opening)) {
        return false;
    }
    let later = machine.tape.text.split_off(pos);
    machine.restart(body);
    let inside = machine.run(&mut Silent).is_ok() && !machine.is_over();
    machine.tape.text.push_str(&later);
    inside
}

/// Refuses an object that was `found` within one whose keys have no quotes, such as `{ok: false, data: {"a": 1}}`: it
/// is a part of what cannot be read, and must not be taken for the whole (ruling R25).
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

/// Where the document may start if it is all there is apart from a fence.
#[derive(Clone, Copy)]
struct Bodies {
    /// After reasoning in tags.
    whole: usize,
    /// After the last closing tag, should that end reasoning too.
    tail: usize,
}

impl Bodies {
    fn of(text: &str, seeker: &Seeker) -> Self {
        Self { whole: body(text, seeker.body()), tail: body(text, seeker.tail()) }
    }

    fn each(self) -> impl Iterator<Item = usize> {
        let tail = (self.tail != self.whole).then_some(self.tail);
        std::iter::once(self.whole).chain(tail)
    }
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
