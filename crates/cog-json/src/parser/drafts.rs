//! What is a draft: text inside a tag, a channel or the markers of a tool call (ruling R82).
//!
//! Only the outermost open mark is kept, since everything inside it is a draft. A mark that is only mentioned in a sentence
//! opens nothing. If it is closed before an object begins, it was prose; if it is closed after one, it was a mark, and the
//! object is a draft.

use crate::error::SyntaxErrorKind;
use crate::parser::markup::{self, Form, Look, Mark, Role};

/// The maximum number of mentioned marks to remember.
const MAX_MENTIONS: usize = 16;

/// The maximum number of marks inside an open one to remember by name.
const MAX_NESTED: usize = 64;

/// The marks of the text so far.
#[derive(Default)]
pub(super) struct Drafts {
    open: Option<OpenMark>,
    /// The last draft, unless a document came after it. If a mark like its own was mentioned in it, the mention may have been
    /// the opening mark that the closing mark belonged to, and a further closing mark ends the draft.
    closed: Option<OpenMark>,
    mentions: Vec<Mention>,
    /// What the drafts so far are.
    pub(super) kind: Option<Draft>,
}

/// The form and the name of a mark.
#[derive(Clone, PartialEq, Eq)]
struct MarkName {
    form: Form,
    name: String,
}

/// A mark that is only mentioned.
#[derive(Clone)]
struct Mention {
    name: MarkName,
    /// Whether it is before the document.
    is_before: bool,
}

struct OpenMark {
    name: MarkName,
    is_reasoning: bool,
    /// The marks inside it that are closed in the same way, from the outermost one on.
    nested: Vec<MarkName>,
    /// The number of further ones.
    unnamed: usize,
    /// The number of marks like this one that are only mentioned inside it.
    mentioned: usize,
}

/// What a draft is. Of several kinds, the last one here is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Reasoning,
    ToolCall,
}

/// What is at an offset.
pub(super) enum Step {
    /// No mark.
    Text,
    /// A mark that changes nothing, up to this offset.
    Skip(usize),
    /// A draft begins, and its mark ends at this offset.
    Opened(usize),
    /// The draft ended at this offset.
    Closed(usize),
    /// A closing mark without its opening one, up to this offset: all text before it is a draft.
    Lone(usize),
    /// The text ends where it may become a mark.
    Cut,
}

impl Draft {
    pub(super) fn error(self) -> SyntaxErrorKind {
        match self {
            Draft::Reasoning => SyntaxErrorKind::OnlyReasoning,
            Draft::ToolCall => SyntaxErrorKind::OnlyToolCall,
        }
    }
}

impl MarkName {
    fn of(mark: &Mark) -> Self {
        Self { form: mark.form, name: mark.name.clone() }
    }

    fn is(&self, mark: &Mark) -> bool {
        self.form == mark.form && self.name == mark.name
    }
}

impl OpenMark {
    fn new(mark: &Mark) -> Self {
        Self {
            name: MarkName::of(mark),
            is_reasoning: mark.is_reasoning(),
            nested: Vec::new(),
            unnamed: 0,
            mentioned: 0,
        }
    }

    /// Returns whether a mark can close this one. Models confuse the names of reasoning: `<think>…</thinking>`.
    fn is_like(&self, mark: &Mark) -> bool {
        let is_fence = self.name.form == Form::Fence && mark.form == Form::Fence;
        self.name.is(mark) || is_fence || self.is_reasoning && mark.is_reasoning()
    }

    /// A mark like this one is opened inside it.
    fn nest(&mut self, mark: &Mark) {
        if self.nested.len() < MAX_NESTED {
            self.nested.push(MarkName::of(mark));
        } else {
            self.unnamed += 1;
        }
    }

    /// A mark like this one is closed. Returns whether that closes this one.
    fn close(&mut self, mark: &Mark) -> bool {
        if self.unnamed > 0 {
            self.unnamed -= 1;
            return false;
        }
        match self.nested.iter().rposition(|nested| nested.is(mark)) {
            Some(at) => {
                self.nested.truncate(at);
                false
            }
            None if self.name.is(mark) => true,
            None => self.nested.pop().is_none(),
        }
    }
}

impl Drafts {
    /// Returns the marks after a document, which may close what was mentioned before it.
    pub(super) fn after_document(&self) -> Self {
        self.mentioned_only(true)
    }

    /// Returns the marks after a document that was a draft. They may be closed after the next one, which is a draft then too.
    pub(super) fn after_draft(&self) -> Self {
        self.mentioned_only(false)
    }

    fn mentioned_only(&self, is_before: bool) -> Self {
        let mentions = self.mentions.iter().map(|one| Mention { is_before, ..one.clone() });
        Self { mentions: mentions.collect(), ..Self::default() }
    }

    /// Reads the mark at `at`. At the end of the text nothing is cut.
    pub(super) fn step(&mut self, text: &str, at: usize, is_end: bool) -> Step {
        let mark = match markup::read(text, at, is_end) {
            Look::None => return Step::Text,
            Look::Cut => return Step::Cut,
            Look::Mark(mark) => mark,
        };
        let step = match self.open {
            Some(_) => self.step_inside(&mark, text, at, is_end),
            None => self.step_outside(&mark, text, at, is_end),
        };
        step.unwrap_or(Step::Cut)
    }

    /// Returns the end of the open draft, or otherwise the offset to search from next.
    pub(super) fn end(&mut self, text: &str, mut from: usize, is_end: bool) -> Result<usize, usize> {
        if self.open.as_ref().is_some_and(|open| open.name.form == Form::Comment) {
            let end = markup::end_of_comment(text, from)?;
            self.open = None;
            return Ok(end);
        }
        loop {
            from = next_candidate(text, from)?;
            match self.step(text, from, is_end) {
                Step::Closed(end) => return Ok(end),
                Step::Cut => return Err(from),
                Step::Skip(end) | Step::Opened(end) | Step::Lone(end) => from = end,
                Step::Text => from += first_length(text, from),
            }
        }
    }

    /// Searches a closing mark without its opening one from `from` on. Returns its end, or otherwise the offset to search from
    /// next. In text that cannot be read, only the known names count.
    pub(super) fn lone_end(
        &mut self,
        text: &str,
        mut from: usize,
        is_end: bool,
        only_known: bool,
    ) -> Result<usize, usize> {
        loop {
            if self.open.is_some() {
                from = self.end(text, from, is_end)?;
            }
            from = next_candidate(text, from)?;
            if only_known {
                match markup::read(text, from, is_end) {
                    Look::Mark(mark) if mark.is_known() => {}
                    Look::Cut => return Err(from),
                    Look::Mark(_) | Look::None => {
                        from += first_length(text, from);
                        continue;
                    }
                }
            }
            match self.step(text, from, is_end) {
                Step::Lone(end) => return Ok(end),
                Step::Cut => return Err(from),
                Step::Skip(end) | Step::Opened(end) | Step::Closed(end) => from = end,
                Step::Text => from += first_length(text, from),
            }
        }
    }

    /// At a mark inside a draft. `None` if the text ends before its meaning is known; then nothing was changed.
    fn step_inside(&mut self, mark: &Mark, text: &str, at: usize, is_end: bool) -> Option<Step> {
        let end = at + mark.length;
        let Some(open) = &mut self.open else { return Some(Step::Skip(end)) };
        // The tokens of a chat template end each other in many combinations, such as a channel that `<|end|>` ends.
        let is_token = matches!(open.name.form, Form::Token | Form::Channel);
        let is_channel = open.name.form == Form::Channel && mark.form == Form::Channel;
        let closed = match mark.role {
            // What the tool is called with ends here, whatever its channel was.
            Role::AfterCall => is_token,
            // Reasoning about a tag names it without closing it. Channels do not nest: each header begins a new one.
            Role::Open if !is_channel && open.is_like(mark) => {
                let is_mention = markup::is_mention(text, at, mark).or(is_end.then_some(false))?;
                if is_mention && !is_closed_at(text, end, mark, is_end)? {
                    open.mentioned += 1;
                } else {
                    open.nest(mark);
                }
                false
            }
            // `<channel|>` has no name.
            Role::Close if is_channel => true,
            Role::Close => open.is_like(mark) && open.close(mark),
            Role::Final => is_channel,
            // A token of the template ends what another one opened. In a tag, which the model wrote itself, it is text.
            Role::End => is_token,
            Role::Open | Role::Neutral => false,
        };
        if is_token && mark.is_tool_call() {
            self.kind = self.kind.max(Some(Draft::ToolCall));
        }
        if closed {
            self.closed = self.open.take();
            return Some(Step::Closed(end));
        }
        Some(Step::Skip(end))
    }

    /// At a mark outside drafts. `None` if the text ends before its meaning is known; then nothing was changed.
    fn step_outside(&mut self, mark: &Mark, text: &str, at: usize, is_end: bool) -> Option<Step> {
        let end = at + mark.length;
        // What a known name or a comment contains is a draft even inside a sentence.
        let is_mention = match mark.is_known() || mark.form == Form::Comment {
            true => markup::is_quoted(text, at, mark),
            false => markup::is_mention(text, at, mark),
        };
        let is_mention = is_mention.or(is_end.then_some(false));
        Some(match mark.role {
            Role::Neutral | Role::End => Step::Skip(end),
            Role::Open | Role::Close if mark.is_wrapper() || mark.is_code() => Step::Skip(end),
            Role::Final | Role::AfterCall => self.lone(mark, text, at),
            Role::Open if mark.is_weak || is_mention? => {
                self.mention(mark);
                Step::Skip(end)
            }
            Role::Open => {
                self.open = Some(OpenMark::new(mark));
                self.note(mark);
                Step::Opened(end)
            }
            Role::Close => match self.mentioned(mark) {
                Some(index) => {
                    let is_quoted = markup::is_quoted(text, at, mark).or(is_end.then_some(false))?;
                    let mention = self.mentions.remove(index);
                    // An object is between the two.
                    if mention.is_before && !is_quoted { self.lone(mark, text, at) } else { Step::Skip(end) }
                }
                None if mark.is_weak || is_mention? => Step::Skip(end),
                None if self.closes_again(mark) => Step::Closed(end),
                None => self.lone(mark, text, at),
            },
        })
    }

    /// Whether a closing mark ends the last draft, which an earlier one has not ended.
    fn closes_again(&mut self, mark: &Mark) -> bool {
        match &mut self.closed {
            Some(closed) if closed.mentioned > 0 && closed.is_like(mark) => {
                closed.mentioned -= 1;
                true
            }
            _ => false,
        }
    }

    fn lone(&mut self, mark: &Mark, text: &str, at: usize) -> Step {
        // A header at the start has nothing before it that could be a draft. Only the end of the text before is examined,
        // since a reply may begin with much white space and have many lone marks.
        if text.get(..at).is_some_and(|before| !before.trim_end().is_empty()) {
            self.note(mark);
        }
        Step::Lone(at + mark.length)
    }

    fn note(&mut self, mark: &Mark) {
        let kind = if mark.is_tool_call() { Draft::ToolCall } else { Draft::Reasoning };
        self.kind = self.kind.max(Some(kind));
    }

    fn mention(&mut self, mark: &Mark) {
        // The oldest one goes: a closing mark is rarely far from what it closes.
        if self.mentions.len() == MAX_MENTIONS {
            self.mentions.remove(0);
        }
        self.mentions.push(Mention { name: MarkName::of(mark), is_before: false });
    }

    /// Returns the index of the mention that the mark closes.
    fn mentioned(&self, mark: &Mark) -> Option<usize> {
        self.mentions.iter().rposition(|one| one.name.is(mark))
    }
}

/// Whether the closing mark of `mark` is at `at`. `None` if the text ends before that is known.
fn is_closed_at(text: &str, at: usize, mark: &Mark, is_end: bool) -> Option<bool> {
    match markup::read(text, at, is_end) {
        Look::Mark(next) => Some(next.role == Role::Close && MarkName::of(mark).is(&next)),
        Look::Cut => None,
        Look::None => (at < text.len() || is_end).then_some(false),
    }
}

/// Returns the first offset from `from` on at which a mark may begin, or otherwise the end of the text.
fn next_candidate(text: &str, from: usize) -> Result<usize, usize> {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    match rest.iter().position(|&byte| markup::may_begin(byte)) {
        Some(length) => Ok(from + length),
        None => Err(text.len().max(from)),
    }
}

/// Returns the length of the character at `at`.
pub(super) fn first_length(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}
