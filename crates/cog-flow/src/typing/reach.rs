//! Finds the branches that no condition reaches, by the values that the schemas allow.

use std::collections::HashMap;

use cog_module::Rule;
use cog_rules::{Cases, Operand, StaticType, Values, values};

use super::{Sources, misfits};
use crate::{
    Condition, Finding, Selection, Source,
    finding::{FindingLocation, Findings},
};

/// The maximum number of rules that are reported because they never decide. To explain each, all rules before it are compared.
const MAX_UNREACHED: usize = 20;

/// Returns the finding about a condition that is never true; `effect` is what happens then.
pub(super) fn check(
    pointer: &str,
    condition: &Condition,
    document: &StaticType<'_>,
    effect: &str,
) -> Option<Finding> {
    let cases =
        Cases::from_expression(condition.root(), true, &|operand| known("", condition, document, operand));
    cases.is_empty().then(|| never(pointer, condition, document, effect))
}

/// A rule of the routing.
struct RoutingRule<'r> {
    /// Its index in `routing`.
    index: usize,
    condition: Option<&'r Condition>,
    document: RuleDocument<'r>,
}

/// What `$` is in a rule.
#[derive(Clone)]
struct RuleDocument<'r> {
    /// Rules with the same sources have the same name.
    name: String,
    known: StaticType<'r>,
}

impl RoutingRule<'_> {
    /// Returns the cases in which the rule decides, or those in which it does not.
    fn cases(&self, decides: bool) -> Cases {
        match self.condition {
            Some(condition) => Cases::from_expression(condition.root(), decides, &|operand| {
                known(&self.document.name, condition, &self.document.known, operand)
            }),
            None if decides => Cases::every(),
            None => Cases::never(),
        }
    }
}

/// Why a rule never decides.
#[derive(Debug, PartialEq, Eq)]
enum Reason {
    NeverTrue,
    /// The rule with this index is always true.
    After(usize),
    /// The rule with this index is true whenever this one is.
    Within(usize),
    /// One of the rules before it is always true.
    Covered,
}

/// Adds the findings about the rules of a routing: their conditions, and, if all of them are valid, rules that never decide.
pub(super) fn rules(sources: &Sources<'_>, findings: &mut Findings) {
    let mut documents = Documents::default();
    let mut rules = Vec::new();
    let mut is_valid = sources.plan.is_complete;
    for route in &sources.plan.routes {
        if findings.is_enough() {
            return;
        }
        let document = documents.document(sources, route.from.as_ref());
        let index = route.index;
        let condition = route.condition.as_ref();
        let invalid = condition
            .map(|condition| misfits(&condition_of(index), condition, &document.known))
            .unwrap_or_default();
        is_valid &= invalid.is_empty();
        findings.extend(invalid);
        rules.push(RoutingRule { index, condition, document });
    }
    if is_valid {
        findings.extend(unreached(&rules).into_iter().map(|(rule, reason)| finding(rule, &reason)));
    }
}

fn finding(rule: &RoutingRule<'_>, reason: &Reason) -> Finding {
    match (reason, rule.condition) {
        (Reason::NeverTrue, Some(condition)) => {
            never(&condition_of(rule.index), condition, &rule.document.known, "this rule never decides")
        }
        (reason, _) => covered(rule.index, reason),
    }
}

/// What `$` is in the rules of a routing, once for all rules that read the same sources.
#[derive(Default)]
struct Documents<'s, 'c>(HashMap<Option<&'s [Source]>, RuleDocument<'c>>);

impl<'s, 'c> Documents<'s, 'c> {
    fn document(&mut self, sources: &Sources<'c>, from: Option<&'s Selection>) -> RuleDocument<'c> {
        let name = self.0.len().to_string();
        let document = self.0.entry(from.map(|from| from.sources.as_slice()));
        document.or_insert_with(|| RuleDocument { name, known: sources.judged(from) }).clone()
    }
}

fn condition_of(rule: usize) -> String {
    format!("/routing/{rule}/condition")
}

/// Returns the rules that never decide.
fn unreached<'a, 'r>(rules: &'a [RoutingRule<'r>]) -> Vec<(&'a RoutingRule<'r>, Reason)> {
    let mut unreached = Vec::new();
    let mut remaining = Cases::every();
    // The rules so far, each with the cases in which it does not decide.
    let mut earlier: Vec<(usize, Cases)> = Vec::new();
    for rule in rules {
        if unreached.len() == MAX_UNREACHED {
            break;
        }
        let decides = rule.cases(true);
        let passes = rule.cases(false);
        if decides.is_empty() {
            unreached.push((rule, Reason::NeverTrue));
        } else if remaining.and(&decides).is_empty() {
            unreached.push((rule, reason(&decides, &earlier)));
        }
        remaining = remaining.and(&passes);
        earlier.push((rule.index, passes));
    }
    unreached
}

fn reason(decides: &Cases, earlier: &[(usize, Cases)]) -> Reason {
    if let Some((index, _)) = earlier.iter().find(|(_, passes)| passes.is_empty()) {
        return Reason::After(*index);
    }
    match earlier.iter().find(|(_, passes)| passes.and(decides).is_empty()) {
        Some((index, _)) => Reason::Within(*index),
        None => Reason::Covered,
    }
}

/// Returns the name of an operand, and the values that it can have.
fn known(
    prefix: &str,
    condition: &Condition,
    document: &StaticType<'_>,
    operand: &Operand,
) -> (String, Values) {
    // Rules with other sources have another `$`, and the prefix keeps their paths apart.
    (format!("{prefix}{}", condition.name_of(operand)), values(document, &operand.content))
}

fn never(pointer: &str, condition: &Condition, document: &StaticType<'_>, effect: &str) -> Finding {
    let operands = condition.operands();
    let help = match operands.as_slice() {
        [operand] => {
            let text = condition.text().get(operand.range.clone()).unwrap_or_default();
            format!("By the schemas, `{text}` is {}.", values(document, &operand.content))
        }
        [] => "Compare a value of the results, such as `$.meta.confidence >= 0.8`.".to_owned(),
        _ => "Compare the condition with the values that the schemas allow.".to_owned(),
    };
    let location = FindingLocation::composition(pointer);
    let message = format!("the condition is never true: {effect}");
    Finding::warning(Rule::CompositionCondition, location, message).suggest(help)
}

/// Returns the finding about a rule that earlier ones leave nothing to decide.
fn covered(index: usize, reason: &Reason) -> Finding {
    let (reason, help) = match reason {
        Reason::After(rule) => {
            (format!("rule {} before it is always true", rule + 1), "Move it before that rule, or remove it.")
        }
        Reason::Within(rule) => (
            format!("rule {} before it is true whenever this one is", rule + 1),
            "Move it before that rule, or remove it.",
        ),
        Reason::NeverTrue | Reason::Covered => (
            "one of the rules before it is always true".to_owned(),
            "Remove it, or narrow the rules before it.",
        ),
    };
    let location = FindingLocation::composition(format!("/routing/{index}"));
    let message = format!("this rule never decides: {reason}");
    Finding::warning(Rule::CompositionCondition, location, message).suggest(help)
}

#[cfg(test)]
mod tests;
