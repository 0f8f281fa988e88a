//! Where the attributes of a span go: into a message of OTLP, or into a list in tests.

/// Receives attributes.
pub(crate) trait Attributes {
    /// Adds a text.
    fn text(&mut self, key: &str, value: &str);
    /// Adds texts.
    fn texts<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>);
    /// Adds an integer.
    fn integer(&mut self, key: &str, value: i64);
    /// Adds a number.
    fn number(&mut self, key: &str, value: f64);
    /// Adds a truth value.
    fn flag(&mut self, key: &str, value: bool);

    /// Adds a text, if there is one.
    fn optional(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// Adds a count, if it is known.
    fn count(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.integer(key, i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
}

/// The attributes as text, for tests.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Listed(pub(crate) std::collections::BTreeMap<String, String>);

#[cfg(test)]
impl Attributes for Listed {
    fn text(&mut self, key: &str, value: &str) {
        assert!(self.0.insert(key.to_owned(), value.to_owned()).is_none(), "{key} twice");
    }

    fn texts<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        self.text(key, &format!("{:?}", values.collect::<Vec<_>>()));
    }

    fn integer(&mut self, key: &str, value: i64) {
        self.text(key, &value.to_string());
    }

    fn number(&mut self, key: &str, value: f64) {
        self.text(key, &format!("{value:?}"));
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.text(key, &value.to_string());
    }
}
