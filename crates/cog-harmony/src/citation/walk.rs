use std::collections::HashMap;

use cog_json::{Node, Path};

use super::{
    anchor::{Anchor, anchors},
    locate::Scope,
};
use crate::Finding;

/// The anchors of a text.
pub(super) struct Mentions<'a> {
    /// The number of anchors for each citation of the map.
    pub(super) known: HashMap<&'a str, usize>,
    /// The number of all anchors.
    pub(super) anchors: usize,
    pub(super) findings: Vec<Finding>,
}

impl Mentions<'_> {
    /// Reads the anchors of every string, except in the map.
    pub(super) fn read(&mut self, scope: &Scope<'_>) {
        self.walk(scope.text, &mut scope.path.clone(), scope.map);
    }

    fn walk(&mut self, node: Node<'_>, path: &mut Path, map: Option<Node<'_>>) {
        if map.is_some_and(|map| map.id() == node.id()) {
            return;
        }
        if let Some(text) = node.as_str() {
            return self.text(text, path);
        }
        for (key, member) in node.members() {
            path.push_key(key);
            self.walk(member, path, map);
            path.pop();
        }
        for (index, element) in node.elements().enumerate() {
            path.push_index(index);
            self.walk(element, path, map);
            path.pop();
        }
    }

    fn text(&mut self, text: &str, path: &Path) {
        for anchor in anchors(text) {
            self.anchors += 1;
            match anchor {
                Anchor::Id(id) => match self.known.get_mut(id) {
                    Some(count) => *count += 1,
                    None => self.findings.push(unresolved(path, id)),
                },
                Anchor::Malformed(what) => self.findings.push(malformed(path, what)),
            }
        }
    }
}

fn unresolved(path: &Path, id: &str) -> Finding {
    Finding::new(path, "unresolved", format!("the anchor `{id}` is not in `citation_map`"))
        .suggest("Add the citation to the map, or remove the anchor.")
}

fn malformed(path: &Path, what: &str) -> Finding {
    Finding::new(path, "anchor", format!("an anchor is malformed: {what}"))
        .suggest("Write an anchor as `<cite id=\"cit_01\"/>`.")
}
