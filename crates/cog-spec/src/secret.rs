use std::fmt;

use cog_json::ToJson as _;

/// A key or token that cannot be printed: `Debug` and `Display` show `***`.
///
/// Only [`Secret::expose`] returns the text, so that a search for its name finds every use of a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the key itself, for the header of a request.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns `text` with every occurrence of the secret replaced by `***`, also where JSON escapes it. A secret of
    /// fewer than eight bytes is a value such as `none`, given to servers that need no key: it is not replaced.
    pub fn redact(&self, text: &str) -> String {
        const MIN_BYTES: usize = 8;
        if self.0.len() < MIN_BYTES {
            return text.to_owned();
        }
        // The longest form first: it may contain a shorter one.
        self.forms().iter().rev().fold(text.to_owned(), |text, form| text.replace(form, "***"))
    }

    /// Returns the secret and its escaped forms in nested JSON, such as a JSON log that contains a JSON reply.
    fn forms(&self) -> Vec<String> {
        const MAX_NESTING: usize = 4;
        std::iter::successors(Some(self.0.clone()), |last| escaped(last)).take(MAX_NESTING).collect()
    }
}

/// Returns a string as it is inside a JSON string; none if that changes nothing.
fn escaped(text: &str) -> Option<String> {
    let quoted = text.to_json();
    let escaped = quoted.strip_prefix('"')?.strip_suffix('"')?;
    (escaped != text).then(|| escaped.to_owned())
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
    fn secret_is_not_printed() {
        let key = Secret::new("sk-canary");
        assert_eq!(format!("{key} {key:?}"), "*** ***");
        assert_eq!(key.expose(), "sk-canary");
        assert_eq!(key.redact("401 for sk-canary"), "401 for ***");
        assert_eq!(Secret::new("12345678").redact("a 12345678 b"), "a *** b");
        assert_eq!(Secret::new("1234567").redact("a 1234567 b"), "a 1234567 b");
        assert_eq!(Secret::new("none").redact("none of these"), "none of these");
    }

    #[test]
    fn masks_a_secret_that_json_escapes() {
        let key = Secret::new(r#"sk-"canary\1"#);
        let mut text = r#"sk-"canary\1"#.to_owned();
        for _ in 0..4 {
            assert!(!key.redact(&format!("a {text} b")).contains("canary"), "{text}");
            text = text.to_json();
        }
    }
}
