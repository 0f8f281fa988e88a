//! Recognizes secrets by their form: the names of fields that contain them, and the prefixes of keys and tokens.

use std::borrow::Cow;

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

/// The beginnings of keys and tokens that services issue, each with the minimum length of a key.
const KEY_PREFIXES: [(&str, usize); 18] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("pk-", 20),
    ("xai-", 20),
    ("gsk_", 20),
    ("hf_", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AKIA", 20),
    ("AIza", 30),
    ("eyJ", 40),
];

/// The text in place of a secret.
const MASK: &str = "***";

/// The beginning and the end of a private key in PEM.
const PEM: [&str; 2] = ["-----BEGIN ", "-----END "];

/// Returns whether the name of a field says that its value is a secret, such as `api_key`, `dbPassword` or `Authorization`.
/// Counters such as `max_tokens` are not.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let joined = words.concat();
    let is_key = |pair: &[String]| match pair {
        [before, key] => KEY_WORDS.contains(&before.as_str()) && (key == "key" || key == "keys"),
        _ => false,
    };
    words.iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
        || SECRET_WORDS.contains(&joined.as_str())
        || words.windows(2).any(is_key)
}

/// Returns a text in which keys, tokens and private keys that have a known form are replaced by `***`.
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    if PEM.iter().all(|mark| text.contains(mark)) && text.contains("PRIVATE KEY") {
        return Cow::Borrowed(MASK);
    }
    let mut masked = String::new();
    let mut copied = 0;
    let mut after_bearer = false;
    for (start, word) in words_of_text(text) {
        let is_token = after_bearer && word.len() >= 16;
        after_bearer = word.eq_ignore_ascii_case("bearer");
        if is_token || is_key(word) {
            masked.push_str(text.get(copied..start).unwrap_or_default());
            masked.push_str(MASK);
            copied = start + word.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(masked)
}

fn is_key(word: &str) -> bool {
    KEY_PREFIXES.iter().any(|(prefix, min)| word.len() >= *min && word.starts_with(prefix))
}

/// Returns the words of a text that can be keys, with their offsets: letters, digits, `_`, `-` and `.`.
fn words_of_text(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.as_bytes().get(at..)?;
        let start = at + rest.iter().position(|byte| is_part(*byte))?;
        let word = text.as_bytes().get(start..)?;
        let end = start + word.iter().position(|byte| !is_part(*byte)).unwrap_or(word.len());
        at = end;
        text.get(start..end).map(|word| (start, word))
    })
}

/// Splits a name into lower-case words, at separators and at capital letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
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
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn keys_in_a_text_are_masked() {
        for (text, masked) in [
            ("use sk-abcdefghijklmnopqrstuvwx, please", "use ***, please"),
            ("sk-short is a word", "sk-short is a word"),
            ("Authorization: Bearer abcdefghijklmnop1234", "Authorization: Bearer ***"),
            ("a bearer of news", "a bearer of news"),
            ("(ghp_0123456789abcdefghij)(AKIAIOSFODNN7EXAMPLE)", "(***)(***)"),
            ("é sk-abcdefghijklmnopqrstuvwx é", "é *** é"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "***"),
            ("", ""),
        ] {
            assert_eq!(mask_secrets(text), masked);
            assert_eq!(mask_secrets(&mask_secrets(text)), masked, "masking twice is masking once");
        }
    }
}
