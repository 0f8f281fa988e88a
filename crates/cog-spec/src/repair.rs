use cog_json::Value;
use serde::{Deserialize, Serialize};

use crate::string_enum::string_enum;

string_enum! {
    /// The kind of a repair (ruling R24). A repair changes form, never meaning.
    RepairRule {
        /// Text around the JSON was removed.
        SurroundingText = "surrounding_text",
        /// A code fence around the JSON was removed.
        CodeFence = "code_fence",
        /// A comma before a closing bracket was removed.
        TrailingComma = "trailing_comma",
        /// A string in single quotes was accepted.
        SingleQuotes = "single_quotes",
        /// A comment was removed.
        Comment = "comment",
        /// A raw control character in a string was read as its escape.
        RawNewline = "raw_newline",
        /// `None`, `True` or `False` was read as `null`, `true` or `false`.
        PythonLiteral = "python_literal",
        /// A key without quotes was accepted.
        BareKey = "bare_key",
        /// A string in typographic quotes was accepted.
        SmartQuotes = "smart_quotes",
        /// `\'` was read as `'`.
        EscapedQuote = "escaped_quote",
        /// White space that JSON does not have, or a character of no width, was removed.
        UnicodeSpace = "unicode_space",
        /// `TRUE`, `Null` or the like was read as `true` or `null`.
        LiteralCase = "literal_case",
        /// A number such as `+5`, `.5` or `5.` was read as JSON.
        NumberForm = "number_form",
        /// A leading or doubled comma was removed.
        ExtraComma = "extra_comma",
        /// A comma between two members on separate lines was added.
        MissingComma = "missing_comma",
        /// A key appeared twice; the last value counts.
        DuplicateKey = "duplicate_key",
        /// A member of the reply that is not part of an envelope was dropped (ruling R74).
        DropMember = "drop_member",
        /// A reply without an envelope was wrapped (ruling R28).
        Wrap = "wrap",
        /// `meta.confidence` was absent and filled.
        FillConfidence = "fill_confidence",
        /// `meta.risk` was absent and filled.
        FillRisk = "fill_risk",
        /// `meta.explain` was absent and filled.
        FillExplain = "fill_explain",
        /// White space around `meta.explain` was trimmed.
        TrimExplain = "trim_explain",
        /// `meta.explain` was truncated to 280 characters (ruling R23).
        TruncateExplain = "truncate_explain",
        /// Insights beyond the limit were removed (ruling R30).
        CutInsights = "cut_insights",
    }
}

/// A repair of the form of a reply (ruling R26). Values are only given for paths under `meta`; elsewhere `before` and
/// `after` are sizes in bytes, so that the entry never repeats business content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "repair"))]
pub struct Repair {
    /// The kind of the repair.
    #[cfg_attr(feature = "schema", schemars(with = "String", length(min = 1)))]
    pub rule: RepairRule,
    /// The path from the envelope, such as `meta.explain`; empty for the complete reply.
    pub path: String,
    /// The value before the repair, or its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Anything"))]
    pub before: Option<Value>,
    /// The value after the repair, or its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Anything"))]
    pub after: Option<Value>,
}
