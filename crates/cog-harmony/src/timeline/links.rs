use std::collections::{HashMap, HashSet};

use crate::Conversation;

/// Which results belong to which calls.
pub(super) struct Links<'a> {
    /// The name of each called tool, by the id of the call.
    pub(super) names: HashMap<&'a str, &'a str>,
    /// The ids of the calls that have a result.
    pub(super) results: HashSet<&'a str>,
}

impl<'a> Links<'a> {
    pub(super) fn new(conversation: &'a Conversation) -> Self {
        let messages = conversation.messages().iter();
        let calls = messages.clone().flat_map(|message| &message.tool_calls);
        Self {
            names: calls.map(|call| (call.id.as_str(), call.name.as_str())).collect(),
            results: messages.filter_map(|message| message.tool_call_id.as_deref()).collect(),
        }
    }
}
