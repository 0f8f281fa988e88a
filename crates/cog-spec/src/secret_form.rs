//! Recognizes secrets by their form: the names of fields that contain them, assignments in text, URLs with a password, and
//! the prefixes of keys and tokens.

mod assignments;
mod names;

use std::{borrow::Cow, ops::Range};

use self::names::MASK;
pub use self::names::{is_secret_list_name, is_secret_name};

/// The beginning and the end of a private key in PEM.
const PEM: [&str; 2] = ["-----BEGIN ", "-----END "];

/// Returns the text with its secrets replaced by `***`: keys, tokens and private keys that have a known form, values that are
/// assigned to the name of a secret, such as `password: x` or `token=x`, and the passwords of URLs.
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    // The lines of a key cannot be distinguished from other text, so that nothing of it is kept.
    if PEM.iter().all(|mark| text.contains(mark)) && text.contains("PRIVATE KEY") {
        return Cow::Borrowed(MASK);
    }
    let found = find_keys(text).chain(assignments::find(text)).chain(find_passwords(text));
    let mut found: Vec<Range<usize>> = found.collect();
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_unstable_by_key(|range| range.start);
    let mut masked = String::new();
    let mut copied = 0;
    for Range { start, end } in found {
        if let Some(before) = text.get(copied..start) {
            masked.push_str(before);
            masked.push_str(MASK);
        }
        copied = copied.max(end);
    }
    masked.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(masked)
}

// Keys and tokens with the form that services give them.

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

/// The minimum length of a token after `Bearer`.
const MIN_BEARER: usize = 16;

/// Returns where a string has keys and tokens of a known form, and tokens after `Bearer`.
fn find_keys(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut after_bearer = false;
    words_of_text(text).filter_map(move |(start, word)| {
        let is_token = after_bearer && word.len() >= MIN_BEARER;
        after_bearer = word.eq_ignore_ascii_case("bearer");
        (is_token || is_key(word)).then(|| start..start + word.len())
    })
}

fn is_key(word: &str) -> bool {
    KEY_PREFIXES.iter().any(|(prefix, min)| word.len() >= *min && word.starts_with(prefix))
}

// The passwords of URLs: `https://user:password@host`.

/// The beginning of the authority of a URL.
const AUTHORITY: &str = "://";

/// Returns where a text has passwords of URLs.
fn find_passwords(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(AUTHORITY).filter_map(|(at, _)| {
        let start = at + AUTHORITY.len();
        let rest = text.get(start..)?;
        let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'<>`".contains(c));
        let (user_info, _) = rest.get(..end.unwrap_or(rest.len()))?.rsplit_once('@')?;
        let (user, password) = user_info.split_once(':')?;
        let start = start + user.len() + 1;
        (!password.is_empty()).then(|| start..start + password.len())
    })
}

/// A name to which a text assigns a value.
#[derive(Clone, Copy)]
struct Field<'a> {
    text: &'a str,
    /// The offset of the name.
    start: usize,
    name: &'a str,
    /// Whether `:` follows the name, which sentences contain too; otherwise `=`.
    by_colon: bool,
    /// The text after the separator.
    rest: &'a str,
}

/// The secrets among the values of a field.
struct FieldSecrets {
    found: Vec<Range<usize>>,
    /// The offset up to which the text was read.
    end: usize,
}

/// Returns the words of a text that can be names or keys, with their offsets: letters, digits, `_`, `-` and `.`.
fn words_of_text(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.as_bytes().get(at..)?;
        let start = at + rest.iter().position(|byte| is_word_byte(*byte))?;
        let word = text.as_bytes().get(start..)?;
        let end = start + word.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(word.len());
        at = end;
        text.get(start..end).map(|word| (start, word))
    })
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cases: &[(&str, &str)]) {
        for (text, masked) in cases {
            assert_eq!(mask_secrets(text), *masked);
            assert_eq!(mask_secrets(masked), *masked, "masking twice is masking once");
        }
    }

    #[test]
    fn keys_in_a_text_are_masked() {
        check(&[
            ("use sk-abcdefghijklmnopqrstuvwx, please", "use ***, please"),
            ("sk-short is a word", "sk-short is a word"),
            ("Authorization: Bearer abcdefghijklmnop1234", "Authorization: Bearer ***"),
            ("a bearer of news", "a bearer of news"),
            ("(ghp_0123456789abcdefghij)(AKIAIOSFODNN7EXAMPLE)", "(***)(***)"),
            ("é sk-abcdefghijklmnopqrstuvwx é", "é *** é"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "***"),
            ("", ""),
        ]);
    }

    #[test]
    fn many_quoted_values_in_one_line_are_masked_in_linear_time() {
        let line = "token='a' ".repeat(20_000);
        assert_eq!(mask_secrets(&line), "token='***' ".repeat(20_000));
    }

    #[test]
    fn many_open_calls_and_lists_in_one_line_are_read_in_linear_time() {
        let parts =
            ["token=f(x ", "tokens: [ ", "tokens:[a=b ", "tokens:[a=b(", "tokens:[*** =", "tokens:\n- "];
        for part in parts.into_iter().chain(["tokens:[a:b", "tokens:\n- a=b(", "password: |\n "]) {
            let text = part.repeat(20_000);
            assert!(mask_secrets(&text).len() <= text.len());
        }
    }

    #[test]
    fn lists_and_objects_keep_their_brackets() {
        for text in [r#"{"credentials": {"user": "u"}}"#, "password: { type: String }"] {
            assert_eq!(mask_secrets(text), text);
        }
    }

    #[test]
    fn values_like_code_are_masked() {
        check(&[
            ("password: mypassword", "password: ***"),
            ("password=MyPassword", "password=***"),
            ("my password: my-password", "my password: ***"),
            ("password: hunter(2", "password: ***"),
            ("password: hunter2(x)", "password: ***)"),
            ("password: hunter(2 (really)\nlist: 1) first", "password: *** (really)\nlist: 1) first"),
            ("token=hunter[2", "token=***"),
        ]);
    }

    #[test]
    fn items_of_lists_are_masked() {
        check(&[
            ("tokens:\n  - abc\n  - 'd e'\nsize: 3", "tokens:\n  - ***\n  - '***'\nsize: 3"),
            ("api_keys:\r\n- abc\r\n- def\r\n", "api_keys:\r\n- ***\r\n- ***\r\n"),
            ("tokens: [123456, 12345], password: hunter2", "tokens: [***, 12345], password: ***"),
            ("tokens: ['cookie: a=b', see password: y]", "tokens: ['***', see password: ***]"),
            ("tokens = ['cookie: a=b', password=y]", "tokens = ['***', password=***]"),
            ("tokens:\n- 'a:b'\n- c", "tokens:\n- '***'\n- ***"),
            (r#"{"tokens": ["abc", "d,e"], "n": ["f"]}"#, r#"{"tokens": ["***", "***"], "n": ["f"]}"#),
            ("{\\\"passwords\\\": [\\\"a b\\\"]}", "{\\\"passwords\\\": [\\\"***\\\"]}"),
            ("\"secrets\": [\n  \"é\",\n  \"b\"\n]", "\"secrets\": [\n  \"***\",\n  \"***\"\n]"),
            ("access_tokens: [abc , def]", "access_tokens: [*** , ***]"),
            ("passwords = ['a', b]", "passwords = ['***', b]"),
            ("tokens: [abc", "tokens: [***"),
            ("tokens: [\"abc", "tokens: [\"***"),
            ("tokens: [see password: hunter2", "tokens: [see password: ***"),
            ("tokens:\n- abc\n- id: x\n  password: y", "tokens:\n- ***\n- id: x\n  password: ***"),
            ("tokens: [YWI=, YWJj==, d:e]", "tokens: [***, ***, ***]"),
            ("secrets:\n- YWI=\n- a:b\n- x9\n", "secrets:\n- ***\n- ***\n- ***\n"),
            ("api_keys: [password=hunter2, x]", "api_keys: [***, ***]"),
            ("tokens: [password=hunter2 is mine]", "tokens: [password=*** is mine]"),
            ("tokens:\n- see password: hunter2\n- b", "tokens:\n- see password: ***\n- b"),
            ("tokens:\n- id:\n    password: y", "tokens:\n- id:\n    password: ***"),
            ("passwords:\n- two words\n- hunter", "passwords:\n- two words\n- ***"),
            ("Tokens:\n- words\n- parts of words\n- 7hunter", "Tokens:\n- words\n- parts of words\n- ***"),
        ]);
    }

    #[test]
    fn blocks_of_yaml_are_masked() {
        check(&[
            ("password: |\n  x\n  y\n\nname: z", "password: |\n  ***\n\nname: z"),
            ("password: |\n  x\ntoken: y", "password: |\n  ***\ntoken: ***"),
            ("a:\n  - token: >-\n      x y\n  - b", "a:\n  - token: >-\n      ***\n  - b"),
            ("password: |\n", "password: |\n"),
            ("- password: |\n    x\n  name: z", "- password: |\n    ***\n  name: z"),
            ("- - secret: |\n      x\n    name: z", "- - secret: |\n      ***\n    name: z"),
            ("passwords: |\n  a b\n  c", "passwords: |\n  ***"),
            ("tokens: |\n  a1\n  b\n", "tokens: |\n  ***\n"),
            ("password: |\nname: z", "password: |\nname: z"),
        ]);
    }

    #[test]
    fn assigned_secrets_are_masked() {
        check(&[
            ("password: x", "password: ***"),
            ("token=x", "token=***"),
            ("My password: hunter2, please log in", "My password: ***, please log in"),
            ("my password: swordfish and my name", "my password: *** and my name"),
            ("export DB_PASSWORD='a b'; run", "export DB_PASSWORD='***'; run"),
            (r#"{"apiKey": "abc", "n": 1}"#, r#"{"apiKey": "***", "n": 1}"#),
            (r#"{\"secret\": \"a\"}"#, r#"{\"secret\": \"***\"}"#),
            ("curl 'https://a.b/?token=abc&page=2'", "curl 'https://a.b/?token=***&page=2'"),
            ("api key: 7f3k", "api key: ***"),
            ("the token: 123456 is long", "the token: *** is long"),
            ("- client_secret: plain\n- size: 3", "- client_secret: ***\n- size: 3"),
            ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
            ("Cookie: sid=1; theme=dark\nHost: a", "Cookie: ***\nHost: a"),
            ("auth = 7hunter", "auth = ***"),
            ("password:é1", "password:***"),
            ("password=sk-abcdefghijklmnopqrstuvwx", "password=***"),
            ("token=", "token="),
            ("password:", "password:"),
        ]);
    }

    #[test]
    fn passwords_of_urls_are_masked() {
        check(&[
            ("see https://ada:s3cret@a.example/x?y=1 now", "see https://ada:***@a.example/x?y=1 now"),
            ("postgres://u:p@ss@db:5432/x", "postgres://u:***@db:5432/x"),
            ("redis://:secret@cache", "redis://:***@cache"),
            ("ssh://git@a.example/x.git", "ssh://git@a.example/x.git"),
            ("https://a.example:8080/@user:x", "https://a.example:8080/@user:x"),
        ]);
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "the token budget is 5000",
            "token budget: 5000",
            "the token: 12345 is short",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "a PRIVATE KEY is a file",
            "Tokens: 12, max_tokens=100",
            "Token: the smallest unit of text",
            "The secret: patience.",
            "Password: must have 8 characters",
            "password: required",
            "a password: please choose one",
            "struct A { token: String, password: Option<String> }",
            "if token == expected { token => 1 }",
            "token = next(tokens)",
            "login(token=token, password=args.password)",
            "auth::token::new",
            "password=${PASSWORD} token=<token>",
            "key: value, author: Ada",
            "the auth method: oauth2",
            "http://127.0.0.1:11434/api",
            "mail ada@a.example: it works",
            "a token, b=c",
            "connect(user, password: user_password, token: accessToken, secret: $secret)",
            "token = next(\n    tokens,\n)",
            "token = find(keys[0], 2)",
            "tokens: [1, 2, 3], stop_tokens: [\"END\"], tokens: [u8; 32]",
            "let tokens = [Token::Plus, one, two(3)];",
            "tokens: [Token], secrets: [string, number]",
            "secrets:\n  - db_password\n  - source: api\n",
            "Passwords:\n- must have 8 characters\n- are changed often\n",
            "| token: | x |\n| --- | --- |",
            "for token in tokens:\n    print(token)",
            "credentials:\n  user: u",
            "Tokens:\n- words\n- parts of words\n- signs",
            "Tokens: >\n  the smallest units of a text\n",
            "lexer: { tokens: [Token::Plus, Token::Minus] }",
        ] {
            assert_eq!(mask_secrets(text), text);
        }
    }
}
