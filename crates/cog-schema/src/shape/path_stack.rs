use cog_json::{Path, Segment};

/// The way to a value, reported only when something is to be said of it: a step and the way to the value around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathStack<'a> {
    outer: Option<&'a PathStack<'a>>,
    step: Segment<'a>,
}

impl<'a> PathStack<'a> {
    /// The beginning: a part of the envelope.
    pub(crate) const fn root(part: &'a str) -> Self {
        Self { outer: None, step: Segment::Key(part) }
    }

    /// The way to a member.
    pub(crate) const fn key(&'a self, key: &'a str) -> Self {
        Self { outer: Some(self), step: Segment::Key(key) }
    }

    /// The way to an element.
    pub(crate) const fn index(&'a self, index: usize) -> Self {
        Self { outer: Some(self), step: Segment::Index(index) }
    }

    /// The whole of it.
    pub(crate) fn path(&self) -> Path {
        let mut path = self.outer.map_or_else(Path::root, PathStack::path);
        path.extend([self.step]);
        path
    }
}
