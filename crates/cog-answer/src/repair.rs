//! Repairs the form of an answer, never its meaning (rulings R24–R26).
//!
//! Nulls that a strict dialect forces the model to write are dropped without a repair: a null member of the envelope,
//! and a null for an omitted member (docs/spec/modules.md).

use std::collections::{BTreeSet, HashSet};

use cog_json::{Deviation, Node, NodeId, Path, ToJson, Value, Writer};
use cog_schema::{Contract, MAX_VIOLATIONS, Member, Violation};
use cog_spec::{Meta, RUNTIME_KEYS, Repair, RepairRule, Risk, Strictness};
use unicode_segmentation::UnicodeSegmentation;

use crate::{AnswerRules, patch};

// The length of `meta.explain` (ruling R23).

/// The length of a rationale that replaces an absent `explain`, in Unicode scalar values (ruling R24).
const RATIONALE_LENGTH: usize = 200;

/// Trims text for `explain`: no surrounding white space, at most 280 Unicode scalar values, truncated between
/// graphemes.
pub(crate) fn tidy(text: &str) -> &str {
    truncate(text.trim(), Meta::MAX_EXPLAIN)
}

/// Returns the replacement of an absent `explain`.
pub(crate) fn default_explain<'a>(rationale: Option<&'a str>, responsibility: &'a str) -> &'a str {
    match rationale.map(str::trim).filter(|text| !text.is_empty()) {
        Some(rationale) => truncate(rationale, RATIONALE_LENGTH),
        None => tidy(responsibility),
    }
}

/// Truncates a trimmed text to `max` scalar values, between graphemes.
fn truncate(text: &str, max: usize) -> &str {
    // A scalar value has at least one byte.
    if text.len() <= max {
        return text;
    }
    let Some((end, _)) = text.char_indices().nth(max) else { return text };
    let last = text.grapheme_indices(true).map(|(start, _)| start).take_while(|start| *start <= end).last();
    // A single grapheme over the limit is split.
    let end = last.filter(|start| *start > 0).unwrap_or(end);
    text.get(..end).unwrap_or(text).trim_end()
}

/// The maximum number of dropped members with an entry of their own.
const MAX_DROPPED: usize = 8;

/// The maximum length of their keys, in bytes.
const MAX_KEY: usize = 1024;

/// All repairs of one answer (ruling R26).
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    entries: Vec<Repair>,
}

impl Ledger {
    /// Creates the ledger from what the parser tolerated. Paths of bare data start at `data`.
    pub(crate) fn new(tolerated: &[Deviation], is_bare: bool) -> Self {
        Self { entries: tolerated.iter().filter_map(|one| entry(one, is_bare)).collect() }
    }

    /// Records a repair of meta, with the old and the new value.
    pub(crate) fn note_meta(&mut self, rule: RepairRule, key: &str, before: Option<Value>, after: Value) {
        self.entries.push(Repair { rule, path: format!("meta.{key}"), before, after: Some(after) });
    }

    /// Records another repair, with the old and the new size in bytes.
    pub(crate) fn note_sizes(&mut self, rule: RepairRule, path: &str, before: usize, after: usize) {
        self.entries.push(Repair {
            rule,
            path: path.to_owned(),
            before: Some(size(before)),
            after: Some(size(after)),
        });
    }

    /// Records members that are not part of the answer. All after the first eight share one entry.
    pub(crate) fn note_dropped<'a>(&mut self, members: impl Iterator<Item = (&'a str, Node<'a>)>) {
        let mut rest = 0;
        for (at, (key, member)) in members.enumerate() {
            let size = member.to_json().len();
            let mut path = Path::root();
            path.push_key(key);
            match at < MAX_DROPPED && key.len() <= MAX_KEY {
                true => self.note_sizes(RepairRule::DropMember, &path.to_string(), size, 0),
                false => rest += size,
            }
        }
        if rest > 0 {
            self.note_sizes(RepairRule::DropMember, "", rest, 0);
        }
    }

    /// Records a repair of the complete reply.
    pub(crate) fn note_reply(&mut self, rule: RepairRule) {
        self.entries.push(Repair { rule, path: String::new(), before: None, after: None });
    }

    /// Returns whether the reply was repaired. Meta that the model was not asked for is filled, which mends nothing (ruling R91).
    pub(crate) fn has_repairs(&self, rules: &AnswerRules) -> bool {
        let fills = [RepairRule::FillConfidence, RepairRule::FillRisk, RepairRule::FillExplain];
        self.entries.iter().any(|entry| !(rules.is_without_meta() && fills.contains(&entry.rule)))
    }

    pub(crate) fn entries(&self) -> &[Repair] {
        &self.entries
    }

    pub(crate) fn into_entries(self) -> Vec<Repair> {
        self.entries
    }
}

/// Converts what the parser tolerated. Both lists of rules are the specification's, so every rule is known.
fn entry(tolerated: &Deviation, is_bare: bool) -> Option<Repair> {
    let rule: RepairRule = tolerated.rule.as_str().parse().ok()?;
    let path = match tolerated.path.parse::<Path>() {
        Ok(path) if is_bare && !path.is_root() => patch::from_bare(&path).to_string(),
        _ => tolerated.path.clone(),
    };
    Some(Repair { rule, path, before: Some(size(tolerated.before)), after: Some(size(tolerated.after)) })
}

fn size(bytes: usize) -> Value {
    Value::parse(&bytes.to_json()).unwrap_or_default()
}

// Removes parts of an answer. The rest stays as it was written.

/// The nodes to remove.
pub(crate) type NodeSet = BTreeSet<NodeId>;

/// Returns a part of a value without the omitted nodes. Copies nothing if there are none.
pub(crate) fn without(whole: &Value, part: Node<'_>, omitted: &NodeSet) -> Value {
    if omitted.is_empty() {
        return whole.child(part);
    }
    Value::parse(&PrunedTree { node: part, omitted }.to_json()).unwrap_or_default()
}

/// Returns a part of an envelope (`data`, `meta`, `error`) without the nulls for omitted members.
pub(crate) fn without_added_nulls(whole: &Value, part: Node<'_>, name: &str, contract: &Contract) -> Value {
    let nulls = contract.added_nulls(name, part).into_iter().collect();
    without(whole, part, &located(part, name, &nulls))
}

/// Finds the nodes at these paths of a part of an envelope, in one walk.
pub(crate) fn located(part: Node<'_>, name: &str, paths: &HashSet<Path>) -> NodeSet {
    let mut omitted = NodeSet::new();
    if !paths.is_empty() {
        let mut path = Path::root();
        path.push_key(name);
        locate(part, &mut path, paths, &mut omitted);
    }
    omitted
}

fn locate(node: Node<'_>, path: &mut Path, paths: &HashSet<Path>, omitted: &mut NodeSet) {
    if paths.contains(path) {
        omitted.insert(node.id());
        return;
    }
    patch::each_inside(node, path, &mut |node, path| locate(node, path, paths, omitted));
}

struct PrunedTree<'a> {
    node: Node<'a>,
    omitted: &'a NodeSet,
}

/// Written by hand: a tree without the omitted values.
impl ToJson for PrunedTree<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let omitted = self.omitted;
        if self.node.is_object() {
            w.object(|w| {
                for (key, node) in self.node.members().filter(|(_, node)| !omitted.contains(&node.id())) {
                    w.field(key, &PrunedTree { node, omitted });
                }
            });
        } else if self.node.is_array() {
            w.array(|w| {
                for node in self.node.elements().filter(|node| !omitted.contains(&node.id())) {
                    w.item(&PrunedTree { node, omitted });
                }
            });
        } else {
            w.node(self.node);
        }
    }
}

// `partial_data`: the part of a failed answer that is usable (rulings R30, R43).

/// Returns the data without violating fields and without containers that are still empty. None if the manifest
/// forbids it, if there are no data yet, or if there are too many violations to list them all.
pub(crate) fn partial_data(rules: &AnswerRules, whole: &Value, data: Node<'_>) -> Option<Value> {
    if !rules.manifest.failure.partial_allowed || !data.is_object() {
        return None;
    }
    let violations = rules.contract.check_data(data).violations;
    // The list ends at the limit, so that fields that violate the contract could be left in.
    if violations.len() >= MAX_VIOLATIONS {
        return None;
    }
    let mut omitted = violating(data, &violations);
    let has_begun = collect_begun(data, &mut omitted);
    has_begun.then(|| without(whole, data, &omitted))
}

/// Returns the values that violate the contract. An absent field is not a value.
fn violating(data: Node<'_>, violations: &[Violation]) -> NodeSet {
    let paths = violations.iter().filter_map(|violation| violation.path.parse::<Path>().ok());
    located(data, "data", &paths.filter(|path| path.depth() > 1).collect())
}

/// Omits open containers and strings without content. Returns whether the node itself is retained.
fn collect_begun(node: Node<'_>, omitted: &mut NodeSet) -> bool {
    if node.is_complete() {
        return true;
    }
    let inner: Vec<Node<'_>> = node.members().map(|(_, member)| member).chain(node.elements()).collect();
    let retained = inner.into_iter().filter(|inner| collect_begun(*inner, omitted)).count();
    let is_retained = retained > 0 || node.as_str().is_some_and(|text| !text.is_empty());
    if !is_retained {
        omitted.insert(node.id());
    }
    is_retained
}

// The meta of a reply, repaired.

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
    /// The confidence that the evidence gives, if there is any.
    pub(crate) confidence: Option<f64>,
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
            let confidence = fill.confidence.unwrap_or(DEFAULT_CONFIDENCE);
            self.confidence = Some(filled(RepairRule::FillConfidence, "confidence", &confidence, ledger));
        }
        if self.risk.is_none() {
            self.risk = Some(filled(RepairRule::FillRisk, "risk", Risk::Medium.as_str(), ledger));
        }
        if self.explain.is_none() {
            let text = default_explain(fill.rationale, fill.responsibility);
            self.explain = Some(filled(RepairRule::FillExplain, "explain", text, ledger));
        }
        value(&self)
    }

    fn tidy_explain(&mut self, ledger: &mut Ledger) {
        let Some(before) = self.explain.clone() else { return };
        let Some(text) = before.as_str() else { return };
        let trimmed = text.trim();
        let tidy = tidy(text);
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
        confidence: None,
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
            node.as_str().is_none_or(|text| *name != "explain" || tidy(text) == text)
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

    #[test]
    fn keeps_text_at_limit() {
        let text = "é".repeat(280);
        assert_eq!(tidy(&text), text);
        assert_eq!(tidy(&format!("{text}é")).chars().count(), 280);
    }

    #[test]
    fn truncates_between_graphemes() {
        let family = "👨‍👩‍👧";
        let text = format!("{}{family}", "a".repeat(278));
        assert_eq!(tidy(&text), "a".repeat(278));
    }

    #[test]
    fn splits_single_grapheme_over_limit() {
        let text = format!("e{}", "\u{301}".repeat(400));
        assert_eq!(tidy(&text).chars().count(), 280);
    }

    #[test]
    fn tidy_is_idempotent() {
        for text in ["  spaced  ", &format!("{} b", "a".repeat(279)), &"👨‍👩‍👧".repeat(200)] {
            assert_eq!(tidy(tidy(text)), tidy(text));
        }
    }

    #[test]
    fn absent_explain_comes_from_rationale_or_responsibility() {
        assert_eq!(default_explain(Some(&"r".repeat(300)), "Answer").len(), 200);
        assert_eq!(default_explain(Some(" \n"), "Answer"), "Answer");
        assert_eq!(default_explain(None, "Answer"), "Answer");
    }

    /// Returns the path and the size of each entry for dropped members with these keys, whose values have three bytes.
    fn dropped(keys: &[String]) -> Vec<(String, String)> {
        let value = Value::parse("123").unwrap();
        let mut ledger = Ledger::default();
        ledger.note_dropped(keys.iter().map(|key| (key.as_str(), value.node())));
        let entries = ledger.into_entries().into_iter();
        entries.map(|one| (one.path, one.before.unwrap_or_default().to_string())).collect()
    }

    fn own(key: &str) -> (String, String) {
        (key.to_owned(), "3".to_owned())
    }

    #[test]
    fn first_eight_dropped_members_have_an_entry_of_their_own() {
        let keys: Vec<String> = (0..10).map(|number| format!("k{number}")).collect();
        let first: Vec<_> = keys[..8].iter().map(|key| own(key)).collect();
        assert_eq!(dropped(&keys[..8]), first);
        assert_eq!(dropped(&keys), [first, vec![(String::new(), "6".to_owned())]].concat());
    }

    #[test]
    fn dropped_member_with_a_long_key_is_one_of_the_rest() {
        let keys = ["a".repeat(MAX_KEY), "b".repeat(MAX_KEY + 1), "c".to_owned()];
        assert_eq!(dropped(&keys), [own(&keys[0]), own("c"), own("")]);
    }

    #[test]
    fn leaves_the_rest_as_written() {
        let value = Value::parse(r#"{"a": 1.50, "b": [1, 2, 3], "c": "x"}"#).unwrap();
        let omitted = [value.get("c").unwrap().id(), value.pointer("/b/1").unwrap().id()].into();
        assert_eq!(without(&value, value.node(), &omitted).to_string(), r#"{"a":1.50,"b":[1,3]}"#);
    }

    const FILL: Fill<'static> =
        Fill { confidence: None, rationale: None, responsibility: "Sorts.", requires_confidence: false };

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
