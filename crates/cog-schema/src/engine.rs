//! The only module that uses the `jsonschema` crate: JSON Schema Draft-07 over the tree of `cog_json`.
//!
//! An [`Engine`] contains a document with local references. [`Engine::compile`] returns a [`Check`] of any of its
//! schemas. Nothing is fetched, and patterns run in linear time. An [`EngineError`] has location and reason, but never a
//! value of the instance.

mod error;
mod tree;
mod unique;

use std::sync::{Arc, OnceLock};

use cog_json::Node;
use jsonschema::{Draft, PatternOptions, Registry, ValidationOptions, Validator};
use serde_json::{Value, json};

use self::tree::Tree;
pub(crate) use self::tree::short_decimal;
pub(crate) use self::unique::repeated;
use crate::subschema::{LATER_FORMATS, reference};

pub(crate) use self::error::{Allowed, Bound, EngineError, Reason};

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

    /// Returns whether a text contains a match.
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
    let validator = OnceLock::new();
    let build = move || {
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        options.build(&json!({ "format": name })).ok()
    };
    move |text| {
        let validator: &Option<Validator> = validator.get_or_init(build);
        validator.as_ref().is_none_or(|validator| validator.is_valid(&Value::from(text)))
    }
}

/// Returns whether a text is padded base64 of the standard alphabet (RFC 4648, section 4), without decoding it: it may
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
#[cfg(test)]
mod tests;
