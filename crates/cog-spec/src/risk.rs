//! Risk: the order of the overview, and the rules by which it is aggregated.

use cog_json::{Node, ToJson, Writer};

use crate::tier::words;

words! {
    /// How much harm an answer can do; `none < low < medium < high` (overview, risk).
    Risk {
        /// None.
        None = "none",
        /// Low.
        Low = "low",
        /// Medium.
        Medium = "medium",
        /// High.
        High = "high",
    }
}

words! {
    /// Where `meta.risk` comes from (overview, risk; ruling R21).
    RiskRule {
        /// The greatest `risk` in `data.changes`.
        MaxChangesRisk = "max_changes_risk",
        /// The greatest `risk` in `data.issues`.
        MaxIssuesRisk = "max_issues_risk",
        /// What the model says.
        Explicit = "explicit",
    }
}

impl RiskRule {
    /// The list in `data` whose risks are aggregated.
    pub const fn list(self) -> Option<&'static str> {
        match self {
            RiskRule::MaxChangesRisk => Some("changes"),
            RiskRule::MaxIssuesRisk => Some("issues"),
            RiskRule::Explicit => None,
        }
    }
}

/// `meta.risk` as it may stand in an envelope: a word, or an object (ruling R20).
#[derive(Debug, Clone, PartialEq)]
pub enum RiskValue {
    /// A word of the order.
    Level(Risk),
    /// `{custom, reason}`, or a word outside the order; counts as high.
    Custom {
        /// The word of the module's own.
        custom: String,
        /// Why no word of the order fits; none where the answer was a bare word.
        reason: Option<String>,
    },
}

impl RiskValue {
    /// Reads a `risk` field; none where it is neither a word nor `{custom, reason}`.
    pub fn read(node: Node<'_>) -> Option<Self> {
        if let Some(word) = node.as_str() {
            return Some(match word.parse() {
                Ok(level) => Self::Level(level),
                Err(_) => Self::Custom { custom: word.to_owned(), reason: None },
            });
        }
        let custom = node.get("custom")?.as_str()?.to_owned();
        let reason = node.get("reason")?.as_str()?.to_owned();
        Some(Self::Custom { custom, reason: Some(reason) })
    }

    /// Where it stands in the order: what is outside counts as high (ruling R20).
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

impl ToJson for RiskValue {
    fn write_json(&self, w: &mut Writer<'_>) {
        match self {
            Self::Level(level) => w.string(level.as_str()),
            Self::Custom { custom, reason: None } => w.string(custom),
            Self::Custom { custom, reason: Some(reason) } => w.object(|w| {
                w.field("custom", custom);
                w.field("reason", reason);
            }),
        }
    }
}
