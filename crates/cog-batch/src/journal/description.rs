//! What a batch is: the header of its journal, compared when it continues.

use std::fmt;

use cog_json::{Value, Writer};

/// The description of a batch: named values, such as the module and its digest, the model and the input.
///
/// A batch continues only if each of them is the same. It must not contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    fields: Vec<(String, String)>,
}

/// A value of a description that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The name of the value.
    pub name: String,
    /// The value in the journal; none if it has no value of this name.
    pub before: Option<String>,
    /// The value of this batch; none if it has no value of this name.
    pub now: Option<String>,
}

impl Description {
    /// Adds a value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Returns a value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns what differs in a later batch, in the order of the names.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let added = now.fields.iter().filter(|(name, _)| self.get(name).is_none());
        let names = self.fields.iter().chain(added).map(|(name, _)| name);
        let pairs = names.map(|name| (name, self.get(name), now.get(name)));
        let changed = pairs.filter(|(_, before, now)| before != now);
        let difference = |(name, before, now): (&String, Option<&str>, Option<&str>)| Difference {
            name: name.clone(),
            before: before.map(str::to_owned),
            now: now.map(str::to_owned),
        };
        changed.map(difference).collect()
    }

    /// Writes the description as a JSON object.
    pub(crate) fn to_json(&self) -> String {
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            for (name, value) in &self.fields {
                w.field(name, value);
            }
        });
        text
    }

    /// Reads a JSON object of strings.
    pub(crate) fn from_json(text: &[u8]) -> Option<Self> {
        let value = Value::parse_bytes(text).ok().filter(Value::is_object)?;
        let fields = value.members().map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned())));
        Some(Self { fields: fields.collect::<Option<_>>()? })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<String>| value.as_ref().map_or("none".to_owned(), |it| format!("`{it}`"));
        write!(f, "{}: {} in the journal, {} now", self.name, text(&self.before), text(&self.now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_each_difference_with_both_values() {
        let before = Description::default().with("module", "summarize").with("model", "a").with("seed", "1");
        let now = Description::default().with("module", "summarize").with("model", "b").with("input", "x");
        let lines: Vec<_> = before.differences(&now).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "model: `a` in the journal, `b` now",
                "seed: `1` in the journal, none now",
                "input: none in the journal, `x` now"
            ]
        );
        assert_eq!(before.differences(&before), []);
    }

    #[test]
    fn survives_its_way_through_json() {
        let description = Description::default().with("path", "a\"\\\nü").with("", "");
        assert_eq!(Description::from_json(description.to_json().as_bytes()), Some(description));
        for text in ["[]", r#"{"a": 1}"#, "", "{"] {
            assert_eq!(Description::from_json(text.as_bytes()), None, "{text}");
        }
    }
}
