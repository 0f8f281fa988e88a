use std::time::Duration;

use cog_json::{End, Parser, SyntaxError, Value};
use cog_spec::{FinishReason, Usage};

use crate::{
    AnswerRules, fault,
    judge::{Failure, Reading},
    listener::Listener,
    outbox::Outbox,
    partial,
    repair::Ledger,
    shape::Shape,
};

/// One reply of a model while it arrives: its text goes straight into the parser, whose draft is the one tree.
pub(crate) struct Reply {
    parser: Parser,
    listener: Listener,
    bytes: usize,
    fault: Option<SyntaxError>,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<FinishReason>,
}

/// A reply that was read to its end, and what is left to tell of it.
pub(crate) struct Whole {
    pub(crate) reading: Reading,
    pub(crate) listener: Listener,
    /// All of the data was heard, and heard as data.
    pub(crate) was_heard: bool,
}

impl Reply {
    pub(crate) fn new(rules: &AnswerRules) -> Self {
        Self {
            parser: Parser::tolerant(rules.limits),
            listener: Listener::new(rules),
            bytes: 0,
            fault: None,
            usage: None,
            finish: None,
        }
    }

    /// Takes a piece of the text.
    pub(crate) fn push(&mut self, rules: &AnswerRules, text: &str, now: Duration, out: &mut Outbox) {
        let Self { parser, listener, .. } = self;
        self.bytes += text.len();
        let read = parser.push(text.as_bytes(), &mut |event| listener.hear(rules, &event, out));
        self.fault = self.fault.or(read.err());
        self.settle(now, out);
    }

    /// Gives what was held long enough.
    pub(crate) fn settle(&mut self, now: Duration, out: &mut Outbox) {
        self.listener.settle(self.parser.root(), self.bytes, now, out);
    }

    /// When [`Reply::settle`] is due at the latest, though nothing arrives.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.listener.due()
    }

    /// Whether it is known already that no answer will come of it.
    pub(crate) fn is_lost(&self) -> bool {
        self.fault.is_some() || self.parser.several() || !self.listener.reasons_to_stop().is_empty()
    }

    /// The end: the whole reply, or why it is none.
    pub(crate) fn finish(mut self, rules: &AnswerRules, out: &mut Outbox) -> Result<Whole, Box<Failure>> {
        if let Some(error) = self.fault {
            return Err(self.fail(rules, fault::not_json(&error)));
        }
        let stops = self.listener.reasons_to_stop();
        if !stops.is_empty() {
            let error = fault::of_violations(stops);
            return Err(self.fail(rules, error));
        }
        if self.parser.several() {
            return Err(Box::new(Failure::new(fault::several_objects())));
        }
        match &self.finish {
            None => return Err(self.fail(rules, fault::interrupted())),
            Some(FinishReason::Length) => return Err(self.fail(rules, fault::token_limit())),
            Some(FinishReason::ContentFilter) => return Err(self.fail(rules, fault::content_filter())),
            Some(FinishReason::Refusal(words)) => {
                let error = fault::refusal(words.as_deref());
                return Err(self.fail(rules, error));
            }
            Some(_) => {}
        }
        let Self { parser, listener, .. } = &mut self;
        let end = parser.finish(&mut |event| listener.hear(rules, &event, out));
        match end {
            Err(_) if self.bytes == 0 => Err(self.fail(rules, fault::nothing())),
            Err(error) => Err(self.fail(rules, fault::not_json(&error))),
            Ok(_) if self.parser.several() => Err(Box::new(Failure::new(fault::several_objects()))),
            Ok(End::Truncated) => Err(self.fail(rules, fault::truncated())),
            Ok(End::Complete) => Ok(self.whole()),
        }
    }

    /// The reply ends here for a reason of its own; what there is of the data goes along.
    pub(crate) fn fail(self, rules: &AnswerRules, error: cog_spec::ErrorBody) -> Box<Failure> {
        let ledger = Ledger::of_reading(self.parser.tolerated(), self.is_bare());
        let recognizer = self.listener.recognizer();
        let value = self.parser.into_value();
        let partial_data = value.as_ref().and_then(|value| {
            let draft = recognizer.draft(value.node())?;
            partial::of_data(rules, value, draft)
        });
        Box::new(Failure { partial_data, repairs: ledger.into_entries(), ..Failure::new(error) })
    }

    fn whole(self) -> Whole {
        let tolerated = self.parser.tolerated().to_vec();
        let value: Value = self.parser.into_value().unwrap_or_default();
        let (shape, was_heard) = self.listener.recognizer().conclude(value.node());
        let ledger = Ledger::of_reading(&tolerated, shape == Shape::Bare);
        Whole { reading: Reading { value, shape, ledger }, listener: self.listener, was_heard }
    }

    fn is_bare(&self) -> bool {
        self.listener.recognizer().shape() == Some(Shape::Bare)
    }
}
