//! Finds the branches that no condition reaches, by the values that the schemas allow.

use std::collections::HashMap;

use cog_module::Rule;

use super::{Known, Sources, values::values};
use crate::{
    Condition, Finding, Selection, Source,
    condition::{Cases, Content, Expression, Values},
    finding::{FindingLocation, Findings},
};

/// The maximum number of rules that are reported because they never decide. To explain each, all rules before it are compared.
const MAX_UNREACHED: usize = 20;

/// Returns the finding about a condition that is never true; `effect` is what happens then.
pub(super) fn check(
    pointer: &str,
    condition: &Condition,
    document: &Known<'_>,
    effect: &str,
) -> Option<Finding> {
    let cases = Cases::from_expression(condition.root(), true, &|operand| known("", document, operand));
    cases.is_empty().then(|| never(pointer, condition, document, effect))
}

/// A rule of the routing.
struct RoutingRule<'r> {
    /// Its index in `routing`.
    index: usize,
    condition: Option<&'r Condition>,
    /// What `$` is, and its name: rules with the same sources have the same one.
    document: (String, Known<'r>),
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
    let (mut rules, mut is_valid) = (Vec::new(), sources.plan.is_complete);
    for route in &sources.plan.routes {
        if findings.is_enough() {
            return;
        }
        let document = documents.document(sources, route.from.as_ref());
        let (index, condition) = (route.index, route.condition.as_ref());
        let invalid =
            condition.map(|condition| super::values::check(&condition_of(index), condition, &document.1));
        let invalid = invalid.unwrap_or_default();
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
            never(&condition_of(rule.index), condition, &rule.document.1, "this rule never decides")
        }
        (reason, _) => covered(rule.index, reason),
    }
}

/// What `$` is in the rules of a routing, once for all rules that read the same sources.
#[derive(Default)]
struct Documents<'s, 'c>(HashMap<Option<&'s [Source]>, (String, Known<'c>)>);

impl<'s, 'c> Documents<'s, 'c> {
    fn document(&mut self, sources: &Sources<'c>, from: Option<&'s Selection>) -> (String, Known<'c>) {
        let next = self.0.len();
        let known = self.0.entry(from.map(|from| from.sources.as_slice()));
        known.or_insert_with(|| (format!("{next}"), sources.judged(from))).clone()
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
        let (name, document) = &rule.document;
        let known = |operand: &Content| known(name, document, operand);
        let cases = |value| match rule.condition {
            Some(condition) => Cases::from_expression(condition.root(), value, &known),
            None if value => Cases::every(),
            None => Cases::never(),
        };
        let (decides, passes) = (cases(true), cases(false));
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
    let always = earlier.iter().find(|(_, passes)| passes.is_empty());
    let within = || earlier.iter().find(|(_, passes)| passes.and(decides).is_empty());
    match (always, within()) {
        (Some((index, _)), _) => Reason::After(*index),
        (None, Some((index, _))) => Reason::Within(*index),
        (None, None) => Reason::Covered,
    }
}

/// Returns the name of an operand, and the values that it can have.
fn known(prefix: &str, document: &Known<'_>, operand: &Content) -> (String, Values) {
    let name = match operand {
        Content::Path(path) => format!("{prefix}{path}"),
        Content::Length(path) => format!("{prefix}{path} length"),
        Content::Literal(_) => String::new(),
    };
    (name, values(document, operand))
}

fn never(pointer: &str, condition: &Condition, document: &Known<'_>, effect: &str) -> Finding {
    let mut operands = Vec::new();
    operands_of(condition.root(), &mut operands);
    let help = match operands.as_slice() {
        [(text, operand)] => {
            let text = condition.text().get(text.clone()).unwrap_or_default();
            format!("By the schemas, `{text}` is {}.", values(document, operand))
        }
        [] => "Compare a value of the results, such as `$.meta.confidence >= 0.8`.".to_owned(),
        _ => "Compare the condition with the values that the schemas allow.".to_owned(),
    };
    let location = FindingLocation::composition(pointer);
    let message = format!("the condition is never true: {effect}");
    Finding::warning(Rule::CompositionCondition, location, message).suggest(help)
}

/// Adds the operands that are not literals, each once.
fn operands_of<'e>(expression: &'e Expression, found: &mut Vec<(std::ops::Range<usize>, &'e Content)>) {
    let mut add = |operand: &'e crate::condition::Operand| {
        let is_new = found.iter().all(|(_, known)| **known != operand.content);
        if is_new && !matches!(operand.content, Content::Literal(_)) {
            found.push((operand.range.clone(), &operand.content));
        }
    };
    match expression {
        Expression::Any(parts) | Expression::All(parts) => {
            parts.iter().for_each(|part| operands_of(part, found));
        }
        Expression::Not(inner) => operands_of(inner, found),
        Expression::Exists(operand) | Expression::Truth(operand) => add(operand),
        Expression::Compare(left, _, right) => [left, right].into_iter().for_each(add),
    }
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
    Finding::warning(Rule::CompositionCondition, location, message).suggest(help.to_owned())
}

#[cfg(test)]
mod tests;
