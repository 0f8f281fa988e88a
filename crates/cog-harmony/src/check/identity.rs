//! Identifiers are unique, and speakers have names.

use std::collections::HashMap;

use cog_json::Node;

use super::fields::role;
use crate::{
    problem::{Path, Problems},
    read::shown,
    rules::{MESSAGE_ID, NAME, NAME_UNCLEAR, ROLE},
};

pub(super) fn check(messages: Node<'_>, problems: &mut Problems) {
    check_ids(messages, problems);
    check_names(messages, "user", problems);
    check_names(messages, "assistant", problems);
    let root = Path::root("messages");
    for (index, message) in messages.elements().enumerate() {
        if role(message) == "developer" {
            problems.add(&root.index(index).key("role"), &ROLE, "`developer` is read as `system`");
        }
    }
}

fn check_ids(messages: Node<'_>, problems: &mut Problems) {
    let root = Path::root("messages");
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, message) in messages.elements().enumerate() {
        let Some(id) = message.get("id").and_then(Node::as_str) else { continue };
        match seen.get(id) {
            Some(first) => {
                let message = format!("`{}` is also the id of messages[{first}]", shown(id));
                problems.add(&root.index(index).key("id"), &MESSAGE_ID, message);
            }
            None => {
                seen.insert(id, index);
            }
        }
    }
}

/// Several names in one role show that several speakers share it.
fn check_names(messages: Node<'_>, wanted: &str, problems: &mut Problems) {
    let speakers = || messages.elements().enumerate().filter(|(_, message)| role(*message) == wanted);
    let mut names = speakers().filter_map(|(_, message)| message.get("name").and_then(Node::as_str));
    let Some(first) = names.next() else { return };
    let second = names.find(|name| *name != first);
    let (rule, what) = match second {
        Some(second) => (&NAME, format!("missing; `{}` and `{}` speak here", shown(first), shown(second))),
        None if wanted == "assistant" => {
            (&NAME_UNCLEAR, format!("missing; `{}` speaks here too", shown(first)))
        }
        None => return,
    };
    let root = Path::root("messages");
    for (index, message) in speakers() {
        if message.get("name").is_none_or(Node::is_null) {
            problems.add(&root.index(index).key("name"), rule, what.as_str());
        }
    }
}
