//! Repairs the form of an answer, never its meaning (rulings R24–R26).
//!
//! Nulls that a strict dialect forces the model to write are dropped without a repair: a null member of the envelope,
//! and a null for an omitted member (docs/spec/modules.md).

pub(crate) mod reply_meta;

use std::collections::{BTreeSet, HashSet};

use cog_json::{Deviation, Node, NodeId, Path, ToJson, Value, Writer};
use cog_schema::{Contract, MAX_VIOLATIONS, Violation};
use cog_spec::{Meta, Repair, RepairRule};
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
}
