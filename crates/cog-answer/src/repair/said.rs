//! What a reply says of itself: its meta, put in order.

use cog_json::{Node, ToJson, Value, Writer};
use cog_schema::Contract;
use cog_spec::{RUNTIME_KEYS, RepairRule, Risk};

use super::{Ledger, explain};

/// The confidence of an answer that states none (ruling R24).
const CONFIDENCE: f64 = 0.5;

/// The meta of a reply, field by field, whatever stands in them. A null in one of the three required fields is not
/// kept: it counts as absent.
pub(crate) struct Said {
    confidence: Option<Value>,
    risk: Option<Value>,
    explain: Option<Value>,
    rest: Vec<(String, Value)>,
}

/// What absent fields are filled from.
pub(crate) struct Fill<'a> {
    /// The rationale, where it is text.
    pub(crate) rationale: Option<&'a str>,
    /// The module's responsibility.
    pub(crate) responsibility: &'a str,
    /// An absent confidence stays absent: the module demands one.
    pub(crate) demands_confidence: bool,
}

impl Said {
    /// The meta of an envelope, an object or absent. What it says under the runtime's own keys is not the
    /// model's to say (ruling R27).
    pub(crate) fn of_meta(meta: Option<Node<'_>>) -> Self {
        let mut said = Self { confidence: None, risk: None, explain: None, rest: Vec::new() };
        for (key, node) in meta.into_iter().flat_map(Node::members) {
            let value = node.to_value();
            match key {
                "confidence" | "risk" | "explain" if node.is_null() => {}
                "confidence" => said.confidence = Some(value),
                "risk" => said.risk = Some(value),
                "explain" => said.explain = Some(value),
                _ if RUNTIME_KEYS.contains(&key) => {}
                _ => said.rest.push((key.to_owned(), value)),
            }
        }
        said
    }

    /// The fields that data which stand alone carry beside them (ruling R28). A field of that name but of
    /// another kind is the module's own.
    pub(crate) fn of_data(data: Node<'_>) -> Self {
        let copy = |key: &str, fits: fn(Node<'_>) -> bool| {
            data.get(key).filter(|node| fits(*node)).map(Node::to_value)
        };
        Self {
            confidence: copy("confidence", |node| node.as_f64().is_some()),
            risk: copy("risk", |node| node.is_string() || node.get("custom").is_some()),
            explain: copy("explain", |node| node.is_string()),
            rest: Vec::new(),
        }
    }

    /// Whether the reply itself states a risk.
    pub(crate) fn states_risk(&self) -> bool {
        self.risk.is_some()
    }

    /// Puts `explain` in order and fills what is absent.
    pub(crate) fn repair(mut self, fill: &Fill<'_>, ledger: &mut Ledger) -> Value {
        self.tidy_explain(ledger);
        if self.confidence.is_none() && !fill.demands_confidence {
            self.confidence = Some(filled(RepairRule::FillConfidence, "confidence", &CONFIDENCE, ledger));
        }
        if self.risk.is_none() {
            self.risk = Some(filled(RepairRule::FillRisk, "risk", Risk::Medium.as_str(), ledger));
        }
        if self.explain.is_none() {
            let text = explain::stand_in(fill.rationale, fill.responsibility);
            self.explain = Some(filled(RepairRule::FillExplain, "explain", text, ledger));
        }
        value(&self)
    }

    fn tidy_explain(&mut self, ledger: &mut Ledger) {
        let Some(before) = self.explain.clone() else { return };
        let Some(text) = before.as_str() else { return };
        let mut note = |rule, before: &str, after: &str| {
            if before != after {
                ledger.note_meta(rule, "explain", Some(value(before)), value(after));
            }
        };
        let (trimmed, tidy) = (text.trim(), explain::tidy(text));
        note(RepairRule::TrimExplain, text, trimmed);
        note(RepairRule::TruncateExplain, trimmed, tidy);
        self.explain = Some(value(tidy));
    }
}

impl ToJson for Said {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.optional("confidence", &self.confidence);
            w.optional("risk", &self.risk);
            w.optional("explain", &self.explain);
            for (key, value) in &self.rest {
                w.field(key, value);
            }
        });
    }
}

/// The meta of an envelope as it will be, if it fits already; nothing is filled.
pub(crate) fn preview(meta: Node<'_>, contract: &Contract) -> Option<Value> {
    let mut said = Said::of_meta(Some(meta));
    said.tidy_explain(&mut Ledger::default());
    let meta = value(&said);
    contract.check_meta(meta.node()).is_empty().then_some(meta)
}

fn filled(rule: RepairRule, key: &str, filling: &(impl ToJson + ?Sized), ledger: &mut Ledger) -> Value {
    let filling = value(filling);
    ledger.note_meta(rule, key, None, filling.clone());
    filling
}

fn value(json: &(impl ToJson + ?Sized)) -> Value {
    Value::parse(&json.to_json()).unwrap_or_default()
}
