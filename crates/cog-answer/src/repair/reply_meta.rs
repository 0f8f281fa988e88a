//! The meta of a reply, repaired.

use cog_json::{Node, ToJson, Value, Writer};
use cog_schema::{Contract, Member, Violation};
use cog_spec::{RUNTIME_KEYS, RepairRule, Risk, Strictness};

use super::Ledger;
use crate::AnswerRules;
use crate::repair;

/// The confidence of an answer without one (ruling R24).
const DEFAULT_CONFIDENCE: f64 = 0.5;

/// The required members of a meta, in the order in which they are written.
const REQUIRED: [&str; 3] = ["confidence", "risk", "explain"];

/// The meta of a reply, with values of any type.
pub(crate) enum ReplyMeta {
    /// A meta that no rule would change.
    Complete(Value),
    /// The members of any other meta.
    Members(Members),
}

/// The members of a meta. A null in one of the three required fields counts as absent.
#[derive(Default)]
pub(crate) struct Members {
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
    /// The meta of a reply without one.
    pub(crate) fn absent() -> Self {
        Self::Members(Members::default())
    }

    /// Reads the meta of an envelope. The runtime's own keys are ignored (ruling R27).
    pub(crate) fn from_meta(meta: Value) -> Self {
        if is_complete(meta.node()) {
            return Self::Complete(meta);
        }
        let mut members = Members::default();
        for (key, node) in meta.node().members() {
            let value = node.to_value();
            match key {
                "confidence" | "risk" | "explain" if node.is_null() => {}
                "confidence" => members.confidence = Some(value),
                "risk" => members.risk = Some(value),
                "explain" => members.explain = Some(value),
                _ if RUNTIME_KEYS.contains(&key) => {}
                _ => members.rest.push((key.to_owned(), value)),
            }
        }
        Self::Members(members)
    }

    /// Reads the fields of meta that bare data contain (ruling R28). A field of that name but another type belongs to
    /// the module.
    pub(crate) fn from_data(data: Node<'_>) -> Self {
        let confidence = data.get("confidence").filter(|node| node.as_f64().is_some());
        let risk = data.get("risk").filter(|node| node.is_string() || node.get("custom").is_some());
        let explain = data.get("explain").filter(|node| node.is_string());
        Self::Members(Members {
            confidence: confidence.map(Node::to_value),
            risk: risk.map(Node::to_value),
            explain: explain.map(Node::to_value),
            rest: Vec::new(),
        })
    }

    /// Returns whether the reply itself states a risk.
    pub(crate) fn states_risk(&self) -> bool {
        match self {
            Self::Complete(_) => true,
            Self::Members(members) => members.risk.is_some(),
        }
    }

    /// Trims `explain` and fills absent fields.
    pub(crate) fn repair(self, fill: &Fill<'_>, ledger: &mut Ledger) -> Value {
        match self {
            Self::Complete(meta) => meta,
            Self::Members(members) => members.repair(fill, ledger),
        }
    }
}

impl Members {
    fn repair(mut self, fill: &Fill<'_>, ledger: &mut Ledger) -> Value {
        self.tidy_explain(ledger);
        if self.confidence.is_none() && !fill.requires_confidence {
            self.confidence =
                Some(filled(RepairRule::FillConfidence, "confidence", &DEFAULT_CONFIDENCE, ledger));
        }
        if self.risk.is_none() {
            self.risk = Some(filled(RepairRule::FillRisk, "risk", Risk::Medium.as_str(), ledger));
        }
        if self.explain.is_none() {
            let text = repair::default_explain(fill.rationale, fill.responsibility);
            self.explain = Some(filled(RepairRule::FillExplain, "explain", text, ledger));
        }
        value(&self)
    }

    fn tidy_explain(&mut self, ledger: &mut Ledger) {
        let Some(before) = self.explain.clone() else { return };
        let Some(text) = before.as_str() else { return };
        let trimmed = text.trim();
        let tidy = repair::tidy(text);
        for (rule, before, after) in
            [(RepairRule::TrimExplain, text, trimmed), (RepairRule::TruncateExplain, trimmed, tidy)]
        {
            if before != after {
                ledger.note_meta(rule, "explain", Some(value(before)), value(after));
            }
        }
        self.explain = Some(value(tidy));
    }
}

/// Written by hand, because the module's own members follow the three required ones.
impl ToJson for Members {
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
    let meta = match ReplyMeta::from_meta(meta.to_value()) {
        ReplyMeta::Complete(meta) => meta,
        ReplyMeta::Members(mut members) => {
            members.tidy_explain(&mut Ledger::default());
            value(&members)
        }
    };
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
    let repaired = ReplyMeta::from_meta(meta.to_value()).repair(&fill, &mut ledger);
    let filled: Vec<&str> =
        ledger.entries().iter().filter(|one| one.before.is_none()).map(|one| one.path.as_str()).collect();
    // The rules of the specification hold for what the model states, whatever becomes of it.
    let is_ruled = may_be_ruled(rules) && rules.contract.check_risk(repaired.node()).is_none();
    let mut violations = rules.contract.check_meta(repaired.node());
    // A member that the runtime fills in is missing in the reply, and no violation of the model.
    violations
        .retain(|one| !filled.contains(&one.path.as_str()) && (one.path != "meta" || filled.is_empty()));
    violations.retain(|one| !(is_ruled && one.path == "meta.risk"));
    violations
}

/// Returns whether the risk of an answer may still be replaced, by a list in its data or by the parts of a composition, so that
/// the model's own risk decides nothing before the end (ruling R21).
fn may_be_ruled(rules: &AnswerRules) -> bool {
    let Some(list) = rules.manifest.risk_rule.list() else { return false };
    let may_list = rules.contract.shape("data").is_none_or(|shape| match shape.member(list) {
        Member::Known(_) => true,
        Member::Any | Member::Absent => !shape.forbids(list) && rules.manifest.strictness != Strictness::High,
    });
    rules.parts_risk.is_some() || may_list
}

/// Returns whether no rule would change a meta: the required members come first, none is null, `explain` is tidy, and
/// no key is the runtime's own. Most are complete, and writing and reading one again takes as long as checking it.
fn is_complete(meta: Node<'_>) -> bool {
    let mut members = meta.members();
    let has_required = REQUIRED.iter().all(|name| {
        let member = members.next().filter(|(key, node)| key == name && !node.is_null());
        member.is_some_and(|(_, node)| {
            node.as_str().is_none_or(|text| *name != "explain" || repair::tidy(text) == text)
        })
    });
    has_required && members.all(|(key, _)| !REQUIRED.contains(&key) && !RUNTIME_KEYS.contains(&key))
}

fn filled(rule: RepairRule, key: &str, filling: &(impl ToJson + ?Sized), ledger: &mut Ledger) -> Value {
    let filling = value(filling);
    ledger.note_meta(rule, key, None, filling.clone());
    filling
}

fn value(json: &(impl ToJson + ?Sized)) -> Value {
    Value::parse(&json.to_json()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: Fill<'static> =
        Fill { rationale: None, responsibility: "Sorts.", requires_confidence: false };

    fn is_kept(meta: &str) -> bool {
        matches!(ReplyMeta::from_meta(Value::parse(meta).unwrap()), ReplyMeta::Complete(_))
    }

    fn repaired(meta: &str) -> String {
        ReplyMeta::from_meta(Value::parse(meta).unwrap()).repair(&FILL, &mut Ledger::default()).to_json()
    }

    #[test]
    fn complete_meta_is_kept() {
        for meta in [
            r#"{"confidence":0.5,"risk":"low","explain":"Yes."}"#,
            r#"{"confidence":5e-1,"risk":{"custom":"x"},"explain":3,"own":null}"#,
        ] {
            assert!(is_kept(meta), "{meta}");
            assert_eq!(repaired(meta), meta);
        }
    }

    #[test]
    fn any_other_meta_is_rewritten() {
        let right = r#"{"confidence":0.5,"risk":"low","explain":"Yes."}"#;
        for meta in [
            r#"{"risk":"low","confidence":0.5,"explain":"Yes."}"#,
            r#"{"confidence":0.5,"risk":"low","explain":" Yes. "}"#,
            r#"{"confidence":0.5,"risk":"low","model":"m","explain":"Yes."}"#,
            r#"{"confidence":0.5,"risk":"low","explain":"Yes.","usage":{}}"#,
        ] {
            assert!(!is_kept(meta), "{meta}");
            assert_eq!(repaired(meta), right);
        }
        assert!(!is_kept(r#"{"confidence":null,"risk":"low","explain":"Yes."}"#));
        assert!(!is_kept("{}"));
    }

    #[test]
    fn filled_member_is_not_reported_while_the_reply_arrives() {
        let mut schema = crate::testing::schema(serde_json::json!({}));
        schema["meta"] = serde_json::json!({ "properties": { "risk": { "enum": ["low"] } } });
        schema["data"]["additionalProperties"] = false.into();
        let rules = crate::testing::rules(crate::testing::manifest(cog_spec::Tier::Decision), &schema);
        let paths = |meta: &str| -> Vec<String> {
            let violations = violations(Value::parse(meta).unwrap().node(), &rules);
            violations.into_iter().map(|one| one.path).collect()
        };
        assert_eq!(paths(r#"{"confidence":0.5,"explain":"Yes."}"#), [] as [&str; 0]);
        assert_eq!(paths(r#"{"confidence":0.5,"explain":"Yes.","risk":"high"}"#), ["meta.risk"]);
        assert_eq!(paths(r#"{"confidence":2,"explain":"Yes."}"#), ["meta.confidence"]);
    }
}
