//! The path of a value in a document.

mod text;

use std::fmt;
use std::str::FromStr;

pub use self::text::PathError;

/// The steps from the root of a document to a value.
///
/// Displays as ruling R44 writes paths: `data.objects[0].label`, keys outside `[A-Za-z_$][A-Za-z0-9_$-]*` as
/// `["…"]`, the root as the empty text. [`Path::from_str`] reads this form.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Path {
    /// The keys, concatenated.
    keys: String,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    /// A key: its range in `keys`.
    Key {
        start: u32,
        end: u32,
    },
    Index(usize),
}

/// One step of a [`Path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// Into an object.
    Key(&'a str),
    /// Into an array, counted from 0.
    Index(usize),
}

impl Path {
    /// Returns the path of the root.
    #[must_use]
    pub const fn root() -> Self {
        Path { keys: String::new(), steps: Vec::new() }
    }

    /// Returns the number of steps; 0 for the root.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Whether this is the root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the steps, starting at the root.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = Segment<'_>> + ExactSizeIterator {
        self.steps.iter().map(|step| self.segment(*step))
    }

    /// The first step.
    #[must_use]
    pub fn first(&self) -> Option<Segment<'_>> {
        self.segments().next()
    }

    /// The last step.
    #[must_use]
    pub fn last(&self) -> Option<Segment<'_>> {
        self.segments().next_back()
    }

    /// Whether this path is `other` or is below it.
    #[must_use]
    pub fn starts_with(&self, other: &Path) -> bool {
        self.steps.starts_with(&other.steps) && self.keys.starts_with(&other.keys)
    }

    /// Adds a key.
    pub fn push_key(&mut self, key: &str) {
        let start = self.keys.len() as u32;
        self.keys.push_str(key);
        self.steps.push(Step::Key { start, end: self.keys.len() as u32 });
    }

    /// Adds an index.
    pub fn push_index(&mut self, index: usize) {
        self.steps.push(Step::Index(index));
    }

    /// Removes the last step, if there is one.
    pub fn pop(&mut self) {
        if let Some(Step::Key { start, .. }) = self.steps.pop() {
            self.keys.truncate(start as usize);
        }
    }

    /// Removes all steps.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.steps.clear();
    }

    /// The path as a JSON pointer (RFC 6901).
    #[must_use]
    pub fn pointer(&self) -> String {
        text::pointer(self.segments())
    }

    fn segment(&self, step: Step) -> Segment<'_> {
        match step {
            Step::Index(index) => Segment::Index(index),
            Step::Key { start, end } => {
                Segment::Key(self.keys.get(start as usize..end as usize).unwrap_or_default())
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(self.segments(), f)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        text::parse(text)
    }
}

impl<'a> FromIterator<Segment<'a>> for Path {
    fn from_iter<I: IntoIterator<Item = Segment<'a>>>(segments: I) -> Self {
        let mut path = Path::root();
        path.extend(segments);
        path
    }
}

impl<'a> Extend<Segment<'a>> for Path {
    fn extend<I: IntoIterator<Item = Segment<'a>>>(&mut self, segments: I) {
        for segment in segments {
            match segment {
                Segment::Key(key) => self.push_key(key),
                Segment::Index(index) => self.push_index(index),
            }
        }
    }
}

#[cfg(test)]
mod tests;
