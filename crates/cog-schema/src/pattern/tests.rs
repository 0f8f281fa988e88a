use serde_json::json;

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
        (r"\\d\D\[\d\]", r"\\d[^0-9]\[[0-9]\]"),
        (r"[\D]\(?:(?:a|b)", r"[\D]\(?:(a|b)"),
        (r"[\]\d]", r"[\]0-9]"),
        (r"-[\d]", r"-[0-9]"),
        (r"\W[\W]", r"[^A-Za-z0-9_][\W]"),
        ("(ab)(?:cd)", "(ab)(cd)"),
        (r"plain[a-z]", r"plain[a-z]"),
        ("\\", "\\"),
    ] {
        assert_eq!(with_plain_classes(pattern), plain, "{pattern}");
    }
}

#[test]
fn simple_patterns_count_only_characters() {
    for simple in ["^[A-Z]{3}-[0-9]{4}$", "^(ab)+(c|d)?$", "[0-9]{2,}", "^.{1,100}$", r"^a\.{2}"] {
        assert!(is_simple(simple), "{simple}");
    }
    for complex in ["a{101}", "(a{2}){3}", "^a+?$", r"\ba", r"^\p{L}", "(?<name>a)", "(?=a)", "[a"] {
        assert!(!is_simple(complex), "{complex}");
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

#[test]
fn schemas_of_other_values_are_omitted() {
    let schema = json!({
        "title": "T",
        "type": "object",
        "required": ["a"],
        "properties": { "a": { "type": "string" } },
        "patternProperties": { "^b": { "type": "string" } },
        "additionalProperties": false,
        "propertyNames": { "minLength": 1 },
        "dependencies": { "a": ["b"], "c": { "required": ["d"] } },
        "items": [{ "type": "string" }, { "type": "null" }],
        "additionalItems": { "type": "string" },
        "contains": { "const": 1 },
        "allOf": [{ "type": "object" }],
        "$defs": { "x": {} },
    });
    let own = json!({
        "type": "object",
        "required": ["a"],
        "properties": { "a": true },
        "patternProperties": { "^b": true },
        "additionalProperties": false,
        "propertyNames": link("/data/propertyNames"),
        "dependencies": { "a": ["b"] },
        "items": [true, true],
    });
    assert_eq!(own_keywords(&schema, "/data"), own);
    assert_eq!(own_keywords(&json!({ "items": { "type": "string" } }), ""), json!({}));
    assert_eq!(own_keywords(&json!({ "propertyNames": false }), ""), json!({ "propertyNames": false }));
    assert_eq!(own_keywords(&json!(false), ""), json!(false));
}

#[test]
fn patterns_are_anchored_and_plain() {
    for (pattern, expected) in [
        ("^[0-9]{4}-[a-z]+$", "^[0-9]{4}-[a-z]+$"),
        ("^cat$|^dog$", "^(cat|dog)$"),
        ("^(?:ab)+c$", "^(ab)+c$"),
        ("^a+?$", "^a+$"),
        (r"^a\/b$", "^a/b$"),
        (r"^cost\$$", r"^cost\$$"),
        (r"^[\-\]a]\.{2}$", r"^[\x2D\x5Da](\.){2}$"),
        (r"^.[^a]$", r#"^[^\x00-\x1F"\\][^\x00-\x1F"\\a]$"#),
        ("^[ -~]$", "^[ !#-\\x5B\\x5D-~]$"),
        ("[0-9]", r#"^[^\x00-\x1F"\\]*[0-9][^\x00-\x1F"\\]*$"#),
        ("^a{2}b{2,5}c{3,}d?$", "^a{2}b{2,5}c{3,}d?$"),
        (r"^[\[&]$", r"^[&\x5B]$"),
        ("^a", r#"^a[^\x00-\x1F"\\]*$"#),
        ("", r#"^[^\x00-\x1F"\\]*[^\x00-\x1F"\\]*$"#),
    ] {
        assert_eq!(grammar_pattern(pattern).as_deref(), Some(expected), "{pattern}");
        assert_eq!(grammar_pattern(expected).as_deref(), Some(expected), "{expected}");
    }
}

#[test]
fn pattern_that_a_grammar_cannot_enforce_is_none() {
    for pattern in [
        r#"^"a"$"#,
        r"^\\$",
        r"^a\tb$",
        r"^a\b$",
        "^[a-z]{1,2000}$",
        "a^b",
        "a$b",
        "^[[a]b]$",
        "^[a-z&&b]$",
        "^[a-c--b]$",
        "^[a-c~~b]$",
        r"^[\]a-z&&b]$",
        r#"^["\\]$"#,
        "^[[a]$",
        "^[a&&b]$",
        "^(a",
        r"^\p{L}$",
    ] {
        assert_eq!(grammar_pattern(pattern), None, "{pattern}");
    }
}

#[test]
fn class_has_at_most_32_ranges() {
    let class = |ranges: u32| {
        let chars: String = (0..ranges).filter_map(|n| char::from_u32(0x100 + 2 * n)).collect();
        format!("^[{chars}]$")
    };
    assert_eq!(grammar_pattern(&class(32)), Some(class(32)));
    assert_eq!(grammar_pattern(&class(33)), None);
}

#[test]
fn texts_without_escapes_match_as_before() {
    let texts: Vec<String> = (32..=255_u8)
        .map(char::from)
        .filter(|char| !['"', '\\'].contains(char))
        .flat_map(|char| [format!("a{char}b"), format!("cat{char}"), format!("{char}dog"), char.to_string()])
        .chain(["".to_owned(), "cat".to_owned(), "dog".to_owned(), "ab".to_owned()])
        .collect();
    for pattern in ["^cat|dog$", "a.b", "^a[^x-z]b$", "[!-/]", "^(a|cat)?[0-9a-z ]*b?$", "^$|b$", "^a|^d|t$"]
    {
        let original = Pattern::new(pattern).unwrap();
        let sent = Pattern::new(&grammar_pattern(pattern).unwrap()).unwrap();
        let differ: Vec<&String> =
            texts.iter().filter(|text| original.is_match(text) != sent.is_match(text)).collect();
        assert_eq!(differ, Vec::<&String>::new(), "{pattern}");
    }
}
