//! Reads the fields of an object, and records those that are missing or have a wrong type.

use cog_json::Node;

use crate::{
    problem::{Path, Problems},
    rules::{REQUIRED, Rule, TYPE},
};

pub(super) struct Fields<'a, 'p> {
    pub(super) node: Node<'a>,
    pub(super) path: &'p Path<'p>,
    pub(super) problems: &'p mut Problems,
}

impl<'a> Fields<'a, '_> {
    /// Reads a field if it is present.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(Node<'a>) -> Option<T>,
    ) -> Option<T> {
        self.optional_by(&TYPE, key, expected, read)
    }

    fn optional_by<T>(
        &mut self,
        rule: &'static Rule,
        key: &str,
        expected: &str,
        read: impl FnOnce(Node<'a>) -> Option<T>,
    ) -> Option<T> {
        let found = self.node.get(key).filter(|found| !found.is_null())?;
        let value = read(found);
        if value.is_none() {
            let message = format!("found {}, expected {expected}", found.kind());
            self.problems.add(&self.path.key(key), rule, message);
        }
        value
    }

    /// Reads a field that must be present.
    pub(super) fn required<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(Node<'a>) -> Option<T>,
    ) -> Option<T> {
        self.required_by(&TYPE, key, expected, read)
    }

    /// Reads a field that must be present. A wrong type violates `rule`.
    pub(super) fn required_by<T>(
        &mut self,
        rule: &'static Rule,
        key: &str,
        expected: &str,
        read: impl FnOnce(Node<'a>) -> Option<T>,
    ) -> Option<T> {
        if self.node.get(key).is_none_or(Node::is_null) {
            self.problems.add(&self.path.key(key), &REQUIRED, format!("missing, expected {expected}"));
            return None;
        }
        self.optional_by(rule, key, expected, read)
    }

    pub(super) fn text(&mut self, key: &str) -> Option<&'a str> {
        self.optional(key, "a string", text)
    }

    pub(super) fn string(&mut self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    pub(super) fn required_text(&mut self, key: &str) -> Option<&'a str> {
        self.required(key, "a string", text)
    }

    pub(super) fn required_string(&mut self, key: &str) -> Option<String> {
        self.required_text(key).map(str::to_owned)
    }
}

pub(super) fn text(node: Node<'_>) -> Option<&str> {
    node.as_str()
}

pub(super) fn object(node: Node<'_>) -> Option<Node<'_>> {
    node.is_object().then_some(node)
}

pub(super) fn array(node: Node<'_>) -> Option<Node<'_>> {
    node.is_array().then_some(node)
}
