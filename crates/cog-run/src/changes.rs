//! Changes single nodes of a JSON value. All others keep the form in which they were written: a number of any size and precision.

use std::collections::HashMap;

use cog_json::{Kind, Node, ToJson as _, Value, Writer};

/// What takes the place of a node.
pub(crate) enum Change {
    /// Nothing: the member is left out.
    Omit,
    /// Another value.
    Replace(Value),
}

/// Returns a value with changes, by the JSON Pointers of their nodes.
pub(crate) fn with_changes(value: Node<'_>, changes: &HashMap<String, Change>) -> Value {
    let mut text = String::new();
    let mut pointer = String::new();
    write(&mut Writer::compact(&mut text), value, &mut pointer, changes);
    Value::parse(&text).unwrap_or_default()
}

fn write(w: &mut Writer<'_>, node: Node<'_>, pointer: &mut String, changes: &HashMap<String, Change>) {
    if let Some(Change::Replace(value)) = changes.get(pointer.as_str()) {
        return value.write_json(w);
    }
    let length = pointer.len();
    match node.kind() {
        Kind::Object => w.object(|w| {
            for (key, member) in node.members() {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                if !matches!(changes.get(pointer.as_str()), Some(Change::Omit)) {
                    write(w.key(key), member, pointer, changes);
                }
                pointer.truncate(length);
            }
        }),
        Kind::Array => w.array(|w| {
            for (index, element) in node.elements().enumerate() {
                pointer.push_str(&format!("/{index}"));
                write(w, element, pointer, changes);
                pointer.truncate(length);
            }
        }),
        _ => node.write_json(w),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_nodes_stay_as_they_were_written() {
        let text = r#"{"a":12345678901234567890123,"b":[1.50,{"c/d":null}],"e":-0.0,"f":1E400}"#;
        let value = Value::parse(text).unwrap();
        assert_eq!(with_changes(value.node(), &HashMap::new()).to_string(), text);
        let changes = HashMap::from([
            ("/b/1/c~1d".to_owned(), Change::Omit),
            ("/e".to_owned(), Change::Replace(Value::parse("[2.0]").unwrap())),
        ]);
        let changed = with_changes(value.node(), &changes).to_string();
        assert_eq!(changed, r#"{"a":12345678901234567890123,"b":[1.50,{}],"e":[2.0],"f":1E400}"#);
    }
}
