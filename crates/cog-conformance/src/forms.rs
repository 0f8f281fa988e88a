//! Cases with models that are asked in another form (ruling R91): which can be run, and what must be the same.

use cog_spec::{Form, RationalePlace};
use serde_json::{Map, Value};

use crate::{
    base::{ModuleParts, Reply},
    case::{Case, Step},
};

/// The members of a reply of which each form has a counterpart. Any other concerns the bytes of an envelope, or its meta.
const TRANSLATABLE: [&str; 10] = [
    "data",
    "error",
    "chunk_size",
    "packet_size",
    "usage",
    "when",
    "delay_ms",
    "pause_ms",
    "protocol",
    "model",
];

/// The expectations about what leaves. The others are about requests, of which a form may have more, or about text.
const LEAVING: [&str; 11] = [
    "exit",
    "status",
    "headers",
    "stdout",
    "stdout_members",
    "body",
    "body_members",
    "chunks",
    "kinds",
    "stream",
    "folds",
];

/// What a model states only in an envelope, and the record of what was filled in its place.
const STATED: [&str; 4] = ["confidence", "risk", "explain", "repairs"];

/// The groups that a second call changes: it spends from budgets, and its answer is not cached.
const OF_ONE_CALL: [&str; 2] = ["budgets", "cache"];

/// The groups whose requests name positions in a stream, which differ from form to form.
const OF_POSITIONS: [&str; 1] = ["negotiation"];

/// The cases about a rationale of the first reply: one that is longer than a second call may give, and one of an answer that
/// violates its contract, which is not explained.
const OF_FIRST_RATIONALE: [&str; 2] =
    ["P/a-rationale-of-any-length-comes-back-whole", "H/a-violating-field-is-no-part-of-partial-data"];

/// Returns whether the case has replies that can be translated, and steps that run modules.
pub(crate) fn applies(name: &str, case: &Case, form: &Form) -> bool {
    let group = name.split('/').next().unwrap_or_default();
    let is_of_one_call = OF_ONE_CALL.contains(&group) || OF_FIRST_RATIONALE.contains(&name);
    if form.rationale == RationalePlace::Afterwards && is_of_one_call || OF_POSITIONS.contains(&group) {
        return false;
    }
    let steps = case.all_steps();
    let own = steps.iter().filter_map(|step| match step {
        Step::Command(step) => step.reply.as_ref(),
        _ => None,
    });
    let mut replies = case.reply.iter().chain(&case.replies).chain(own).peekable();
    // In tier exec a model must state its confidence, and a module of the repository may be in it.
    let mut modules = case.module.iter().chain(case.modules.values());
    replies.peek().is_some()
        && replies.all(is_translatable)
        && case.copy.is_empty()
        && !modules.any(ModuleParts::is_exec)
        && steps.iter().all(runs_a_module)
}

fn is_translatable(reply: &Reply) -> bool {
    let is_call = reply.0.contains_key("tool_calls");
    reply.0.iter().all(|(key, value)| match key.as_str() {
        "tool_calls" => true,
        "text" => is_call && value == "",
        key => TRANSLATABLE.contains(&key),
    })
}

fn runs_a_module(step: &Step) -> bool {
    match step {
        Step::Command(step) => step.command.first().is_some_and(|verb| verb == "run"),
        Step::Serve(_) | Step::Request(_) | Step::Socket(_) => true,
        Step::Signal(_) => false,
    }
}

/// Returns the case with what must leave when its models are asked in a form.
pub(crate) fn expecting(case: &Case, form: &Form) -> Case {
    let mut case = case.clone();
    reduce(&mut case.expect, form);
    for step in &mut case.steps {
        match step {
            Step::Command(step) => reduce(&mut step.expect, form),
            Step::Request(step) => reduce(&mut step.expect, form),
            Step::Socket(step) => reduce(&mut step.expect, form),
            Step::Serve(_) | Step::Signal(_) => {}
        }
    }
    case
}

/// Keeps what does not depend on the form.
fn reduce(expect: &mut Map<String, Value>, form: &Form) {
    expect.retain(|key, _| LEAVING.contains(&key.as_str()));
    for key in ["chunks", "kinds"] {
        // How a stream tells its meta and its fields differs; its beginning and its end do not.
        let ends = expect.remove(key).and_then(|tests| match tests {
            Value::Object(tests) => {
                let ends = tests.into_iter().filter(|(test, _)| ["$first", "$last"].contains(&test.as_str()));
                Some(ends.collect::<Map<String, Value>>())
            }
            _ => None,
        });
        if let Some(ends) = ends.filter(|ends| !ends.is_empty()) {
            expect.insert(key.to_owned(), Value::Object(ends));
        }
    }
    for expected in expect.values_mut() {
        forget(expected, &["usage"]);
        if form.is_data() {
            forget_stated(expected);
        }
    }
}

/// Removes what a model states only in an envelope from every `meta`, and from the parts of compositions in it.
fn forget_stated(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.get_mut("meta").into_iter().for_each(|meta| forget(meta, &STATED));
            members.values_mut().for_each(forget_stated);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_stated),
        _ => {}
    }
}

/// Removes the members with these names, at any depth.
fn forget(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !names.contains(&name.as_str()));
            members.values_mut().for_each(|member| forget(member, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget(item, names)),
        _ => {}
    }
}
