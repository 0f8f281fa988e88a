//! The context of one run: read from its input, its composition and the store, and stored when it succeeds.

use std::{sync::Arc, time::Duration};

use cog_json::{Kind, Limits, Node, Object, Value, Writer};
use cog_module::Module;
use cog_schema::{Violation, nearest};
use cog_spec::{
    AcceptedContext, Code, ContextRule, ErrorBody, Manifest, Warning, WarningCode, is_secret_list_name,
    is_secret_name, mask_secrets,
};
use cog_store::StoreError;

use super::{AUDIT, ContextScope, ContextStore, store::RunKeys};
use crate::{clock, error, modules::Modules};

/// The context of one run.
pub(crate) struct InputContext {
    /// `_context` as the model receives it; none if the run has none.
    pub(crate) value: Option<Value>,
    pub(crate) sink: ContextSink,
}

/// What the context of a run is read from.
pub(crate) struct ContextSources<'a> {
    /// What modules have emitted.
    pub(crate) store: &'a ContextStore,
    /// Finds the manifest of a module that has emitted a context.
    pub(crate) modules: &'a Modules,
    pub(crate) owner: Option<&'a str>,
    pub(crate) session_id: &'a str,
    /// What the modules of a composition share.
    pub(crate) scope: Option<&'a ContextScope>,
}

/// Stores what a run emits.
pub(crate) struct ContextSink {
    manifest: Arc<Manifest>,
    keys: RunKeys,
    store: ContextStore,
    scope: Option<ContextScope>,
}

impl InputContext {
    /// Reads the context that a module accepts. `given` is `_context` of the input, and `input` the rest of it.
    ///
    /// # Errors
    /// E1001 for a type that the module does not accept and for a value that violates its schema, E1002 for a required type
    /// that is missing, E1003 if `_context` is not an object, and E1005 if it is too large.
    pub(crate) fn read(
        module: &Module,
        sources: &ContextSources<'_>,
        given: Option<Node<'_>>,
        input: &Value,
    ) -> Result<Self, ErrorBody> {
        let rule = &module.manifest.context;
        if let Some(given) = given {
            check_form(&module.manifest, given)?;
        }
        let sink = ContextSink {
            manifest: Arc::clone(&module.manifest),
            keys: RunKeys::new(sources.owner, sources.session_id, input.clone()),
            store: sources.store.clone(),
            scope: sources.scope.cloned(),
        };
        let mut context = Object::default();
        for accepted in &rule.accepts {
            let found = given.and_then(|given| given.get(&accepted.name)).filter(|value| !value.is_null());
            let found = found.map(|value| (value.to_value(), "input"));
            if let Some((value, source)) = found.or_else(|| sink.read(sources.modules, accepted)) {
                check_value(module, accepted, &value)?;
                let name = &accepted.name;
                let bytes = value.to_string().len();
                let owner = sink.keys.owner();
                tracing::info!(target: AUDIT, module = module.manifest.name, name, source, owner, bytes, "context read");
                context.insert(name.clone(), for_model(accepted, value.node()));
            } else if accepted.required {
                return Err(missing(accepted));
            }
        }
        Ok(Self { value: context.non_empty(), sink })
    }
}

impl ContextSink {
    /// Returns a context of the composition, otherwise one that the named module has stored.
    fn read(&self, modules: &Modules, accepted: &AcceptedContext) -> Option<(Value, &'static str)> {
        let from_module = accepted.from_module.as_deref();
        let in_scope = self.scope.as_ref().and_then(|scope| scope.read(&accepted.name, from_module));
        in_scope.map(|value| (value, "composition")).or_else(|| {
            let value = self.read_stored(modules, accepted, from_module?)?;
            Some((value, "store"))
        })
    }

    fn read_stored(&self, modules: &Modules, accepted: &AcceptedContext, from: &str) -> Option<Value> {
        let manifest = match from == self.manifest.name {
            true => Arc::clone(&self.manifest),
            false => Arc::clone(&modules.load_name(from).ok()?.manifest),
        };
        let emitted = manifest.context.emitted(&accepted.name)?;
        let max_age = accepted.ttl.map(Duration::from_secs);
        self.store.read(&manifest.name, emitted, &self.keys, max_age, clock::now())
    }

    /// Stores what a successful answer emits, and adds it to the composition. Returns a warning for each type that could not
    /// be stored.
    pub(crate) fn add(&self, emitted: Option<&Value>, data: &Value) -> Vec<Warning> {
        if let Some(scope) = &self.scope {
            scope.add(&self.manifest.name, emitted, data);
        }
        let members = emitted.into_iter().flat_map(Value::members);
        let declared =
            members.filter_map(|(name, value)| Some((self.manifest.context.emitted(name)?, value)));
        let failed = declared.filter_map(|(declared, value)| {
            let module = &self.manifest.name;
            let stored = self.store.write(module, declared, &self.keys, &value.to_value(), clock::now());
            stored.err().map(|error| not_stored(&declared.name, &error))
        });
        failed.collect()
    }

    /// Whether an answer has anything to store.
    pub(crate) fn is_needed(&self) -> bool {
        self.scope.is_some() || !self.manifest.context.emits.is_empty()
    }
}

/// Checks that `_context` contains only types that the manifest declares.
fn check_form(manifest: &Manifest, given: Node<'_>) -> Result<(), ErrorBody> {
    let accepts = &manifest.context.accepts;
    if accepts.is_empty() {
        let message = format!("input._context: {} declares no context", manifest.name);
        return Err(ErrorBody::new(Code::InvalidInput, message).suggest(
            "Move the data to other fields of the input, or declare it under `context.accepts` in the manifest.",
        ));
    }
    if !given.is_object() {
        let message = "input._context: must be an object with one member per type of context";
        return Err(ErrorBody::new(Code::TypeMismatch, message));
    }
    let names: Vec<&str> = accepts.iter().map(|accepted| accepted.name.as_str()).collect();
    if let Some((unknown, _)) = given.members().find(|(name, _)| !names.contains(name)) {
        return Err(undeclared(manifest, unknown, nearest(unknown, names.iter().copied())));
    }
    let bytes = given.to_string().len();
    if bytes <= ContextRule::MAX_BYTES {
        return Ok(());
    }
    let message = format!("input._context: {bytes} bytes; at most {} are allowed", ContextRule::MAX_BYTES);
    Err(ErrorBody::new(Code::InputTooLarge, message).suggest("Shorten it, or send fewer turns and fields."))
}

fn undeclared(manifest: &Manifest, name: &str, near: Option<&str>) -> ErrorBody {
    let shown: String = name.chars().take(64).collect();
    let names: Vec<&str> = manifest.context.accepts.iter().map(|accepted| accepted.name.as_str()).collect();
    let message = format!(
        "input._context.{shown}: {} does not accept this type; allowed: {}",
        manifest.name,
        names.join(", ")
    );
    let suggestion = match near {
        Some(near) => format!("Did you mean `{near}`?"),
        None => "Declare it under `context.accepts` in the manifest, or remove it.".to_owned(),
    };
    ErrorBody::new(Code::InvalidInput, message).suggest(suggestion)
}

/// Checks a context against its schema; a conversation without one must be a list of messages.
fn check_value(module: &Module, accepted: &AcceptedContext, value: &Value) -> Result<(), ErrorBody> {
    let violations: Vec<Violation> = module.contract.check_context(&accepted.name, value.node());
    if !violations.is_empty() {
        return Err(error::from_violations(&violations));
    }
    let is_conversation = accepted.name == "conversation_history" && accepted.schema.is_none();
    let are_messages =
        value.is_array() && value.elements().all(|message| message.get("role").is_some_and(Node::is_string));
    if !is_conversation || are_messages {
        return Ok(());
    }
    let message =
        "input._context.conversation_history: must be an array of messages, each with `role` and `content`";
    Err(ErrorBody::new(Code::InvalidInput, message))
}

fn missing(accepted: &AcceptedContext) -> ErrorBody {
    let name = &accepted.name;
    let message =
        format!("input._context.{name}: required by `context.accepts` of the manifest, but missing");
    let suggestion = match &accepted.from_module {
        Some(module) => format!("Run {module} first, or add `{name}` to `_context` of the input."),
        None => format!("Add `{name}` to `_context` of the input."),
    };
    ErrorBody::new(Code::MissingRequiredField, message).suggest(suggestion)
}

fn not_stored(name: &str, error: &StoreError) -> Warning {
    let advice = match error {
        StoreError::OwnerEntries { .. } | StoreError::OwnerBytes { .. } => {
            "; they are removed when they expire"
        }
        _ => "",
    };
    Warning::new(
        WarningCode::ContextNotStored,
        format!("The emitted context `{name}` was not stored: {error}{advice}."),
    )
}

// The form of a context that a model receives: the declared fields and turns, without secrets, and not too long.

/// The maximum length of a string in characters; a longer one is truncated.
pub(super) const MAX_TEXT: usize = 10_000;

/// The string that replaces a secret.
const MASK: &str = "***";

/// Returns a context as the model receives it. Applied to its own result, it changes nothing.
fn for_model(accepted: &AcceptedContext, value: Node<'_>) -> Value {
    let mut text = String::new();
    let w = &mut Writer::compact(&mut text);
    match (&accepted.fields, accepted.max_turns) {
        (Some(fields), _) if value.is_object() => w.object(|w| {
            let declared = value.members().filter(|(name, _)| fields.iter().any(|field| field == name));
            declared.for_each(|(name, member)| write_member(w, name, member));
        }),
        (_, Some(max)) if value.is_array() => {
            let dropped = oldest_turns(value, usize::try_from(max).unwrap_or(usize::MAX));
            w.array(|w| value.elements().skip(dropped).for_each(|message| write_clean(w, message)));
        }
        _ => write_clean(w, value),
    }
    Value::parse_within(text.as_bytes(), Limits::unbounded()).unwrap_or_default()
}

/// Returns a value without secrets, with long texts truncated.
pub(super) fn clean(value: Node<'_>) -> Value {
    for_model(&AcceptedContext::default(), value)
}

fn write_clean(w: &mut Writer<'_>, value: Node<'_>) {
    match value.kind() {
        Kind::String => w.string(&truncated(&mask_secrets(value.as_str().unwrap_or_default()))),
        Kind::Array => w.array(|w| value.elements().for_each(|item| write_clean(w, item))),
        Kind::Object => {
            w.object(|w| value.members().for_each(|(name, member)| write_member(w, name, member)));
        }
        Kind::Null | Kind::Bool | Kind::Number => w.node(value),
    }
}

fn write_member(w: &mut Writer<'_>, name: &str, member: Node<'_>) {
    let w = w.key(name);
    match member.kind() {
        Kind::Null | Kind::Bool => w.node(member),
        _ if is_secret_name(name) => w.string(MASK),
        Kind::Array if is_secret_list_name(name) => w.array(|w| {
            // Numbers in a list of secrets are counts.
            member.elements().for_each(|item| match item.is_string() {
                true => w.string(MASK),
                false => write_clean(w, item),
            });
        }),
        _ => write_clean(w, member),
    }
}

/// Returns how many messages the oldest turns of a conversation have that are too many. A turn is a message of the user and what
/// follows it; without messages of a user, each element is a turn.
fn oldest_turns(messages: Node<'_>, max: usize) -> usize {
    let has_users = messages.elements().any(is_user);
    let starts: Vec<usize> = messages
        .elements()
        .enumerate()
        .filter(|(_, message)| !has_users || is_user(*message))
        .map(|(index, _)| index)
        .collect();
    match starts.len().checked_sub(max) {
        None | Some(0) => 0,
        Some(dropped) => starts.get(dropped).copied().unwrap_or(usize::MAX),
    }
}

fn is_user(message: Node<'_>) -> bool {
    message.get_str("role") == Some("user")
}

/// Returns a string of at most [`MAX_TEXT`] characters, with a note at its end if it is truncated.
fn truncated(text: &str) -> String {
    let length = text.chars().count();
    if length <= MAX_TEXT {
        return text.to_owned();
    }
    let note = format!("… (truncated; {length} characters)");
    let kept = MAX_TEXT - note.chars().count();
    text.chars().take(kept).chain(note.chars()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn shaped(accepted: AcceptedContext, value: Json) -> Json {
        let once = for_model(&accepted, Value::from(value).node());
        assert_eq!(for_model(&accepted, once.node()), once, "applied twice");
        once.to_serde()
    }

    #[test]
    fn numbers_stay_as_they_are() {
        let value =
            Value::parse(r#"{"id":123456789012345678901234567890,"rate":0.10000000000000000001}"#).unwrap();
        assert_eq!(clean(value.node()).to_string(), value.to_string());
    }

    fn message(role: &str, content: &str) -> Json {
        json!({ "role": role, "content": content })
    }

    #[test]
    fn oldest_turns_are_dropped_first() {
        let history = json!([
            message("system", "s"),
            message("user", "1"),
            message("assistant", "a1"),
            message("user", "2"),
            message("assistant", "a2"),
            message("tool", "t2"),
            message("user", "3"),
        ]);
        let of = |max| {
            let accepted = AcceptedContext { max_turns: Some(max), ..AcceptedContext::default() };
            let texts = shaped(accepted, history.clone());
            texts
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["content"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(of(0), [""; 0]);
        assert_eq!(of(1), ["3"]);
        assert_eq!(of(2), ["2", "a2", "t2", "3"]);
        assert_eq!(of(3).len(), 7);
        assert_eq!(of(u64::MAX).len(), 7);
        let accepted = AcceptedContext { max_turns: Some(2), ..AcceptedContext::default() };
        assert_eq!(shaped(accepted, json!([1, 2, 3])), json!([2, 3]));
    }

    #[test]
    fn only_the_declared_fields_remain() {
        let accepted =
            AcceptedContext { fields: Some(vec!["name".to_owned()]), ..AcceptedContext::default() };
        assert_eq!(shaped(accepted, json!({ "name": "Ada", "city": "x" })), json!({ "name": "Ada" }));
    }

    #[test]
    fn secrets_are_masked_and_counts_are_not() {
        let value = json!({
            "profile": { "apiKey": "abc", "password": { "hash": 1 }, "max_tokens": 3, "token": null },
            "notes": ["use sk-abcdefghijklmnopqrstuvwx"],
            "tokens": ["abc", 5, { "id": "x", "pwd": "y" }], "stop_tokens": ["END"],
        });
        let expected = json!({
            "profile": { "apiKey": "***", "password": "***", "max_tokens": 3, "token": null },
            "notes": ["use ***"],
            "tokens": ["***", 5, { "id": "x", "pwd": "***" }], "stop_tokens": ["END"],
        });
        assert_eq!(shaped(AcceptedContext::default(), value), expected);
    }

    #[test]
    fn long_text_is_truncated_at_characters() {
        for length in [MAX_TEXT, MAX_TEXT + 1, 3 * MAX_TEXT] {
            let value = shaped(AcceptedContext::default(), json!("é".repeat(length)));
            let text = value.as_str().unwrap();
            assert!(text.chars().count() <= MAX_TEXT);
            assert_eq!(text.ends_with(&format!("(truncated; {length} characters)")), length > MAX_TEXT);
        }
    }
}
