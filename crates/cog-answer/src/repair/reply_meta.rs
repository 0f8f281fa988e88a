//! The meta of a reply, repaired.

use cog_json::{Node, ToJson, Value, Writer};
use cog_schema::{Contract, Violation};
use cog_spec::{RUNTIME_KEYS, RepairRule, Risk};

use super::{Ledger, explain};
use crate::AnswerRules;

/// The confidence of an answer without one (ruling R24).
const DEFAULT_CONFIDENCE: f64 = 0.5;

/// The meta of a reply, with values of any type. A null in one of the three required fields counts as absent.
pub(crate) struct ReplyMeta {
    confidence: Option<Value>,
    risk: Option<Value>,
    explain: Option<Value>,
    rest: Vec<(String, Value)>,
}

/// The source of absent fields.
pub(crate) struct Fill<'a> {
    /// The rationale, if it is text.
    pub(crate) rationale: Option<&'a str>,
    /// The module's responsibility.
    pub(crate) responsibility: &'a str,
    /// The module requires a confidence, so an absent one stays absent.
    pub(crate) requires_confidence: bool,
}

impl ReplyMeta {
    /// Reads the meta of an envelope. The runtime's own keys are ignored (ruling R27).
    pub(crate) fn from_meta(meta: Option<Node<'_>>) -> Self {
        let mut reply_meta = Self { confidence: None, risk: None, explain: None, rest: Vec::new() };
        for (key, node) in meta.into_iter().flat_map(Node::members) {
            let value = node.to_value();
            match key {
                "confidence" | "risk" | "explain" if node.is_null() => {}
                "confidence" => reply_meta.confidence = Some(value),
                "risk" => reply_meta.risk = Some(value),
                "explain" => reply_meta.explain = Some(value),
                _ if RUNTIME_KEYS.contains(&key) => {}
                _ => reply_meta.rest.push((key.to_owned(), value)),
            }
        }
        reply_meta
    }

    /// Reads the fields of meta that bare data contain (ruling R28). A field of that name but another type belongs to
    /// the module.
    pub(crate) fn from_data(data: Node<'_>) -> Self {
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

    /// Trims `explain` and fills absent fields.
    pub(crate) fn repair(mut self, fill: &Fill<'_>, ledger: &mut Ledger) -> Value {
        self.tidy_explain(ledger);
        if self.confidence.is_none() && !fill.requires_confidence {
            self.confidence =
                Some(filled(RepairRule::FillConfidence, "confidence", &DEFAULT_CONFIDENCE, ledger));
        }
        if self.risk.is_none() {
            self.risk = Some(filled(RepairRule::FillRisk, "risk", Risk::Medium.as_str(), ledger));
        }
        if self.explain.is_none() {
            let text = explain::default_explain(fill.rationale, fill.responsibility);
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

/// Written by hand, because the module's own members follow the three required ones.
impl ToJson for ReplyMeta {
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

/// Returns the repaired meta of an envelope if it is valid. Absent fields are not filled.
pub(crate) fn preview(meta: Node<'_>, contract: &Contract) -> Option<Value> {
    let mut reply_meta = ReplyMeta::from_meta(Some(meta));
    reply_meta.tidy_explain(&mut Ledger::default());
    let meta = value(&reply_meta);
    contract.check_meta(meta.node()).is_empty().then_some(meta)
}

/// Returns the violations of the complete meta of an envelope. Members that will be filled are valid.
pub(crate) fn violations(meta: Node<'_>, rules: &AnswerRules) -> Vec<Violation> {
    if !meta.is_object() {
        return if meta.is_null() { Vec::new() } else { rules.contract.check_meta(meta) };
    }
    let fill = Fill {
        rationale: None,
        responsibility: &rules.manifest.responsibility,
        requires_confidence: rules.manifest.constraints.require_confidence,
    };
    let mut ledger = Ledger::default();
    let repaired = ReplyMeta::from_meta(Some(meta)).repair(&fill, &mut ledger);
    let filled: Vec<&str> =
        ledger.entries().iter().filter(|one| one.before.is_none()).map(|one| one.path.as_str()).collect();
    let is_known = |path: &str| !filled.contains(&path) && (path != "meta" || filled.is_empty());
    let mut violations = rules.contract.check_meta(repaired.node());
    violations.retain(|one| is_known(&one.path));
    violations
}

fn filled(rule: RepairRule, key: &str, filling: &(impl ToJson + ?Sized), ledger: &mut Ledger) -> Value {
    let filling = value(filling);
    ledger.note_meta(rule, key, None, filling.clone());
    filling
}

fn value(json: &(impl ToJson + ?Sized)) -> Value {
    Value::parse(&json.to_json()).unwrap_or_default()
}
