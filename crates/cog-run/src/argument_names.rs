//! The names of a tool's arguments for vendors that accept only some characters in them: renamed in what is sent, and back in what
//! the model calls with.

use cog_json::{Value, Writer};

/// The maximum length of a name, as vendors accept it.
const MAX_NAME: usize = 64;
/// The length of a name that was shortened, before the number that makes it unique.
const SHORT_NAME: usize = 56;

/// The arguments of a tool whose names some vendors refuse. Only the members at the root matter: names further below are accepted.
#[derive(Debug, Default)]
pub(crate) struct ArgumentNames(Vec<Renamed>);

#[derive(Debug)]
struct Renamed {
    written: String,
    sent: String,
}

impl ArgumentNames {
    /// Finds the names that need another one.
    pub(crate) fn find(schema: &Value) -> Self {
        let Some(properties) = schema.get("properties") else { return Self::default() };
        let known: Vec<&str> = properties.members().map(|(name, _)| name).collect();
        let mut renamed: Vec<Renamed> = Vec::new();
        for written in known.iter().filter(|name| !is_plain(name)) {
            let letters = written.chars().map(|letter| if is_plain_letter(letter) { letter } else { '_' });
            let stem: String = letters.take(SHORT_NAME).collect();
            let is_taken = |name: &str, renamed: &[Renamed]| {
                name.is_empty() || known.contains(&name) || renamed.iter().any(|other| other.sent == name)
            };
            let mut sent = stem.clone();
            let mut number = 1;
            while is_taken(&sent, &renamed) {
                number += 1;
                sent = format!("{stem}_{number}");
            }
            renamed.push(Renamed { written: (*written).to_owned(), sent });
        }
        Self(renamed)
    }

    /// Returns a schema with the names that are sent.
    pub(crate) fn sent(&self, schema: Value) -> Value {
        if self.0.is_empty() {
            return schema;
        }
        let sent =
            |name: &str| self.0.iter().find(|renamed| renamed.written == name).map(|it| it.sent.as_str());
        rewritten(|w| {
            for (key, member) in schema.members() {
                match key {
                    "properties" => {
                        w.key(key).object(|w| {
                            for (name, property) in member.members() {
                                w.field(sent(name).unwrap_or(name), &property);
                            }
                        });
                    }
                    "required" => {
                        let names = member.elements().filter_map(|name| name.as_str());
                        let names: Vec<&str> = names.map(|name| sent(name).unwrap_or(name)).collect();
                        w.field(key, &names);
                    }
                    _ => {
                        w.field(key, &member);
                    }
                }
            }
        })
    }

    /// Returns arguments with the names of the tool. Values stay as they were written.
    pub(crate) fn restored(&self, arguments: Value) -> Value {
        let written =
            |name: &str| self.0.iter().find(|renamed| renamed.sent == name).map(|it| it.written.as_str());
        if !arguments.members().any(|(name, _)| written(name).is_some()) {
            return arguments;
        }
        rewritten(|w| {
            for (name, member) in arguments.members() {
                w.field(written(name).unwrap_or(name), &member);
            }
        })
    }
}

fn rewritten(members: impl FnOnce(&mut Writer<'_>)) -> Value {
    let mut text = String::new();
    Writer::compact(&mut text).object(members);
    Value::parse(&text).unwrap_or_default()
}

fn is_plain(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_plain_letter)
}

fn is_plain_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-')
}

#[cfg(test)]
mod tests {
    use cog_json::ToJson as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_name_is_accepted_unique_and_found_again() {
        let long = "x".repeat(65);
        let properties: serde_json::Map<_, _> =
            ["filter[id]", "filter_id_", "$top", "ö", "é", "", "a.b-c_1", long.as_str()]
                .into_iter()
                .map(|name| (name.to_owned(), json!({ "type": "string" })))
                .collect();
        let schema = Value::from(
            json!({ "type": "object", "properties": properties, "required": ["$top", "a.b-c_1"] }),
        );
        let names = ArgumentNames::find(&schema);
        let sent = names.sent(schema.clone());
        let listed: Vec<String> =
            sent.get("properties").unwrap().members().map(|(name, _)| name.to_owned()).collect();
        let unique: std::collections::HashSet<_> = listed.iter().collect();
        assert_eq!((listed.len(), unique.len()), (8, 8), "{listed:?}");
        assert!(listed.iter().all(|name| is_plain(name)), "{listed:?}");
        assert!(
            listed.contains(&"a.b-c_1".to_owned()) && listed.contains(&"filter_id_".to_owned()),
            "{listed:?}"
        );
        assert_eq!(sent.get("required").unwrap().to_value().to_serde(), json!(["_top", "a.b-c_1"]));
        let call = |names: &[&str]| {
            let members: Vec<String> = names.iter().map(|name| format!("{}:1.50", name.to_json())).collect();
            Value::parse(&format!("{{{}}}", members.join(","))).unwrap()
        };
        let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        let written: Vec<&str> = schema.get("properties").unwrap().members().map(|(name, _)| name).collect();
        assert_eq!(names.restored(call(&listed)).to_json(), call(&written).to_json());
        assert_eq!(names.restored(call(&written)).to_json(), call(&written).to_json(), "of another vendor");
    }
}
