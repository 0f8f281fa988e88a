//! A reply of media and text that is not JSON.

use cog_json::{ToJson, Value, Writer};
use cog_spec::RepairRule;

use crate::{AnswerRules, judge::ParsedReply, repair::Ledger, shape::Shape};

/// The rationale of a reply with media and without text.
const NO_TEXT: &str = "The model sent no text with the media.";

/// Returns an answer whose media will be inserted. The text beside them is its rationale, if the contract has one. Models
/// that generate images or speech may send no text.
pub(crate) fn read(rules: &AnswerRules, prose: &str) -> ParsedReply {
    let mut ledger = Ledger::default();
    ledger.note_reply(RepairRule::Wrap);
    let text = prose.trim();
    let text = if text.is_empty() { NO_TEXT } else { text };
    let rationale = rules.contract.takes_rationale().then_some(text);
    let value = Value::parse(&Answer { rationale }.to_json()).unwrap_or_default();
    ParsedReply { value, shape: Shape::Envelope { ok: true }, ledger }
}

struct Answer<'a> {
    rationale: Option<&'a str>,
}

impl ToJson for Answer<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("ok", &true);
            w.key("data").object(|w| {
                w.optional("rationale", &self.rationale);
            });
        });
    }
}
