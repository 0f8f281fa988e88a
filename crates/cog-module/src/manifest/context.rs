//! Reads `context` (docs/spec/context.md).

use std::ops::Range;

use cog_spec::{AcceptedContext, ContextRule, ContextTtl, EmittedContext};

use super::fields::{Fields, is_within, set};
use crate::{
    Rule,
    diagnostic::shown,
    yaml::{Content, Node},
};

const FORK_OR_MAIN: &[&str; 2] = &["fork", "main"];

/// The maximum length of the name of a type.
const MAX_NAME: usize = 64;

/// The file of a schema that the manifest names, and where it names it.
pub(crate) struct ContextSchema {
    /// The position of the schema in the document.
    pub(crate) pointer: String,
    pub(crate) file: String,
    pub(crate) span: Range<usize>,
}

/// Reads `context`, a keyword or an object with `mode` (ruling R10).
pub(super) fn read(fields: &Fields<'_>, rule: &mut ContextRule) {
    let Some(node) = fields.node("context") else { return };
    let Content::Map(_) = node.content else {
        return set(&mut rule.fork, fields.either("context", FORK_OR_MAIN));
    };
    fields.within("context", node, |f| {
        set(&mut rule.fork, f.either("mode", FORK_OR_MAIN));
        rule.accepts = items(f, "accepts", accepted, |it| &it.name);
        rule.emits = items(f, "emits", emitted, |it| &it.name);
    });
}

/// Returns the schema files of a manifest that was read without errors.
pub(crate) fn schemas(root: &Node, rule: &ContextRule) -> Vec<ContextSchema> {
    let accepts = rule.accepts.iter().map(|it| ("accepts", &it.name, &it.schema));
    let emits = rule.emits.iter().map(|it| ("emits", &it.name, &it.schema));
    let schemas = accepts.chain(emits).filter_map(|(list, name, file)| {
        Some(ContextSchema {
            pointer: cog_schema::context_pointer(list, name),
            file: file.clone()?,
            span: span_of_schema(root, list, name),
        })
    });
    schemas.collect()
}

fn span_of_schema(root: &Node, list: &str, name: &str) -> Range<usize> {
    let items = root.get("context").and_then(|context| context.get(list)).map(|list| &list.content);
    let Some(Content::List(items)) = items else { return 0..0 };
    let item = items.iter().find(|item| {
        item.get("type").is_some_and(|kind| matches!(&kind.content, Content::Text(text) if text == name))
    });
    item.and_then(|item| item.get("schema")).map_or(0..0, |node| node.span.clone())
}

/// Reads a list of declarations, each with a type of its own.
fn items<T>(
    fields: &Fields<'_>,
    key: &'static str,
    read: fn(&Fields<'_>, String) -> T,
    name_of: fn(&T) -> &String,
) -> Vec<T> {
    let mut items: Vec<T> = Vec::new();
    for node in fields.list(key).unwrap_or_default() {
        if !matches!(node.content, Content::Map(_)) {
            fields.wrong_type(key, node, "a list of mappings, each with `type`");
            continue;
        }
        let mut item = None;
        fields.within(key, node, |f| item = type_name(f).map(|name| read(f, name)));
        let Some(item) = item else { continue };
        if items.iter().any(|other| name_of(other) == name_of(&item)) {
            let message = format!("`context.{key}` declares the type `{}` twice", shown(name_of(&item)));
            fields.error_in(node, Rule::KeyValue, message);
            continue;
        }
        items.push(item);
    }
    items
}

fn type_name(fields: &Fields<'_>) -> Option<String> {
    let name = fields.required_text("type")?;
    let is_name = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !is_name {
        let message = format!(
            "`{}` is not a valid type of context: use at most {MAX_NAME} letters, digits, `_` and `-`",
            shown(&name)
        );
        let help = format!("The types of the specification are {}.", ContextRule::TYPES.join(", "));
        fields.error_at("type", Rule::KeyValue, message, Some(help));
    }
    is_name.then_some(name)
}

fn accepted(fields: &Fields<'_>, name: String) -> AcceptedContext {
    AcceptedContext {
        name,
        required: fields.flag("required").unwrap_or_default(),
        max_turns: fields.integer("max_turns", 0),
        fields: fields.texts("fields"),
        schema: schema_file(fields),
        ttl: fields.integer("ttl", 0),
        from_module: fields.text("from_module"),
    }
}

fn emitted(fields: &Fields<'_>, name: String) -> EmittedContext {
    EmittedContext {
        name,
        ttl: fields.integer("ttl", -1).map_or_else(ContextTtl::default, ContextTtl::from_seconds),
        key_pattern: key_pattern(fields).unwrap_or_else(|| EmittedContext::DEFAULT_KEY.to_owned()),
        schema: schema_file(fields),
    }
}

fn schema_file(fields: &Fields<'_>) -> Option<String> {
    let text = fields.text("schema")?;
    let file = text.strip_prefix("./").unwrap_or(&text);
    let is_file_name = is_within(file) && !file.contains(['/', '\\']);
    if !is_file_name {
        let message = format!("`{}` is not a file in the directory of the module", shown(&text));
        let help = "Write the name of a JSON Schema file next to the manifest.".to_owned();
        fields.error_at("schema", Rule::KeyValue, message, Some(help));
    }
    is_file_name.then(|| file.to_owned())
}

/// Reads a key pattern: text with placeholders.
fn key_pattern(fields: &Fields<'_>) -> Option<String> {
    let pattern = fields.text("key_pattern")?;
    let unknown = pattern.match_indices("${").find_map(|(at, _)| {
        let rest = pattern.get(at..).unwrap_or_default();
        let is_known = EmittedContext::PLACEHOLDERS.iter().any(|known| rest.starts_with(known));
        (!is_known).then(|| rest.split_inclusive('}').next().unwrap_or(rest))
    });
    let Some(unknown) = unknown else { return Some(pattern) };
    let message = format!("`key_pattern` has the unknown placeholder `{}`", shown(unknown));
    let known = EmittedContext::PLACEHOLDERS;
    let near = crate::diagnostic::nearest(unknown, known.iter().copied());
    let help =
        near.map_or_else(|| format!("Use {}.", known.join(", ")), |near| format!("Did you mean `{near}`?"));
    fields.error_at("key_pattern", Rule::KeyValue, message, Some(help));
    None
}
