//! A reply of media and text that is not JSON.

use cog_spec::RepairRule;
use serde::Serialize;

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
    let value = cog_json::to_value(&Answer { ok: true, data: Data { rationale } }).unwrap_or_default();
    ParsedReply { value, shape: Shape::Envelope { ok: true }, ledger }
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
