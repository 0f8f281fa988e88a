//! What is kept of the parts of a composition, so that a halted or an interrupted one continues.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use cog_json::Value;
use cog_spec::PartAnswer;
use serde::{Deserialize, Serialize};

/// The state from which a halted composition continues.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompositionState {
    /// The answers of the parts that are done.
    pub(crate) finished: FinishedParts,
    /// The parts that wait for a confirmation, in the order in which they were halted.
    pub(crate) halted: Vec<HaltedPart>,
}

/// A part that waits for a confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HaltedPart {
    /// The path of the part in its composition.
    pub(crate) path: String,
    /// The hash of the module, its input and its settings. Only an equal call continues.
    pub(crate) key: String,
    /// The identifier of the part's own halted run.
    pub(crate) id: String,
}

/// The answers of the parts of an interrupted composition, by their paths. The composition continues from them.
///
/// A run whose options have none does not record the answers of its parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct FinishedParts {
    answers: Arc<HashMap<String, PartAnswer>>,
    /// The path of the part whose own parts are meant, with a `/` at its end.
    prefix: String,
}

impl FinishedParts {
    /// Returns the envelope of a part; none if it has none, or if its module, input or settings have changed since.
    pub(crate) fn get(&self, path: &str, key: &str) -> Option<&Value> {
        let answer = self.answers.get(&format!("{}{path}", self.prefix))?;
        (answer.key == key).then_some(&answer.envelope)
    }

    /// Returns these answers and others. Of two answers for a path, the other one counts.
    #[must_use]
    pub(crate) fn with(&self, others: &Self) -> Self {
        self.own_answers().chain(others.own_answers()).collect()
    }

    /// Returns the answers with their paths inside the part that is meant.
    fn own_answers(&self) -> impl Iterator<Item = (String, PartAnswer)> {
        let own = self.answers.iter();
        own.filter_map(|(path, answer)| Some((path.strip_prefix(&self.prefix)?.to_owned(), answer.clone())))
    }

    /// Returns all answers with their paths, in the order of the paths.
    pub(crate) fn answers(&self) -> BTreeMap<&str, &PartAnswer> {
        self.answers.iter().map(|(path, answer)| (path.as_str(), answer)).collect()
    }

    /// Returns the answers of the parts of a part.
    #[must_use]
    pub(crate) fn within(&self, path: &str) -> Self {
        Self { answers: Arc::clone(&self.answers), prefix: format!("{}{path}/", self.prefix) }
    }
}

impl FromIterator<(String, PartAnswer)> for FinishedParts {
    fn from_iter<T: IntoIterator<Item = (String, PartAnswer)>>(answers: T) -> Self {
        Self { answers: Arc::new(answers.into_iter().collect()), prefix: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_count_only_for_the_same_path_and_key() {
        let answer = PartAnswer { key: "k".to_owned(), envelope: Value::parse("{}").unwrap() };
        let parts: FinishedParts = [("a/b".to_owned(), answer)].into_iter().collect();
        assert!(parts.get("a/b", "k").is_some());
        assert!(parts.get("a/b", "other").is_none());
        assert!(parts.get("b", "k").is_none());
        assert!(parts.within("a").get("b", "k").is_some());
    }

    #[test]
    fn later_answers_replace_earlier_ones() {
        let parts = |path: &str, key: &str| -> FinishedParts {
            let answer = PartAnswer { key: key.to_owned(), envelope: Value::parse("{}").unwrap() };
            [(path.to_owned(), answer)].into_iter().collect()
        };
        let all = parts("a", "1").with(&parts("b", "1")).with(&parts("a", "2"));
        assert!(all.get("a", "1").is_none());
        assert!(all.get("a", "2").is_some() && all.get("b", "1").is_some());
        let inner = parts("leaf", "1").with(&parts("a/leaf", "2").with(&parts("b", "1")).within("a"));
        assert_eq!(inner.answers().keys().collect::<Vec<_>>(), [&"leaf"]);
        assert!(inner.get("leaf", "2").is_some());
    }
}
