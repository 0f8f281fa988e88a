//! Where the files of a module name the fields of its schema: for editors, which jump to a field and rename it everywhere.
//!
//! A field is identified by the JSON pointer of its schema, such as `/data/properties/queue`, so that two fields with the same
//! name are two, and a definition that several places refer to is one.

use std::{ops::Range, path::PathBuf};

use cog_json::{Node, Value};

use crate::{Origin, files, source::Source};

/// A place in a file of the module that names a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The file.
    pub file: PathBuf,
    /// The bytes of the name in the file, without quotes.
    pub range: Range<usize>,
    /// The fields that are meant: several if the file has only a name that several fields have.
    pub fields: Vec<String>,
    /// Whether it is the key of the field in the schema.
    pub is_definition: bool,
}

/// Returns all places, in the order of the files: schema, manifest, prompt, golden tests.
///
/// Files that cannot be read or parsed have none. Modules of the format v0 have none, because their schema is in two files.
pub fn mentions(origin: &Origin) -> Vec<Mention> {
    let Some(schema) = SchemaFile::read(origin) else { return Vec::new() };
    let mut found = Found { schema: &schema, list: Vec::new() };
    found.in_schema();
    for name in ["module.yaml", "MODULE.md"] {
        found.in_source(origin, name, Found::in_conditions);
    }
    for name in ["prompt.md", "MODULE.md"] {
        found.in_source(origin, name, Found::in_prompt);
    }
    for name in origin.file_names_in("tests") {
        let part = if name.ends_with(".input.json") { "input" } else { "data" };
        if name.ends_with(".input.json") || name.ends_with(".expected.json") {
            found.in_source(origin, &format!("tests/{name}"), |found, source| found.in_case(source, part));
        }
    }
    found.list
}

/// A field of the input or of the data, as conditions name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    /// The path, such as `data.items[*].price`.
    pub path: String,
    /// The JSON pointer of its schema, as in [`Mention::fields`].
    pub field: String,
    /// Its type and its description.
    pub about: String,
}

/// The maximum number of fields, and of names in a path.
const MAX_PATHS: usize = 1000;
const MAX_NAMES: usize = 6;

/// Returns the fields of the data and of the input, in the order of the schema, up to six names deep.
pub fn field_paths(origin: &Origin) -> Vec<FieldPath> {
    let Some(schema) = SchemaFile::read(origin) else { return Vec::new() };
    let mut paths = Vec::new();
    for part in ["data", "input"] {
        schema.add_paths(part, &format!("/{part}"), MAX_NAMES, &mut paths);
    }
    paths
}

/// The schema as text and tree, and its fields.
struct SchemaFile {
    source: Source,
    tree: Value,
    /// The pointer of each field, in the order of the text.
    fields: Vec<String>,
}

impl SchemaFile {
    fn read(origin: &Origin) -> Option<Self> {
        let source = origin.read("schema.json", files::MAX_PART).ok()?;
        let tree = Value::parse(&source.text).ok()?;
        let mut fields = Vec::new();
        // A schema is at most as deep as the parser allows.
        let mut open = vec![(String::new(), tree.node())];
        while let Some((pointer, node)) = open.pop() {
            let properties = node.get("properties").into_iter().flat_map(Node::members);
            fields.extend(properties.map(|(name, _)| format!("{pointer}/properties/{}", escaped(name))));
            open.extend(
                node.members().map(|(name, member)| (format!("{pointer}/{}", escaped(name)), member)),
            );
            let items = node.elements().enumerate();
            open.extend(items.map(|(index, item)| (format!("{pointer}/{index}"), item)));
        }
        // A field with the name `properties` looks like the keyword to the walk above.
        fields.retain(|pointer| is_field(pointer));
        fields.sort_by_key(|pointer| tree.pointer(pointer).map(Node::offset));
        Some(Self { source, tree, fields })
    }

    /// Returns the field of a name in the objects of a schema: through references and the branches of its combinations.
    fn field(&self, schema: &str, name: &str) -> Option<String> {
        self.search(schema, MAX_REFERENCES, &|schema| {
            let pointer = format!("{schema}/properties/{}", escaped(name));
            self.tree.pointer(&pointer).map(|_| pointer)
        })
    }

    /// Returns the schema of the elements of an array.
    fn items(&self, schema: &str) -> Option<String> {
        self.search(schema, MAX_REFERENCES, &|schema| {
            let pointer = format!("{schema}/items");
            self.tree.pointer(&pointer).filter(|items| items.is_object()).map(|_| pointer)
        })
    }

    fn search(&self, schema: &str, left: usize, find: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let node = self.tree.pointer(schema)?;
        if left == 0 {
            return None;
        }
        if let Some(found) = find(schema) {
            return Some(found);
        }
        if let Some(target) = node.get_str("$ref").and_then(|reference| reference.strip_prefix('#')) {
            return self.search(target, left - 1, find);
        }
        let single = ["then", "else"].into_iter().map(|keyword| format!("{schema}/{keyword}"));
        let several = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|keyword| {
            let count = node.get(keyword).map_or(0, Node::len);
            (0..count).map(move |index| format!("{schema}/{keyword}/{index}"))
        });
        several.chain(single).find_map(|branch| self.search(&branch, left - 1, find))
    }

    /// Adds the fields of the objects of a schema, each followed by its own.
    fn add_paths(&self, path: &str, schema: &str, left: usize, paths: &mut Vec<FieldPath>) {
        let names = self.search(schema, MAX_REFERENCES, &|schema| {
            let pointer = format!("{schema}/properties");
            self.tree.pointer(&pointer).map(|_| pointer)
        });
        let Some(pointer) = names.filter(|_| left > 0) else { return };
        for (name, node) in self.tree.pointer(&pointer).into_iter().flat_map(Node::members) {
            if paths.len() == MAX_PATHS {
                return;
            }
            let path = format!("{path}.{name}");
            let field = format!("{pointer}/{}", escaped(name));
            paths.push(FieldPath { path: path.clone(), field: field.clone(), about: about(node) });
            match self.items(&field) {
                Some(items) => self.add_paths(&format!("{path}[*]"), &items, left - 1, paths),
                None => self.add_paths(&path, &field, left - 1, paths),
            }
        }
    }

    /// Returns the fields with a name, in any object.
    fn named(&self, name: &str) -> Vec<String> {
        let name = escaped(name);
        let fields = self.fields.iter().filter(|pointer| last(pointer) == name);
        fields.cloned().collect()
    }
}

/// The maximum number of references and branches that lead to a field.
const MAX_REFERENCES: usize = 16;

/// Returns whether a pointer ends with a name of `properties`, the keyword and not a field with this name.
fn is_field(pointer: &str) -> bool {
    let mut keyword = "";
    let mut is_field = false;
    for token in pointer.split('/').skip(1) {
        is_field = keyword == "properties";
        keyword = match token {
            "properties" | "$defs" | "definitions" | "patternProperties" if keyword.is_empty() => token,
            _ => "",
        };
    }
    is_field
}

struct Found<'a> {
    schema: &'a SchemaFile,
    list: Vec<Mention>,
}

impl Found<'_> {
    fn in_source(&mut self, origin: &Origin, name: &str, read: impl FnOnce(&mut Self, &Source)) {
        if let Ok(source) = origin.read(name, files::MAX_CASE) {
            read(self, &source);
        }
    }

    fn add(&mut self, source: &Source, range: Range<usize>, fields: Vec<String>) {
        if !fields.is_empty() {
            self.list.push(Mention { file: source.path.clone(), range, fields, is_definition: false });
        }
    }

    /// Finds the keys of `properties`, and the names in `required`.
    fn in_schema(&mut self) {
        let schema = self.schema;
        for field in &schema.fields {
            let Some(node) = schema.tree.pointer(field) else { continue };
            if let Some(range) = key_before(&schema.source.text, node, &unescaped(last(field))) {
                self.add(&schema.source, range, vec![field.clone()]);
                self.list.iter_mut().last().into_iter().for_each(|mention| mention.is_definition = true);
            }
            let object = field.rsplitn(3, '/').nth(2).unwrap_or_default();
            let required = schema.tree.pointer(&format!("{object}/required"));
            for name in required.into_iter().flat_map(Node::elements) {
                if name.as_str().is_some_and(|text| escaped(text) == last(field)) {
                    self.add(&schema.source, string_range(name), vec![field.clone()]);
                }
            }
        }
    }

    /// Finds the paths of conditions: `$.data.items[*].price`, and `@.price` of the elements of the list before it.
    fn in_conditions(&mut self, source: &Source) {
        for (start, line) in lines(&source.text) {
            let mut element = None;
            for (at, sign) in line.match_indices(['$', '@']) {
                let rest = line.get(at + 1..).unwrap_or_default();
                let (schema, from) = match (sign, &element) {
                    ("$", _) => match ["data", "input"].into_iter().find(|part| begins_with_name(rest, part))
                    {
                        Some(part) => (format!("/{part}"), at + 2 + part.len()),
                        None => continue,
                    },
                    (_, Some(element)) => (String::clone(element), at + 1),
                    (_, None) => continue,
                };
                let end = self.in_path(source, start + from, &schema);
                if sign == "$" {
                    element = end;
                }
            }
        }
    }

    /// Finds the names of a path that begins at an offset of a file and in a schema. Returns the schema of its elements.
    fn in_path(&mut self, source: &Source, offset: usize, schema: &str) -> Option<String> {
        let mut schema = schema.to_owned();
        let mut offset = offset;
        loop {
            let rest = source.text.get(offset..).unwrap_or_default();
            if let Some(inner) = rest.strip_prefix('[') {
                let end = inner.find(']')?;
                schema = self.schema.items(&schema)?;
                offset += end + 2;
            } else if let Some(name) = rest.strip_prefix('.').map(name_at).filter(|name| !name.is_empty()) {
                let field = self.schema.field(&schema, name)?;
                self.add(source, offset + 1..offset + 1 + name.len(), vec![field.clone()]);
                schema = field;
                offset += 1 + name.len();
            } else {
                // Where a list is expected, the path of an array means its elements.
                return Some(self.schema.items(&schema).unwrap_or(schema));
            }
        }
    }

    /// Finds names between backticks, and keys of JSON in fenced blocks.
    fn in_prompt(&mut self, source: &Source) {
        let mut is_fenced = false;
        for (start, line) in lines(&source.text) {
            if line.trim_start().starts_with("```") {
                is_fenced = !is_fenced;
            } else if is_fenced {
                self.quoted(source, start, line, '"');
            } else {
                self.quoted(source, start, line, '`');
            }
        }
    }

    fn quoted(&mut self, source: &Source, start: usize, line: &str, quote: char) {
        let mut offset = 0;
        for (index, part) in line.split(quote).enumerate() {
            let range = start + offset..start + offset + part.len();
            offset += part.len() + 1;
            let is_key = quote != '"' || line.get(offset..).unwrap_or_default().trim_start().starts_with(':');
            if index % 2 == 0 || !is_key {
                continue;
            }
            let base = part.split(['.', '[']).next().unwrap_or_default();
            if name_at(part) == part {
                self.add(source, range, self.schema.named(part));
            } else if ["data", "input"].contains(&base) {
                self.in_path(source, range.start + base.len(), &format!("/{base}"));
            }
        }
    }

    /// Finds the keys of an input or an answer, and the paths of expectations.
    fn in_case(&mut self, source: &Source, part: &str) {
        let Ok(tree) = Value::parse(&source.text) else { return };
        let root = tree.node();
        let data = root.get("data").filter(|_| part == "data" && root.get("ok").is_some());
        let mut open = vec![(format!("/{part}"), data.unwrap_or(root))];
        while let Some((schema, node)) = open.pop() {
            for (name, member) in node.members() {
                let Some(field) = self.schema.field(&schema, name) else { continue };
                if let Some(range) = key_before(&source.text, member, name) {
                    self.add(source, range, vec![field.clone()]);
                }
                open.push((field, member));
            }
            if let Some(items) = self.schema.items(&schema) {
                open.extend(node.elements().map(|item| (items.clone(), item)));
            }
        }
        if part == "data" {
            self.in_expectations(source);
        }
    }

    /// Finds the paths of expectations: strings and keys such as `"data.issues[0].risk"`.
    fn in_expectations(&mut self, source: &Source) {
        for (at, _) in source.text.match_indices("\"data.") {
            self.in_path(source, at + "\"data".len(), "/data");
        }
    }
}

/// Returns the lines of text with their offsets.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |offset, line| {
        let start = *offset;
        *offset += line.len();
        Some((start, line.trim_end_matches(['\n', '\r'])))
    })
}

/// Returns whether text begins with `.NAME` and not with a longer name.
fn begins_with_name(text: &str, name: &str) -> bool {
    text.strip_prefix('.').is_some_and(|rest| name_at(rest) == name)
}

/// Returns the name at the start of text, as conditions have it.
fn name_at(text: &str) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Returns the range of the key of a value: the quoted name before it, with only a colon and white space between.
pub(crate) fn key_before(text: &str, value: Node<'_>, name: &str) -> Option<Range<usize>> {
    let quoted = format!("\"{name}\"");
    let before = text.get(..value.offset())?;
    let start = before.rfind(&quoted)?;
    let between = before.get(start + quoted.len()..)?;
    let is_key = between.trim_matches(|c: char| c.is_ascii_whitespace() || c == ':' || c == '"').is_empty();
    is_key.then(|| start + 1..start + quoted.len() - 1)
}

/// Returns the type of a field, the values that it may have, and its description.
fn about(schema: Node<'_>) -> String {
    let kind = schema.get_str("type").map(str::to_owned);
    let values = schema.get("enum").filter(|values| values.len() <= 20).map(|values| values.to_string());
    let description = schema.get_str("description").map(str::to_owned);
    [kind, values, description].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

fn string_range(node: Node<'_>) -> Range<usize> {
    node.offset()..node.offset() + node.as_str().map_or(0, str::len)
}

/// Returns the last name of a pointer, escaped.
fn last(pointer: &str) -> &str {
    pointer.rsplit_once('/').map_or(pointer, |(_, name)| name)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests;
