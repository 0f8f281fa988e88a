use std::time::Duration;

use cog_json::{End, Parser, Path, SyntaxError, Value};
use cog_spec::{ErrorBody, FinishReason, OnViolation, Usage};

use crate::{
    AnswerRules,
    correction::Said,
    error,
    judge::{Failure, Reading},
    listener::Listener,
    outbox::Outbox,
    partial, prose,
    repair::Ledger,
    shape::Shape,
};

/// One reply of a model while it arrives: its text goes straight into the parser, whose draft is the one tree.
pub(crate) struct Reply {
    parser: Parser,
    listener: Listener,
    bytes: usize,
    fault: Option<SyntaxError>,
    /// What was said as long as no document had begun; kept where media may come, of which it may speak.
    prose: Option<String>,
    /// What is shown to the model if it is asked again.
    pub(crate) said: Said,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<FinishReason>,
}

/// A reply that was read to its end, and what is left to tell of it.
pub(crate) struct Whole {
    pub(crate) reading: Reading,
    pub(crate) listener: Listener,
    /// All of the data was heard, and heard as data.
    pub(crate) was_heard: bool,
    /// Places of the data where something was put that the text does not hold.
    pub(crate) placed: Vec<Path>,
}

impl Reply {
    pub(crate) fn new(rules: &AnswerRules) -> Self {
        Self {
            parser: Parser::tolerant(rules.limits),
            listener: Listener::new(rules),
            bytes: 0,
            fault: None,
            prose: rules.makes_media().then(String::new),
            said: Said::default(),
            usage: None,
            finish: None,
        }
    }

    /// MediaCapabilities a piece of the text.
    pub(crate) fn push(&mut self, rules: &AnswerRules, text: &str, now: Duration, out: &mut Outbox) {
        let Self { parser, listener, .. } = self;
        self.bytes += text.len();
        if rules.response.on_violation == OnViolation::Retry {
            self.said.push(text);
        }
        if let Some(prose) = &mut self.prose {
            prose.push_str(text);
        }
        let read = parser.push(text.as_bytes(), &mut |event| listener.hear(rules, &event, out));
        self.fault = self.fault.or(read.err());
        self.prose.take_if(|_| self.parser.root().is_some());
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
        let breaks = || self.parser.has_second_object() || !self.listener.reasons_to_stop().is_empty();
        self.fault.is_some() || !self.parser.is_tentative() && breaks()
    }

    /// The end: the whole reply, or why it is none. What a model says beside what it `made` need not be JSON.
    pub(crate) fn finish(
        mut self,
        rules: &AnswerRules,
        made: bool,
        out: &mut Outbox,
    ) -> Result<Whole, Box<Failure>> {
        match self.why_none().map_or_else(|| self.read_end(rules, out), Err) {
            Ok(()) => Ok(self.whole()),
            Err(_) if made && self.is_prose() => {
                let prose = self.prose.unwrap_or_default();
                Ok(Whole {
                    reading: prose::read(rules, &prose),
                    listener: self.listener,
                    was_heard: false,
                    placed: Vec::new(),
                })
            }
            Err(error) => Err(self.fail(rules, error, out)),
        }
    }

    /// Whether the reply was finished and has no document in it.
    fn is_prose(&self) -> bool {
        let was_cut = matches!(self.finish, None | Some(FinishReason::Length));
        let ends = matches!(self.finish, Some(FinishReason::ContentFilter | FinishReason::Refusal(_)));
        self.prose.is_some() && self.fault.is_none() && self.parser.root().is_none() && !was_cut && !ends
    }

    /// The reply ends here for a reason of its own; what there is of the data goes along.
    pub(crate) fn fail(mut self, rules: &AnswerRules, error: ErrorBody, out: &mut Outbox) -> Box<Failure> {
        self.listener.flush(self.parser.root(), out);
        let ledger = Ledger::of_reading(self.parser.tolerated(), self.is_bare());
        let recognizer = self.listener.recognizer();
        let several = self.parser.has_second_object();
        // Of several objects none is chosen, not even for what there is of it.
        let value = self.parser.into_value().filter(|_| !several);
        let partial_data = value.as_ref().and_then(|value| {
            let draft = recognizer.draft(value.node())?;
            partial::of_data(rules, value, draft)
        });
        Box::new(Failure { partial_data, repairs: ledger.into_entries(), ..Failure::new(error) })
    }

    /// Why no answer can come of the reply, whatever it says.
    fn why_none(&self) -> Option<ErrorBody> {
        if let Some(error) = self.fault {
            return Some(error::not_json(&error));
        }
        let stops = self.listener.reasons_to_stop();
        if !stops.is_empty() {
            return Some(error::of_violations(stops));
        }
        match &self.finish {
            _ if self.parser.has_second_object() => Some(error::several_objects()),
            None => Some(error::interrupted()),
            Some(FinishReason::Length) => Some(error::token_limit()),
            Some(FinishReason::ContentFilter) => Some(error::content_filter()),
            Some(FinishReason::Refusal(words)) => Some(error::refusal(words.as_deref())),
            Some(_) => None,
        }
    }

    /// Says to the parser that the text is over.
    fn read_end(&mut self, rules: &AnswerRules, out: &mut Outbox) -> Result<(), ErrorBody> {
        let Self { parser, listener, .. } = self;
        match parser.finish(&mut |event| listener.hear(rules, &event, out)) {
            Err(_) if self.bytes == 0 => Err(error::nothing()),
            Err(error) => Err(error::not_json(&error)),
            Ok(_) if self.parser.has_second_object() => Err(error::several_objects()),
            Ok(End::Truncated) => Err(error::truncated()),
            Ok(End::Complete) => Ok(()),
        }
    }

    fn whole(self) -> Whole {
        let tolerated = self.parser.tolerated().to_vec();
        let value: Value = self.parser.into_value().unwrap_or_default();
        let (shape, was_heard) = self.listener.recognizer().conclude(value.node());
        let ledger = Ledger::of_reading(&tolerated, shape == Shape::Bare);
        let reading = Reading { value, shape, ledger };
        Whole { reading, listener: self.listener, was_heard, placed: Vec::new() }
    }

    fn is_bare(&self) -> bool {
        self.listener.recognizer().shape() == Some(Shape::Bare)
    }
}
