//! Where media stand in an answer (SPEC 2.3, `MediaOutput`).

mod needed;
mod omitted;

use cog_json::{Node, Path, Segment, Value};

use crate::contract::Contract;
use crate::shape::{Id, PathStack, SchemaNode, Visit, WalkFilter};

pub use self::needed::NamedSlot;

/// Members in which the medium itself is; an object that has one of them holds it already.
const CONTENT: [&str; 3] = ["data", "url", "path"];

/// More values than these are not looked at for free places.
const MAX_LOOKS: usize = 10_000;

/// A place of the data that holds a medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaSlot {
    /// The place, from `data`.
    pub path: Path,
    /// The members that it may have; none where it may have any.
    members: Option<Vec<String>>,
    /// The words that its `type` may be.
    forms: Vec<&'static str>,
}

/// A medium that is to be put into an answer.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// Its type, `image/png`.
    pub media_type: &'a str,
    /// How it is to be delivered: `base64`, `file` or `url`. A place that takes base64 alone takes it all the same.
    pub form: &'a str,
}

/// A place that is free, for one medium or, at the end of a list, for several.
struct Free {
    path: Path,
    /// All schemas that may apply to the medium.
    schemas: Vec<Id>,
    /// Of a list: the index that the next one gets, and how many it takes.
    list: Option<(usize, usize)>,
}

impl MediaSlot {
    /// Whether a medium may stand there in this form: `base64`, `file` or `url`.
    pub fn takes(&self, form: &str) -> bool {
        self.forms.contains(&form)
    }

    /// Whether the object there may have a member of this name.
    pub fn allows(&self, member: &str) -> bool {
        self.members.as_ref().is_none_or(|members| members.iter().any(|allowed| allowed == member))
    }
}

impl Contract {
    /// Whether the schema of the data has a place for media at all.
    pub fn has_media_outputs(&self) -> bool {
        self.data.as_ref().is_some_and(|part| self.shapes.sees(part.shape, WalkFilter::OUTPUT))
    }

    /// Whether there are places for media at or below a place of the data.
    pub fn has_media_outputs_at(&self, path: &Path) -> bool {
        let Some(part) = &self.data else { return false };
        let ids = self.shapes.follow(part.shape, path.segments().skip(1));
        ids.iter().any(|id| self.shapes.sees(*id, WalkFilter::OUTPUT))
    }

    /// Where media stand in data already, as objects of a place for media, in the order of the data.
    pub fn media_outputs(&self, data: Node<'_>) -> Vec<MediaSlot> {
        let mut walk = OutputWalk { paths: Vec::new() };
        if let Some(part) = &self.data {
            self.shapes.walk(&[part.shape], data, &PathStack::root("data"), &mut walk);
        }
        let held = |path: Path| {
            let schemas = self.schemas_at(&path, data);
            MediaSlot { members: self.members_of(&schemas), forms: self.forms_of(&schemas), path }
        };
        walk.paths.into_iter().map(held).collect()
    }

    /// Where media go, in their order: each into the first place that is free and takes its type, in the order of the
    /// schema. A place is free where nothing stands, a null, or an object without content; a list takes as many as its
    /// `maxItems` allows. None for what finds no place.
    pub fn place_media(&self, data: Node<'_>, media: &[Placement<'_>]) -> Vec<Option<MediaSlot>> {
        let mut free = Vec::new();
        if let Some(part) = &self.data {
            let mut seek = SlotSearch { contract: self, free: &mut free, within: Vec::new(), visited: 0 };
            let mut path = Path::root();
            path.push_key("data");
            seek.value(&[part.shape], Some(data), &mut path);
        }
        media.iter().map(|one| self.take(&mut free, *one)).collect()
    }

    fn take(&self, free: &mut Vec<Free>, medium: Placement<'_>) -> Option<MediaSlot> {
        let at = free.iter().position(|place| self.takes(&place.schemas, medium))?;
        let place = free.get_mut(at)?;
        let mut path = place.path.clone();
        let (members, forms) = (self.members_of(&place.schemas), self.forms_of(&place.schemas));
        match &mut place.list {
            Some((next, room)) if *room > 1 => {
                path.push_index(*next);
                (*next, *room) = (*next + 1, *room - 1);
            }
            list => {
                list.iter().for_each(|(next, _)| path.push_index(*next));
                free.remove(at);
            }
        }
        Some(MediaSlot { path, members, forms })
    }

    /// Whether the schemas of a place take a medium, as it is to be delivered or at least as base64.
    fn takes(&self, schemas: &[Id], medium: Placement<'_>) -> bool {
        let forms = [medium.form, "base64"];
        self.agree(schemas, "media_type", medium.media_type)
            && forms.iter().any(|form| self.agree(schemas, "type", form))
    }

    fn forms_of(&self, schemas: &[Id]) -> Vec<&'static str> {
        ["base64", "file", "url"].into_iter().filter(|form| self.agree(schemas, "type", form)).collect()
    }

    /// Whether a member may be this word: by all schemas that speak for certain, and by one that describes a medium.
    fn agree(&self, schemas: &[Id], member: &str, word: &str) -> bool {
        let word = Value::from(serde_json::Value::from(word));
        let agrees = |shape: &SchemaNode| {
            let check = shape.property(member).and_then(|id| self.check_of(id));
            check.is_none_or(|check| check.accepts(word.node()))
        };
        let describes = |id: &&Id| self.shapes.get(**id).is_output;
        schemas.iter().filter(describes).any(|id| self.shapes.certain(*id).all(agrees))
            && schemas.first().is_some_and(|id| self.shapes.certain(*id).all(agrees))
    }

    /// The members that an object may have where the schemas close it.
    fn members_of(&self, schemas: &[Id]) -> Option<Vec<String>> {
        let shut = schemas.iter().map(|id| self.shapes.get(*id)).filter(|shape| shape.is_closed());
        let names = shut.map(|shape| shape.properties().map(|(name, _)| name.to_owned()).collect());
        names.reduce(|kept: Vec<String>, other: Vec<String>| {
            kept.into_iter().filter(|name| other.contains(name)).collect()
        })
    }

    /// The schemas that may apply at a place of the data.
    fn schemas_at(&self, path: &Path, data: Node<'_>) -> Vec<Id> {
        let Some(part) = &self.data else { return Vec::new() };
        let mut ids = self.shapes.all_possible(&[part.shape]);
        let mut node = Some(data);
        for step in path.segments().skip(1) {
            ids = self.shapes.all_possible(&self.shapes.inside(&ids, step));
            node = node.and_then(|node| match step {
                Segment::Key(key) => node.get(key),
                Segment::Index(index) => node.at(index),
            });
        }
        ids
    }
}

/// Looks for places that are free.
struct SlotSearch<'a> {
    contract: &'a Contract,
    free: &'a mut Vec<Free>,
    /// The schemas of the values that the way leads through: none of them is begun anew, so that it ends.
    within: Vec<Id>,
    visited: usize,
}

impl SlotSearch<'_> {
    /// `node`: what stands there, none where nothing does.
    fn value(&mut self, ids: &[Id], node: Option<Node<'_>>, path: &mut Path) {
        let shapes = &self.contract.shapes;
        let schemas = shapes.all_possible(ids);
        self.visited += 1;
        if self.visited > MAX_LOOKS || !schemas.iter().any(|id| shapes.sees(*id, WalkFilter::OUTPUT)) {
            return;
        }
        let node = node.filter(|node| !node.is_null());
        if schemas.iter().any(|id| shapes.get(*id).is_output) {
            if node.is_none_or(is_stub) {
                self.free.push(Free { path: path.clone(), schemas, list: None });
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
        let shapes = &self.contract.shapes;
        let mut names: Vec<&str> = Vec::new();
        let named = schemas.iter().flat_map(|id| shapes.get(*id).properties()).map(|(name, _)| name);
        let present = node.into_iter().flat_map(Node::members).map(|(name, _)| name);
        for name in named.chain(present) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            // An object is not begun that cannot be made whole.
            let is_alone = |id: &Id| self.contract.requires_nothing_but(*id, name);
            if node.is_some() || schemas.iter().all(is_alone) {
                let ids = shapes.inside(schemas, Segment::Key(name));
                path.push_key(name);
                self.value(&ids, node.and_then(|node| node.get(name)), path);
                path.pop();
            }
        }
    }

    fn elements(&mut self, schemas: &[Id], node: Option<Node<'_>>, path: &mut Path) {
        let shapes = &self.contract.shapes;
        let mut length = 0;
        for element in node.into_iter().flat_map(Node::elements) {
            let ids = shapes.inside(schemas, Segment::Index(length));
            path.push_index(length);
            self.value(&ids, Some(element), path);
            path.pop();
            length += 1;
        }
        let further = shapes.all_possible(&shapes.inside(schemas, Segment::Index(length)));
        let room = self.contract.most_items(schemas).saturating_sub(length);
        if room > 0 && further.iter().any(|id| shapes.get(*id).is_output) {
            self.free.push(Free { path: path.clone(), schemas: further, list: Some((length, room)) });
        }
    }
}

impl Contract {
    fn requires_nothing_but(&self, id: Id, key: &str) -> bool {
        let schema = self.document().pointer(&self.shapes.get(id).pointer);
        let required = schema.and_then(|schema| schema.get("required")?.as_array());
        required.is_none_or(|keys| keys.iter().all(|other| other == key))
    }

    fn most_items(&self, schemas: &[Id]) -> usize {
        let most = |id: &Id| {
            let schema = self.document().pointer(&self.shapes.get(*id).pointer)?;
            usize::try_from(schema.get("maxItems")?.as_u64()?).ok()
        };
        schemas.iter().filter_map(most).min().unwrap_or(usize::MAX)
    }
}

/// Whether an object says of a medium at most how it is, and does not hold it.
fn is_stub(node: Node<'_>) -> bool {
    let is_said = |member: &str| {
        node.get(member).is_some_and(|content| !content.is_null() && content.as_str() != Some(""))
    };
    node.is_object() && !CONTENT.iter().any(|member| is_said(member))
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

    fn unnamed(&mut self, _member: Node<'_>, _trail: &PathStack<'_>) {}
}

#[cfg(test)]
mod tests;
