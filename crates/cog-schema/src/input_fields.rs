//! The fields of the input that accept text or media.

use cog_json::{Node, Path};
use serde_json::Value;

use crate::contract::Contract;
use crate::graph::{Id, PathStack, SchemaNode, Visit, WalkFilter};
use crate::subschema::names_type;

/// The property that has precedence for the text of `--args`.
const ARGUMENTS: &str = "$ARGUMENTS";

/// A field of the input that accepts a media file, or a list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaField<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it is a list.
    pub is_list: bool,
}

/// A field of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputField {
    /// Its name.
    pub name: String,
    /// The types that it accepts.
    pub types: FieldTypes,
    /// Whether every input has it.
    pub is_required: bool,
    /// Whether it accepts a media file, or a list of them.
    pub is_media: bool,
    /// Whether it accepts a list of media files.
    pub is_list: bool,
}

/// The JSON types that a field accepts. A field that accepts any value has none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FieldTypes {
    /// A string.
    pub text: bool,
    /// A number or an integer.
    pub number: bool,
    /// A boolean.
    pub boolean: bool,
    /// An object.
    pub object: bool,
    /// An array.
    pub array: bool,
    /// Null.
    pub null: bool,
}

impl InputField {
    /// Returns an optional field for a string.
    pub fn text(name: impl Into<String>) -> Self {
        let types = FieldTypes { text: true, ..FieldTypes::default() };
        Self { name: name.into(), types, is_required: false, is_media: false, is_list: false }
    }
}

impl FieldTypes {
    /// Returns whether any value is accepted.
    pub fn is_any(self) -> bool {
        self == Self::default()
    }

    /// Returns whether values of other types than text are accepted by name.
    pub fn has_others(self) -> bool {
        self.number || self.boolean || self.object || self.array || self.null
    }

    fn add(&mut self, name: &str) {
        match name {
            "string" => self.text = true,
            "number" | "integer" => self.number = true,
            "boolean" => self.boolean = true,
            "object" => self.object = true,
            "array" => self.array = true,
            "null" => self.null = true,
            _ => {}
        }
    }

    fn add_value(&mut self, value: &Value) {
        self.add(match value {
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "boolean",
            Value::Object(_) => "object",
            Value::Array(_) => "array",
            Value::Null => "null",
        });
    }
}

impl Contract {
    /// Returns the top-level fields of the input with their types, in the order of the schema.
    pub fn input_fields(&self) -> Vec<InputField> {
        let mut fields: Vec<InputField> = Vec::new();
        let Some(input) = self.input.as_ref().map(|part| part.id) else { return fields };
        let media = self.media_fields();
        for (name, id) in self.graph.possible(input).flat_map(SchemaNode::properties) {
            let types = self.types_of(id);
            if fields.iter().any(|field| field.name == name) {
                continue;
            }
            let field = media.iter().find(|field| field.name == name);
            fields.push(InputField {
                name: name.to_owned(),
                types,
                is_required: self.requires(input, name),
                is_media: field.is_some(),
                is_list: field.is_some_and(|field| field.is_list),
            });
        }
        fields
    }

    /// Returns the types that the schemas of a value name, or the types of its constants.
    fn types_of(&self, id: Id) -> FieldTypes {
        let mut types = FieldTypes::default();
        for shape in self.graph.possible(id) {
            match self.keyword(shape, "type") {
                Some(Value::String(name)) => types.add(name),
                Some(Value::Array(names)) => {
                    names.iter().filter_map(Value::as_str).for_each(|name| types.add(name));
                }
                _ => {
                    let values = self.keyword(shape, "enum").and_then(Value::as_array);
                    let constant = self.keyword(shape, "const");
                    values.into_iter().flatten().chain(constant).for_each(|value| types.add_value(value));
                }
            }
        }
        types
    }

    /// Returns the input field for the text of `--args` (docs/spec/modules.md): `$ARGUMENTS` if the schema defines it,
    /// otherwise `query`, otherwise the only required string, otherwise the only string.
    ///
    /// # Errors
    /// The candidates, if there are none or several; the caller reports E1001.
    pub fn args_target(&self) -> Result<&str, Vec<String>> {
        let Some(input) = self.input.as_ref().map(|part| part.id) else { return Err(Vec::new()) };
        if let Some(key) = [ARGUMENTS, "query"]
            .into_iter()
            .find(|key| self.graph.possible(input).any(|shape| shape.property(key).is_some()))
        {
            return Ok(key);
        }
        let texts = self.text_fields(input);
        let required: Vec<&str> = texts.iter().copied().filter(|key| self.requires(input, key)).collect();
        match (required.as_slice(), texts.as_slice()) {
            ([only], _) | ([], [only]) => Ok(only),
            ([], many) | (many, _) => Err(many.iter().map(|key| (*key).to_owned()).collect()),
        }
    }

    /// Returns the fields of an object that accept a string, in the order of the schema.
    fn text_fields(&self, object: Id) -> Vec<&str> {
        let mut fields = Vec::new();
        for (key, id) in self.graph.possible(object).flat_map(|shape| shape.properties()) {
            if self.accepts_text(id) && !fields.contains(&key) {
                fields.push(key);
            }
        }
        fields
    }

    fn accepts_text(&self, id: Id) -> bool {
        self.graph.certain(id).any(|shape| names_type(self.keyword(shape, "type"), "string"))
    }

    /// Returns the top-level fields of the input that accept media, in the order of the schema.
    pub fn media_fields(&self) -> Vec<MediaField<'_>> {
        let mut fields: Vec<MediaField<'_>> = Vec::new();
        let Some(input) = &self.input else { return fields };
        for (name, id) in self.graph.possible(input.id).flat_map(SchemaNode::properties) {
            let items = self.graph.possible(id).filter_map(SchemaNode::list_items);
            let is_list = items.into_iter().any(|item| self.is_media(item));
            if (is_list || self.is_media(id)) && fields.iter().all(|field| field.name != name) {
                fields.push(MediaField { name, is_list });
            }
        }
        fields
    }

    fn is_media(&self, id: Id) -> bool {
        self.graph.possible(id).any(|shape| shape.is_media)
    }

    /// Returns whether the input schema has a media field at any depth.
    pub fn takes_media(&self) -> bool {
        self.input.as_ref().is_some_and(|part| self.graph.sees(part.id, WalkFilter::MEDIA))
    }

    /// Returns the paths of the media in a checked input, in its order (ruling R14). Paths start at `input`.
    pub fn media_paths(&self, input: Node<'_>) -> Vec<Path> {
        let mut walk = MediaWalk { paths: Vec::new() };
        if let Some(part) = &self.input {
            self.graph.walk(&[part.id], input, &PathStack::root("input"), &mut walk);
        }
        walk.paths
    }
}

/// The `type` of a media source.
const SOURCES: [&str; 4] = ["url", "base64", "file", "upload_ref"];

struct MediaWalk {
    paths: Vec<Path>,
}

impl Visit for MediaWalk {
    fn filter(&self) -> WalkFilter {
        WalkFilter::MEDIA
    }

    fn value(&mut self, shape: &SchemaNode, node: Node<'_>, stack: &PathStack<'_>) {
        // A branch of the author's own, such as a string, is not a source.
        let is_source = node.get("type").and_then(Node::as_str).is_some_and(|kind| SOURCES.contains(&kind));
        if shape.is_media && is_source {
            self.paths.push(stack.path());
            self.paths.dedup();
        }
    }
}

#[cfg(test)]
mod tests;
