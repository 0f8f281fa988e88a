//! The errors of the engine.

use std::slice;
use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::MAX_VIOLATIONS;

/// A keyword that a value violates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EngineError {
    /// Its JSON pointer, from the checked value; in a branch, from the value of the alternatives.
    pub(crate) at: String,
    /// The keyword.
    pub(crate) keyword: String,
    /// The JSON pointer of the keyword: from the document, or from a schema that was compiled alone.
    pub(crate) schema: String,
    /// Why the value violates it.
    pub(crate) reason: Reason,
}

/// Why a value violates a keyword.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reason {
    /// A member is missing.
    Required(String),
    /// It has none of these types.
    Type(Vec<&'static str>),
    /// It is none of these values; several lists if alternatives that fail in the same way are merged.
    Allowed(Vec<Allowed>),
    /// It has unexpected members: the first [`MAX_VIOLATIONS`].
    Unexpected(Vec<String>),
    /// It exceeds a limit.
    Bound(Bound),
    /// It does not match a pattern.
    Pattern(String),
    /// It does not have a format.
    Format(String),
    /// It matches none of several schemas; the errors of each.
    NoBranch(Vec<Arc<[EngineError]>>),
    /// It matches more than one of several schemas.
    ManyBranches,
    /// The name of a member is invalid.
    Name(Box<EngineError>),
    /// Another reason: the message of the engine without values.
    Other(String),
}

/// Allowed values, shared with the compiled schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Allowed {
    /// The values of an `enum`.
    Any(Arc<Value>),
    /// The value of a `const`.
    Only(Arc<Value>),
}

impl Allowed {
    pub(crate) fn values(&self) -> &[Value] {
        match self {
            Self::Any(list) => list.as_array().map(Vec::as_slice).unwrap_or_default(),
            Self::Only(value) => slice::from_ref(&**value),
        }
    }
}

/// A limit that is exceeded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    /// The relation for a message: `at most`, `at least`, `more than`, `less than`, `a multiple of`.
    pub(crate) relation: &'static str,
    /// The limit.
    pub(crate) limit: String,
    /// Its unit: `items`, `characters`, `members`; empty for the number itself.
    pub(crate) unit: &'static str,
}

impl EngineError {
    pub(super) fn read(error: &ValidationError<'_>) -> Self {
        Self {
            at: error.instance_path().as_str().to_owned(),
            keyword: error.kind().keyword().to_owned(),
            schema: error.schema_path().as_str().to_owned(),
            reason: reason(error),
        }
    }

    /// Returns the error with a pointer from an outer value.
    pub(crate) fn below(&self, step: &str) -> Self {
        Self { at: format!("{step}{}", self.at), ..self.clone() }
    }
}

fn reason(error: &ValidationError<'_>) -> Reason {
    match error.kind() {
        Kind::Required { property } => Reason::Required(property.as_str().unwrap_or_default().to_owned()),
        Kind::Type { kind } => Reason::Type(types(kind)),
        Kind::Enum { options } => Reason::Allowed(vec![Allowed::Any(Arc::clone(options))]),
        Kind::Constant { expected_value } => Reason::Allowed(vec![Allowed::Only(Arc::clone(expected_value))]),
        Kind::AdditionalProperties { unexpected } => {
            Reason::Unexpected(unexpected.iter().take(MAX_VIOLATIONS).cloned().collect())
        }
        Kind::Pattern { pattern } => Reason::Pattern(pattern.clone()),
        Kind::Format { format } => Reason::Format(format.clone()),
        Kind::ContentEncoding { content_encoding } => Reason::Format(content_encoding.clone()),
        Kind::OneOfNotValid { context } | Kind::AnyOf { context } => {
            Reason::NoBranch(branches(context, error.instance_path().as_str()))
        }
        Kind::OneOfMultipleValid { .. } => Reason::ManyBranches,
        Kind::PropertyNames { error } => Reason::Name(Box::new(EngineError::read(error))),
        other => match bound(other) {
            Some(bound) => Reason::Bound(bound),
            None => Reason::Other(error.masked_with("the value").to_string()),
        },
    }
}

fn bound(kind: &Kind) -> Option<Bound> {
    let (relation, limit, unit) = match kind {
        Kind::MinItems { limit } => ("at least", limit.to_string(), "items"),
        Kind::MaxItems { limit } => ("at most", limit.to_string(), "items"),
        Kind::AdditionalItems { limit } => ("at most", limit.to_string(), "items"),
        Kind::MinLength { limit } => ("at least", limit.to_string(), "characters"),
        Kind::MaxLength { limit } => ("at most", limit.to_string(), "characters"),
        Kind::MinProperties { limit } => ("at least", limit.to_string(), "members"),
        Kind::MaxProperties { limit } => ("at most", limit.to_string(), "members"),
        Kind::Minimum { limit } => ("at least", limit.to_string(), ""),
        Kind::Maximum { limit } => ("at most", limit.to_string(), ""),
        Kind::ExclusiveMinimum { limit } => ("more than", limit.to_string(), ""),
        Kind::ExclusiveMaximum { limit } => ("less than", limit.to_string(), ""),
        Kind::MultipleOf { multiple_of } => ("a multiple of", multiple_of.to_string(), ""),
        _ => return None,
    };
    Some(Bound { relation, limit, unit })
}

fn types(kind: &TypeKind) -> Vec<&'static str> {
    match kind {
        TypeKind::Single(one) => vec![one.as_str()],
        TypeKind::Multiple(many) => many.iter().map(JsonType::as_str).collect(),
    }
}

fn branches(context: &[Vec<ValidationError<'_>>], at: &str) -> Vec<Arc<[EngineError]>> {
    let inner = |error: &ValidationError<'_>| {
        let error = EngineError::read(error);
        EngineError { at: error.at.strip_prefix(at).unwrap_or_default().to_owned(), ..error }
    };
    context.iter().map(|branch| branch.iter().map(inner).collect()).collect()
}
