use std::fmt;

/// A key or token that does not print: `Debug` and `Display` show `***`.
///
/// The text leaves through [`Secret::expose`] alone, so that a search for that name finds every
/// place where a secret goes out.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text of a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the header it goes into and nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of the secret replaced by `***`. A secret of fewer than eight bytes is a word
    /// such as `none`, given to servers that want no key: it hides nothing.
    pub fn redact(&self, text: &str) -> String {
        const SHORTEST: usize = 8;
        if self.0.len() < SHORTEST { text.to_owned() } else { text.replace(&self.0, "***") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let key = Secret::new("sk-canary");
        assert_eq!(format!("{key} {key:?}"), "*** ***");
        assert_eq!(key.redact("401 for sk-canary"), "401 for ***");
        assert_eq!(Secret::new("none").redact("none of these"), "none of these");
    }
}
