use cog_spec::Secret;

/// The maximum length of external text in a message, in characters.
const MAX_CHARS: usize = 300;

/// The length of a key prefix that is redacted like the key itself: vendors repeat keys in part.
const PREFIX_LEN: usize = 8;

/// Makes external text safe to display: one line, bounded, and without the key.
#[derive(Clone)]
pub(super) struct Redactor(Option<Secret>);

impl Redactor {
    pub(super) fn new(key: Option<Secret>) -> Self {
        Self(key)
    }

    pub(super) fn clean(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = match &self.0 {
            Some(key) => key.redact(&remove_key(key, &line)),
            None => line,
        };
        match line.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }
}

/// Removes the key, and words that begin with the same prefix as the key. A shorter key is removed only where it is a
/// complete word: `none` and similar values are set for servers that need no key.
fn remove_key(key: &Secret, text: &str) -> String {
    let key = key.expose();
    let prefix = key.get(..PREFIX_LEN).unwrap_or(key);
    if prefix.is_empty() {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(prefix) {
        let (before, found) = rest.split_at(start);
        clean.push_str(before);
        let tail = found.get(prefix.len()..).unwrap_or_default();
        let end = tail.find(ends_word).unwrap_or(tail.len());
        let (word, after) = found.split_at(prefix.len() + end);
        let is_key = word == key && !before.ends_with(char::is_alphanumeric);
        clean.push_str(if is_key || key.len() >= PREFIX_LEN { "***" } else { word });
        rest = after;
    }
    clean.push_str(rest);
    clean
}

fn ends_word(letter: char) -> bool {
    letter.is_whitespace() || "\"'`,;:()<>[]{}".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        Redactor::new(Some(Secret::new("sk-canary-0123456789"))).clean(text)
    }

    #[test]
    fn redacts_key_and_its_prefixes() {
        assert_eq!(clean("bad key sk-canary-0123456789."), "bad key ***");
        assert_eq!(clean(r#"key "sk-canary-****6789", sk-canary-01"#), r#"key "***", ***"#);
        assert_eq!(clean("sk-cana is too short"), "sk-cana is too short");
    }

    #[test]
    fn redacts_short_key_as_a_complete_word() {
        let clean = |text| Redactor::new(Some(Secret::new("k1"))).clean(text);
        assert_eq!(clean("your k1 is bad: k1"), "your *** is bad: ***");
        assert_eq!(clean("ask1 k10"), "ask1 k10");
    }

    #[test]
    fn handles_keys_of_special_characters() {
        for key in ["<", "(((((((((", "é", "ééééééééé", " "] {
            let clean = Redactor::new(Some(Secret::new(key))).clean(&format!("a {key} b{key}"));
            assert!(clean.starts_with('a'), "{clean}");
        }
    }

    #[test]
    fn text_is_one_line_and_bounded() {
        assert_eq!(clean("a\n  b\tc "), "a b c");
        let long = clean(&"é".repeat(MAX_CHARS + 1));
        assert_eq!(long.chars().count(), MAX_CHARS + 1);
        assert!(long.ends_with('…'));
        assert_eq!(clean(&"é".repeat(MAX_CHARS)).chars().count(), MAX_CHARS);
    }
}
