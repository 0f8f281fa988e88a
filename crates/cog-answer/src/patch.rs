//! Inserts values into a parsed answer: the media that were generated for it.

use std::collections::BTreeMap;

use cog_json::{Limits, Node, Path, Segment, ToJson, Value, Writer};

/// A value to insert into an answer.
pub struct PlacedValue {
    /// The path, from `data`.
    pub path: Path,
    /// The value. It is written once, so that large texts are not copied before.
    pub value: Box<dyn ToJson + Send>,
}

/// Returns the tree with values inserted at paths from its root. Absent containers are created.
pub(crate) fn insert(tree: &Value, patches: &[(Vec<Segment<'_>>, &dyn ToJson)]) -> Value {
    let mut patch = Patch::default();
    for (steps, value) in patches {
        patch.add(steps, *value);
    }
    let text = PatchedNode { node: Some(tree.node()), patch: &patch }.to_json();
    // The reply was within its limits, and the media within theirs.
    Value::parse_within(text.as_bytes(), Limits::unbounded()).unwrap_or_default()
}

/// The values to insert at one node, and below it.
#[derive(Default)]
struct Patch<'a> {
    value: Option<&'a dyn ToJson>,
    members: Vec<(&'a str, Patch<'a>)>,
    elements: BTreeMap<usize, Patch<'a>>,
}

impl<'a> Patch<'a> {
    fn add(&mut self, steps: &[Segment<'a>], value: &'a dyn ToJson) {
        match steps.split_first() {
            None => self.value = Some(value),
            Some((Segment::Key(key), rest)) => self.member(key).add(rest, value),
            Some((Segment::Index(index), rest)) => {
                self.elements.entry(*index).or_default().add(rest, value);
            }
        }
    }

    fn member(&mut self, key: &'a str) -> &mut Patch<'a> {
        let at = self.members.iter().position(|(known, _)| *known == key);
        let at = at.unwrap_or_else(|| {
            self.members.push((key, Patch::default()));
            self.members.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "it was found or pushed there")]
        &mut self.members[at].1
    }
}

struct PatchedNode<'a> {
    node: Option<Node<'a>>,
    patch: &'a Patch<'a>,
}

impl PatchedNode<'_> {
    fn write_members(&self, w: &mut Writer<'_>) {
        // Replaced in place and added at the end, so that the order of the members stays as the model wrote them.
        let mut done = Vec::new();
        for (key, node) in self.node.into_iter().flat_map(Node::members) {
            match self.patch.members.iter().find(|(known, _)| *known == key) {
                Some((key, patch)) => {
                    done.push(*key);
                    w.field(key, &PatchedNode { node: Some(node), patch });
                }
                None => {
                    w.key(key).node(node);
                }
            }
        }
        for (key, patch) in self.patch.members.iter().filter(|(key, _)| !done.contains(key)) {
            w.field(key, &PatchedNode { node: None, patch });
        }
    }

    fn write_elements(&self, w: &mut Writer<'_>) {
        let mut length = 0;
        for node in self.node.into_iter().flat_map(Node::elements) {
            match self.patch.elements.get(&length) {
                Some(patch) => w.item(&PatchedNode { node: Some(node), patch }),
                None => w.item(&PatchedNode { node: Some(node), patch: &Patch::default() }),
            };
            length += 1;
        }
        for (_, patch) in self.patch.elements.range(length..) {
            w.item(&PatchedNode { node: None, patch });
        }
    }
}

/// Written by hand: a tree with the inserted values.
impl ToJson for PatchedNode<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        match (self.patch.value, self.node) {
            (Some(value), _) => value.write_json(w),
            (None, _) if !self.patch.members.is_empty() => w.object(|w| self.write_members(w)),
            (None, _) if !self.patch.elements.is_empty() => w.array(|w| self.write_elements(w)),
            (None, Some(node)) => w.node(node),
            (None, None) => w.null(),
        }
    }
}

// Paths in an answer, from the envelope.

/// Returns the path of `data`.
pub(crate) fn data() -> Path {
    let mut path = Path::root();
    path.push_key("data");
    path
}

/// Converts a path in bare data to a path in the envelope.
pub(crate) fn from_bare(path: &Path) -> Path {
    let mut placed = data();
    placed.extend(path.segments());
    placed
}

/// Returns the value at a path of the envelope. `part` is the member that the first step names.
pub(crate) fn resolve<'a>(part: Node<'a>, path: &Path) -> Option<Node<'a>> {
    resolve_below(part, path, 1)
}

/// Returns the value at a path of the envelope. `value` is the one at the first `depth` steps.
pub(crate) fn resolve_below<'a>(value: Node<'a>, path: &Path, depth: usize) -> Option<Node<'a>> {
    path.segments().skip(depth).try_fold(value, |node, step| match step {
        Segment::Key(key) => node.get(key),
        Segment::Index(index) => node.at(index),
    })
}

/// Calls `act` for each member or element of a value, with its path.
pub(crate) fn each_inside<'a>(node: Node<'a>, path: &mut Path, act: &mut dyn FnMut(Node<'a>, &mut Path)) {
    for (key, member) in node.members() {
        path.push_key(key);
        act(member, path);
        path.pop();
    }
    for (index, element) in node.elements().enumerate() {
        path.push_index(index);
        act(element, path);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_values_and_leaves_the_rest_as_written() {
        let tree = Value::parse(r#"{"a": 1.50, "b": [1, null, {"c": "x"}], "d": null}"#).unwrap();
        let key = Segment::Key;
        let one = "one".to_owned();
        let two = "two".to_owned();
        let patches: [(Vec<Segment<'_>>, &dyn ToJson); 5] = [
            (vec![key("b"), Segment::Index(1)], &one),
            (vec![key("b"), Segment::Index(3)], &two),
            (vec![key("b"), Segment::Index(2), key("e")], &one),
            (vec![key("d")], &two),
            (vec![key("new"), key("list"), Segment::Index(0)], &one),
        ];
        let expected =
            r#"{"a":1.50,"b":[1,"one",{"c":"x","e":"one"},"two"],"d":"two","new":{"list":["one"]}}"#;
        assert_eq!(insert(&tree, &patches).to_string(), expected);
    }
}
