//! Translates a schema into a dialect, keyword by keyword.

mod containers;
mod types;

use std::collections::HashSet;

use cog_spec::{Form, Subject};
use serde_json::{Map, Value, json};

use super::{
    Loss, LossKind, MemberCount,
    defs::{Defs, flattened, is_recursive},
    describe,
    parts::{self, PartSchema},
};
use crate::{
    contract::Contract,
    dialect::{MAX_ITEMS, MAX_LENGTH, Profile, Recursion},
    subschema::{children, is_enforced, names_type, referred, token},
};

/// Why a dialect cannot express a schema.
pub(super) type Unsupported = String;

/// The maximum length of a text that explains an answer or an error, in characters, where the schema has none.
const MAX_PROSE: u64 = 600;

/// The maximum nesting, and the maximum number of schemas, of which a document has fewer.
const MAX_DEPTH: usize = 80;
const MAX_VISITED: usize = 10_000;

/// A projection in progress.
pub(super) struct Walk<'a> {
    document: &'a Value,
    profile: &'a Profile,
    defs: Defs,
    lost: Vec<Loss>,
    /// Whether a value that the document accepts is excluded.
    pub(super) is_narrower: bool,
    depth: usize,
    visited: usize,
    /// Whether texts and arrays without a maximum length get one. The arguments of a tool do not: nothing tells that one was cut.
    adds_bounds: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(document: &'a Value, profile: &'a Profile) -> Self {
        Self {
            document,
            profile,
            defs: Defs::default(),
            lost: Vec::new(),
            is_narrower: false,
            depth: 0,
            visited: 0,
            adds_bounds: false,
        }
    }

    pub(super) fn into_lost(mut self) -> Vec<Loss> {
        let mut known = HashSet::new();
        self.lost.retain(|loss| known.insert(loss.clone()));
        self.lost
    }

    /// Projects the root: what the form asks for since v2.2, the data in older formats.
    pub(super) fn root(&mut self, contract: &Contract, form: &Form) -> Result<Value, Unsupported> {
        self.adds_bounds = self.profile.adds_bounds;
        let root = match contract.rules().format.asks_for_envelope() {
            true if form.is_data() => self.data_or_error(contract, form)?,
            true => self.envelope(contract, form)?,
            false => self.data_only(contract)?,
        };
        let mut root = self.with_definitions(root)?;
        self.require_excess(&mut root);
        types::check(&root, &self.profile.limits)?;
        Ok(root)
    }

    /// Projects the input, which must be an object.
    pub(super) fn input(&mut self, contract: &Contract) -> Result<Value, Unsupported> {
        let input = parts::input(contract, &mut self.lost);
        let mut root = self.alone(input)?;
        self.require_excess(&mut root);
        types::check(&root, &self.profile.limits)?;
        self.require_object(&root)?;
        Ok(root)
    }

    fn require_object(&self, root: &Value) -> Result<(), Unsupported> {
        let is_object = root.get("type").is_some_and(|kind| kind == "object");
        match self.profile.closes_objects && !is_object {
            true => Err("the root of the schema is not an object".to_owned()),
            false => Ok(()),
        }
    }

    /// Projects one part, with the definitions that it refers to.
    pub(super) fn alone(&mut self, part: PartSchema) -> Result<Value, Unsupported> {
        let schema = self.part(part)?;
        self.with_definitions(schema)
    }

    /// Adds the definitions that a projected schema refers to.
    fn with_definitions(&mut self, mut root: Value) -> Result<Value, Unsupported> {
        while let Some((target, name)) = self.defs.next() {
            let schema = self.document.pointer(&target).cloned().unwrap_or(Value::Bool(true));
            let projected = self.schema(&schema, &target)?;
            self.defs.add(name, projected);
        }
        let definitions = std::mem::take(&mut self.defs).into_map();
        self.check_recursion(&definitions)?;
        if let Some(members) = root.as_object_mut().filter(|_| !definitions.is_empty()) {
            members.insert("$defs".to_owned(), Value::Object(definitions));
        }
        Ok(root)
    }

    fn check_recursion(&mut self, definitions: &Map<String, Value>) -> Result<(), Unsupported> {
        match self.profile.recursion {
            Recursion::Nowhere if is_recursive(definitions, false) => {
                Err("the schema contains itself".to_owned())
            }
            Recursion::InOptionalMembers if is_recursive(definitions, true) => {
                Err("the schema contains itself in a required member".to_owned())
            }
            Recursion::InOptionalMembers if is_recursive(definitions, false) => {
                self.lose("", "$ref", LossKind::Projected, "recursion is unrolled to a limited depth");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Projects the data, or the choice between the data and an error.
    fn data_or_error(&mut self, contract: &Contract, form: &Form) -> Result<Value, Unsupported> {
        let data = self.data(contract, form)?;
        if !contract.has_error_arm(form) {
            self.require_object(&data)?;
            return Ok(data);
        }
        let error = self.error(contract)?;
        let failure = json!({
            "type": "object",
            "properties": { "error": error },
            "required": ["error"],
            "additionalProperties": false,
        });
        Ok(self.answer_or_error(data, failure))
    }

    fn envelope(&mut self, contract: &Contract, form: &Form) -> Result<Value, Unsupported> {
        let mut meta = parts::meta(contract, &mut self.lost);
        self.confidence(&mut meta);
        let meta = self.part(meta)?;
        let data = self.data(contract, form)?;
        let error = contract.has_error_arm(form).then(|| self.error(contract)).transpose()?;
        let mut success = envelope_of(self.ok(true));
        let parts = match form.subject {
            Subject::Envelope | Subject::Data => [("meta", meta.clone()), ("data", data)],
            Subject::EnvelopeDataFirst => [("data", data), ("meta", meta.clone())],
        };
        for (name, part) in parts {
            add_member(&mut success, name, part);
        }
        if error.is_some() {
            add_member(&mut success, "error", null_type());
        }
        if let Some(emitted) = parts::emitted(contract) {
            add_member(&mut success, "_emitted_context", self.part(emitted)?);
        }
        let Some(error) = error else { return Ok(success) };
        let mut failure = envelope_of(self.ok(false));
        for (name, part) in [("meta", meta), ("data", null_type()), ("error", error)] {
            add_member(&mut failure, name, part);
        }
        Ok(self.answer_or_error(success, failure))
    }

    /// Returns the choice between an answer and an error, in the wrapper of a dialect whose root must be an object.
    fn answer_or_error(&self, success: Value, failure: Value) -> Value {
        let choice = json!({ "anyOf": [success, failure] });
        match self.profile.wrapper() {
            Some(wrapper) => json!({
                "type": "object",
                "properties": { wrapper: choice },
                "required": [wrapper],
                "additionalProperties": false,
            }),
            None => choice,
        }
    }

    /// Returns the schema of `ok` in a success or a failure.
    fn ok(&mut self, value: bool) -> Value {
        if (self.profile.supports)("const", &Value::Bool(value), &Map::new()) {
            return json!({ "type": "boolean", "const": value });
        }
        self.lose("", "const", LossKind::EnforcedLocally, "`ok` is not tied to the choice of data or error");
        json!({ "type": "boolean", "description": format!("Always {value}.") })
    }

    /// Bounds a text that explains an answer or an error, and has no bound of its own.
    fn bound_prose(&mut self, part: &mut PartSchema, name: &str) {
        let pointer = format!("/properties/{name}");
        let Some(Value::Object(prose)) = part.schema.pointer_mut(&pointer) else { return };
        let is_plain = prose.get("type").is_some_and(|kind| kind == "string");
        let is_bounded =
            ["enum", "const", "pattern", "format", "maxLength"].iter().any(|key| prose.contains_key(*key));
        if !self.adds_bounds || !is_plain || is_bounded {
            return;
        }
        prose.insert("maxLength".to_owned(), Value::from(MAX_PROSE));
        let reason = format!(
            "at most {MAX_PROSE} characters are asked for; `maxLength` in the schema changes this bound"
        );
        self.lose(&member_pointer(&part.pointer, name), "maxLength", LossKind::Projected, &reason);
    }

    fn data(&mut self, contract: &Contract, form: &Form) -> Result<Value, Unsupported> {
        let mut data = parts::data(contract, form, &mut self.lost);
        self.bound_prose(&mut data, parts::RATIONALE);
        self.part(data)
    }

    fn error(&mut self, contract: &Contract) -> Result<Value, Unsupported> {
        let mut error = parts::error(contract, &mut self.lost);
        self.bound_prose(&mut error, "message");
        self.part(error)
    }

    /// Sends `confidence` as a list of values where the engine does not enforce the bounds of a number.
    fn confidence(&mut self, meta: &mut PartSchema) {
        let Some(confidence) = meta.schema.pointer_mut("/properties/confidence") else { return };
        let is_full_range =
            is_absent_or(confidence, "minimum", 0.0) && is_absent_or(confidence, "maximum", 1.0);
        let is_plain = confidence.get("type").is_some_and(|kind| kind == "number");
        if self.profile.bounds_numbers || !is_full_range || !is_plain || confidence.get("enum").is_some() {
            return;
        }
        let values: Vec<f64> = (0..=20u8).map(|step| f64::from(step * 5) / 100.0).collect();
        *confidence = json!({ "type": "number", "enum": values });
        let reason = "sent as the values 0, 0.05, … 1; the engine does not enforce the bounds of a number";
        let at = member_pointer(&meta.pointer, "confidence");
        self.lose(&at, "maximum", LossKind::Projected, reason);
    }

    fn part(&mut self, part: PartSchema) -> Result<Value, Unsupported> {
        self.schema(&part.schema, &part.pointer)
    }

    fn data_only(&mut self, contract: &Contract) -> Result<Value, Unsupported> {
        let Some(part) = &contract.data else { return Ok(json!({ "type": "object" })) };
        let schema = self.document.pointer(&part.pointer).unwrap_or(&Value::Null);
        let flat = flattened(self.document, schema, &part.pointer, &mut self.lost);
        let root = self.schema(&flat, &part.pointer)?;
        self.require_object(&root)?;
        Ok(root)
    }

    /// Projects one schema; `at` is its pointer in the document. One that contains itself in `allOf` would have no end.
    fn schema(&mut self, schema: &Value, at: &str) -> Result<Value, Unsupported> {
        self.depth += 1;
        self.visited += 1;
        let is_endless = self.depth > MAX_DEPTH || self.visited > MAX_VISITED;
        let projected = match is_endless {
            true => Err("the schema contains itself in `allOf`".to_owned()),
            false => self.one_schema(schema, at),
        };
        self.depth -= 1;
        projected
    }

    fn one_schema(&mut self, schema: &Value, at: &str) -> Result<Value, Unsupported> {
        if self.profile.verbatim {
            return Ok(self.verbatim(schema, at));
        }
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(false) => return Err("the schema `false` matches nothing".to_owned()),
            _ => return Ok(self.anything(at)),
        };
        if let Some(pointer) = referred(schema) {
            let reference = self.defs.refer(&pointer);
            // Many dialects forbid members next to `$ref`. A choice of one schema has the same values, and room for the description.
            let description = members.get("description");
            let sent = description.and_then(|text| self.sent("description", text, at, &Map::new()));
            return Ok(match sent {
                Some(description) => json!({ "anyOf": [reference], "description": description }),
                None => reference,
            });
        }
        // No dialect combines schemas as `allOf` does. `verbatim` ones returned above.
        if members.contains_key("allOf") {
            let flat = flattened(self.document, schema, at, &mut self.lost);
            self.lose(at, "allOf", LossKind::Projected, "its parts are merged into one schema");
            return self.schema(&flat, at);
        }
        match members.get("anyOf").or_else(|| members.get("oneOf")).and_then(Value::as_array) {
            Some(branches) => self.alternatives(members, branches, at),
            None => self.plain(members, at),
        }
    }

    /// Copies a schema with references to the projected definitions, in a form that the servers accept.
    fn verbatim(&mut self, schema: &Value, at: &str) -> Value {
        let mut copy = schema.clone();
        let mut open = vec![String::new()];
        let mut visited = Vec::new();
        while let Some(pointer) = open.pop() {
            let Some(schema) = copy.pointer_mut(&pointer) else { continue };
            if let Some(local) = referred(schema) {
                let description = schema.get("description").cloned();
                *schema = self.defs.refer(&local);
                if let (Some(members), Some(description)) = (schema.as_object_mut(), description) {
                    members.insert("description".to_owned(), description);
                }
                continue;
            }
            if let Some(pattern) = schema.get_mut("pattern") {
                let sent = pattern.as_str().and_then(|text| self.pattern(text, &format!("{at}{pointer}")));
                *pattern = sent.unwrap_or_else(|| pattern.take());
            }
            open.extend(children(schema).into_iter().map(|child| format!("{pointer}{}", child.pointer)));
            visited.push(pointer);
        }
        // The innermost first: a member that is renamed changes the pointers of what it contains.
        for pointer in visited.iter().rev() {
            if let Some(Value::Object(members)) = copy.pointer_mut(pointer) {
                self.accept(members, &format!("{at}{pointer}"));
            }
        }
        copy
    }

    /// Changes what servers refuse in a schema that is sent as written. OpenAI refuses `propertyNames`, and it and vLLM
    /// refuse a list in `items`, which current drafts call `prefixItems`.
    fn accept(&mut self, members: &mut Map<String, Value>, at: &str) {
        if members.remove("propertyNames").is_some() {
            self.lose(at, "propertyNames", LossKind::EnforcedLocally, "servers refuse it");
        }
        let Some(positions) = members.get_mut("items").filter(|items| items.is_array()).map(Value::take)
        else {
            return;
        };
        let others = members.remove("additionalItems").unwrap_or_else(|| json!({}));
        members.insert("prefixItems".to_owned(), positions);
        members.insert("items".to_owned(), others);
    }

    /// Projects a schema without combinations.
    fn plain(&mut self, members: &Map<String, Value>, at: &str) -> Result<Value, Unsupported> {
        if let Some(types) = Self::mixed_types(members) {
            return self.types(members, types, at);
        }
        let kind = self.kind(members, at);
        let mut projected = Map::from_iter([("type".to_owned(), kind)]);
        self.add_supported(members, at, &mut projected);
        let has_values = projected.contains_key("enum") || projected.contains_key("const");
        if names_type(projected.get("type"), "object") && !has_values {
            self.members(members, at, &mut projected)?;
        }
        if names_type(projected.get("type"), "array") && !has_values {
            self.items(members, at, &mut projected)?;
        }
        if self.adds_bounds && !has_values {
            self.bound(members, at, &mut projected);
        }
        Ok(Value::Object(projected))
    }

    /// Adds the maximum lengths that a text and an array of any length are asked for. The author of a schema lifts such a bound with
    /// a larger one.
    fn bound(&mut self, members: &Map<String, Value>, at: &str, projected: &mut Map<String, Value>) {
        let kind = projected.get("type");
        let is_scalar = ["array", "object"].iter().all(|name| !names_type(kind, name));
        let is_free = ["pattern", "format"].iter().all(|keyword| !projected.contains_key(*keyword));
        let is_text = names_type(kind, "string") && is_scalar && is_free;
        let is_list = projected.get("items").is_some_and(|items| !items.is_array());
        for (keyword, minimum, bound, applies, what) in [
            ("maxLength", "minLength", MAX_LENGTH, is_text, "characters"),
            ("maxItems", "minItems", MAX_ITEMS, is_list, "items"),
        ] {
            let is_longer = members.get(minimum).and_then(Value::as_u64).is_some_and(|length| length > bound);
            if !applies || is_longer || members.contains_key(keyword) {
                continue;
            }
            projected.insert(keyword.to_owned(), Value::from(bound));
            let reason = format!(
                "at most {bound} {what} are asked for; a larger `{keyword}` in the schema lifts this bound"
            );
            self.lose(at, keyword, LossKind::Projected, &reason);
        }
    }

    /// Adds the keywords that the dialect supports, and a loss for each of the others, which the description explains.
    fn add_supported(&mut self, members: &Map<String, Value>, at: &str, projected: &mut Map<String, Value>) {
        let mut dropped = Map::new();
        // Whether other keywords of strings are supported depends on these.
        let first = ["pattern", "format"].into_iter().filter_map(|keyword| members.get_key_value(keyword));
        let others = members.iter().filter(|(keyword, _)| !is_structure(keyword));
        let others = others.filter(|(keyword, _)| !matches!(keyword.as_str(), "pattern" | "format"));
        for (keyword, value) in first.chain(others) {
            if let Some(value) = self.sent(keyword, value, at, projected) {
                projected.insert(keyword.clone(), value);
            } else if keyword == "const" && (self.profile.supports)("enum", &json!([value]), projected) {
                projected.insert("enum".to_owned(), json!([value]));
                self.lose(at, keyword, LossKind::Projected, "sent as an `enum` of one value");
            } else if is_enforced(keyword, value) {
                self.lose(at, keyword, LossKind::EnforcedLocally, "the dialect does not support it");
                dropped.insert(keyword.clone(), value.clone());
            }
        }
        describe::add(&dropped, projected);
    }

    /// Returns the value of a keyword as it is sent; none if the dialect does not support it.
    fn sent(&mut self, keyword: &str, value: &Value, at: &str, schema: &Map<String, Value>) -> Option<Value> {
        match value.as_str() {
            Some(pattern) if keyword == "pattern" => self.pattern(pattern, at),
            _ => (self.profile.supports)(keyword, value, schema).then(|| value.clone()),
        }
    }

    /// Returns a pattern as it is sent; none if the dialect does not support it.
    fn pattern(&mut self, pattern: &str, at: &str) -> Option<Value> {
        let sent = (self.profile.pattern)(pattern)?;
        if sent != pattern {
            let reason = format!("sent as `{sent}`, which matches nothing that the pattern does not match");
            self.lose(at, "pattern", LossKind::Projected, &reason);
        }
        Some(Value::from(sent))
    }

    /// Adds a loss that excludes values.
    fn narrow(&mut self, at: &str, keyword: &str, kind: LossKind, reason: &str) {
        self.is_narrower = true;
        self.lose(at, keyword, kind, reason);
    }

    fn lose(&mut self, at: &str, keyword: &str, kind: LossKind, reason: &str) {
        self.lost.push(Loss {
            pointer: at.to_owned(),
            keyword: keyword.to_owned(),
            kind,
            reason: reason.to_owned(),
        });
    }
}

/// Counts the members of a projected schema.
pub(super) fn members(schema: &Value) -> MemberCount {
    let count = types::Count::new(schema);
    MemberCount { optional: count.optional, unions: count.unions }
}

/// Returns the schema of an envelope that has only `ok`. All members are required, so that the model writes them in the order in
/// which they are added.
fn envelope_of(ok: Value) -> Value {
    json!({ "type": "object", "properties": { "ok": ok }, "required": ["ok"], "additionalProperties": false })
}

/// Adds a required member to the schema of an object.
fn add_member(object: &mut Value, name: &str, schema: Value) {
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert(name.to_owned(), schema);
    }
    if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
        required.push(Value::from(name));
    }
}

/// Returns a schema that also allows null, for one that does not.
fn nullable(schema: Value) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        branches.push(null_type());
        return Value::Object(members);
    }
    let is_scalar =
        matches!(members.get("type"), Some(Value::String(kind)) if kind != "object" && kind != "array");
    // A `const` or `enum` excludes null, whatever the type allows.
    if !is_scalar || members.contains_key("const") || members.contains_key("enum") {
        return json!({ "anyOf": [Value::Object(members), null_type()] });
    }
    if let Some(kind) = members.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    Value::Object(members)
}

/// Returns whether a numeric keyword of a schema is absent or has this value.
fn is_absent_or(schema: &Value, keyword: &str, number: f64) -> bool {
    schema.get(keyword).is_none_or(|found| found.as_f64() == Some(number))
}

/// Returns whether a schema allows null.
fn allows_null(schema: &Value) -> bool {
    let branches = schema.get("anyOf").and_then(Value::as_array);
    names_type(schema.get("type"), "null")
        || branches.is_some_and(|branches| branches.iter().any(allows_null))
}

/// Returns whether a keyword is projected by its own code.
fn is_structure(keyword: &str) -> bool {
    matches!(
        keyword,
        "type"
            | "properties"
            | "required"
            | "additionalProperties"
            | "patternProperties"
            | "items"
            | "additionalItems"
    )
}

/// Returns a schema for null.
fn null_type() -> Value {
    json!({ "type": "null" })
}

/// Returns the pointer of a member's schema.
fn member_pointer(at: &str, name: &str) -> String {
    format!("{at}/properties/{}", token(name))
}
