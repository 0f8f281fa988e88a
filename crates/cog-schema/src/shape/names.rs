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

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Id)> {
        self.list.iter().map(|(name, id)| (name.as_ref(), *id))
    }

    pub(super) fn find(&self, name: &str, cursor: &mut usize) -> Option<Id> {
        self.place(name, cursor).map(|(_, id)| id)
    }

    /// Finds a name and how many stand before it. Answers mostly follow the order of their schema: `cursor` is
    /// where the next name is expected, and is moved on.
    pub(super) fn place(&self, name: &str, cursor: &mut usize) -> Option<(usize, Id)> {
        if let Some((expected, id)) = self.list.get(*cursor)
            && is_same(expected, name)
        {
            *cursor += 1;
            return Some((*cursor - 1, *id));
        }
        let place = if self.index.is_empty() {
            self.list.iter().position(|(known, _)| **known == *name)?
        } else {
            *self.index.get(name)?
        };
        *cursor = place + 1;
        self.list.get(place).map(|(_, id)| (place, *id))
    }
}

/// Equality of names, which are mostly so short that calling a comparison takes longer than the comparison.
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
    use super::is_same;

    #[test]
    fn every_letter_of_a_name_counts() {
        let name = "abcdefghijklmnopqrst";
        for end in 0..name.len() {
            let (left, other) = (&name[..end], name[..end].to_uppercase());
            assert!(is_same(left, &name[..end]) && !is_same(left, &name[..=end]));
            for place in 0..end {
                let right = format!("{}{}{}", &left[..place], &other[place..=place], &left[place + 1..]);
                assert!(!is_same(left, &right), "{left} {right}");
            }
        }
    }
}
