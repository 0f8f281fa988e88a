use serde::{Deserialize, Serialize};

use super::key::hash;

/// A stored reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CachedReply {
    /// The hash of the key and the other fields: a file that was damaged, edited or renamed is not used.
    checksum: String,
    /// The time in milliseconds since 1970.
    pub(super) stored_ms: u64,
    /// The model that replied, as the provider named it.
    pub(super) model: Option<String>,
    /// The parts of the reply in their order.
    pub(super) texts: Vec<String>,
}

impl CachedReply {
    pub(super) fn new(key: &str, stored_ms: u64, model: Option<String>, texts: Vec<String>) -> Self {
        let mut reply = Self { checksum: String::new(), stored_ms, model, texts };
        reply.checksum = reply.hash(key);
        reply
    }

    /// Whether the reply is as it was stored with this key.
    pub(super) fn is_intact(&self, key: &str) -> bool {
        self.checksum == self.hash(key)
    }

    fn hash(&self, key: &str) -> String {
        let model = format!("{:?}", self.model);
        let about = [key, &self.stored_ms.to_string(), &model].map(str::to_owned);
        hash(about.iter().chain(&self.texts))
    }
}
