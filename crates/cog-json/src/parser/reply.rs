//! A model's reply: the document, and what is around it.

use crate::error::SyntaxErrorKind;
use crate::event::{Event, EventKind};
use crate::limits::Limits;
use crate::parser::around::{Bodies, FENCE, note_after, note_before};
use crate::parser::fragment::{self, Found, Reach};
use crate::parser::machine::Machine;
use crate::parser::seek::{Seeker, closing_tag};
use crate::parser::sink::{Silent, Sink};
use crate::parser::{End, Fault};
use crate::path::Path;

/// How far the reading of a reply has come.
pub(super) struct Reply {
    stage: Stage,
    depth: usize,
    several: bool,
    /// There is text before the document, so it may be a draft in reasoning whose opening tag the template wrote. The
    /// closing tag is searched from this offset on.
    doubt: Option<usize>,
    /// Reasoning came before whose opening tag is missing.
    is_after_tag: bool,
}

enum Stage {
    /// The document has not begun.
    Before(Seeker),
    /// An object was found here, but inside a string that the reply begins with: its end will show whether that
    /// string is all there is.
    Quoted { found: Found, bodies: Bodies },
    /// The document began here.
    Inside(usize),
    /// The document, which began at `start`, is complete; another one may follow.
    After { start: usize, seeker: Seeker },
    /// The document cannot be read, but it may be a draft in reasoning.
    Lost(Fault),
}

impl Reply {
    pub(super) fn new(limits: Limits) -> Self {
        let depth = limits.depth as usize;
        let stage = Stage::Before(Seeker::new(depth));
        Reply { stage, depth, several: false, doubt: None, is_after_tag: false }
    }

    /// Whether a second object was seen, and both belong to the answer.
    pub(super) fn several(&self) -> bool {
        self.several && self.doubt.is_none()
    }

    /// Whether a later closing tag may make all of it reasoning, faults included.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Reads as far as the text goes.
    pub(super) fn run<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<(), Fault> {
        loop {
            match self.read(machine, sink) {
                Err(fault) if self.doubt.is_some() => self.stage = Stage::Lost(fault),
                read => read?,
            }
            let Some(end) = self.end_of_reasoning(machine) else { return Ok(()) };
            self.withdraw(end, machine, sink);
        }
    }

    /// The end of a closing tag after the document, which makes all before it reasoning (ruling R76).
    fn end_of_reasoning(&mut self, machine: &Machine) -> Option<usize> {
        match (&self.stage, &mut self.doubt) {
            (Stage::After { .. } | Stage::Lost(_), Some(from)) => {
                // A tag inside a complete document is a part of it.
                let start = if machine.is_over() { machine.pos.max(*from) } else { *from };
                let found = closing_tag(&machine.tape.text, start);
                *from = found.unwrap_or_else(|looked_at| looked_at);
                found.ok()
            }
            (Stage::After { seeker, .. }, None) if !self.several => {
                Some(seeker.tail()).filter(|tail| *tail > 0)
            }
            _ => None,
        }
    }

    /// All so far was reasoning: goes on at the `end` of its tag.
    fn withdraw<S: Sink>(&mut self, end: usize, machine: &mut Machine, sink: &mut S) {
        if let Some(node) = machine.root() {
            let kind = EventKind::Withdrawn { doubted: self.doubt.is_some() };
            sink.tell(Event { path: &Path::root(), node, kind });
        }
        machine.restart(end);
        let stage = Stage::Before(Seeker::after_reasoning(end, self.depth));
        *self = Reply { stage, several: false, doubt: None, is_after_tag: true, ..*self };
    }

    fn read<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<(), Fault> {
        if let Stage::Before(seeker) = &mut self.stage {
            let Some(start) = seeker.seek(&machine.tape.text) else { return Ok(()) };
            let found = Found::by(seeker, start);
            let bodies = Bodies::of(&machine.tape.text, seeker);
            let is_doubtful = start > bodies.tail && seeker.tail() == 0;
            self.begin(found, bodies, is_doubtful, machine)?;
        }
        if let Stage::Inside(start) = self.stage {
            machine.run(sink)?;
            if !machine.is_over() {
                return Ok(());
            }
            self.stage = Stage::After { start, seeker: Seeker::after(machine.pos, self.depth) };
        }
        if let Stage::After { seeker, .. } = &mut self.stage {
            self.several = self.several || seeker.seek(&machine.tape.text).is_some();
        }
        Ok(())
    }

    /// An object was `found`.
    fn begin(
        &mut self,
        found: Found,
        bodies: Bodies,
        is_doubtful: bool,
        machine: &mut Machine,
    ) -> Result<(), Fault> {
        // What shows a wider form may be the end of a string.
        let pos = if found.is_wider { found.start } else { found.pos };
        let opens = |opening: char, body: usize, machine: &mut Machine| {
            machine.tape.text.get(body..).is_some_and(|rest| rest.starts_with(opening))
                && fragment::reach(body, pos, machine) == Ok(Reach::Beyond)
        };
        if let Some(start) = bodies.each().find(|body| opens('[', *body, machine)) {
            self.enter(start, machine);
            return Ok(());
        }
        if bodies.each().any(|body| opens('"', body, machine)) {
            self.stage = Stage::Quoted { found, bodies };
            return Ok(());
        }
        self.doubt = is_doubtful.then_some(found.start);
        let start = fragment::start(bodies.tail, found, machine)?;
        self.enter(start, machine);
        Ok(())
    }

    /// The text is over.
    pub(super) fn finish<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<End, Fault> {
        loop {
            if let Some(end) = self.finish_document(machine, sink)? {
                return Ok(end);
            }
            // What looked like an object hid a closing tag.
            self.run(machine, sink)?;
        }
    }

    /// Finishes the document that is at hand, or gives nothing if it was reasoning.
    fn finish_document<S: Sink>(
        &mut self,
        machine: &mut Machine,
        sink: &mut S,
    ) -> Result<Option<End>, Fault> {
        if let Stage::Before(seeker) = &self.stage
            && seeker.is_reasoning()
        {
            return Ok(Some(End::Truncated));
        }
        self.decide(machine)?;
        self.doubt = None;
        if let Stage::Lost(fault) = self.stage {
            return Err(fault);
        }
        self.read(machine, sink)?;
        if !machine.finish(sink)? {
            return Ok(Some(End::Truncated));
        }
        let Stage::After { start, seeker } = &mut self.stage else { return Ok(Some(End::Complete)) };
        let start = *start;
        self.several = self.several || seeker.seek_at_end(&machine.tape.text).is_some();
        if let Some(end) = self.end_of_reasoning(machine) {
            self.withdraw(end, machine, sink);
            return Ok(None);
        }
        if !self.several {
            fragment::check_after(start, self.is_after_tag, machine)?;
        }
        note_after(&mut machine.ledger, machine.tape.text.get(machine.pos..).unwrap_or_default());
        Ok(Some(End::Complete))
    }

    /// Decides where the document starts if that is open, now that all text is known. The complete text may be a value
    /// that shows itself only now: a scalar, an empty object, an array without objects. Otherwise it is the object that
    /// was found, or the array or object in which the reply was truncated.
    fn decide(&mut self, machine: &mut Machine) -> Result<(), Fault> {
        let (bodies, cut, found) = match &mut self.stage {
            Stage::Before(seeker) => {
                let cut = seeker.candidate();
                let start = seeker.seek_at_end(&machine.tape.text);
                let found = start.map(|start| Found::by(seeker, start));
                (Bodies::of(&machine.tape.text, seeker), cut, found)
            }
            Stage::Quoted { found, bodies } => (*bodies, None, Some(*found)),
            Stage::Inside(_) | Stage::After { .. } | Stage::Lost(_) => return Ok(()),
        };
        let alone = bodies.each().find(|body| is_alone(*body, machine));
        let start = match (alone, found) {
            (Some(body), _) => body,
            (None, Some(found)) => fragment::start(bodies.tail, found, machine)?,
            (None, None) => truncated(cut.unwrap_or(bodies.tail), machine)?,
        };
        self.enter(start, machine);
        Ok(())
    }

    fn enter(&mut self, start: usize, machine: &mut Machine) {
        machine.restart(start);
        note_before(&mut machine.ledger, machine.tape.text.get(..start).unwrap_or_default());
        self.stage = Stage::Inside(start);
    }
}

impl Found {
    fn by(seeker: &Seeker, start: usize) -> Self {
        Found { start, pos: seeker.pos(), is_wider: seeker.is_wider() }
    }
}

/// Whether there is one complete value at `body` and nothing after it but a fence.
fn is_alone(body: usize, machine: &mut Machine) -> bool {
    machine.restart(body);
    let complete = machine.run(&mut Silent).and_then(|()| machine.finish(&mut Silent));
    let rest = machine.tape.text.get(machine.pos..).unwrap_or_default().trim();
    complete == Ok(true) && (rest.is_empty() || rest == FENCE)
}

/// Checks that the text ends inside an array or object that begins at `start`.
fn truncated(start: usize, machine: &mut Machine) -> Result<usize, Fault> {
    machine.restart(start);
    let is_container = matches!(machine.tape.text.as_bytes().get(start), Some(b'{' | b'['));
    let read = machine.run(&mut Silent);
    let is_over = machine.is_over();
    machine.restart(start);
    match read {
        Err(fault) if is_container => Err(fault),
        Ok(()) if is_container && !is_over => Ok(start),
        _ => Err((SyntaxErrorKind::Nothing, 0)),
    }
}
