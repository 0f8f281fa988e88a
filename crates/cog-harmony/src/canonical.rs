//! Canonical JSON (RFC 8785) and its SHA-256.

use cog_json::{Kind, Node, Number, ToJson as _};
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of a value's canonical JSON: `sha256:` and 64 hex digits.
pub fn hash(node: Node<'_>) -> String {
    let mut text = String::new();
    write(node, &mut text);
    digest(&text)
}

/// Returns the hash of a string in its JSON form.
pub(crate) fn hash_text(text: &str) -> String {
    digest(&text.to_json())
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().fold("sha256:".to_owned(), |hash, byte| format!("{hash}{byte:02x}"))
}

/// Returns whether a string is a hash as [`hash`] returns it.
pub(crate) fn is_hash(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Writes a value without white space, with sorted keys, and with each number as JavaScript writes it.
fn write(node: Node<'_>, out: &mut String) {
    match node.kind() {
        Kind::Object => {
            let mut members: Vec<_> = node.members().collect();
            // RFC 8785 sorts as JavaScript does, by UTF-16: `😀` comes before `\u{fb33}`, unlike in UTF-8.
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            list(members, ['{', '}'], out, |(key, member), out| {
                out.push_str(&key.to_json());
                out.push(':');
                write(member, out);
            });
        }
        Kind::Array => list(node.elements(), ['[', ']'], out, write),
        Kind::Number => out.push_str(&node.as_number().map(number).unwrap_or_default()),
        Kind::Null | Kind::Bool | Kind::String => out.push_str(&node.to_json()),
    }
}

fn list<T>(
    items: impl IntoIterator<Item = T>,
    [open, close]: [char; 2],
    out: &mut String,
    write: impl Fn(T, &mut String),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(close);
}

fn number(number: Number<'_>) -> String {
    // Every number of JavaScript is a double, so an integer of more than 53 bits is rounded here too.
    let value = number.as_f64();
    match value.abs() {
        // Also for `-0`, whose sign JavaScript does not write.
        0.0 => "0".to_owned(),
        1e-6..1e21 => value.to_string(),
        _ => {
            let text = format!("{value:e}");
            if text.contains("e-") { text } else { text.replace('e', "e+") }
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn canonical(text: &str) -> String {
        let mut out = String::new();
        write(Value::parse(text).unwrap().node(), &mut out);
        out
    }

    #[test]
    fn follows_rfc_8785() {
        // The example of section 3.2.2, and the numbers of appendix B.
        assert_eq!(
            canonical(
                r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
                "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#
            ),
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        assert_eq!(
            canonical("[-0.0, 1.0, 1e21, 1e20, 1e-6, 1e-7]"),
            "[0,1,1e+21,100000000000000000000,0.000001,1e-7]"
        );
        assert_eq!(
            canonical(r#"{"\ufb33": 1, "\ud83d\ude00": 2, "é": 3}"#),
            "{\"é\":3,\"😀\":2,\"\u{fb33}\":1}"
        );
    }

    #[test]
    fn hash_does_not_depend_on_the_form() {
        let one = Value::parse(r#"{"b": 1.0, "a": "é"}"#).unwrap();
        let other = Value::parse(r#"{"a":"\u00e9","b":1}"#).unwrap();
        assert_eq!(hash(one.node()), hash(other.node()));
        assert!(is_hash(&hash(one.node())));
        assert!(!is_hash("sha256:") && !is_hash(&"0".repeat(71)));
    }

    #[test]
    fn hash_is_that_of_the_canonical_text() {
        // `printf '"abc"' | sha256sum`
        assert_eq!(
            hash_text("abc"),
            "sha256:6cc43f858fbb763301637b5af970e2a46b46f461f27e5a0f41e009c59b827b25"
        );
    }
}
