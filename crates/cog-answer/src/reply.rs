//! One reply of a model: its text to a tree, and why it is no answer.

use std::time::Duration;

use cog_json::{End, Node, Parser, Path, SyntaxError, Value};
use cog_spec::{ErrorBody, ErrorOrigin, FinishReason, RepairRule, Usage};
use serde::Serialize;

use crate::{
    AnswerRules,
    correction::AttemptText,
    error,
    evidence::TokenLog,
    finalize::{Failure, ParsedReply},
    listener::Listener,
    repair::{self, Ledger},
    sequencer::ChunkSequencer,
    shape::Shape,
};

/// One reply of a model while it arrives. Its text goes straight into the parser, whose draft is the one tree.
pub(crate) struct Reply {
    parser: Parser,
    listener: Listener,
    bytes: usize,
    /// Whether the text has anything but white space.
    has_text: bool,
    /// Whether the provider sent reasoning apart from the text.
    pub(crate) has_reasoning: bool,
    syntax_error: Option<SyntaxError>,
    /// The text before any JSON document. It is only recorded if the model may generate media with it.
    prose: Option<String>,
    /// The text that the next attempt shows to the model.
    pub(crate) attempt_text: AttemptText,
    /// The tokens of the text, if the engine reports their probabilities.
    pub(crate) tokens: TokenLog,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<FinishReason>,
    /// The call ended before its reply was complete.
    pub(crate) is_lost: bool,
    /// The usage is an estimate.
    pub(crate) is_estimated: bool,
}

/// A reply that was parsed to its end, and what is left to emit.
pub(crate) struct CompleteReply {
    pub(crate) parsed: ParsedReply,
    pub(crate) listener: Listener,
    /// All events of the data were processed as data.
    pub(crate) is_complete: bool,
    /// Paths of the data at which media were inserted.
    pub(crate) placed: Vec<Path>,
}

impl Reply {
    pub(crate) fn new(rules: &AnswerRules) -> Self {
        Self {
            parser: parser(rules),
            listener: Listener::new(rules),
            bytes: 0,
            has_text: false,
            has_reasoning: false,
            syntax_error: None,
            prose: rules.makes_media().then(String::new),
            attempt_text: AttemptText::default(),
            tokens: TokenLog::default(),
            usage: None,
            finish: None,
            is_lost: false,
            is_estimated: false,
        }
    }

    /// Parses a part of the text.
    pub(crate) fn push(&mut self, rules: &AnswerRules, text: &str, now: Duration, out: &mut ChunkSequencer) {
        let Self { parser, listener, .. } = self;
        self.bytes += text.len();
        self.has_text = self.has_text || !text.trim().is_empty();
        if rules.attempts() > 1 {
            self.attempt_text.push(text);
        }
        if let Some(prose) = &mut self.prose {
            prose.push_str(text);
        }
        let read = parser.push(text.as_bytes(), &mut |event| listener.on_event(rules, &event, out));
        // The first error counts: after it the parser returns the same one for all further text.
        self.syntax_error = self.syntax_error.or(read.err());
        // From the first document on, the text is an answer in JSON, so it need not be held a second time.
        self.prose.take_if(|_| self.parser.root().is_some());
        // What is read tentatively may turn out to be prose.
        if !self.parser.is_tentative() {
            self.listener.run_checks(rules, self.parser.unwrapped_root(), out);
        }
        self.flush_due(now, out);
    }

    /// Emits buffered text that is due.
    pub(crate) fn flush_due(&mut self, now: Duration, out: &mut ChunkSequencer) {
        self.listener.flush_due(self.parser.unwrapped_root(), self.bytes, now, out);
    }

    /// Returns when to call [`Reply::flush_due`] if no event arrives before.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.listener.due()
    }

    /// Returns whether the reply has begun without complete token counts, which come with its end.
    pub(crate) fn is_uncounted(&self) -> bool {
        let has_begun = self.is_lost || self.bytes > 0 || self.usage.is_some() || self.finish.is_some();
        has_begun && (self.usage.is_none() || self.finish.is_none())
    }

    /// Returns whether the tokens of the reply are neither counted nor estimated.
    pub(crate) fn has_unknown_tokens(&self) -> bool {
        self.is_uncounted() && !self.is_estimated
    }

    /// Returns whether the reply is already known to be invalid. Text that is not an answer may still be followed by
    /// tool calls.
    pub(crate) fn is_invalid(&self, rules: &AnswerRules) -> bool {
        if self.syntax_error.is_some() && !rules.calls_tools {
            return true;
        }
        // What the parser reads tentatively may still turn out to be prose before the answer.
        if self.parser.is_tentative() {
            return false;
        }
        let is_unreadable = !rules.calls_tools && self.parser.has_second_object();
        is_unreadable
            || !self.listener.stopping_violations().is_empty()
            || !self.listener.stopping_checks().is_empty()
    }

    /// Ends the reply: returns it, or the reason why it is invalid. Text next to generated media need not be JSON.
    pub(crate) fn finish(
        mut self,
        rules: &AnswerRules,
        has_media: bool,
        out: &mut ChunkSequencer,
    ) -> Result<CompleteReply, Box<Failure>> {
        match self.rejection().map_or_else(|| self.read_end(rules, out), Err) {
            Ok(()) => Ok(self.complete(rules)),
            Err(_) if has_media && self.is_prose() => {
                let prose = self.prose.unwrap_or_default();
                Ok(CompleteReply {
                    parsed: read(rules, &prose),
                    listener: self.listener,
                    is_complete: false,
                    placed: Vec::new(),
                })
            }
            Err(error) => Err(self.fail(rules, error, out)),
        }
    }

    /// Returns whether the reply is complete and contains no JSON document.
    fn is_prose(&self) -> bool {
        let is_truncated = matches!(self.finish, None | Some(FinishReason::Length));
        let is_rejected = matches!(self.finish, Some(FinishReason::ContentFilter | FinishReason::Refusal(_)));
        self.prose.is_some()
            && self.syntax_error.is_none()
            && self.parser.root().is_none()
            && !is_truncated
            && !is_rejected
    }

    /// Ends the reply with an error and the partial data.
    pub(crate) fn fail(
        self,
        rules: &AnswerRules,
        error: ErrorBody,
        out: &mut ChunkSequencer,
    ) -> Box<Failure> {
        let ledger = Ledger::new(self.parser.deviations(), self.is_bare());
        let several = self.parser.has_second_object();
        let is_unwrapped = self.is_unwrapped();
        // Of several objects none is chosen, not even for partial data.
        let value = self.parser.into_unwrapped_value().filter(|_| !several);
        let draft = value.as_ref().and_then(|value| self.listener.recognizer().draft(value.node()));
        let partial_data =
            value.as_ref().zip(draft).and_then(|(value, draft)| repair::partial_data(rules, value, draft));
        let is_complete = value
            .as_ref()
            .is_some_and(|value| self.listener.recognizer().finish(value.node(), is_unwrapped).1);
        self.listener.fail(draft, partial_data.as_ref(), &[], is_complete, out);
        Box::new(Failure { partial_data, repairs: ledger.into_entries(), ..Failure::new(error) })
    }

    /// Returns why the reply is invalid, whatever its text.
    fn rejection(&self) -> Option<ErrorBody> {
        // What is wrong with the text comes first: the provider was stopped for it, and reports no reason of its own.
        if let Some(error) = self.syntax_error {
            return Some(error::not_json(&error));
        }
        let stops = self.listener.stopping_violations();
        if !stops.is_empty() {
            return Some(error::from_violations(stops));
        }
        let failed = self.listener.stopping_checks();
        if !failed.is_empty() {
            return Some(error::from_named_checks(failed));
        }
        match &self.finish {
            _ if self.parser.has_second_object() => Some(error::several_objects()),
            None => Some(error::interrupted().with_origin(ErrorOrigin::Provider)),
            Some(FinishReason::Length) => Some(error::token_limit()),
            Some(FinishReason::ContentFilter) => Some(error::content_filter()),
            Some(FinishReason::Refusal(text)) => Some(error::refusal(text.as_deref())),
            Some(_) => None,
        }
    }

    /// Ends the parser's input.
    fn read_end(&mut self, rules: &AnswerRules, out: &mut ChunkSequencer) -> Result<(), ErrorBody> {
        let Self { parser, listener, .. } = self;
        // The end may close strings and containers, or settle which document is the answer: both are events.
        match parser.finish(&mut |event| listener.on_event(rules, &event, out)) {
            Err(_) if !self.has_text && self.has_reasoning => Err(error::only_reasoning()),
            Err(_) if !self.has_text => Err(error::empty()),
            Err(error) => Err(error::not_json(&error)),
            Ok(_) if self.parser.has_second_object() => Err(error::several_objects()),
            Ok(End::Truncated) => Err(error::truncated()),
            Ok(End::Complete) => Ok(()),
        }
    }

    fn complete(self, rules: &AnswerRules) -> CompleteReply {
        let tolerated = self.parser.deviations().to_vec();
        let is_unwrapped = self.is_unwrapped();
        let value: Value = self.parser.into_unwrapped_value().unwrap_or_default();
        let (shape, is_complete) = self.listener.recognizer().finish(value.node(), is_unwrapped);
        let ledger = Ledger::new(&tolerated, shape == Shape::Bare);
        let is_in_envelope = shape == Shape::Envelope { ok: true };
        let has_data = is_in_envelope || (shape == Shape::Bare && rules.is_without_meta());
        let data = rules.contract.shape("data").filter(|_| has_data);
        let probabilities = data.and_then(|data| self.tokens.probabilities(&value, is_in_envelope, &data));
        let parsed = ParsedReply { value, shape, ledger, probabilities };
        CompleteReply { parsed, listener: self.listener, is_complete, placed: Vec::new() }
    }

    /// Returns whether the envelope is one level deeper.
    fn is_unwrapped(&self) -> bool {
        self.parser.root().map(Node::id) != self.parser.unwrapped_root().map(Node::id)
    }

    fn is_bare(&self) -> bool {
        self.listener.recognizer().shape() == Some(Shape::Bare)
    }
}

/// Returns the parser of a reply. In some dialects the schema nests the envelope one level deeper
/// (docs/spec/modules.md).
fn parser(rules: &AnswerRules) -> Parser {
    let parser = Parser::tolerant(rules.limits);
    match rules.contract.wrapper(rules.dialect, rules.form) {
        Some(wrapper) => parser.unwrapping(wrapper),
        None => parser,
    }
}

// A reply of media and text that is not JSON.

/// The rationale of a reply with media and without text.
const NO_TEXT: &str = "The model sent no text with the media.";

/// Returns an answer whose media will be inserted. The text next to them is its rationale, if the contract has one.
/// Models that generate images or speech may send no text.
pub(crate) fn read(rules: &AnswerRules, prose: &str) -> ParsedReply {
    let mut ledger = Ledger::default();
    ledger.note_reply(RepairRule::Wrap);
    let text = prose.trim();
    let text = if text.is_empty() { NO_TEXT } else { text };
    let rationale = rules.contract.takes_rationale().then_some(text);
    let value = cog_json::to_value(&Answer { ok: true, data: Data { rationale } }).unwrap_or_default();
    ParsedReply { value, shape: Shape::Envelope { ok: true }, ledger, probabilities: None }
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    rationale: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use cog_spec::{Code, OnViolation};

    use super::*;
    use crate::{correction::Correction, testing};

    #[test]
    fn text_is_kept_only_if_another_attempt_may_show_it() {
        for (on_violation, kept) in [(OnViolation::Report, ""), (OnViolation::Retry, "{")] {
            let mut rules = testing::plain();
            rules.response.on_violation = Some(on_violation);
            let mut reply = Reply::new(&rules);
            reply.push(&rules, "{", Duration::ZERO, &mut ChunkSequencer::new(&rules));
            let correction = Correction::new(reply.attempt_text, &ErrorBody::new(Code::ParseError, "No."));
            assert_eq!(correction.answer, kept);
        }
    }
}
