//! Compares a part of two contracts, change by change.
//!
//! A change is compatible only with a proof that no value is lost, and breaking only with a value that shows it: valid before the
//! change and not after it, or for an answer the other way around. Otherwise it is unknown.

mod candidates;
mod changes;
mod counterexample;

use cog_json::Value as Tree;
use serde_json::{Map, Value};

use self::{
    changes::{Change, list_changes},
    counterexample::{Judge, Verdict},
};
use crate::{
    contract::Contract,
    subschema::{reference, referred},
};

/// A part of a contract that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparedPart {
    /// What callers send: the new contract must accept what the old one accepted.
    Input,
    /// What readers get: the old contract must accept what the new one accepts.
    Data,
    /// As the data.
    Meta,
    /// As the data.
    Error,
}

impl ComparedPart {
    /// Every part.
    pub const ALL: [Self; 4] = [Self::Input, Self::Data, Self::Meta, Self::Error];

    /// Returns its name in `schema.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Data => "data",
            Self::Meta => "meta",
            Self::Error => "error",
        }
    }
}

/// What a change of a schema does to those who rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaEffect {
    /// The schemas accept the same values.
    None,
    /// No value is lost.
    Compatible,
    /// A value is lost, and there is an example.
    Breaking,
    /// Not decided.
    Unknown,
}

/// One change between two schemas.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaChange {
    /// The field, as a path in which `[]` is any element and `*` any other key: `data.issues[].title`.
    pub path: String,
    /// What changed, for example `required_added` or `maximum_changed`.
    pub kind: String,
    /// What it does.
    pub effect: SchemaEffect,
    /// The value of the part that shows it, if it is breaking.
    pub example: Option<Tree>,
    /// The value of the keyword before the change.
    pub old: Option<Value>,
    /// The value of the keyword after it.
    pub new: Option<Value>,
}

/// The maximum number of changes that are judged one by one.
const MAX_JUDGED: usize = 64;

impl Contract {
    /// Returns the changes from a part of this contract to the same part of a newer one. A part that a contract does not have
    /// accepts every value.
    pub fn changes_to(&self, newer: &Contract, part: ComparedPart) -> Vec<SchemaChange> {
        Comparison::new(self, newer, part).changes()
    }
}

/// Both documents in one, so that the references of both resolve, and a copy of the old one for single changes.
struct Comparison {
    part: ComparedPart,
    document: Value,
    old: String,
    new: String,
}

impl Comparison {
    fn new(old: &Contract, new: &Contract, part: ComparedPart) -> Self {
        let mut members = Map::new();
        members.insert(OLD.to_owned(), moved(old, OLD));
        members.insert(NEW.to_owned(), moved(new, NEW));
        members.insert(EDITED.to_owned(), moved(old, EDITED));
        let mut comparison = Self {
            part,
            document: Value::Object(members),
            old: comparison_pointer(old, part, OLD),
            new: comparison_pointer(new, part, NEW),
        };
        comparison.add_absent_parts();
        comparison
    }

    /// A part that is absent accepts every value.
    fn add_absent_parts(&mut self) {
        for side in [OLD, NEW, EDITED] {
            if let Some(members) = self.document.get_mut(side).and_then(Value::as_object_mut) {
                members.insert(ABSENT.to_owned(), Value::Bool(true));
            }
        }
    }

    fn changes(&self) -> Vec<SchemaChange> {
        let changes = list_changes(&self.document, &self.old, &self.new, self.part.name());
        if changes.iter().all(|change| change.edit.is_none()) {
            return changes.into_iter().map(|change| described(change, Verdict::Equal)).collect();
        }
        let whole = self.judge_all();
        let mut judged = Vec::with_capacity(changes.len());
        for (index, change) in changes.into_iter().enumerate() {
            let verdict = self.judge_one(&change, &whole, index < MAX_JUDGED);
            judged.push(described(change, verdict));
        }
        self.with_remainder(judged, whole.verdict)
    }

    /// Judges a change: by itself, unless all of them together are known to be harmless.
    fn judge_one(&self, change: &Change, whole: &Whole, is_within_limit: bool) -> Verdict {
        let Some(edit) = &change.edit else { return Verdict::Equal };
        if matches!(whole.verdict, Verdict::Equal | Verdict::Accepted) {
            return whole.verdict.clone();
        }
        let mut document = self.document.clone();
        if !is_within_limit || !edit.apply(&mut document) {
            return Verdict::Unknown;
        }
        let Some(judge) = Judge::new(&document) else { return Verdict::Unknown };
        let edited = self.old.replacen(OLD, EDITED, 1);
        // The other changes may allow again what this one excludes, so the complete contracts must agree.
        let (outer, inner) = self.outer_and_inner(&self.new);
        let (edited_outer, edited_inner) = self.outer_and_inner(&edited);
        let Some(complete) = judge.pair(outer, inner) else { return Verdict::Unknown };
        match judge.verdict(edited_outer, edited_inner, Some(&complete)) {
            Verdict::Unknown if self.part != ComparedPart::Input => self.contributes(&judge, &edited, whole),
            verdict => verdict,
        }
    }

    /// Looks for an answer that the old schema refuses for several reasons, and one of them is this change: with it, fewer remain.
    fn contributes(&self, judge: &Judge<'_>, edited: &str, whole: &Whole) -> Verdict {
        let mut refused = whole.refused.iter();
        let shown = refused.find(|value| {
            let errors = judge.errors(edited, value).zip(judge.errors(&self.old, value));
            errors.is_some_and(|(with, without)| with < without)
        });
        shown.cloned().map_or(Verdict::Unknown, Verdict::Refused)
    }

    /// Judges all changes together.
    fn judge_all(&self) -> Whole {
        let Some(judge) = Judge::new(&self.document) else {
            return Whole { verdict: Verdict::Unknown, refused: Vec::new() };
        };
        let (outer, inner) = self.outer_and_inner(&self.new);
        let (verdict, refused) = judge.judge(outer, inner, None);
        let is_equal = verdict == Verdict::Accepted && judge.verdict(inner, outer, None) == Verdict::Accepted;
        Whole { verdict: if is_equal { Verdict::Equal } else { verdict }, refused }
    }

    /// Returns the pointers of the schema that must accept every value of the other one, and of the other one.
    fn outer_and_inner<'a>(&'a self, after: &'a str) -> (&'a str, &'a str) {
        match self.part {
            ComparedPart::Input => (after, &self.old),
            ComparedPart::Data | ComparedPart::Meta | ComparedPart::Error => (&self.old, after),
        }
    }

    /// Adds the verdict on all changes together where no single one shows it.
    fn with_remainder(&self, mut changes: Vec<SchemaChange>, whole: Verdict) -> Vec<SchemaChange> {
        let has = |effect| changes.iter().any(|change| change.effect == effect);
        let is_shown = match whole {
            Verdict::Refused(_) => has(SchemaEffect::Breaking),
            Verdict::Unknown => has(SchemaEffect::Unknown) || has(SchemaEffect::Breaking),
            Verdict::Equal | Verdict::Accepted => true,
        };
        if !is_shown {
            let all = Change::without_edit(self.part.name(), "schema_changed");
            changes.push(described(all, whole));
        }
        changes
    }
}

/// All changes together.
struct Whole {
    verdict: Verdict,
    /// The values that the outer schema refuses, the shortest first.
    refused: Vec<Tree>,
}

const OLD: &str = "old";
const NEW: &str = "new";
const EDITED: &str = "edited";
/// The member for a part that a document does not have.
const ABSENT: &str = "absent part";

fn comparison_pointer(contract: &Contract, part: ComparedPart, side: &str) -> String {
    let found = match part {
        ComparedPart::Input => contract.input.as_ref(),
        ComparedPart::Data => contract.data.as_ref(),
        ComparedPart::Meta => contract.meta.as_ref(),
        ComparedPart::Error => contract.error.as_ref(),
    };
    found.map_or_else(|| format!("/{side}/{ABSENT}"), |found| format!("/{side}{}", found.pointer))
}

/// Returns the document of a contract with references that resolve when it is a member of another document.
fn moved(contract: &Contract, side: &str) -> Value {
    let mut document = contract.document().clone();
    for pointer in &contract.document.schemas {
        let Some(schema) = document.pointer_mut(pointer) else { continue };
        let Some(target) = referred(schema) else { continue };
        if let Some(members) = schema.as_object_mut() {
            members.insert("$ref".to_owned(), Value::from(reference(&format!("/{side}{target}"))));
        }
    }
    document
}

fn described(change: Change, verdict: Verdict) -> SchemaChange {
    let (effect, example) = match verdict {
        Verdict::Equal => (SchemaEffect::None, None),
        Verdict::Accepted => (SchemaEffect::Compatible, None),
        Verdict::Refused(example) => (SchemaEffect::Breaking, Some(example)),
        Verdict::Unknown => (SchemaEffect::Unknown, None),
    };
    SchemaChange { path: change.path, kind: change.kind, effect, example, old: change.old, new: change.new }
}

#[cfg(test)]
mod tests;
