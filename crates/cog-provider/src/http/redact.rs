use cog_spec::Secret;

/// The maximum length of external text in a message, in characters.
const MAX_LEN: usize = 300;

/// The length of a key prefix that is redacted like the key itself: vendors repeat keys in part.
const TELLING: usize = 8;

/// Makes external text safe to display: one line, bounded, and without the key.
pub(super) struct Redactor(Option<Secret>);

impl Redactor {
    pub(super) fn new(key: Option<Secret>) -> Self {
        Self(key)
    }

    pub(super) fn clean(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = match &self.0 {
            Some(key) => key.redact(&without(key, &line)),
            None => line,
        };
        match line.char_indices().nth(MAX_LEN) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }
}

/// Removes the key, and words that begin with the same prefix as the key. A shorter key is removed only where it is a
/// complete word: `none` and similar values are set for servers that need no key.
fn without(key: &Secret, text: &str) -> String {
    let key = key.expose();
    let beginning = key.get(..TELLING).unwrap_or(key);
    if beginning.is_empty() {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(beginning) {
        let (before, found) = rest.split_at(start);
        clean.push_str(before);
        let behind = found.get(beginning.len()..).unwrap_or_default();
        let end = behind.find(ends_word).unwrap_or(behind.len());
        let (word, after) = found.split_at(beginning.len() + end);
        let alone = word == key && !before.ends_with(char::is_alphanumeric);
        clean.push_str(if alone || key.len() >= TELLING { "***" } else { word });
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
    fn the_key_does_not_show() {
        assert_eq!(clean("bad key sk-canary-0123456789."), "bad key ***");
        assert_eq!(clean(r#"key "sk-canary-****6789", sk-canary-01"#), r#"key "***", ***"#);
        assert_eq!(clean("sk-cana is too short to tell"), "sk-cana is too short to tell");
    }

    #[test]
    fn a_short_key_does_not_show_either() {
        let clean = |text| Redactor::new(Some(Secret::new("k1"))).clean(text);
        assert_eq!(clean("your k1 is bad: k1"), "your *** is bad: ***");
        assert_eq!(clean("ask1 k10"), "ask1 k10");
    }

    #[test]
    fn any_key_comes_to_an_end() {
        for key in ["<", "(((((((((", "é", "ééééééééé", " "] {
            let clean = Redactor::new(Some(Secret::new(key))).clean(&format!("a {key} b{key}"));
            assert!(clean.starts_with('a'), "{clean}");
        }
    }

    #[test]
    fn a_text_is_one_line_and_not_too_long() {
        assert_eq!(clean("a\n  b\tc "), "a b c");
        let cut = clean(&"é".repeat(MAX_LEN + 1));
        assert_eq!(cut.chars().count(), MAX_LEN + 1);
        assert!(cut.ends_with('…'));
        assert_eq!(clean(&"é".repeat(MAX_LEN)).chars().count(), MAX_LEN);
    }
}
