//! Parsing a model's reply: the document, and the text around it.

use crate::error::SyntaxErrorKind;
use crate::event::{Event, EventKind, Limits};
use crate::parser::drafts::{Draft, Drafts};
use crate::parser::fragment::{self, FoundObject};
use crate::parser::machine::Machine;
use crate::parser::opening::is_space;
use crate::parser::seek::Seeker;
use crate::parser::tolerance::{Ledger, Tolerance};
use crate::parser::{End, ErrorAt, Silent, Sink};
use crate::path::Path;

/// The state of a reply.
pub(super) struct Reply {
    stage: Stage,
    depth: usize,
    has_second: bool,
    /// The document has text before it, so it may be a draft in reasoning whose opening tag the template wrote. The
    /// closing tag is searched after it.
    tag_search: Option<TagSearch>,
    /// Whether reasoning without an opening tag came before, so that the document may be a part of something in it.
    is_after_tag: bool,
    /// Where the text after the last retracted document begins.
    origin: usize,
    /// The offset of the first character that is not white space, as far as it is known.
    lead: usize,
    /// What was passed over as a draft.
    draft: Option<Draft>,
    /// The marks before the document, or after the last one that was a draft.
    marks: Drafts,
    is_end: bool,
}

/// The search of a closing tag that makes the document before it a draft.
struct TagSearch {
    from: usize,
    drafts: Drafts,
}

enum Stage {
    /// The document has not begun.
    Before(Seeker),
    /// An object was found here, but inside a string that the reply begins with: its end will show whether that
    /// string is all there is.
    Quoted { found: FoundObject, bodies: Bodies },
    /// The document began here.
    Inside(usize),
    /// The document, which began at `start`, is complete; another one may follow.
    After { start: usize, seeker: Seeker },
    /// The document cannot be read, but it may be a draft in reasoning.
    Unreadable(ErrorAt),
}

impl Reply {
    pub(super) fn new(limits: Limits) -> Self {
        let depth = limits.depth as usize;
        let stage = Stage::Before(Seeker::new(depth));
        Reply {
            stage,
            depth,
            has_second: false,
            tag_search: None,
            is_after_tag: false,
            origin: 0,
            lead: 0,
            draft: None,
            marks: Drafts::default(),
            is_end: false,
        }
    }

    /// Whether a second object was found, and neither is reasoning.
    pub(super) fn has_second_object(&self) -> bool {
        self.has_second && self.tag_search.is_none()
    }

    /// Whether a later closing tag may make the document reasoning, with its errors.
    pub(super) fn is_tentative(&self) -> bool {
        self.tag_search.is_some()
    }

    /// Parses as far as the text goes.
    pub(super) fn run<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<(), ErrorAt> {
        loop {
            match self.read(machine, sink) {
                // The answer may still follow a closing tag, so an error in what may be a draft waits for the end.
                Err(error) if self.tag_search.is_some() => self.stage = Stage::Unreadable(error),
                read => read?,
            }
            let Some(end) = self.end_of_reasoning(machine) else { return Ok(()) };
            self.retract(end, machine, sink);
        }
    }

    /// Returns the end of a closing tag after the document. All text before it is reasoning (ruling R76).
    fn end_of_reasoning(&mut self, machine: &Machine) -> Option<usize> {
        match (&self.stage, &mut self.tag_search) {
            (Stage::After { .. } | Stage::Unreadable(_), Some(search)) => {
                // A tag inside a complete document is a part of it. In one that cannot be read, it may be.
                let is_complete = machine.is_complete();
                let start = if is_complete { machine.pos.max(search.from) } else { search.from };
                match search.drafts.lone_end(&machine.tape.text, start, self.is_end, !is_complete) {
                    Ok(end) => {
                        self.draft = self.draft.max(search.drafts.kind);
                        self.marks = search.drafts.after_draft();
                        Some(end)
                    }
                    Err(searched_to) => {
                        search.from = searched_to;
                        None
                    }
                }
            }
            // The seeker finds either a second object or the tag.
            (Stage::After { seeker, .. }, None) if seeker.tail() > 0 => {
                self.draft = self.draft.max(seeker.draft());
                self.marks = seeker.drafts().after_draft();
                Some(seeker.tail())
            }
            _ => None,
        }
    }

    /// Retracts the document, which was reasoning, and continues at the `end` of its tag.
    fn retract<S: Sink>(&mut self, end: usize, machine: &mut Machine, sink: &mut S) {
        if let Some(node) = machine.root() {
            let kind = EventKind::Retracted { tentative: self.tag_search.is_some() };
            sink.emit(Event { path: &Path::root(), node, kind });
        }
        machine.restart(end);
        self.stage = Stage::Before(Seeker::after_reasoning(end, self.depth, &self.marks));
        self.has_second = false;
        self.tag_search = None;
        self.is_after_tag = true;
        self.origin = end;
    }

    fn read<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<(), ErrorAt> {
        if let Stage::Before(seeker) = &mut self.stage {
            let Some(start) = seeker.seek(&machine.tape.text) else { return Ok(()) };
            let found = FoundObject::by(seeker, start);
            let bodies = Bodies::new(&machine.tape.text, seeker);
            let is_tentative = start > bodies.tail && seeker.tail() == 0;
            self.is_after_tag |= seeker.is_part();
            self.draft = self.draft.max(seeker.draft());
            self.marks = seeker.drafts().after_document();
            self.begin(found, bodies, is_tentative, machine)?;
        }
        if let Stage::Inside(start) = self.stage {
            machine.run(sink)?;
            if !machine.is_complete() {
                return Ok(());
            }
            let seeker = Seeker::after(machine.pos, self.depth, &self.marks);
            self.stage = Stage::After { start, seeker };
        }
        if let Stage::After { seeker, .. } = &mut self.stage {
            self.has_second = self.has_second || seeker.seek(&machine.tape.text).is_some();
        }
        Ok(())
    }

    /// Starts the document at the object that was `found`.
    fn begin(
        &mut self,
        found: FoundObject,
        bodies: Bodies,
        is_tentative: bool,
        machine: &mut Machine,
    ) -> Result<(), ErrorAt> {
        if let Some(start) = bodies.find_open('[', found, machine) {
            self.enter(start, machine);
            return Ok(());
        }
        // Whether the string is the answer is known at its end only, and what was emitted cannot be taken back then.
        if bodies.find_open('"', found, machine).is_some() {
            self.stage = Stage::Quoted { found, bodies };
            return Ok(());
        }
        // Set before the next line can fail: an error in what may be a draft is not final.
        let drafts = self.marks.after_document();
        self.tag_search = is_tentative.then_some(TagSearch { from: found.start, drafts });
        let start = fragment::start(bodies.tail, found, machine)?;
        self.enter(start, machine);
        Ok(())
    }

    /// Ends the text.
    pub(super) fn finish<S: Sink>(&mut self, machine: &mut Machine, sink: &mut S) -> Result<End, ErrorAt> {
        loop {
            if let Some(end) = self.finish_document(machine, sink)? {
                return Ok(end);
            }
            // What looked like an object hid a closing tag.
            self.run(machine, sink)?;
        }
    }

    /// Finishes the current document, or returns nothing if it was reasoning.
    fn finish_document<S: Sink>(
        &mut self,
        machine: &mut Machine,
        sink: &mut S,
    ) -> Result<Option<End>, ErrorAt> {
        self.is_end = true;
        if self.tag_search.is_some()
            && let Some(end) = self.end_of_reasoning(machine)
        {
            self.retract(end, machine, sink);
            return Ok(None);
        }
        // After the search for a closing tag, which can still change where the document is.
        self.decide(machine)?;
        self.tag_search = None;
        if let Stage::Unreadable(error) = self.stage {
            return Err(error);
        }
        self.read(machine, sink)?;
        if !machine.finish(sink)? {
            return Ok(Some(End::Truncated));
        }
        let Stage::After { start, seeker } = &mut self.stage else { return Ok(Some(End::Complete)) };
        let start = *start;
        self.has_second = self.has_second || seeker.seek_at_end(&machine.tape.text).is_some();
        if let Some(end) = self.end_of_reasoning(machine) {
            self.retract(end, machine, sink);
            return Ok(None);
        }
        // A second object is the better reason: without it, the rest of the text may show that the document is only a part.
        if !self.has_second {
            fragment::check_after(start, self.is_after_tag, machine)?;
        }
        note_after(&mut machine.ledger, machine.tape.text.get(machine.pos..).unwrap_or_default());
        Ok(Some(End::Complete))
    }

    /// Decides at the end of the text where the document starts, if that is still open. The complete text may be a
    /// scalar, an empty object or an array without objects. Otherwise the document is the object that was found, or the
    /// array or object in which the reply was truncated.
    fn decide(&mut self, machine: &mut Machine) -> Result<(), ErrorAt> {
        let mut is_open = false;
        let mut cut = None;
        let bodies;
        let found = match &mut self.stage {
            Stage::Before(seeker) => {
                let found = seeker.seek_without_more(&machine.tape.text);
                cut = seeker.candidate();
                let start = found.or_else(|| seeker.seek_at_end(&machine.tape.text));
                self.draft = self.draft.max(seeker.draft());
                self.marks = seeker.drafts().after_document();
                self.is_after_tag |= seeker.is_part();
                is_open = seeker.is_draft();
                bodies = Bodies::new(&machine.tape.text, seeker);
                start.map(|start| FoundObject::by(seeker, start))
            }
            Stage::Quoted { found, bodies: quoted } => {
                bodies = *quoted;
                Some(*found)
            }
            Stage::Inside(_) | Stage::After { .. } | Stage::Unreadable(_) => return Ok(()),
        };
        if let Some(body) = bodies.each().find(|body| is_alone(*body, machine)) {
            self.enter(body, machine);
            return Ok(());
        }
        // The attempts above left their drafts.
        machine.restart(bodies.tail);
        let start = match found {
            Some(found) => fragment::start(bodies.tail, found, machine)?,
            None if is_open => return Err(self.only((SyntaxErrorKind::Nothing, 0))),
            None => truncated(cut.unwrap_or(bodies.tail), machine).map_err(|error| self.only(error))?,
        };
        self.enter(start, machine);
        Ok(())
    }

    /// Returns the error of a reply in which only drafts have objects.
    fn only(&self, error: ErrorAt) -> ErrorAt {
        match (error.0, self.draft) {
            (SyntaxErrorKind::Nothing, Some(draft)) => (draft.error(), error.1),
            _ => error,
        }
    }

    fn enter(&mut self, start: usize, machine: &mut Machine) {
        machine.restart(start);
        self.note_before(start, machine);
        self.stage = Stage::Inside(start);
    }

    /// Records the text before the document. Nothing is examined again after each retraction: the white space at the start is
    /// counted once, and a fence is searched only after the last retracted document.
    fn note_before(&mut self, start: usize, machine: &mut Machine) {
        let before = machine.tape.text.get(..start).unwrap_or_default();
        let space = before.get(self.lead..).unwrap_or_default();
        self.lead += space.len() - space.trim_start_matches(is_space).len();
        let before = before.trim_end_matches(is_space);
        let recent = before.get(self.origin..).unwrap_or_default();
        let last_line = recent.rsplit('\n').next().unwrap_or_default().trim();
        let is_fence = last_line.strip_prefix(FENCE).is_some_and(is_info);
        let fence = if is_fence { last_line.len() } else { 0 };
        let prose = before.get(..before.len() - fence).unwrap_or_default().trim_end_matches(is_space);
        let ledger = &mut machine.ledger;
        ledger.note_around(Tolerance::SurroundingText, prose.len().saturating_sub(self.lead));
        ledger.note_around(Tolerance::CodeFence, fence);
    }
}

impl FoundObject {
    fn by(seeker: &Seeker, start: usize) -> Self {
        FoundObject { start, pos: seeker.pos(), is_wider: seeker.is_wider() }
    }
}

/// Returns whether there is one complete value at `body` and nothing after it but a fence.
fn is_alone(body: usize, machine: &mut Machine) -> bool {
    machine.restart(body);
    let complete = machine.run(&mut Silent).and_then(|()| machine.finish(&mut Silent));
    let rest = machine.tape.text.get(machine.pos..).unwrap_or_default().trim_matches(is_space);
    complete == Ok(true) && (rest.is_empty() || rest == FENCE)
}

/// Checks that the text ends inside an array or object that begins at `start`.
fn truncated(start: usize, machine: &mut Machine) -> Result<usize, ErrorAt> {
    machine.restart(start);
    let is_container = matches!(machine.tape.text.as_bytes().get(start), Some(b'{' | b'['));
    let read = machine.run(&mut Silent);
    let is_complete = machine.is_complete();
    machine.restart(start);
    match read {
        Err(error) if is_container => Err(error),
        Ok(()) if is_container && !is_complete => Ok(start),
        _ => Err((SyntaxErrorKind::Nothing, 0)),
    }
}

// The text around the document: reasoning, prose and a code fence.

/// The possible start of the document in a reply that otherwise only contains a fence.
#[derive(Clone, Copy)]
struct Bodies {
    /// With everything that looks like a draft, which may be in the strings of an array.
    origin: usize,
    /// After reasoning in tags.
    body: usize,
    /// After the last closing tag, if that ends reasoning too.
    tail: usize,
}

impl Bodies {
    fn new(text: &str, seeker: &Seeker) -> Self {
        Self {
            origin: body(text, seeker.origin()),
            body: body(text, seeker.body()),
            tail: body(text, seeker.tail()),
        }
    }

    fn each(self) -> impl Iterator<Item = usize> {
        let body = (self.body != self.origin).then_some(self.body);
        let tail = (self.tail != self.body).then_some(self.tail);
        std::iter::once(self.origin).chain(body).chain(tail)
    }

    /// Returns the start at which a value with this opening character is still open where an object was `found`.
    fn find_open(self, opening: char, found: FoundObject, machine: &Machine) -> Option<usize> {
        // The text that shows a wider form may be the end of a string.
        let pos = if found.is_wider { found.start } else { found.pos };
        self.each().find(|&body| {
            machine.tape.text.get(body..).is_some_and(|rest| rest.starts_with(opening))
                && fragment::reaches(body, pos, machine)
        })
    }
}

const FENCE: &str = "```";

/// The maximum number of bytes after an opening fence on its line.
const INFO: usize = 64;

/// Returns where the document starts if the text contains nothing else but a fence.
fn body(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default().trim_start_matches(is_space);
    let inner = rest.strip_prefix(FENCE).and_then(|after| {
        // The line is bounded, since it is searched after each closing tag.
        let line_end = after.get(..after.floor_char_boundary(INFO))?.find('\n')?;
        let (info, inner) = after.split_at_checked(line_end)?;
        is_info(info).then(|| inner.trim_start_matches(is_space))
    });
    text.len() - inner.unwrap_or(rest).len()
}

/// Whether this may follow the opening fence on its line.
fn is_info(word: &str) -> bool {
    word.trim().bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn note_after(ledger: &mut Ledger, text: &str) {
    let text = text.trim_matches(is_space);
    let prose = text.strip_prefix(FENCE).unwrap_or(text).trim();
    ledger.note_around(Tolerance::CodeFence, if text.starts_with(FENCE) { FENCE.len() } else { 0 });
    ledger.note_around(Tolerance::SurroundingText, prose.len());
}
