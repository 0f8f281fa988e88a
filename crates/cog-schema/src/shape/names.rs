//! The named members of a schema, found quickly.

use std::collections::HashMap;

use super::Id;

/// Up to this many names are compared one after the other.
const FEW: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Names {
    list: Vec<(Box<str>, Id)>,
    index: HashMap<Box<str>, usize>,
}

impl Names {
    pub(super) fn new(list: Vec<(Box<str>, Id)>) -> Self {
        let index = match list.len() {
            0..=FEW => HashMap::new(),
            _ => list.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect(),
        };
        Self { list, index }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Id)> {
        self.list.iter().map(|(name, id)| (name.as_ref(), *id))
    }

    /// Finds a name. Answers mostly follow the order of their schema: `cursor` is where the next name is
    /// expected, and is moved on.
    pub(super) fn find(&self, name: &str, cursor: &mut usize) -> Option<Id> {
        if let Some((expected, id)) = self.list.get(*cursor)
            && **expected == *name
        {
            *cursor += 1;
            return Some(*id);
        }
        let place = if self.index.is_empty() {
            self.list.iter().position(|(known, _)| **known == *name)?
        } else {
            *self.index.get(name)?
        };
        *cursor = place + 1;
        self.list.get(place).map(|(_, id)| *id)
    }
}
