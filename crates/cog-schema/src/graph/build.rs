//! Builds the graph.

use std::collections::HashMap;

use cog_json::Key;
use serde_json::Value;

use super::{FastPath, Id, Links, Rest, SchemaGraph, SchemaNode, WalkFilter};
use crate::{
    document::Document,
    engine::Pattern,
    subschema::{followed, names, referred, token},
    violation::SchemaError,
};

/// The maximum number of schemas that apply to one value.
const MAX_AT_ONCE: usize = 512;

impl SchemaGraph {
    /// Reads the schemas of a document. `tag` is the member with the value of an extensible enum.
    ///
    /// # Errors
    /// If too many schemas apply to one value, or are nested too deeply.
    pub(crate) fn build(document: &Document, tag: &str) -> Result<Self, SchemaError> {
        let (references, schemas): (Vec<&String>, Vec<&String>) =
            document.schemas.iter().partition(|pointer| reference_at(document, pointer).is_some());
        let ids = schemas.iter().zip(0..).map(|(pointer, number)| ((*pointer).clone(), Id(number)));
        let mut by_pointer: HashMap<String, Id> = ids.collect();
        for pointer in references {
            resolve_chain(document, pointer, &mut by_pointer);
        }
        let builder = Builder { document, by_pointer, tag };
        let nodes = schemas.iter().map(|pointer| builder.node(pointer)).collect();
        let mut graph = Self { nodes, by_pointer: builder.by_pointer, is_wide: false };
        graph.close()?;
        graph.spread_filters();
        graph.is_wide = graph.measure()?;
        Ok(graph)
    }

    /// Computes which schemas apply together with each schema.
    fn close(&mut self) -> Result<(), SchemaError> {
        let mut seen = vec![None; self.nodes.len()];
        for number in 0..self.nodes.len() {
            let id = Id(number as u32);
            let certain = self.closure(id, &mut seen, |shape| shape.links.all.clone())?;
            // The marks name the schema that they were set for, and the second walk is for the same one.
            seen.fill(None);
            let possible = self.closure(id, &mut seen, |shape| {
                shape.links.all.iter().copied().chain(shape.links.branches()).collect()
            })?;
            if let Some(shape) = self.nodes.get_mut(number) {
                shape.certain = certain;
                shape.possible = possible;
            }
        }
        Ok(())
    }

    /// Returns a schema and all schemas that follow from it; `seen` marks the schema that each was last visited for.
    fn closure<'a>(
        &'a self,
        id: Id,
        seen: &mut [Option<Id>],
        next: impl Fn(&'a SchemaNode) -> Vec<Id>,
    ) -> Result<Vec<Id>, SchemaError> {
        let mut closure = vec![id];
        let mut done = 0;
        while let Some(here) = closure.get(done).copied() {
            done += 1;
            for further in next(self.get(here)) {
                match seen.get_mut(further.index()) {
                    Some(last) if *last != Some(id) && further != id => {
                        *last = Some(id);
                        closure.push(further);
                    }
                    _ => {}
                }
            }
        }
        match closure.len() {
            0..=MAX_AT_ONCE => Ok(closure),
            count => {
                let message =
                    format!("{count} schemas apply to the same value; the maximum is {MAX_AT_ONCE}");
                Err(SchemaError::new(&self.get(id).pointer, message)
                    .suggest("Shorten the chain of references."))
            }
        }
    }

    /// Adds to every schema the kinds of values below it, until nothing changes.
    fn spread_filters(&mut self) {
        // From the last schema to the first, because schemas mostly lead to later ones. Only recursion needs further rounds.
        let mut changed = true;
        while changed {
            changed = false;
            for number in (0..self.nodes.len()).rev() {
                let id = Id(number as u32);
                let below =
                    self.below(id).fold(WalkFilter::default(), |sum, one| sum.with(self.get(one).filter));
                if let Some(shape) = self.nodes.get_mut(number) {
                    let sum = shape.filter.with(below);
                    changed |= sum != shape.filter;
                    shape.filter = sum;
                }
            }
        }
        for number in 0..self.nodes.len() {
            let relevant = self.relevant(Id(number as u32));
            if let Some(shape) = self.nodes.get_mut(number) {
                shape.relevant = relevant;
            }
        }
    }

    fn relevant(&self, id: Id) -> Vec<(Key, Id)> {
        let properties = self.get(id).properties();
        let properties = properties.filter(|(_, id)| self.get(*id).filter != WalkFilter::default());
        properties.map(|(name, id)| (Key::new(name), id)).collect()
    }

    pub(super) fn below(&self, id: Id) -> impl Iterator<Item = Id> {
        let shape = self.get(id);
        let rest = match shape.rest {
            Rest::Like(id) => Some(id),
            Rest::Unspecified | Rest::Closed => None,
        };
        let members = shape.properties().map(|(_, id)| id).chain(shape.patterns.iter().map(|(_, id)| *id));
        let items = shape.items.iter().copied().chain(shape.further_items).chain(rest);
        members.chain(items).chain(shape.links.all.iter().copied()).chain(shape.links.branches())
    }
}

/// Returns the target of a schema that is a reference.
fn reference_at(document: &Document, pointer: &str) -> Option<String> {
    document.value.pointer(pointer).and_then(referred)
}

/// Maps a chain of references to the schema at its end; there are no circular references.
fn resolve_chain(document: &Document, pointer: &str, by_pointer: &mut HashMap<String, Id>) {
    let mut chain = vec![pointer.to_owned()];
    while let Some(next) = chain.last().and_then(|last| reference_at(document, last)) {
        if let Some(id) = by_pointer.get(&next).copied() {
            by_pointer.extend(chain.into_iter().map(|pointer| (pointer, id)));
            return;
        }
        chain.push(next);
    }
}

struct Builder<'a> {
    document: &'a Document,
    by_pointer: HashMap<String, Id>,
    tag: &'a str,
}

impl Builder<'_> {
    fn node(&self, pointer: &str) -> SchemaNode {
        let schema = self.document.value.pointer(pointer).unwrap_or(&Value::Null);
        let mut shape = SchemaNode { pointer: pointer.to_owned(), ..SchemaNode::default() };
        shape.is_media = self.document.media.iter().any(|media| media == pointer);
        shape.is_output = is_output(pointer, schema);
        self.read_members(pointer, schema, &mut shape);
        self.read_items(pointer, schema, &mut shape);
        shape.links = Links::read(schema, |child| self.id(&format!("{pointer}{child}")));
        shape.is_extensible_enum = self.is_extensible_enum(schema);
        shape.filter = filter(&shape);
        shape.fast_path = FastPath::read(schema, &shape);
        shape
    }

    fn read_members(&self, pointer: &str, schema: &Value, shape: &mut SchemaNode) {
        let properties = self.named(schema, pointer, "properties");
        shape.properties = Names::new(properties.map(|(name, id)| (name.as_str().into(), id)).collect());
        let undefined = names(schema.get("required")).filter(|name| shape.property(name).is_none());
        shape.required = undefined.map(Box::from).collect();
        let patterns = self.named(schema, pointer, "patternProperties");
        shape.patterns = patterns.filter_map(|(text, id)| Some((Pattern::new(text).ok()?, id))).collect();
        shape.rest = match schema.get("additionalProperties") {
            None => Rest::Unspecified,
            Some(Value::Bool(false)) => Rest::Closed,
            Some(_) => {
                self.id(&format!("{pointer}/additionalProperties")).map_or(Rest::Unspecified, Rest::Like)
            }
        };
    }

    /// Returns the names in `properties` or `patternProperties` with their schemas.
    fn named<'b>(
        &'b self,
        schema: &'b Value,
        pointer: &'b str,
        keyword: &'b str,
    ) -> impl Iterator<Item = (&'b String, Id)> {
        let members = schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
        members.filter_map(move |(name, _)| {
            Some((name, self.id(&format!("{pointer}/{keyword}/{}", token(name)))?))
        })
    }

    fn read_items(&self, pointer: &str, schema: &Value, shape: &mut SchemaNode) {
        match schema.get("items") {
            Some(Value::Array(list)) => {
                let tuple = (0..list.len()).filter_map(|index| self.id(&format!("{pointer}/items/{index}")));
                shape.items = tuple.collect();
                // If additional items are not allowed, the array is invalid, not its items.
                let is_closed = schema.get("additionalItems") == Some(&Value::Bool(false));
                shape.further_items = self.id(&format!("{pointer}/additionalItems")).filter(|_| !is_closed);
            }
            Some(_) => shape.further_items = self.id(&format!("{pointer}/items")),
            None => {}
        }
    }

    /// Returns whether a schema is a choice between an enum and an object that requires the tag and a reason.
    fn is_extensible_enum(&self, schema: &Value) -> bool {
        let branches = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array);
        let Some([first, second]) = branches.map(Vec::as_slice) else { return false };
        let first = followed(&self.document.value, first);
        let second = followed(&self.document.value, second);
        (is_enum(first) && is_custom(second, self.tag)) || (is_enum(second) && is_custom(first, self.tag))
    }

    fn id(&self, pointer: &str) -> Option<Id> {
        self.by_pointer.get(pointer).copied()
    }
}

fn filter(shape: &SchemaNode) -> WalkFilter {
    let mut filter = WalkFilter::default();
    if shape.names_members() && shape.rest == Rest::Unspecified {
        filter = filter.with(WalkFilter::UNNAMED);
    }
    if shape.is_extensible_enum {
        filter = filter.with(WalkFilter::EXTENSIBLE_ENUM);
    }
    if shape.is_media {
        filter = filter.with(WalkFilter::MEDIA);
    }
    if shape.is_output {
        filter = filter.with(WalkFilter::OUTPUT);
    }
    filter
}

/// Returns whether a schema is `MediaOutput`, or has its structure (SPEC 2.3): one of three types, and a `media_type`.
pub(crate) fn is_output(pointer: &str, schema: &Value) -> bool {
    const FORMS: [&str; 3] = ["url", "base64", "file"];
    if ["/$defs/MediaOutput", "/definitions/MediaOutput"].contains(&pointer) {
        return true;
    }
    let forms = schema.pointer("/properties/type/enum").and_then(Value::as_array);
    let has_forms = forms.is_some_and(|forms| {
        !forms.is_empty() && forms.iter().all(|form| form.as_str().is_some_and(|form| FORMS.contains(&form)))
    });
    has_forms && schema.pointer("/properties/media_type").is_some()
}

fn is_enum(schema: &Value) -> bool {
    let values = schema.get("enum").and_then(Value::as_array);
    values.is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_string))
}

fn is_custom(schema: &Value, tag: &str) -> bool {
    [tag, "reason"].into_iter().all(|key| names(schema.get("required")).any(|other| other == key))
}

// A fast map from property names to schemas.

/// Up to this number of names, all are compared in order.
const MAX_COMPARED: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Names {
    list: Vec<(Box<str>, Id)>,
    index: HashMap<Box<str>, usize>,
}

impl Names {
    pub(super) fn new(list: Vec<(Box<str>, Id)>) -> Self {
        let index = match list.len() {
            0..=MAX_COMPARED => HashMap::new(),
            _ => list.iter().enumerate().map(|(position, (name, _))| (name.clone(), position)).collect(),
        };
        Self { list, index }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Id)> {
        self.list.iter().map(|(name, id)| (name.as_ref(), *id))
    }

    pub(super) fn find(&self, name: &str, cursor: &mut usize) -> Option<Id> {
        self.position(name, cursor).map(|(_, id)| id)
    }

    /// Returns the position and schema of a name. Answers mostly follow the order of their schema: `cursor` is the
    /// expected position of the next name.
    pub(super) fn position(&self, name: &str, cursor: &mut usize) -> Option<(usize, Id)> {
        if let Some((expected, id)) = self.list.get(*cursor)
            && is_same(expected, name)
        {
            *cursor += 1;
            return Some((*cursor - 1, *id));
        }
        let position = if self.index.is_empty() {
            self.list.iter().position(|(known, _)| **known == *name)?
        } else {
            *self.index.get(name)?
        };
        *cursor = position + 1;
        self.list.get(position).map(|(_, id)| (position, *id))
    }
}

/// Returns whether names are equal. Most are so short that calling a comparison takes longer than the comparison.
#[inline]
fn is_same(left: &str, right: &str) -> bool {
    let left = left.as_bytes();
    let right = right.as_bytes();
    if left.len() != right.len() {
        return false;
    }
    match left.len() {
        4..8 => {
            left.first_chunk::<4>() == right.first_chunk() && left.last_chunk::<4>() == right.last_chunk()
        }
        8..=16 => {
            left.first_chunk::<8>() == right.first_chunk() && left.last_chunk::<8>() == right.last_chunk()
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_is_after_the_name_that_was_found() {
        for count in [3, 40] {
            let names = Names::new((0..count).map(|n| (format!("name{n}").into(), Id(n))).collect());
            let mut cursor = 0;
            for (name, after) in [("name0", 1), ("name2", 3), ("name1", 2), ("name2", 3), ("other", 3)] {
                let found = names.position(name, &mut cursor);
                assert_eq!((found.is_some(), cursor), (name != "other", after), "{name}");
            }
            assert_eq!((names.len(), names.find("name2", &mut 0)), (count as usize, Some(Id(2))));
        }
    }

    #[test]
    fn compares_every_letter() {
        let name = "abcdefghijklmnopqrst";
        for end in 0..name.len() {
            let left = &name[..end];
            let other = name[..end].to_uppercase();
            assert!(is_same(left, &name[..end]) && !is_same(left, &name[..=end]));
            for position in 0..end {
                let right =
                    format!("{}{}{}", &left[..position], &other[position..=position], &left[position + 1..]);
                assert!(!is_same(left, &right), "{left} {right}");
            }
        }
    }
}
