use cog_json::{ToJson, Writer};
use cog_spec::Dialect;

/// One thing about a contract that a vendor is not reported as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The schema it is about, a JSON pointer into the module's document; empty for the whole.
    pub pointer: String,
    /// The keyword; empty for the whole.
    pub keyword: String,
    /// What became of it.
    pub kind: LossKind,
    /// Why.
    pub reason: String,
}

/// What became of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossKind {
    /// It is reported in another form.
    Projected,
    /// It is not reported at all; the check of the answer enforces it.
    EnforcedLocally,
}

impl LossKind {
    /// The kind in a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LossKind::Projected => "projected",
            LossKind::EnforcedLocally => "enforced_locally",
        }
    }
}

impl Loss {
    /// A whole dialect that cannot take a contract.
    pub(super) fn for_dialect(dialect: Dialect, reason: &str) -> Self {
        Self {
            pointer: String::new(),
            keyword: String::new(),
            kind: LossKind::EnforcedLocally,
            reason: format!("{dialect}: {reason}"),
        }
    }
}

impl ToJson for Loss {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("pointer", &self.pointer);
            w.field("keyword", &self.keyword);
            w.field("kind", self.kind.as_str());
            w.field("reason", &self.reason);
        });
    }
}
