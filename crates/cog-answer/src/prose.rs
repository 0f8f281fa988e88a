//! A reply of media and words: no JSON, though the module asks for it.

use cog_json::{ToJson, Value, Writer};
use cog_spec::RepairRule;

use crate::{AnswerRules, judge::Reading, repair::Ledger, shape::Shape};

/// What the rationale says of a model that makes something and says nothing.
const NO_WORDS: &str = "The model gave no words with what it made.";

/// An answer whose data are yet to come: what the model said beside what it made is its rationale, where the contract has
/// one. A model that makes images or speech may be able to say nothing at all.
pub(crate) fn read(rules: &AnswerRules, prose: &str) -> Reading {
    let mut ledger = Ledger::default();
    ledger.note_whole(RepairRule::Wrap);
    let said = prose.trim();
    let words = if said.is_empty() { NO_WORDS } else { said };
    let rationale = rules.contract.takes_rationale().then_some(words);
    let value = Value::parse(&Answer { rationale }.to_json()).unwrap_or_default();
    Reading { value, shape: Shape::Envelope { ok: true }, ledger }
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
