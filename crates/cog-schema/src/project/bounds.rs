//! The bounds that a projection adds to texts and arrays without a maximum length.

use cog_json::{Node, Path};
use cog_spec::Dialect;

use crate::{
    contract::Contract,
    dialect::{MAX_ITEMS, MAX_LENGTH, profile},
    graph::PathStack,
};

impl Contract {
    /// Returns the first text or array of the data that is exactly as long as a bound that the projection to this dialect adds. The
    /// model did not end it by itself.
    pub fn cut_at(&self, dialect: Dialect, data: Node<'_>) -> Option<Path> {
        let adds_bounds = profile(dialect).is_some_and(|profile| profile.adds_bounds);
        adds_bounds.then(|| cut_below(data, &PathStack::root("data"))).flatten()
    }
}

fn cut_below(node: Node<'_>, path: &PathStack<'_>) -> Option<Path> {
    // The bytes first: they are known.
    let is_cut_text =
        |text: &str| text.len() as u64 >= MAX_LENGTH && text.chars().count() as u64 == MAX_LENGTH;
    let items = node.elements().count() as u64;
    if node.as_str().is_some_and(is_cut_text) || items == MAX_ITEMS {
        return Some(path.path());
    }
    let in_members = node.members().find_map(|(key, member)| cut_below(member, &path.key(key)));
    in_members
        .or_else(|| node.elements().enumerate().find_map(|(index, item)| cut_below(item, &path.index(index))))
}
