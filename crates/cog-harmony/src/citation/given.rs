//! The sources that the input of a run contains.

use std::collections::HashSet;

use cog_json::Node;

use super::source::{Source, Sources};

/// Returns the texts of an input that are cited: a string by the name of its member, and the `text` or `content` of an object
/// by its `id` or `source_id`. Several texts with one name are pages of one source.
pub(super) fn sources(input: Node<'_>, cited: &HashSet<&str>) -> Sources {
    let mut texts = std::collections::BTreeMap::<&str, Vec<&str>>::new();
    collect(input, &mut |name, text| {
        if cited.contains(name) {
            texts.entry(name).or_default().push(text);
        }
    });
    let source = |texts: Vec<&str>| Source::from_text(&texts.join("\u{c}"));
    texts.into_iter().map(|(name, texts)| (name.to_owned(), source(texts))).collect()
}

fn collect<'a>(node: Node<'a>, add: &mut impl FnMut(&'a str, &'a str)) {
    let member = |keys: [&str; 2]| keys.into_iter().find_map(|key| node.get(key)?.as_str());
    if let (Some(id), Some(text)) = (member(["id", "source_id"]), member(["text", "content"])) {
        add(id, text);
    }
    for (name, value) in node.members() {
        if let Some(text) = value.as_str() {
            add(name, text);
        }
        collect(value, add);
    }
    node.elements().for_each(|element| collect(element, add));
}
