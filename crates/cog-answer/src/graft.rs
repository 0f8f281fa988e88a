//! Values put into an answer that has been read: the media that were made for it.

use std::collections::BTreeMap;

use cog_json::{Limits, Node, Path, Segment, ToJson, Value, Writer};

/// A value for a place of an answer, and what is to be written there.
pub struct PlacedValue {
    /// The place, from `data`.
    pub path: Path,
    /// What stands there from now on. It is written once, so that large texts need not be copied before.
    pub value: Box<dyn ToJson + Send>,
}

/// A tree with values in the places that the steps from its root lead to; what is not there yet is made.
pub(crate) fn graft(tree: &Value, scions: &[(Vec<Segment<'_>>, &dyn ToJson)]) -> Value {
    let mut twig = Twig::default();
    for (steps, value) in scions {
        twig.add(steps, *value);
    }
    let text = Grafted { node: Some(tree.node()), twig: &twig }.to_json();
    // It was within the limits of a reply, and those of media hold for what was added.
    Value::parse_within(text.as_bytes(), Limits::unbounded()).unwrap_or_default()
}

/// What is put at a place, or inside it.
#[derive(Default)]
struct Twig<'a> {
    value: Option<&'a dyn ToJson>,
    members: Vec<(&'a str, Twig<'a>)>,
    elements: BTreeMap<usize, Twig<'a>>,
}

impl<'a> Twig<'a> {
    fn add(&mut self, steps: &[Segment<'a>], value: &'a dyn ToJson) {
        match steps.split_first() {
            None => self.value = Some(value),
            Some((Segment::Key(key), rest)) => self.member(key).add(rest, value),
            Some((Segment::Index(index), rest)) => {
                self.elements.entry(*index).or_default().add(rest, value);
            }
        }
    }

    fn member(&mut self, key: &'a str) -> &mut Twig<'a> {
        let at = self.members.iter().position(|(known, _)| *known == key);
        let at = at.unwrap_or_else(|| {
            self.members.push((key, Twig::default()));
            self.members.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "it was found or pushed there")]
        &mut self.members[at].1
    }
}

struct Grafted<'a> {
    node: Option<Node<'a>>,
    twig: &'a Twig<'a>,
}

impl Grafted<'_> {
    fn write_members(&self, w: &mut Writer<'_>) {
        let twig_of = |key: &str| self.twig.members.iter().find(|(known, _)| *known == key);
        let mut done = Vec::new();
        for (key, node) in self.node.into_iter().flat_map(Node::members) {
            match twig_of(key) {
                Some((key, twig)) => {
                    done.push(*key);
                    w.field(key, &Grafted { node: Some(node), twig });
                }
                None => {
                    w.key(key).node(node);
                }
            }
        }
        for (key, twig) in self.twig.members.iter().filter(|(key, _)| !done.contains(key)) {
            w.field(key, &Grafted { node: None, twig });
        }
    }

    fn write_elements(&self, w: &mut Writer<'_>) {
        let mut length = 0;
        for node in self.node.into_iter().flat_map(Node::elements) {
            match self.twig.elements.get(&length) {
                Some(twig) => w.item(&Grafted { node: Some(node), twig }),
                None => w.item(&Grafted { node: Some(node), twig: &Twig::default() }),
            };
            length += 1;
        }
        for (_, twig) in self.twig.elements.range(length..) {
            w.item(&Grafted { node: None, twig });
        }
    }
}

impl ToJson for Grafted<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        match (self.twig.value, self.node) {
            (Some(value), _) => value.write_json(w),
            (None, _) if !self.twig.members.is_empty() => w.object(|w| self.write_members(w)),
            (None, _) if !self.twig.elements.is_empty() => w.array(|w| self.write_elements(w)),
            (None, Some(node)) => w.node(node),
            (None, None) => w.null(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_in_place_and_the_rest_stays_as_it_was_written() {
        let tree = Value::parse(r#"{"a": 1.50, "b": [1, null, {"c": "x"}], "d": null}"#).unwrap();
        let key = Segment::Key;
        let (one, two) = ("one".to_owned(), "two".to_owned());
        let scions: [(Vec<Segment<'_>>, &dyn ToJson); 5] = [
            (vec![key("b"), Segment::Index(1)], &one),
            (vec![key("b"), Segment::Index(3)], &two),
            (vec![key("b"), Segment::Index(2), key("e")], &one),
            (vec![key("d")], &two),
            (vec![key("new"), key("list"), Segment::Index(0)], &one),
        ];
        let expected =
            r#"{"a":1.50,"b":[1,"one",{"c":"x","e":"one"},"two"],"d":"two","new":{"list":["one"]}}"#;
        assert_eq!(graft(&tree, &scions).to_string(), expected);
    }
}
