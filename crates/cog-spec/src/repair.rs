use cog_json::{Node, ToJson, Value, Writer};

use crate::tier::words;

words! {
    /// What a repair did (ruling R24). Repair touches form, never meaning.
    RepairRule {
        /// Text around the JSON was left out.
        SurroundingText = "surrounding_text",
        /// A code fence around the JSON was left out.
        CodeFence = "code_fence",
        /// A comma before a closing bracket was left out.
        TrailingComma = "trailing_comma",
        /// A string in single quotes was read.
        SingleQuotes = "single_quotes",
        /// A comment was left out.
        Comment = "comment",
        /// A raw control character in a string was read as its escape.
        RawNewline = "raw_newline",
        /// `None`, `True` or `False` was read as `null`, `true` or `false`.
        PythonLiteral = "python_literal",
        /// A key stood twice; the last one counts.
        DuplicateKey = "duplicate_key",
        /// A reply that is no envelope was wrapped (ruling R28).
        Wrap = "wrap",
        /// `meta.confidence` was absent and filled.
        FillConfidence = "fill_confidence",
        /// `meta.risk` was absent and filled.
        FillRisk = "fill_risk",
        /// `meta.explain` was absent and filled.
        FillExplain = "fill_explain",
        /// White space around `meta.explain` was trimmed.
        TrimExplain = "trim_explain",
        /// `meta.explain` was cut to 280 characters (ruling R23).
        TruncateExplain = "truncate_explain",
        /// Insights beyond the limit were cut (ruling R30).
        CutInsights = "cut_insights",
    }
}

/// One entry of `meta.repairs`: `{rule, path, before?, after?}` (ruling R26).
///
/// Values are given only for paths under `meta`; elsewhere the two are sizes in bytes, so that the
/// ledger never repeats business content.
#[derive(Debug, Clone, PartialEq)]
pub struct Repair {
    /// What was done.
    pub rule: RepairRule,
    /// Where, from the envelope: `meta.explain`; empty for the reply as a whole.
    pub path: String,
    /// What stood there: a value under `meta`, else a number of bytes.
    pub before: Option<Value>,
    /// What stands there now, likewise.
    pub after: Option<Value>,
}

impl Repair {
    pub(crate) fn read(node: Node<'_>) -> Option<Self> {
        Some(Self {
            rule: node.get("rule")?.as_str()?.parse().ok()?,
            path: node.get("path")?.as_str()?.to_owned(),
            before: node.get("before").map(Node::to_value),
            after: node.get("after").map(Node::to_value),
        })
    }
}

impl ToJson for Repair {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("rule", self.rule.as_str());
            w.field("path", &self.path);
            w.optional("before", &self.before);
            w.optional("after", &self.after);
        });
    }
}
