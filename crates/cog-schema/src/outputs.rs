//! The fields for media in an answer (SPEC 2.3, `MediaOutput`).

use cog_json::{Node, Path, Segment, Value};

use crate::{
    contract::Contract,
    graph::{Id, PathStack, SchemaNode, Visit, WalkFilter},
};

/// The members that contain or locate the file. An object with one of them is complete.
const CONTENT: [&str; 3] = ["data", "url", "path"];

/// The maximum number of values that are searched for free fields.
const MAX_VISITED: usize = 10_000;

/// A field of the data that contains a media file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaSlot {
    /// Its path, from `data`.
    pub path: Path,
    /// The allowed members; none if all are allowed.
    members: Option<Vec<String>>,
    /// The allowed values of its `type`.
    forms: Vec<&'static str>,
}

/// A media file that is to be inserted into an answer.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// Its type, `image/png`.
    pub media_type: &'a str,
    /// How it is delivered: `base64`, `file` or `url`. A field that allows only base64 accepts it too.
    pub form: &'a str,
}

/// A free field: for one file, or for several at the end of a list.
struct FreeField {
    path: Path,
    /// All schemas that can apply to the file.
    schemas: Vec<Id>,
    /// For a list: the next index, and the number of items that it still accepts.
    list: Option<(usize, usize)>,
}

impl MediaSlot {
    /// Returns whether the field accepts this form: `base64`, `file` or `url`.
    pub fn takes(&self, form: &str) -> bool {
        self.forms.contains(&form)
    }

    /// Returns whether its object can have this member.
    pub fn allows(&self, member: &str) -> bool {
        self.members.as_ref().is_none_or(|members| members.iter().any(|allowed| allowed == member))
    }
}

impl Contract {
    /// Returns whether the data schema has a media field at any depth.
    pub fn has_media_outputs(&self) -> bool {
        self.data.as_ref().is_some_and(|part| self.graph.sees(part.id, WalkFilter::OUTPUT))
    }

    /// Returns whether the data schema has media fields at or below a path.
    pub fn has_media_outputs_at(&self, path: &Path) -> bool {
        let Some(part) = &self.data else { return false };
        let ids = self.graph.follow(part.id, path.segments().skip(1));
        ids.iter().any(|id| self.graph.sees(*id, WalkFilter::OUTPUT))
    }

    /// Returns the media fields of data that contain an object with content, in the order of the data.
    pub fn media_outputs(&self, data: Node<'_>) -> Vec<MediaSlot> {
        let Some(part) = &self.data else { return Vec::new() };
        let mut walk = OutputWalk { paths: Vec::new() };
        self.graph.walk(&[part.id], data, &PathStack::root("data"), &mut walk);
        let slots = walk.paths.into_iter().map(|path| {
            let schemas = self.graph.follow_possible(part.id, path.segments().skip(1));
            MediaSlot { members: self.members_of(&schemas), forms: self.forms_of(&schemas), path }
        });
        slots.collect()
    }

    /// Returns a field for each media file: the first free field that accepts its type, in the order of the schema; none
    /// if there is no such field.
    ///
    /// A field is free if it is absent, null, or an object without content. A list accepts up to `maxItems` files.
    pub fn place_media(&self, data: Node<'_>, media: &[Placement<'_>]) -> Vec<Option<MediaSlot>> {
        let mut free = Vec::new();
        if let Some(part) = &self.data {
            let mut search = SlotSearch { contract: self, free: &mut free, within: Vec::new(), visited: 0 };
            let mut path = Path::root();
            path.push_key("data");
            search.value(&[part.id], Some(data), &mut path);
        }
        media.iter().map(|one| self.take(&mut free, *one)).collect()
    }

    fn take(&self, free: &mut Vec<FreeField>, file: Placement<'_>) -> Option<MediaSlot> {
        let at = free.iter().position(|field| self.takes(&field.schemas, file))?;
        let field = free.get_mut(at)?;
        let mut path = field.path.clone();
        let members = self.members_of(&field.schemas);
        let forms = self.forms_of(&field.schemas);
        match &mut field.list {
            Some((next, room)) if *room > 1 => {
                path.push_index(*next);
                *next += 1;
                *room -= 1;
            }
            list => {
                list.iter().for_each(|(next, _)| path.push_index(*next));
                free.remove(at);
            }
        }
        Some(MediaSlot { path, members, forms })
    }

    /// Returns whether the schemas of a field accept a file, in its form or as base64.
    fn takes(&self, schemas: &[Id], file: Placement<'_>) -> bool {
        let forms = [file.form, "base64"];
        self.agree(schemas, "media_type", file.media_type)
            && forms.iter().any(|form| self.agree(schemas, "type", form))
    }

    fn forms_of(&self, schemas: &[Id]) -> Vec<&'static str> {
        ["base64", "file", "url"].into_iter().filter(|form| self.agree(schemas, "type", form)).collect()
    }

    /// Returns whether a member can have this value: for all schemas that certainly apply, and for one that describes a
    /// media file.
    fn agree(&self, schemas: &[Id], member: &str, value: &str) -> bool {
        let value = Value::from(serde_json::Value::from(value));
        schemas
            .iter()
            .any(|id| self.graph.get(*id).is_output && self.allows_member(*id, member, value.node()))
            && schemas.first().is_some_and(|id| self.allows_member(*id, member, value.node()))
    }

    /// Returns whether all schemas that certainly apply allow a value of a member.
    fn allows_member(&self, id: Id, member: &str, value: Node<'_>) -> bool {
        self.graph.certain(id).all(|shape| {
            let check = shape.property(member).and_then(|id| self.check_of(id));
            check.is_none_or(|check| check.accepts(value))
        })
    }

    /// Returns the allowed members of an object, if the schemas close it.
    fn members_of(&self, schemas: &[Id]) -> Option<Vec<String>> {
        let closed = schemas.iter().map(|id| self.graph.get(*id)).filter(|shape| shape.is_closed());
        let names = closed.map(|shape| shape.properties().map(|(name, _)| name.to_owned()).collect());
        names.reduce(|allowed: Vec<String>, other: Vec<String>| {
            allowed.into_iter().filter(|name| other.contains(name)).collect()
        })
    }
}

/// Searches free fields.
struct SlotSearch<'a> {
    contract: &'a Contract,
    free: &'a mut Vec<FreeField>,
    /// The schemas of the values on the current path: none of them is entered again, so the search ends.
    within: Vec<Id>,
    visited: usize,
}

impl SlotSearch<'_> {
    /// Visits a field; `node` is its value, if it has one.
    fn value(&mut self, ids: &[Id], node: Option<Node<'_>>, path: &mut Path) {
        let graph = &self.contract.graph;
        let schemas = graph.all_possible(ids);
        self.visited += 1;
        if self.visited > MAX_VISITED || !schemas.iter().any(|id| graph.sees(*id, WalkFilter::OUTPUT)) {
            return;
        }
        let node = node.filter(|node| !node.is_null());
        if schemas.iter().any(|id| graph.get(*id).is_output) {
            if node.is_none_or(is_stub) {
                self.free.push(FreeField { path: path.clone(), schemas, list: None });
            }
        } else if node.is_some() || !schemas.iter().any(|id| self.within.contains(id)) {
            let before = self.within.len();
            self.within.extend(&schemas);
            self.inside(&schemas, node, path);
            self.within.truncate(before);
        }
    }

    fn inside(&mut self, schemas: &[Id], node: Option<Node<'_>>, path: &mut Path) {
        if node.is_none_or(Node::is_array) {
            self.elements(schemas, node, path);
        }
        if node.is_none_or(Node::is_object) {
            self.members(schemas, node, path);
        }
    }

    fn members(&mut self, schemas: &[Id], node: Option<Node<'_>>, path: &mut Path) {
        let graph = &self.contract.graph;
        let mut names: Vec<&str> = Vec::new();
        let named = schemas.iter().flat_map(|id| graph.get(*id).properties()).map(|(name, _)| name);
        let present = node.into_iter().flat_map(Node::members).map(|(name, _)| name);
        for name in named.chain(present) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            // An object with other required members cannot be created.
            if node.is_some() || schemas.iter().all(|id| self.contract.requires_nothing_but(*id, name)) {
                let ids = graph.inside(schemas, Segment::Key(name));
                path.push_key(name);
                self.value(&ids, node.and_then(|node| node.get(name)), path);
                path.pop();
            }
        }
    }

    fn elements(&mut self, schemas: &[Id], node: Option<Node<'_>>, path: &mut Path) {
        let graph = &self.contract.graph;
        let mut length = 0;
        for element in node.into_iter().flat_map(Node::elements) {
            let ids = graph.inside(schemas, Segment::Index(length));
            path.push_index(length);
            self.value(&ids, Some(element), path);
            path.pop();
            length += 1;
        }
        let further = graph.all_possible(&graph.inside(schemas, Segment::Index(length)));
        let room = self.contract.max_items(schemas).saturating_sub(length);
        if room > 0 && further.iter().any(|id| graph.get(*id).is_output) {
            self.free.push(FreeField { path: path.clone(), schemas: further, list: Some((length, room)) });
        }
    }
}

impl Contract {
    fn requires_nothing_but(&self, id: Id, key: &str) -> bool {
        let required = self.keyword(self.graph.get(id), "required").and_then(serde_json::Value::as_array);
        required.is_none_or(|keys| keys.iter().all(|other| other == key))
    }

    fn max_items(&self, schemas: &[Id]) -> usize {
        let limits = schemas
            .iter()
            .filter_map(|id| usize::try_from(self.keyword(self.graph.get(*id), "maxItems")?.as_u64()?).ok());
        limits.min().unwrap_or(usize::MAX)
    }
}

/// Returns whether an object describes a media file without content.
fn is_stub(node: Node<'_>) -> bool {
    let mut content = CONTENT.iter().filter_map(|member| node.get(member));
    node.is_object() && !content.any(|content| !content.is_null() && content.as_str() != Some(""))
}

struct OutputWalk {
    paths: Vec<Path>,
}

impl Visit for OutputWalk {
    fn filter(&self) -> WalkFilter {
        WalkFilter::OUTPUT
    }

    fn value(&mut self, shape: &SchemaNode, node: Node<'_>, stack: &PathStack<'_>) {
        if shape.is_output && node.is_object() && !is_stub(node) {
            self.paths.push(stack.path());
            self.paths.dedup();
        }
    }
}

// The contract for a model that generates media together with its text.

impl Contract {
    /// Returns the contract without its media fields, and their names, for a model that generates media together with its text;
    /// none if there are no media fields.
    pub fn without_media_outputs(&self) -> Option<(Contract, Vec<String>)> {
        let mut document = self.document().clone();
        let mut omitted: Vec<String> = Vec::new();
        for shape in self.graph.iter() {
            let fields = shape.properties().filter(|(_, id)| self.is_media_output(*id)).map(|(name, _)| name);
            let fields: Vec<&str> = fields.collect();
            if let Some(schema) = document.pointer_mut(&shape.pointer).filter(|_| !fields.is_empty()) {
                omit(schema, &fields);
                omitted.extend(fields.into_iter().map(str::to_owned));
            }
        }
        omitted.sort_unstable();
        omitted.dedup();
        let contract = Contract::compile(&document, &self.rules).ok()?;
        (!omitted.is_empty()).then_some((contract, omitted))
    }

    fn is_media_output(&self, id: Id) -> bool {
        let items = self.graph.possible(id).filter_map(SchemaNode::list_items);
        let mut ids = std::iter::once(id).chain(items);
        ids.any(|id| self.graph.possible(id).any(|shape| shape.is_output))
    }
}

fn omit(schema: &mut serde_json::Value, fields: &[&str]) {
    if let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        properties.retain(|name, _| !fields.contains(&name.as_str()));
    }
    if let Some(required) = schema.get_mut("required").and_then(serde_json::Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(|name| fields.contains(&name)));
    }
}

// The media fields that an answer can or must contain.

/// A media field that the schema defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSlot {
    /// Its path, from `data`; for a list, its first item.
    pub path: Path,
    /// Whether every answer must contain it.
    pub is_required: bool,
    /// The requested types that it accepts.
    pub types: Vec<&'static str>,
}

impl Contract {
    /// Returns the media fields that the schema defines, along objects and the first items of lists, with the types that
    /// each accepts in this form.
    pub fn named_media_outputs(&self, types: &[&'static str], form: &str) -> Vec<NamedSlot> {
        let mut found = Vec::new();
        if let Some(part) = &self.data {
            let mut path = Path::root();
            path.push_key("data");
            let slots = NamedSlots { contract: self, types, form };
            slots.value(&[part.id], true, &mut path, &mut Vec::new(), &mut found);
        }
        found
    }
}

struct NamedSlots<'a> {
    contract: &'a Contract,
    types: &'a [&'static str],
    form: &'a str,
}

impl NamedSlots<'_> {
    fn value(
        &self,
        ids: &[Id],
        is_required: bool,
        path: &mut Path,
        within: &mut Vec<Id>,
        found: &mut Vec<NamedSlot>,
    ) {
        let graph = &self.contract.graph;
        let schemas = graph.all_possible(ids);
        let has_no_media = !schemas.iter().any(|id| graph.sees(*id, WalkFilter::OUTPUT));
        if has_no_media || schemas.iter().any(|id| within.contains(id)) || found.len() >= MAX_FIELDS {
            return;
        }
        if schemas.iter().any(|id| graph.get(*id).is_output) {
            let is_accepted =
                |media_type: &&&str| self.contract.takes(&schemas, Placement { media_type, form: self.form });
            let types = self.types.iter().filter(is_accepted).copied().collect();
            return found.push(NamedSlot { path: path.clone(), is_required, types });
        }
        let before = within.len();
        within.extend(&schemas);
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in schemas.iter().flat_map(|id| graph.get(*id).properties()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let is_required = is_required && ids.iter().any(|id| self.contract.requires(*id, name));
            path.push_key(name);
            self.value(&graph.inside(&schemas, Segment::Key(name)), is_required, path, within, found);
            path.pop();
        }
        let is_required = is_required && schemas.iter().any(|id| self.requires_items(*id));
        path.push_index(0);
        self.value(&graph.inside(&schemas, Segment::Index(0)), is_required, path, within, found);
        path.pop();
        within.truncate(before);
    }

    fn requires_items(&self, id: Id) -> bool {
        let min = self
            .contract
            .keyword(self.contract.graph.get(id), "minItems")
            .and_then(serde_json::Value::as_u64);
        min.is_some_and(|min| min > 0)
    }
}

/// The maximum number of fields that are returned.
const MAX_FIELDS: usize = 64;

#[cfg(test)]
mod tests;
