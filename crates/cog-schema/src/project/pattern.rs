//! Patterns with plain character classes.

/// Writes `\d`, `\w` and `\s` of a pattern as classes of characters, because many engines that constrain a model do not
/// know the short forms. The only white space is the space: JSON requires escapes for the other characters, which such
/// engines do not write.
pub(super) fn with_plain_classes(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut class: Option<Class> = None;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match (char, &mut class) {
            ('\\', class) => {
                let escaped = chars.next();
                match (escaped.and_then(|escaped| members(escaped, class.as_ref())), class) {
                    (Some(members), Some(class)) => class.add(members, &mut text),
                    (Some(members), None) => text.extend(["[", members, "]"]),
                    (None, class) => {
                        text.push('\\');
                        text.extend(escaped);
                        class.iter_mut().for_each(|class| class.follows_members = false);
                    }
                }
            }
            ('[', None) => {
                text.push('[');
                let is_negated = chars.as_str().starts_with('^');
                text.extend(is_negated.then(|| chars.next()).flatten());
                class = Some(Class { is_negated, start: text.len(), ..Class::default() });
            }
            (']', Some(open)) => {
                open.close(&mut text);
                class = None;
            }
            ('-', Some(class)) if class.follows_members => class.has_hyphen = true,
            (char, class) => {
                text.push(char);
                class.iter_mut().for_each(|class| class.follows_members = false);
            }
        }
    }
    text
}

/// A class of characters that is being read.
#[derive(Default)]
struct Class {
    is_negated: bool,
    /// The offset of its first character.
    start: usize,
    /// The last characters came from a short form, so that a hyphen after them is not a range.
    follows_members: bool,
    /// It contains a hyphen, which is written at the end.
    has_hyphen: bool,
}

impl Class {
    fn add(&mut self, members: &str, text: &mut String) {
        // A hyphen before a short form is not a range either.
        if text.len() > self.start && text.ends_with('-') && !text.ends_with("\\-") {
            text.pop();
            self.has_hyphen = true;
        }
        text.push_str(members);
        self.follows_members = true;
    }

    fn close(&self, text: &mut String) {
        text.push_str(if self.has_hyphen { "-]" } else { "]" });
    }
}

/// Returns the characters of a short form.
fn members(escaped: char, class: Option<&Class>) -> Option<&'static str> {
    match escaped {
        'd' => Some("0-9"),
        'w' => Some("A-Za-z0-9_"),
        's' if class.is_some_and(|class| class.is_negated) => Some(r" \t\r\n"),
        's' => Some(" "),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Pattern;

    #[test]
    fn short_forms_become_classes() {
        for (pattern, plain) in [
            (r"^\d{3}-\w+\s$", "^[0-9]{3}-[A-Za-z0-9_]+[ ]$"),
            (r"^[\d.]+[^\s,]$", r"^[0-9.]+[^ \t\r\n,]$"),
            (r"[\w-.]", "[A-Za-z0-9_.-]"),
            (r"[.-\w]", "[.A-Za-z0-9_-]"),
            (r"[a-z\d-]", "[a-z0-9-]"),
            (r"[\-\d]", r"[\-0-9]"),
            (r"\\d\D\[\d\]", r"\\d\D\[[0-9]\]"),
            (r"[\]\d]", r"[\]0-9]"),
            (r"plain[a-z]", r"plain[a-z]"),
            ("\\", "\\"),
        ] {
            assert_eq!(with_plain_classes(pattern), plain, "{pattern}");
        }
    }

    #[test]
    fn plain_pattern_matches_nothing_that_the_original_refuses() {
        let candidates: Vec<String> = (0..=127_u8).map(|byte| format!("a{}b", char::from(byte))).collect();
        for pattern in [r"^a\db$", r"^a\wb$", r"^a\sb$", r"^a[^\d\w]b$", r"^a[\w.-]b$", r"^a[\s-]b$"] {
            let original = Pattern::new(pattern).unwrap();
            let plain = Pattern::new(&with_plain_classes(pattern)).unwrap();
            let refused = candidates.iter().filter(|text| plain.is_match(text) && !original.is_match(text));
            assert_eq!(refused.collect::<Vec<_>>(), Vec::<&String>::new(), "{pattern}");
        }
    }
}
