//! Finds values and paths by JSON pointer, and the pointers of the schemas of context (docs/spec/context.md).

use std::{cell::RefCell, collections::HashMap};

use cog_json::{Elements, Node, NodeId, Path, Segment};
use serde_json::{Map, Value};

/// Finds values by JSON pointers (RFC 6901) from one root.
///
/// The violations of an array are in the order of its elements. A walk over an array continues where the previous one
/// stopped, so that many lookups in a long array take one walk.
pub(crate) struct Locator<'a> {
    root: Node<'a>,
    walks: RefCell<HashMap<NodeId, Walk<'a>>>,
}

/// A walk over an array.
struct Walk<'a> {
    index: usize,
    element: Node<'a>,
    rest: Elements<'a>,
}

/// A step into a value.
#[derive(Default)]
struct Step<'a> {
    /// The index, if the value is an array.
    index: Option<usize>,
    /// The inner value, if there is one.
    node: Option<Node<'a>>,
}

impl<'a> Locator<'a> {
    pub(crate) fn new(root: Node<'a>) -> Self {
        Self { root, walks: RefCell::default() }
    }

    /// Returns the value at a pointer, if there is one.
    pub(crate) fn find(&self, pointer: &str) -> Option<Node<'a>> {
        tokens(pointer).try_fold(self.root, |here, token| self.step(here, &token).node)
    }

    /// Returns the path of a pointer below `base`. The value decides whether a token is an index or a key.
    pub(crate) fn path(&self, base: &Path, pointer: &str) -> Path {
        let mut path = base.clone();
        let mut here = Some(self.root);
        for token in tokens(pointer) {
            let step = here.map(|here| self.step(here, &token)).unwrap_or_default();
            path.extend([step.index.map_or(Segment::Key(&token), Segment::Index)]);
            here = step.node;
        }
        path
    }

    fn step(&self, here: Node<'a>, token: &str) -> Step<'a> {
        match token.parse() {
            Ok(index) if here.is_array() => Step { index: Some(index), node: self.element(here, index) },
            _ => Step { index: None, node: here.get(token) },
        }
    }

    fn element(&self, array: Node<'a>, index: usize) -> Option<Node<'a>> {
        let mut walks = self.walks.borrow_mut();
        if let Some(walk) = walks.get_mut(&array.id()).filter(|walk| walk.index <= index) {
            if let Some(steps) = (index - walk.index).checked_sub(1) {
                walk.element = walk.rest.nth(steps)?;
                walk.index = index;
            }
            return Some(walk.element);
        }
        let mut rest = array.elements();
        let element = rest.nth(index)?;
        walks.insert(array.id(), Walk { index, element, rest });
        Some(element)
    }
}

fn tokens(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"))
}

/// The section of a document that contains the schemas of context.
const SECTION: &str = "$context";

/// Returns the JSON pointer of the schema of a context: `list` is `accepts` or `emits` of the manifest, and `name` a type. The
/// loader of a module inserts the schema there.
pub fn context_pointer(list: &str, name: &str) -> String {
    format!("/{SECTION}/{list}/{name}")
}

/// Returns the pointers of all schemas of context in a document.
pub(crate) fn context_pointers(document: &Value) -> Vec<String> {
    let lists = document.get(SECTION).and_then(Value::as_object).into_iter().flatten();
    let names = lists.flat_map(|(list, types)| {
        let types = types.as_object().into_iter().flat_map(Map::keys);
        types.map(move |name| context_pointer(list, name))
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    #[test]
    fn pointers_become_paths_by_the_kind_of_value() {
        let value = Value::parse(r#"{"0": ["a", {"b/c": 1}]}"#).unwrap();
        let mut base = Path::root();
        base.push_key("data");
        let path = |pointer| Locator::new(value.node()).path(&base, pointer).to_string();
        assert_eq!(path(""), "data");
        assert_eq!(path("/0/1/b~1c"), r#"data["0"][1]["b/c"]"#);
        assert_eq!(path("/0/1/absent"), r#"data["0"][1].absent"#);
    }

    #[test]
    fn finds_values_in_any_order() {
        let value = Value::parse("[[0, 1, 2, 3], [10, 11, 12, 13]]").unwrap();
        let locator = Locator::new(value.node());
        for pointer in ["/0/1", "/0/3", "/1/2", "/0/2", "/0/2", "/1/0", "/0/3", "/1/3"] {
            assert_eq!(locator.find(pointer), value.node().pointer(pointer), "{pointer}");
        }
        assert_eq!(locator.find("/0/4"), None);
        assert_eq!(locator.find("/0/3").unwrap().as_u64(), Some(3));
        assert_eq!(locator.find("/0/x"), None);
    }
}

#[cfg(test)]
mod context_pointer_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_of_context_are_in_their_own_section() {
        assert_eq!(context_pointer("emits", "notes"), "/$context/emits/notes");
        let document = json!({ "$context": { "accepts": { "a": {} }, "emits": { "a": {}, "b": {} } } });
        let found = ["/$context/accepts/a", "/$context/emits/a", "/$context/emits/b"];
        assert_eq!(context_pointers(&document), found);
        assert!(found.iter().all(|pointer| document.pointer(pointer).is_some()));
        assert_eq!(context_pointers(&json!({ "data": {} })), [""; 0]);
    }
}
