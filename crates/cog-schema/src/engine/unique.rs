//! `uniqueItems` without building a second tree.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use cog_json::{Kind, Node};

/// Up to this many elements every pair is compared.
const FEW: usize = 12;

/// Whether no two elements of an array are equal (JSON equality).
pub(super) fn is_unique(array: Node<'_>) -> bool {
    if array.len() <= FEW { all_pairs_differ(array) } else { all_buckets_differ(array) }
}

fn all_pairs_differ(array: Node<'_>) -> bool {
    let mut rest = array.elements();
    while let Some(element) = rest.next() {
        if rest.clone().any(|other| other == element) {
            return false;
        }
    }
    true
}

fn all_buckets_differ(array: Node<'_>) -> bool {
    let state = RandomState::new();
    let mut buckets: HashMap<u64, Vec<Node<'_>>> = HashMap::with_capacity(array.len());
    array.elements().all(|element| {
        let bucket = buckets.entry(digest(&state, element)).or_default();
        let is_new = bucket.iter().all(|other| *other != element);
        bucket.push(element);
        is_new
    })
}

/// Equal values have equal digests; the order of members does not count.
fn digest(state: &RandomState, node: Node<'_>) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write_u8(node.kind() as u8);
    match node.kind() {
        Kind::Null => {}
        Kind::Bool => hasher.write_u8(u8::from(node.as_bool() == Some(true))),
        // Adding zero makes one zero of the two.
        Kind::Number => hasher.write_u64((node.as_f64().unwrap_or_default() + 0.0).to_bits()),
        Kind::String => hasher.write(node.as_str().unwrap_or_default().as_bytes()),
        Kind::Array => node.elements().for_each(|element| hasher.write_u64(digest(state, element))),
        Kind::Object => hasher.write_u64(members(state, node)),
    }
    hasher.finish()
}

fn members(state: &RandomState, object: Node<'_>) -> u64 {
    object.members().fold(0, |sum, (key, value)| {
        let pair = state.hash_one(key) ^ digest(state, value).rotate_left(32);
        sum.wrapping_add(pair)
    })
}
