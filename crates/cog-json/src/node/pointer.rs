//! JSON pointers, RFC 6901.

use std::borrow::Cow;

use crate::node::{Kind, Node};

pub(super) fn resolve<'a>(from: Node<'a>, pointer: &str) -> Option<Node<'a>> {
    if pointer.is_empty() {
        return Some(from);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(from, |node, token| match node.kind() {
        Kind::Object => node.get(&unescape(token)),
        Kind::Array => node.at(index(token)?),
        _ => None,
    })
}

fn unescape(token: &str) -> Cow<'_, str> {
    match token.contains('~') {
        true => token.replace("~1", "/").replace("~0", "~").into(),
        false => token.into(),
    }
}

/// An array index: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
    if plain { token.parse().ok() } else { None }
}
