//! Checks a history against the rules of the format (docs/messages.md).
//!
//! The checks read JSON, not [`Message`](crate::Message)s, so that a message that cannot be read is still part of the
//! history. Each of them takes time that is linear in the size of the history.

mod arguments;
mod binary;
mod fields;
mod identity;
mod media;
mod pairs;

use cog_json::Node;

use crate::{
    Problem,
    problem::{Path, Problems},
    read,
};

pub use self::media::PartSupport;

/// Checks an array of messages; with a model also whether it accepts the parts.
pub fn check(messages: Node<'_>, model: Option<&PartSupport>) -> Vec<Problem> {
    let mut problems = Problems::default();
    read::conversation(messages, &mut problems);
    identity::check(messages, &mut problems);
    pairs::check(messages, &mut problems);
    let root = Path::root("messages");
    for (index, message) in messages.elements().enumerate() {
        let path = root.index(index);
        arguments::check(message, &path, &mut problems);
        fields::each_text(message, &path, &mut |text, path| binary::check(text, path, &mut problems));
        media::check(message, &path, model, &mut problems);
    }
    problems.finish()
}

#[cfg(test)]
mod tests;
