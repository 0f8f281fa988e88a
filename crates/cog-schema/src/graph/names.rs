//! A fast map from property names to schemas.

use std::collections::HashMap;

use super::id::Id;

/// Up to this number of names, all are compared in order.
const MAX_COMPARED: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Names {
    list: Vec<(Box<str>, Id)>,
    index: HashMap<Box<str>, usize>,
}

impl Names {
    pub(super) fn new(list: Vec<(Box<str>, Id)>) -> Self {
        let index = match list.len() {
            0..=MAX_COMPARED => HashMap::new(),
            _ => list.iter().enumerate().map(|(position, (name, _))| (name.clone(), position)).collect(),
        };
        Self { list, index }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Id)> {
        self.list.iter().map(|(name, id)| (name.as_ref(), *id))
    }

    pub(super) fn find(&self, name: &str, cursor: &mut usize) -> Option<Id> {
        self.position(name, cursor).map(|(_, id)| id)
    }

    /// Returns the position and schema of a name. Answers mostly follow the order of their schema: `cursor` is the
    /// expected position of the next name.
    pub(super) fn position(&self, name: &str, cursor: &mut usize) -> Option<(usize, Id)> {
        if let Some((expected, id)) = self.list.get(*cursor)
            && is_same(expected, name)
        {
            *cursor += 1;
            return Some((*cursor - 1, *id));
        }
        let position = if self.index.is_empty() {
            self.list.iter().position(|(known, _)| **known == *name)?
        } else {
            *self.index.get(name)?
        };
        *cursor = position + 1;
        self.list.get(position).map(|(_, id)| (position, *id))
    }
}

/// Returns whether names are equal. Most are so short that calling a comparison takes longer than the comparison.
#[inline]
fn is_same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    match left.len() {
        4..8 => {
            left.first_chunk::<4>() == right.first_chunk() && left.last_chunk::<4>() == right.last_chunk()
        }
        8..=16 => {
            left.first_chunk::<8>() == right.first_chunk() && left.last_chunk::<8>() == right.last_chunk()
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_is_after_the_name_that_was_found() {
        for count in [3, 40] {
            let names = Names::new((0..count).map(|n| (format!("name{n}").into(), Id(n))).collect());
            let mut cursor = 0;
            for (name, after) in [("name0", 1), ("name2", 3), ("name1", 2), ("name2", 3), ("other", 3)] {
                let found = names.position(name, &mut cursor);
                assert_eq!((found.is_some(), cursor), (name != "other", after), "{name}");
            }
            assert_eq!((names.len(), names.find("name2", &mut 0)), (count as usize, Some(Id(2))));
        }
    }

    #[test]
    fn compares_every_letter() {
        let name = "abcdefghijklmnopqrst";
        for end in 0..name.len() {
            let (left, other) = (&name[..end], name[..end].to_uppercase());
            assert!(is_same(left, &name[..end]) && !is_same(left, &name[..=end]));
            for position in 0..end {
                let right =
                    format!("{}{}{}", &left[..position], &other[position..=position], &left[position + 1..]);
                assert!(!is_same(left, &right), "{left} {right}");
            }
        }
    }
}
