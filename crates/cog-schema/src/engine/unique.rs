//! `uniqueItems` without building a second tree.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use cog_json::{Kind, Node};

/// Up to this number of elements, all pairs are compared.
const MAX_PAIRWISE: usize = 12;

/// Returns whether all elements of an array are different (JSON equality).
pub(super) fn is_unique(array: Node<'_>) -> bool {
    if array.len() <= MAX_PAIRWISE { all_pairs_differ(array.elements()) } else { all_digests_differ(array) }
}

/// Returns the indices of the elements of an array that equal an earlier one (JSON equality).
pub(crate) fn repeated(array: Node<'_>) -> Vec<usize> {
    let mut repeated: Vec<usize> = Vec::new();
    let elements = by_digest(array);
    for alike in elements.chunk_by(|left, right| left.digest == right.digest) {
        for (at, element) in alike.iter().enumerate() {
            if alike.iter().take(at).any(|other| other.node == element.node) {
                repeated.push(element.index);
            }
        }
    }
    repeated.sort_unstable();
    repeated
}

/// An element of an array with the digest of its value.
struct Element<'a> {
    digest: u64,
    index: usize,
    node: Node<'a>,
}

/// Returns the elements of an array by their digests, equal ones in the order of the array. The digest has a random key, so
/// that no input can force collisions. The only memory that it needs is one list.
fn by_digest(array: Node<'_>) -> Vec<Element<'_>> {
    let state = RandomState::new();
    let elements = array.elements().enumerate();
    let elements = elements.map(|(index, node)| Element { digest: digest(&state, node), index, node });
    let mut elements: Vec<_> = elements.collect();
    elements.sort_unstable_by_key(|element| (element.digest, element.index));
    elements
}

fn all_pairs_differ<'a>(mut rest: impl Iterator<Item = Node<'a>> + Clone) -> bool {
    while let Some(element) = rest.next() {
        if rest.clone().any(|other| other == element) {
            return false;
        }
    }
    true
}

/// Compares elements with equal digests only.
fn all_digests_differ(array: Node<'_>) -> bool {
    let elements = by_digest(array);
    let mut alike = elements.chunk_by(|left, right| left.digest == right.digest);
    alike.all(|alike| all_pairs_differ(alike.iter().map(|element| element.node)))
}

/// Returns a digest that is equal for equal values; the order of members does not matter.
fn digest(state: &RandomState, node: Node<'_>) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write_u8(node.kind() as u8);
    match node.kind() {
        Kind::Null => {}
        Kind::Bool => hasher.write_u8(u8::from(node.as_bool() == Some(true))),
        Kind::Number => node.as_number().hash(&mut hasher),
        Kind::String => hasher.write(node.as_str().unwrap_or_default().as_bytes()),
        Kind::Array => node.elements().for_each(|element| hasher.write_u64(digest(state, element))),
        Kind::Object => hasher.write_u64(members(state, node)),
    }
    hasher.finish()
}

fn members(state: &RandomState, object: Node<'_>) -> u64 {
    let pairs = object.members().map(|(key, value)| state.hash_one((key, digest(state, value))));
    pairs.fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn are_alike(left: &str, right: &str) -> bool {
        let state = RandomState::new();
        let digest = |text| digest(&state, Value::parse(text).unwrap().node());
        digest(left) == digest(right)
    }

    #[test]
    fn equal_values_have_equal_digests() {
        for (left, right) in [
            ("1", "1.0"),
            ("[1, -0]", "[1e0, 0.0]"),
            (r#"{"a": 1, "b": "é"}"#, r#"{"b": "\u00e9", "a": 10e-1}"#),
        ] {
            assert!(are_alike(left, right), "{left} {right}");
        }
    }

    #[test]
    fn numbers_that_are_one_float_have_different_digests() {
        assert!(!are_alike("9007199254740993", "9007199254740992"));
        assert!(!are_alike("10000000000000000000000001", "10000000000000000000000002"));
    }

    #[test]
    fn members_with_exchanged_values_have_different_digests() {
        assert!(!are_alike(r#"{"a": 1, "b": 2}"#, r#"{"a": 2, "b": 1}"#));
    }
}
