//! The context that an answer emits (docs/spec/context.md).

use cog_json::{Node, Value};
use cog_schema::{Violation, nearest};
use cog_spec::{ContextRule, EmittedContext};

use crate::{AnswerRules, error, repair::trim};

/// The member of an envelope with the emitted context.
const MEMBER: &str = "_emitted_context";

/// The context that an answer emits, and its violations.
#[derive(Default)]
pub(super) struct Emitted {
    /// None if the answer emits none.
    pub(super) context: Option<Value>,
    pub(super) violations: Vec<Violation>,
}

/// Reads and checks the emitted context of a reply. What a module emits that declares none is not part of its answer.
pub(super) fn read(rules: &AnswerRules, reply: &Value) -> Emitted {
    let declared = &rules.manifest.context.emits;
    let Some(node) = reply.get(MEMBER).filter(|node| !declared.is_empty() && !node.is_null()) else {
        return Emitted::default();
    };
    if !node.is_object() {
        let message = format!("found {}; allowed: an object", error::named(node.kind()));
        return Emitted { violations: vec![error::violation(MEMBER, "type", message)], context: None };
    }
    let members = || node.members().filter(|(_, member)| !member.is_null());
    let mut violations: Vec<Violation> =
        members().filter_map(|(name, _)| undeclared(declared, name)).collect();
    violations.extend(too_large(node));
    if !violations.is_empty() {
        return Emitted { violations, context: None };
    }
    let mut context = serde_json::Map::new();
    for (name, member) in members() {
        let member = without_nulls(rules, reply, name, member);
        violations.extend(rules.contract.check_emitted(name, member.node()));
        context.insert(name.to_owned(), member.to_serde());
    }
    let context = (!context.is_empty()).then(|| Value::from(serde_json::Value::Object(context)));
    Emitted { context, violations }
}

/// Removes the nulls that the dialect of the request forces the model to write.
fn without_nulls(rules: &AnswerRules, reply: &Value, name: &str, member: Node<'_>) -> Value {
    if !rules.dialect.adds_nulls() {
        return reply.child(member);
    }
    let nulls = rules.contract.added_nulls_of_emitted(name, member).into_iter().collect();
    trim::without(reply, member, &trim::located(member, name, &nulls))
}

fn undeclared(declared: &[EmittedContext], name: &str) -> Option<Violation> {
    let names = || declared.iter().map(|emitted| emitted.name.as_str());
    if names().any(|known| known == name) {
        return None;
    }
    let message =
        format!("the module does not declare this type; allowed: {}", names().collect::<Vec<_>>().join(", "));
    let shown: String = name.chars().take(64).collect();
    let violation = error::violation(&format!("{MEMBER}.{shown}"), "context", message);
    let suggestion = nearest(name, names()).map(|near| format!("Did you mean `{near}`?"));
    Some(Violation { suggestion, ..violation })
}

fn too_large(node: Node<'_>) -> Option<Violation> {
    let bytes = node.to_string().len();
    (bytes > ContextRule::MAX_BYTES).then(|| {
        let message = format!("found {bytes} bytes; allowed: at most {}", ContextRule::MAX_BYTES);
        error::violation(MEMBER, "size", message)
    })
}
