//! Risk: its levels, and the rules by which it is aggregated.

use cog_json::Node;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::string_enum::string_enum;

string_enum! {
    /// The harm that an answer can do; `none < low < medium < high` (overview, risk).
    Risk {
        /// No harm.
        None = "none",
        /// Low harm.
        Low = "low",
        /// Medium harm.
        Medium = "medium",
        /// High harm.
        High = "high",
    }
}

string_enum! {
    /// The source of `meta.risk` (overview, risk; ruling R21).
    RiskRule {
        /// The maximum `risk` in `data.changes`.
        MaxChangesRisk = "max_changes_risk",
        /// The maximum `risk` in `data.issues`.
        MaxIssuesRisk = "max_issues_risk",
        /// The value that the model reports.
        Explicit = "explicit",
    }
}

impl RiskRule {
    /// Returns the list in `data` whose risks are aggregated.
    pub const fn list(self) -> Option<&'static str> {
        match self {
            RiskRule::MaxChangesRisk => Some("changes"),
            RiskRule::MaxIssuesRisk => Some("issues"),
            RiskRule::Explicit => None,
        }
    }
}

/// The key of a custom risk, unless the module renames it.
const CUSTOM: &str = "custom";

/// `meta.risk`: a level, or a value of the module's own (ruling R20).
#[derive(Debug, Clone, PartialEq)]
pub enum RiskValue {
    /// A level.
    Level(Risk),
    /// `{custom, reason}`, or a name that is not a level; counts as high.
    Custom {
        /// The key of the name: `custom`, or the `enums.unknown_tag` of the module.
        tag: String,
        /// The name.
        custom: String,
        /// The reason why no level fits; none if the answer was only a name.
        reason: Option<String>,
    },
}

impl RiskValue {
    /// Reads a `risk` field; none unless it is a string, `{custom, reason}`, or another member with a `reason`
    /// (ruling R22).
    ///
    /// Read and written by hand, as a custom value is either a string or an object.
    pub fn read(node: Node<'_>) -> Option<Self> {
        if let Some(name) = node.as_str() {
            return Some(match name.parse() {
                Ok(level) => Self::Level(level),
                Err(_) => Self::Custom { tag: CUSTOM.to_owned(), custom: name.to_owned(), reason: None },
            });
        }
        let reason = node.get_str("reason")?.to_owned();
        let (tag, custom) = match node.get(CUSTOM) {
            Some(custom) => (CUSTOM, custom),
            // The module's `enums.unknown_tag` is not known here: with two members, the other one is the name.
            None if node.len() == 2 => node.members().find(|(key, _)| *key != "reason")?,
            None => return None,
        };
        let custom = custom.as_str()?.to_owned();
        Some(Self::Custom { tag: tag.to_owned(), custom, reason: Some(reason) })
    }

    /// Returns the level; a custom value counts as high (ruling R20).
    pub fn level(&self) -> Risk {
        match self {
            Self::Level(level) => *level,
            Self::Custom { .. } => Risk::High,
        }
    }
}

impl From<Risk> for RiskValue {
    fn from(level: Risk) -> Self {
        Self::Level(level)
    }
}

impl Serialize for RiskValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Level(level) => level.serialize(serializer),
            Self::Custom { custom, reason: None, .. } => custom.serialize(serializer),
            Self::Custom { tag, custom, reason: Some(reason) } => {
                let mut object = serializer.serialize_map(Some(2))?;
                object.serialize_entry(tag, custom)?;
                object.serialize_entry("reason", reason)?;
                object.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_json::{ToJson as _, Value};

    use super::*;

    fn read(json: &str) -> Option<RiskValue> {
        RiskValue::read(Value::parse(json).unwrap().node())
    }

    #[test]
    fn risks_are_aggregated_from_the_list_that_the_rule_names() {
        let lists = RiskRule::ALL.iter().map(|rule| rule.list());
        assert!(lists.eq([Some("changes"), Some("issues"), None]));
    }

    #[test]
    fn a_risk_is_a_level_or_counts_as_high() {
        let values = [
            (r#""low""#, Risk::Low),
            (r#""severe""#, Risk::High),
            (r#"{"custom":"legal","reason":"a fine"}"#, Risk::High),
            (r#"{"label":"legal","reason":"a fine"}"#, Risk::High),
        ];
        for (json, level) in values {
            let risk = read(json).unwrap();
            assert_eq!((risk.level(), risk.to_json().as_str()), (level, json));
        }
    }

    #[test]
    fn other_objects_are_no_risk() {
        for json in [
            "3",
            "{}",
            r#"{"reason":"a fine"}"#,
            r#"{"custom":"legal"}"#,
            r#"{"custom":1,"reason":"a fine"}"#,
            r#"{"label":"legal","level":"low","reason":"a fine"}"#,
        ] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
