//! The only module that uses the `jsonschema` crate: JSON Schema Draft-07 over the tree of `cog_json`.
//!
//! An [`Engine`] contains a document with local references. [`Engine::compile`] returns a [`Check`] of any of its
//! schemas. Nothing is fetched, and patterns run in linear time. An [`EngineError`] has location and reason, but never a
//! value of the instance.

mod cover;
mod tree;

use std::{
    slice,
    sync::{Arc, OnceLock},
};

use cog_json::Node;
use jsonschema::{
    Draft, JsonType, PatternOptions, Registry, ValidationError, ValidationOptions, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::{Value, json};

use self::tree::Tree;
use crate::subschema::{LATER_FORMATS, reference};

pub(crate) use self::cover::{Cover, cover};
pub(crate) use self::tree::{repeated, short_decimal};

/// The URI of the document in the engine; it is never resolved elsewhere.
const DOCUMENT: &str = "cog:/schema.json";

/// The maximum number of violations that are reported for one value.
pub const MAX_VIOLATIONS: usize = 256;

/// The maximum memory of one compiled pattern, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// A document whose schemas can be compiled.
#[derive(Debug)]
pub(crate) struct Engine {
    registry: Registry<'static>,
}

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Check {
    validator: Validator<Tree>,
}

/// A compiled pattern: the regular subset of ECMA-262.
#[derive(Debug)]
pub(crate) struct Pattern {
    validator: Validator,
}

impl Engine {
    /// Indexes a document without `$schema`, `$id` and references to other documents.
    ///
    /// # Errors
    /// The message of the engine if it cannot index the document.
    pub(crate) fn new(document: Arc<Value>) -> Result<Self, String> {
        let registry = Registry::new().draft(Draft::Draft7).add(DOCUMENT, document);
        let registry = registry.and_then(|builder| builder.prepare()).map_err(|error| error.to_string())?;
        Ok(Self { registry })
    }

    /// Compiles the schema at a JSON pointer.
    ///
    /// # Errors
    /// The message of the engine if a reference does not resolve or a keyword is invalid.
    pub(crate) fn compile(&self, pointer: &str) -> Result<Check, String> {
        self.compile_alone(&link(pointer))
    }

    /// Compiles a schema that is not part of the document but can [`link`] to it.
    ///
    /// # Errors
    /// As [`Engine::compile`].
    pub(crate) fn compile_alone(&self, schema: &Value) -> Result<Check, String> {
        let options = configure(jsonschema::options_for::<Tree>()).with_registry(&self.registry);
        let validator = options.build(schema).map_err(|error| error.to_string())?;
        Ok(Check { validator })
    }
}

impl Check {
    /// Returns whether a value is valid. This is much faster than listing errors.
    pub(crate) fn accepts(&self, node: Node<'_>) -> bool {
        self.validator.is_valid(node)
    }

    /// Returns the first [`MAX_VIOLATIONS`] errors of a value, with paths from it.
    pub(crate) fn errors(&self, node: Node<'_>) -> Vec<EngineError> {
        self.validator.iter_errors(node).take(MAX_VIOLATIONS).map(|error| EngineError::read(&error)).collect()
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The message of the engine if the pattern is invalid, not regular, or too large.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        let schema = json!({ "pattern": pattern });
        let validator = configure(jsonschema::options()).build(&schema).map_err(|error| error.to_string())?;
        Ok(Self { validator })
    }

    /// Returns whether text contains a match.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.validator.is_valid(&Value::from(text))
    }
}

/// Returns a schema that refers to a JSON pointer of the document.
pub(crate) fn link(pointer: &str) -> Value {
    json!({ "$ref": format!("{DOCUMENT}{}", reference(pointer)) })
}

/// Returns the errors of a schema against the metaschema of Draft-07, with paths from the schema.
pub(crate) fn malformed(schema: &Value) -> Vec<EngineError> {
    let errors = jsonschema::draft7::meta::validator();
    errors.iter_errors(schema).map(|error| EngineError::read(&error)).collect()
}

fn configure<'i, F: jsonschema::json::Json>(
    options: ValidationOptions<'i, Arc<dyn jsonschema::Retrieve>, F>,
) -> ValidationOptions<'i, Arc<dyn jsonschema::Retrieve>, F> {
    let formats = LATER_FORMATS.into_iter();
    let options = formats.fold(options, |options, name| options.with_format(name, later_format(name)));
    options
        .with_draft(Draft::Draft7)
        .offline()
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE))
        .with_content_encoding("base64", is_base64, from_base64)
}

/// Returns the check of a format that a later draft defines.
fn later_format(name: &'static str) -> impl Fn(&str) -> bool + Send + Sync + 'static {
    let validator: OnceLock<Option<Validator>> = OnceLock::new();
    move |text| {
        let validator = validator.get_or_init(|| {
            let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
            options.build(&json!({ "format": name })).ok()
        });
        validator.as_ref().is_none_or(|validator| validator.is_valid(&Value::from(text)))
    }
}

/// Returns whether a string is padded base64 of the standard alphabet (RFC 4648, section 4), without decoding it: it may
/// be megabytes.
fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = bytes.strip_suffix(b"==").or_else(|| bytes.strip_suffix(b"=")).unwrap_or(bytes);
    bytes.len().is_multiple_of(4) && digits.iter().all(is_digit)
}

/// Returns the text that base64 encodes, for `contentMediaType`. Bytes that are not UTF-8 are an empty text: neither is JSON.
fn from_base64(text: &str) -> Result<Option<String>, jsonschema::ValidationError<'static>> {
    let bytes = base64_simd::STANDARD.decode_to_vec(text).ok();
    Ok(bytes.map(|bytes| String::from_utf8(bytes).unwrap_or_default()))
}

fn is_digit(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

#[cfg(test)]
pub(crate) mod differential;

// The errors of the engine.

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
    fn read(error: &ValidationError<'_>) -> Self {
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
    context.iter().map(|branch| branch.iter().map(|error| inner(error, at)).collect()).collect()
}

/// Returns an error of a branch, with the path from the value of the branch.
fn inner(error: &ValidationError<'_>, at: &str) -> EngineError {
    let error = EngineError::read(error);
    EngineError { at: error.at.strip_prefix(at).unwrap_or_default().to_owned(), ..error }
}

#[cfg(test)]
mod tests;
