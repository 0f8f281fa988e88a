//! JSON Schema to types.

use serde_json::{Map, Value};

use super::model::{Field, Object, Type, intersection};

/// The maximum number of references that are replaced with their targets.
const MAX_OPENED: usize = 2000;

/// The keywords that give a schema a type of its own.
const TYPED: [&str; 10] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "items",
    "oneOf",
    "patternProperties",
    "properties",
];

/// A schema that is not yet one type.
struct Parts {
    kind: Type,
    /// The types of objects and lists by keywords without a `type`. Other values are valid too.
    conditions: Vec<Type>,
}

impl Parts {
    fn from_type(kind: Type) -> Self {
        Self { kind, conditions: Vec::new() }
    }
}

/// Reads the schemas of a document.
pub(super) struct Reader<'a> {
    document: &'a Value,
    /// The references that are being replaced with their targets.
    opening: Vec<String>,
    opened: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self { document, opening: Vec::new(), opened: 0 }
    }

    /// Returns the schema at a JSON pointer.
    pub(super) fn schema(&self, pointer: &str) -> Option<&'a Value> {
        self.document.pointer(pointer)
    }

    /// Returns the JSON pointer that the schema at a pointer refers to.
    pub(super) fn target_of(&self, pointer: &str) -> Option<String> {
        let reference = self.schema(pointer)?.get("$ref")?.as_str()?;
        reference.strip_prefix('#').map(decoded)
    }

    /// Returns the type of a schema, by the rules of Draft-07, as answers are checked.
    ///
    /// What no type can express makes it wider: `not`, `if`, patterns and limits.
    pub(super) fn read(&mut self, schema: &Value) -> Type {
        let parts = self.parts(schema);
        self.settle(parts)
    }

    /// Reads the parts of a schema.
    fn parts(&mut self, schema: &Value) -> Parts {
        let Value::Object(members) = schema else {
            return Parts::from_type(if *schema == Value::Bool(false) { Type::Never } else { Type::Any });
        };
        // Draft-07 ignores everything next to `$ref`.
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').map(decoded);
            return Parts::from_type(pointer.map_or(Type::Any, Type::Reference));
        }
        let mut parts = self.own(members);
        if let Some(values) = literals(members) {
            parts.kind = self.both(parts.kind, values);
        }
        for part in array(members, "allOf") {
            let part = self.parts(part);
            parts.kind = self.both(parts.kind, part.kind);
            parts.conditions.extend(part.conditions);
        }
        for keyword in ["anyOf", "oneOf"] {
            let arms: Vec<Parts> = array(members, keyword).map(|arm| self.arm(arm)).collect();
            self.choose(arms, &mut parts);
        }
        parts
    }

    /// Returns the parts of an alternative. One that only requires fields says nothing about their types.
    fn arm(&mut self, schema: &Value) -> Parts {
        let only_requires = schema.as_object().is_some_and(|members| {
            !members.contains_key("type") && !TYPED.iter().any(|keyword| members.contains_key(*keyword))
        });
        if only_requires { Parts::from_type(Type::Any) } else { self.parts(schema) }
    }

    /// Narrows the type to the alternatives.
    fn choose(&mut self, arms: Vec<Parts>, parts: &mut Parts) {
        if arms.is_empty() {
            return;
        }
        let are_conditions = arms.iter().all(|arm| arm.kind == Type::Any && !arm.conditions.is_empty());
        // Alternatives without a `type` allow every other value too, so they narrow only what turns out to be an object or a list.
        if parts.kind == Type::Any && are_conditions {
            let arms: Vec<Type> = arms.into_iter().map(|arm| self.settle(arm)).collect();
            parts.conditions.push(Type::union(arms));
            return;
        }
        let kinds: Vec<Type> = arms
            .into_iter()
            .map(|arm| {
                let kind = self.both(parts.kind.clone(), arm.kind);
                self.settle(Parts { kind, ..arm })
            })
            .collect();
        parts.kind = Type::union(kinds);
    }

    /// Returns the type of all parts. A schema with conditions alone is read as an object or a list.
    fn settle(&mut self, parts: Parts) -> Type {
        parts.conditions.into_iter().fold(parts.kind, |kind, condition| match kind {
            Type::Any => condition,
            kind => {
                let arms = self.open(kind).into_arms().into_iter();
                Type::union(arms.map(|arm| {
                    if condition.concerns(&arm) { intersection(arm, condition.clone()) } else { arm }
                }))
            }
        })
    }

    /// Returns the values of both types; a reference is replaced with its target if it must be narrowed.
    fn both(&mut self, left: Type, right: Type) -> Type {
        if left == Type::Any || right == Type::Any || left == right {
            return intersection(left, right);
        }
        let left = self.open(left);
        let right = self.open(right);
        intersection(left, right)
    }

    /// Replaces references with their targets. One within itself remains.
    pub(super) fn open(&mut self, kind: Type) -> Type {
        match kind {
            Type::Reference(pointer) => self.target(pointer),
            Type::Union(arms) => Type::union(arms.into_iter().map(|arm| self.open(arm)).collect::<Vec<_>>()),
            other => other,
        }
    }

    fn target(&mut self, pointer: String) -> Type {
        if self.opened >= MAX_OPENED || self.opening.contains(&pointer) {
            return Type::Reference(pointer);
        }
        let Some(schema) = self.schema(&pointer) else { return Type::Any };
        self.opened += 1;
        self.opening.push(pointer);
        let kind = self.read(schema);
        let kind = self.open(kind);
        self.opening.pop();
        kind
    }

    /// Returns the type by the keywords of the schema itself.
    fn own(&mut self, members: &Map<String, Value>) -> Parts {
        match members.get("type") {
            Some(Value::String(name)) => Parts::from_type(self.named(name, members)),
            Some(Value::Array(names)) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                let kinds: Vec<Type> = names.into_iter().map(|name| self.named(name, members)).collect();
                Parts::from_type(Type::union(kinds))
            }
            _ if ["properties", "patternProperties", "additionalProperties", "required"]
                .iter()
                .any(|keyword| members.contains_key(*keyword)) =>
            {
                Parts { kind: Type::Any, conditions: vec![self.named("object", members)] }
            }
            _ if members.contains_key("items") => {
                Parts { kind: Type::Any, conditions: vec![self.named("array", members)] }
            }
            _ => Parts::from_type(Type::Any),
        }
    }

    fn named(&mut self, name: &str, members: &Map<String, Value>) -> Type {
        match name {
            "object" => Type::Object(Box::new(self.object(members))),
            "array" => self.array(members),
            "string" => Type::Text,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "null" => Type::Null,
            _ => Type::Any,
        }
    }

    fn object(&mut self, members: &Map<String, Value>) -> Object {
        let required: Vec<String> =
            array(members, "required").filter_map(Value::as_str).map(str::to_owned).collect();
        let mut fields = Vec::new();
        for (key, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let kind = self.read(schema);
            if kind != Type::Never {
                fields.push(Field { key: key.clone(), about: about(schema), kind });
            }
        }
        let described: Vec<String> = fields.iter().map(|field| field.key.clone()).collect();
        let undescribed = required.iter().filter(|key| !described.contains(key));
        fields.extend(undescribed.map(|key| Field { key: key.clone(), about: None, kind: Type::Any }));
        let is_closed = members.get("additionalProperties") == Some(&Value::Bool(false))
            && !members.contains_key("patternProperties");
        let about = members.get("description").or_else(|| members.get("title")).and_then(text);
        Object { about, fields, required, rest: self.rest(members), is_closed }
    }

    /// Returns the type of the fields that have no name in the schema.
    fn rest(&mut self, members: &Map<String, Value>) -> Option<Type> {
        let patterns: Vec<&Value> = members
            .get("patternProperties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::values)
            .collect();
        let additional = match members.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(schema) => Some(self.read(schema)),
            None if patterns.is_empty() => None,
            None => Some(Type::Any),
        };
        let patterns: Vec<Type> = patterns.into_iter().map(|schema| self.read(schema)).collect();
        let kinds: Vec<Type> = patterns.into_iter().chain(additional).collect();
        (!kinds.is_empty()).then(|| Type::union(kinds))
    }

    fn array(&mut self, members: &Map<String, Value>) -> Type {
        let (prefix, rest) = match members.get("items") {
            Some(Value::Array(prefix)) => (prefix.as_slice(), members.get("additionalItems")),
            rest => (&[][..], rest),
        };
        let rest = rest.map_or(Type::Any, |schema| self.read(schema));
        let prefix: Vec<Type> = prefix.iter().map(|schema| self.read(schema)).collect();
        let least = members.get("minItems").and_then(Value::as_u64);
        let most = members.get("maxItems").and_then(Value::as_u64);
        let length = u64::try_from(prefix.len()).unwrap_or(u64::MAX);
        let has_length = least.is_some_and(|least| least >= length)
            && (rest == Type::Never || most.is_some_and(|most| most <= length));
        if !prefix.is_empty() && has_length {
            return Type::Tuple(prefix);
        }
        Type::list(Type::union(prefix.into_iter().chain([rest])))
    }
}

/// Returns the description of a schema, otherwise its title.
pub(super) fn about(schema: &Value) -> Option<String> {
    schema.get("description").or_else(|| schema.get("title")).and_then(text)
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn literals(members: &Map<String, Value>) -> Option<Type> {
    if let Some(value) = members.get("const") {
        return Some(Type::constant(value));
    }
    let values = members.get("enum")?.as_array()?;
    Some(Type::union(values.iter().map(Type::constant)))
}

fn array<'a>(members: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> {
    members.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn hex_digit(byte: Option<u8>) -> Option<u32> {
    char::from(byte?).to_digit(16)
}

/// Decodes the escapes of a URL.
fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        match (byte, hex_digit(ahead.next()), hex_digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                rest = ahead;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| pointer.to_owned())
}

// The insights that an answer may have in addition to the fields of its schema (`data.extensions.insights`).

const EXTENSIONS: &str = "extensions";
const INSIGHTS: &str = "insights";

/// Returns the field of the data that contains insights.
pub(super) fn field(requires_mapping: bool) -> Field {
    let mut required = vec!["text".to_owned()];
    if requires_mapping {
        required.push("suggested_mapping".to_owned());
    }
    let fields = ["text", "suggested_mapping"]
        .map(|key| Field { key: key.to_owned(), about: None, kind: Type::Text })
        .to_vec();
    let insight = Type::Object(Box::new(Object { fields, required, ..Object::default() }));
    let insights = Field { key: INSIGHTS.to_owned(), about: None, kind: Type::list(insight) };
    Field {
        key: EXTENSIONS.to_owned(),
        about: Some("What the model found that has no place in the schema".to_owned()),
        kind: Type::Object(Box::new(Object { fields: vec![insights], ..Object::default() })),
    }
}

/// Adds the field to the type of data. Insights are valid with every schema, so the type is not closed.
pub(super) fn with_insights(kind: Type, field: &Field, reader: &mut Reader<'_>) -> Type {
    match kind {
        Type::Object(object) => Type::Object(Box::new(extended(*object, field, reader))),
        Type::Union(arms) => {
            let arms: Vec<Type> = arms.into_iter().map(|arm| with_insights(arm, field, reader)).collect();
            Type::union(arms)
        }
        Type::Reference(_) => match reader.open(kind) {
            kind @ Type::Reference(_) => kind,
            kind => with_insights(kind, field, reader),
        },
        other => other,
    }
}

fn extended(mut object: Object, field: &Field, reader: &mut Reader<'_>) -> Object {
    let is_map = object.fields.is_empty();
    let was_closed = std::mem::take(&mut object.is_closed);
    match (object.fields.iter_mut().find(|known| known.key == EXTENSIONS), &mut object.rest) {
        (Some(known), _) => {
            if !takes_insights(&reader.open(known.kind.clone())) {
                known.kind = Type::Any;
            }
        }
        (None, Some(rest)) if is_map => *rest = Type::union([rest.clone(), field.kind.clone()]),
        (None, None) if is_map && !was_closed => {}
        (None, _) => object.fields.push(field.clone()),
    }
    object
}

/// Whether the schema of `extensions` itself allows insights.
fn takes_insights(kind: &Type) -> bool {
    match kind {
        Type::Any => true,
        Type::Object(object) => {
            let names_insights = object.fields.iter().any(|field| field.key == INSIGHTS);
            names_insights || !object.is_closed && object.rest.is_none()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
