//! The account of a conversion: what the target cannot hold.

use std::fmt;

use cog_json::Node;
use serde::Serialize;

/// Something that a format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The path in the history, as this crate writes it.
    pub path: String,
    /// What is lost or changed.
    pub what: String,
    /// Why.
    pub why: String,
}

/// The maximum number of losses that are listed.
const MAX_LOSSES: usize = 1000;

/// The losses so far. The list is bounded; the others are counted.
#[derive(Default)]
pub(super) struct Account {
    losses: Vec<Loss>,
    more: usize,
}

impl Account {
    pub(super) fn add(&mut self, path: &dyn fmt::Display, what: impl Into<String>, why: impl Into<String>) {
        match self.losses.len() < MAX_LOSSES {
            true => self.losses.push(Loss { path: path.to_string(), what: what.into(), why: why.into() }),
            false => self.more += 1,
        }
    }

    /// Lists the members of a document beside its messages: a conversion keeps messages only.
    pub(super) fn other_members(&mut self, document: Node<'_>, known: &[&str]) {
        for (key, _) in document.members().filter(|(key, _)| !known.contains(key)) {
            self.add(&key, "the member", "it is not part of the messages");
        }
    }

    /// Returns the losses, with a last one for those that are not listed.
    pub(super) fn finish(mut self) -> Vec<Loss> {
        if self.more > 0 {
            let what = format!("{} more", self.more);
            self.losses.push(Loss { path: String::new(), what, why: "the list is limited".to_owned() });
        }
        self.losses
    }
}
