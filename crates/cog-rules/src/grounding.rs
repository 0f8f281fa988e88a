//! Texts of an answer that must occur in the input: compared in the form for searches.

use cog_json::Node;

use crate::{
    condition::{Document, FailedValue, Failure, each_located, shortened},
    path::ListPath,
    search_text::fold,
};

/// A path whose texts must occur in the input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grounding {
    text: String,
    path: ListPath,
}

/// The texts of an input, to search in.
pub(crate) struct TextSource {
    /// The texts one after the other; none if they are too long.
    text: Option<String>,
}

/// The maximum size of the texts of an input that are searched.
const MAX_INPUT: usize = 16 << 20;
/// The maximum number of bytes that the searches of one check read.
const MAX_SEARCHED: usize = 256 << 20;
/// The maximum number of texts that a failure lists.
const MAX_LISTED: usize = 5;
/// Stands between two texts of the input. No normalised text has it.
const BETWEEN: char = '\0';

impl TextSource {
    pub(crate) fn new(input: Option<Node<'_>>) -> Self {
        let mut size = 0;
        let mut text = String::new();
        if let Some(input) = input {
            collect(input, &mut size, &mut text);
        }
        Self { text: (size <= MAX_INPUT).then_some(text) }
    }
}

/// Adds the strings of a value, as long as they are not too long.
fn collect(node: Node<'_>, size: &mut usize, text: &mut String) {
    if let Some(part) = node.as_str() {
        *size += part.len();
        if *size <= MAX_INPUT {
            fold(part, |c, _| text.push(c));
            text.push(BETWEEN);
        }
    }
    node.elements().for_each(|element| collect(element, size, text));
    node.members().for_each(|(_, member)| collect(member, size, text));
}

impl Grounding {
    pub(crate) fn new(text: &str, path: ListPath) -> Self {
        Self { text: text.to_owned(), path }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) const fn path(&self) -> &ListPath {
        &self.path
    }

    /// Returns the texts that do not occur in the input; none if all do.
    pub(crate) fn failure(&self, source: &TextSource, document: Document<'_>) -> Option<Failure> {
        let Some(source) = &source.text else {
            let detail = format!("the input has more than {} MB of text", MAX_INPUT >> 20);
            return Some(Failure { detail: Some(detail), ..Failure::default() });
        };
        let mut failure = Failure::default();
        let mut searched = 0_usize;
        each_located(document, &self.path, &mut |path, node| {
            let Some(text) = node.as_str() else { return true };
            searched = searched.saturating_add(source.len());
            if searched > MAX_SEARCHED {
                failure.detail = Some(format!("more than {} MB would be searched", MAX_SEARCHED >> 20));
                return false;
            }
            let mut wanted = String::new();
            fold(text, |c, _| wanted.push(c));
            if !source.contains(&wanted) {
                failure.paths.push(path.to_string());
                let value = cog_json::Value::from(serde_json::Value::from(shortened(text)));
                failure.values.push(FailedValue { path: path.to_string(), value });
            }
            failure.paths.len() < MAX_LISTED
        });
        if failure.detail.is_none() && !failure.paths.is_empty() {
            failure.detail = Some(failure.paths.join(", "));
        }
        (failure.detail.is_some()).then_some(failure)
    }
}
