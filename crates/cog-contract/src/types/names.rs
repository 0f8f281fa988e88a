//! Names for the types of a module.

use std::collections::{HashMap, HashSet};

use cog_module::Module;
use serde_json::Value;

use super::{
    model::{Definition, Field, Object, Type},
    schema::{self, Reader, about, with_insights},
};

/// A module with names for its types.
#[derive(Debug)]
pub(super) struct NamedModule {
    /// The name of the module.
    pub(super) name: String,
    pub(super) responsibility: String,
    /// The names of the types of its parts.
    pub(super) input: String,
    pub(super) data: String,
    pub(super) meta: String,
    pub(super) error: String,
    /// The types, each after those that it uses.
    pub(super) definitions: Vec<Definition>,
}

impl NamedModule {
    /// Names the types of a module; `taken` has the names of other modules.
    pub(super) fn new(module: &Module, style: Style, prefix: String, taken: &mut HashSet<String>) -> Self {
        let contract = &module.contract;
        let document = contract.document();
        let input = pointer_of(contract.input_schema(), document);
        let data = pointer_of(contract.data_schema(), document);
        let meta = pointer_of(contract.meta_schema(), document);
        let error = pointer_of(contract.error_schema(), document);
        let mut namer = Namer::new(document, style, prefix, taken);
        // All before the first definition: a `$defs/Data` must not take the name of the data.
        for (word, pointer) in [("Input", &input), ("Data", &data), ("Meta", &meta), ("Error", &error)] {
            pointer.iter().for_each(|pointer| namer.reserve(pointer, word));
        }
        if let Some(data) = &data
            && contract.rules().overflow.enabled
        {
            namer.add_insights(data, schema::field(contract.rules().overflow.require_suggested_mapping));
        }
        Self {
            name: module.manifest.name.clone(),
            responsibility: module.manifest.responsibility.clone(),
            input: namer.root_or_any(input, "Input"),
            data: namer.root_or_any(data, "Data"),
            meta: namer.root_or_any(meta, "Meta"),
            error: namer.root_or_any(error, "Error"),
            definitions: namer.finish(),
        }
    }
}

/// Returns the pointer of a schema that is a member of the document.
fn pointer_of(schema: Option<&Value>, document: &Value) -> Option<String> {
    let schema = schema?;
    let members = document.as_object()?;
    members.iter().find(|(_, value)| std::ptr::eq(*value, schema)).map(|(key, _)| format!("/{key}"))
}

/// How a language names types.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    /// The names that the printed code uses itself.
    pub(super) reserved: &'static [&'static str],
    /// Whether unions and constants need names too.
    pub(super) names_unions: bool,
}

/// Collects the named types of one module, each after those that it uses.
struct Namer<'a> {
    reader: Reader<'a>,
    style: Style,
    prefix: String,
    taken: &'a mut HashSet<String>,
    /// The names of schemas, by their JSON pointers.
    named: HashMap<String, String>,
    definitions: Vec<Definition>,
    /// The name of the data whose answers may have insights, with their field.
    insights: Option<(String, Field)>,
}

impl<'a> Namer<'a> {
    /// `prefix` begins every name; `taken` has the names of other modules.
    fn new(document: &'a Value, style: Style, prefix: String, taken: &'a mut HashSet<String>) -> Self {
        Self {
            reader: Reader::new(document),
            style,
            prefix,
            taken,
            named: HashMap::new(),
            definitions: Vec::new(),
            insights: None,
        }
    }

    /// Adds the field of insights to the type of a schema whose name is reserved.
    fn add_insights(&mut self, pointer: &str, field: Field) {
        self.insights = self.named.get(pointer).map(|name| (name.clone(), field));
    }

    /// Reserves the name of a schema, so that no other gets it. The target of a reference gets the name itself.
    fn reserve(&mut self, pointer: &str, word: &str) {
        let name = self.free(word);
        if let Some(target) = self.reader.target_of(pointer).filter(|target| !self.named.contains_key(target))
        {
            self.named.insert(target, name.clone());
        }
        self.named.insert(pointer.to_owned(), name);
    }

    /// Defines the schema with a reserved name, and returns that name.
    fn root(&mut self, pointer: &str) -> String {
        let name = self.named.get(pointer).cloned().unwrap_or_default();
        let target = self.reader.target_of(pointer).filter(|target| self.named.get(target) == Some(&name));
        let pointer = target.as_deref().unwrap_or(pointer);
        if !self.definitions.iter().any(|known| known.name == name) {
            self.define(pointer, name.clone());
        }
        name
    }

    /// Defines the schema of a part as [`Self::root`] does. A part without a schema is any value.
    fn root_or_any(&mut self, pointer: Option<String>, word: &str) -> String {
        if let Some(pointer) = pointer {
            return self.root(&pointer);
        }
        let name = self.free(word);
        self.definitions.push(Definition { name: name.clone(), about: None, kind: Type::Any });
        name
    }

    fn finish(self) -> Vec<Definition> {
        self.definitions
    }

    fn define(&mut self, pointer: &str, name: String) {
        let schema = self.reader.schema(pointer);
        let mut kind = schema.map_or(Type::Any, |schema| self.reader.read(schema));
        if let Some((_, field)) = self.insights.take_if(|(data, _)| *data == name) {
            kind = with_insights(kind, &field, &mut self.reader);
        }
        let kind = self.named_parts(kind, &name);
        self.definitions.push(Definition { about: schema.and_then(about), name, kind });
    }

    /// Returns the type of a definition, with names for the types in it.
    fn named_parts(&mut self, kind: Type, name: &str) -> Type {
        match self.widened(kind) {
            Type::Object(object) if !object.fields.is_empty() => {
                Type::Object(Box::new(self.fields(*object, name)))
            }
            Type::Union(arms) => {
                let arms = self.arms(arms, name);
                Type::Union(arms)
            }
            literal @ Type::Literal(_) => literal,
            other => self.part(other, name),
        }
    }

    /// Returns a type in which every type that needs a name has one.
    fn part(&mut self, kind: Type, name: &str) -> Type {
        match self.widened(kind) {
            Type::Object(object) if object.fields.is_empty() => {
                let rest = self.part(object.rest.unwrap_or(Type::Any), &format!("{name}Value"));
                Type::Map(Box::new(rest))
            }
            Type::Object(object) => {
                let name = self.free_whole(name);
                let about = object.about.clone();
                let object = self.fields(*object, &name);
                self.add(name, about, Type::Object(Box::new(object)))
            }
            Type::Map(values) => Type::Map(Box::new(self.part(*values, name))),
            Type::List(items) => Type::list(self.part(*items, name)),
            Type::Tuple(items) => {
                let numbered = items.into_iter().enumerate();
                Type::Tuple(
                    numbered.map(|(at, item)| self.part(item, &format!("{name}{}", at + 1))).collect(),
                )
            }
            Type::Union(arms) => self.union(arms, name),
            literal @ Type::Literal(_) if self.style.names_unions => {
                let name = self.free_whole(name);
                self.add(name, None, literal)
            }
            Type::Reference(pointer) => Type::Reference(self.reference(&pointer)),
            Type::Never => Type::Any,
            other => other,
        }
    }

    /// A union with null is the type of the rest, or null.
    fn union(&mut self, arms: Vec<Type>, name: &str) -> Type {
        let (rest, is_nullable) = Type::Union(arms).split_null();
        let rest = match rest {
            Type::Union(arms) if self.style.names_unions => {
                let name = self.free_whole(name);
                let arms = self.arms(arms, &name);
                self.add(name, None, Type::Union(arms))
            }
            Type::Union(arms) => Type::Union(self.arms(arms, name)),
            one => self.part(one, name),
        };
        Type::union([rest].into_iter().chain(is_nullable.then_some(Type::Null)))
    }

    fn arms(&mut self, arms: Vec<Type>, name: &str) -> Vec<Type> {
        if arms.iter().all(is_string_constant) {
            return arms;
        }
        let (texts, others): (Vec<Type>, Vec<Type>) = arms.into_iter().partition(is_string_constant);
        if !self.style.names_unions {
            let others = others.into_iter().map(|arm| self.arm(arm, name));
            return texts.into_iter().chain(others).collect();
        }
        let texts = (!texts.is_empty()).then(|| self.part(Type::union(texts), &format!("{name}Word")));
        let others: Vec<Type> = others.into_iter().map(|arm| self.arm(arm, name)).collect();
        others.into_iter().chain(texts).collect()
    }

    /// An object that is one of several is named after its constant field: `MediaInputUrl`.
    fn arm(&mut self, arm: Type, name: &str) -> Type {
        let word = match &arm {
            Type::Object(object) => {
                constant_word(object).or_else(|| self.style.names_unions.then(|| "Object".to_owned()))
            }
            Type::List(_) | Type::Tuple(_) => Some("Item".to_owned()),
            _ => None,
        };
        self.part(arm, &format!("{name}{}", word.unwrap_or_default()))
    }

    /// A language whose unions have names has no types of single numbers and booleans.
    fn widened(&self, kind: Type) -> Type {
        match kind {
            kind if !self.style.names_unions => kind,
            Type::Union(arms) => Type::union(arms.into_iter().map(widen)),
            kind => widen(kind),
        }
    }

    fn fields(&mut self, object: Object, name: &str) -> Object {
        let mut fields = Vec::with_capacity(object.fields.len());
        for field in object.fields {
            let kind = self.part(field.kind, &format!("{name}{}", pascal(&field.key)));
            fields.push(Field { kind, ..field });
        }
        let rest = object.rest.map(|kind| self.part(kind, &format!("{name}Value")));
        Object { fields, rest, ..object }
    }

    /// Returns the name of a schema, which is defined on its first use.
    fn reference(&mut self, pointer: &str) -> String {
        if let Some(name) = self.named.get(pointer).cloned() {
            return name;
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let name = self.free(&pascal(last));
        self.named.insert(pointer.to_owned(), name.clone());
        self.define(pointer, name.clone());
        name
    }

    fn add(&mut self, name: String, about: Option<String>, kind: Type) -> Type {
        self.definitions.push(Definition { name: name.clone(), about, kind });
        Type::Reference(name)
    }

    /// Returns a free name. One that would begin with a digit begins with `N`.
    fn free(&mut self, word: &str) -> String {
        let name = format!("{}{word}", self.prefix);
        let letter = if name.starts_with(|first: char| first.is_ascii_digit()) { "N" } else { "" };
        self.free_whole(&format!("{letter}{name}"))
    }

    /// Returns the name, or the name with the first number that makes it free.
    fn free_whole(&mut self, name: &str) -> String {
        let is_free =
            |name: &String| !self.taken.contains(name) && !self.style.reserved.contains(&name.as_str());
        let numbered = (2..).map(|number: u32| format!("{name}{number}"));
        let name = std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default();
        self.taken.insert(name.clone());
        name
    }
}

/// Returns the name of the first constant field of an object.
fn constant_word(object: &Object) -> Option<String> {
    object.fields.iter().find_map(|field| match &field.kind {
        Type::Literal(Value::String(text)) => Some(pascal(text)),
        _ => None,
    })
}

/// Returns the type of a constant that is not a string.
fn widen(kind: Type) -> Type {
    match kind {
        Type::Literal(value) if !value.is_string() => Type::from_value(&value),
        other => other,
    }
}

fn is_string_constant(arm: &Type) -> bool {
    matches!(arm, Type::Literal(Value::String(_)))
}

// Identifiers and comments in the forms of languages.

/// Returns `suggested_mapping` as `SuggestedMapping`. Only ASCII letters and digits remain; without any, it is `X`.
pub(super) fn pascal(text: &str) -> String {
    let mut word = String::new();
    for part in parts(text) {
        let mut letters = part.chars();
        word.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        word.push_str(letters.as_str());
    }
    if word.is_empty() { "X".to_owned() } else { word }
}

/// Returns `code-reviewer` as `codeReviewer`.
pub(super) fn camel(text: &str) -> String {
    let word = pascal(text);
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Returns `suggestedMapping` as `suggested_mapping`; without letters and digits it is `x`.
pub(super) fn snake(text: &str) -> String {
    let mut word = String::new();
    for part in parts(text) {
        if !word.is_empty() {
            word.push('_');
        }
        let mut was_lower = false;
        for letter in part.chars() {
            if letter.is_ascii_uppercase() && was_lower {
                word.push('_');
            }
            was_lower = !letter.is_ascii_uppercase();
            word.push(letter.to_ascii_lowercase());
        }
    }
    match word.chars().next() {
        None => "x".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{word}"),
        Some(_) => word,
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty())
}

/// Returns the name, or the name with the first number that makes it free, and takes it.
pub(super) fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number: u32| format!("{name}{number}"));
    let free =
        std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// Returns whether this is an identifier of ASCII letters, digits and `_`.
pub(super) fn is_identifier(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && text.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Returns the lines of a comment. Characters that change the direction of text or end a line are spaces.
pub(super) fn comment_lines(text: &str, width: usize) -> Vec<String> {
    let clean: String = text.chars().map(|letter| if is_invisible(letter) { ' ' } else { letter }).collect();
    let wrapped = clean.lines().flat_map(|line| textwrap::wrap(line.trim(), width));
    wrapped.map(|line| line.trim_end().to_owned()).collect()
}

/// Whether a character has no width, changes the direction of text, or separates lines, other than a newline.
fn is_invisible(letter: char) -> bool {
    (letter.is_control() && letter != '\n')
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOMINAL: Style = Style { reserved: &["String"], names_unions: true };

    fn names(document: &Value, style: Style, prefix: &str) -> Vec<String> {
        let mut taken = HashSet::new();
        let mut namer = Namer::new(document, style, prefix.to_owned(), &mut taken);
        namer.reserve("/data", "Data");
        namer.root("/data");
        namer.finish().into_iter().map(|definition| definition.name).collect()
    }

    #[test]
    fn each_type_is_after_those_that_it_uses() {
        let document = json!({
            "data": {"properties": {
                "node": {"$ref": "#/$defs/node"}, "String": {"$ref": "#/$defs/String"},
                "state": {"enum": ["on", "off", null]},
                "items": {"type": "array", "items": {"properties": {"a": {"const": 1}}}}
            }},
            "$defs": {
                "node": {"properties": {"next": {"$ref": "#/$defs/node"}, "data": {"$ref": "#/data"}}},
                "String": {"enum": ["x", 1]}
            }
        });
        assert_eq!(
            names(&document, NOMINAL, ""),
            ["Node", "String2Word", "String2", "DataState", "DataItems", "Data"]
        );
        let structural = Style { reserved: &[], names_unions: false };
        assert_eq!(names(&document, structural, "A"), ["ANode", "AString", "ADataItems", "AData"]);
    }

    #[test]
    fn a_part_that_is_a_reference_names_its_target() {
        let document = json!({"data": {"$ref": "#/$defs/Data"}, "$defs": {"Data": {"properties": {"a": {"$ref": "#/data"}}}}});
        assert_eq!(names(&document, NOMINAL, ""), ["Data"]);
    }

    #[test]
    fn equal_names_get_numbers() {
        let document = json!({"data": {"properties": {
            "a-b": {"properties": {"x": {}}}, "a_b": {"properties": {"y": {}}}, "日本": {"properties": {"z": {}}}
        }}});
        assert_eq!(names(&document, NOMINAL, ""), ["DataAB", "DataAB2", "DataX", "Data"]);
    }

    #[test]
    fn no_name_begins_with_a_digit() {
        let document = json!({"data": {"properties": {"a": {"$ref": "#/$defs/1st"}}}, "$defs": {"1st": {"properties": {"b": {}}}}});
        assert_eq!(names(&document, NOMINAL, ""), ["N1st", "Data"]);
        assert_eq!(names(&document, NOMINAL, "A"), ["A1st", "AData"]);
    }

    #[test]
    fn forms_of_names() {
        for (text, expected) in [
            ("code-reviewer", ["CodeReviewer", "codeReviewer", "code_reviewer"]),
            ("suggestedMapping", ["SuggestedMapping", "suggestedMapping", "suggested_mapping"]),
            ("HTTPStatus", ["HTTPStatus", "hTTPStatus", "httpstatus"]),
            ("2nd try", ["2ndTry", "2ndTry", "n2nd_try"]),
            ("日本", ["X", "x", "x"]),
        ] {
            assert_eq!([pascal(text), camel(text), snake(text)], expected);
        }
    }

    #[test]
    fn a_comment_has_only_visible_characters() {
        assert_eq!(comment_lines("a\r\nb\u{202e}c\u{2028}d\t\n\ne", 80), ["a", "b c d", "", "e"]);
        assert_eq!(comment_lines("aaa bbb ccc", 7), ["aaa bbb", "ccc"]);
    }
}
