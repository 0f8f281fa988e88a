//! The names of fields that contain secrets, and what their values can be instead.

/// Words in the name of a field, each of which marks its value as a secret.
const SECRET_WORDS: [&str; 15] = [
    "apikey",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "secrets",
    "token",
];

/// Words before `key` in the name of a field, such as `api_key`.
const KEY_WORDS: [&str; 9] =
    ["access", "api", "auth", "encryption", "private", "secret", "service", "signing", "ssh"];

/// Names that mark a secret only if they are the complete name.
const SECRET_NAMES: [&str; 3] = ["auth", "basicauth", "passcode"];

/// Words at the end of a name that is about secrets, such as `token_budget` or `password_policy`. Its value is not a secret.
const ABOUT: [&str; 15] = [
    "budget", "count", "counts", "expiry", "length", "limit", "limits", "max", "min", "policy", "rate",
    "size", "type", "usage", "used",
];

/// Words at the end of a name whose list has secrets as its items.
const SECRET_LISTS: [&str; 4] = ["cookies", "passphrases", "passwds", "passwords"];

/// Words before `tokens` in the name of a list of secrets. Other lists of tokens, such as `stop_tokens`, are text.
const TOKEN_WORDS: [&str; 7] = ["access", "api", "auth", "bearer", "refresh", "service", "session"];

/// Returns whether the name of a field says that its value is a secret, such as `api_key`, `dbPassword` or `Authorization`.
/// Names of counters such as `max_tokens` and `token_budget` do not.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let joined = words.concat();
    if words.last().is_some_and(|word| ABOUT.contains(&word.as_str())) {
        return false;
    }
    words.iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
        || SECRET_WORDS.contains(&joined.as_str())
        || SECRET_NAMES.contains(&joined.as_str())
        || words.windows(2).any(is_key)
}

/// Whether two words of a name are like `api_key`.
fn is_key(pair: &[String]) -> bool {
    match pair {
        [before, key] => KEY_WORDS.contains(&before.as_str()) && (key == "key" || key == "keys"),
        _ => false,
    }
}

/// Returns whether the items of a list with this name are secrets, such as `tokens` or `passwords`. As the name of one value,
/// `tokens` is a counter.
pub fn is_secret_list_name(name: &str) -> bool {
    let words = words(name);
    match words.as_slice() {
        [.., last] if SECRET_LISTS.contains(&last.as_str()) => true,
        [tokens] => tokens == "tokens",
        [.., word, tokens] => tokens == "tokens" && TOKEN_WORDS.contains(&word.as_str()),
        [] => false,
    }
}

/// Splits a name into lower-case words, at separators and at capital letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    // Keys of foreign JSON are names too, and can be megabytes long.
    for letter in name.chars().take(256) {
        let starts_word = letter.is_uppercase() && was_lower;
        if (starts_word || !letter.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

// What the value of a name can be instead of a secret.

/// The text that replaces a secret.
pub(super) const MASK: &str = "***";

/// Words after the name of a secret that are not one: words of a sentence, and types.
const PLAIN: [&str; 42] = [
    "a", "an", "and", "any", "are", "at", "bool", "boolean", "bytes", "can", "choose", "enter", "false",
    "for", "has", "i32", "i64", "in", "int", "is", "may", "minimum", "missing", "must", "no", "none", "not",
    "null", "number", "optional", "please", "required", "should", "str", "string", "text", "the", "true",
    "u32", "u64", "use", "your",
];

/// The beginnings of references to a secret that is elsewhere.
const REFERENCES: [&str; 4] = ["${", "$(", "{{", "%("];

/// The minimum digits of a number that is a secret.
const MIN_DIGITS: usize = 6;

pub(super) const SPACE: [char; 2] = [' ', '\t'];
pub(super) const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Whether a value is empty, masked already, or a reference to a secret that is elsewhere.
pub(super) fn is_elsewhere(value: &str) -> bool {
    value.is_empty() || value.starts_with(MASK) || REFERENCES.iter().any(|start| value.starts_with(start))
}

/// Whether a word in lower case is one of a sentence, or a type.
pub(super) fn is_plain(word: &str) -> bool {
    PLAIN.contains(&word)
}

/// Removes a quotation mark at the beginning, which may be escaped.
pub(super) fn unquoted(text: &str) -> &str {
    text.trim_start_matches('\\').strip_prefix(QUOTES).unwrap_or(text)
}

/// Whether a word has characters that the words of a sentence do not have, except for short numbers.
pub(super) fn has_signs(word: &str) -> bool {
    let is_number = word.len() < MIN_DIGITS && word.chars().all(|c| c.is_ascii_digit());
    let has_sign = word.chars().any(|c| !c.is_alphabetic() && !matches!(c, '-' | '\'' | '.' | '/' | '_'));
    has_sign && !is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognized() {
        for name in [
            "api_key",
            "apiKey",
            "API-KEY",
            "x-api-key",
            "OPENAI_API_KEY",
            "password",
            "dbPassword",
            "authorization",
            "Set-Cookie",
            "access_token",
            "accessToken",
            "client_secret",
            "private_key",
            "apikey",
            "credentials",
            "sshKey",
            "auth",
            "basic_auth",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "key",
            "keys",
            "max_tokens",
            "tokens",
            "tokenizer",
            "primary_key",
            "keyboard",
            "secretary",
            "author",
            "",
            "hint_count",
            "token_budget",
            "tokenCount",
            "password_policy",
            "auth_method",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
