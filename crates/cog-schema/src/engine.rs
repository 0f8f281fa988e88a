//! The one place that knows the `jsonschema` crate: JSON Schema Draft-07 over our own tree.
//!
//! [`Engine`] holds a document whose references are all local; [`Engine::compile`] makes a [`Check`] of any
//! schema in it. Nothing is ever fetched, patterns run in linear time, and what a check finds comes back as
//! [`EngineError`]s, which know where and why but never hold a value of the instance.

mod base64;
mod error;
mod tree;
mod unique;

use std::sync::Arc;

use cog_json::Node;
use jsonschema::{Draft, PatternOptions, Registry, ValidationOptions, Validator};
use serde_json::{Value, json};

use self::tree::Tree;
pub(crate) use self::tree::short_decimal;
use crate::subschema::reference;

pub(crate) use self::error::{Allowed, Bound, EngineError, Reason};

/// The name under which the document is known to the engine; it is never resolved anywhere else.
const DOCUMENT: &str = "cog:/schema.json";

/// More errors of one value than this are not reported: telling each takes time that grows with its place.
pub const MAX_VIOLATIONS: usize = 256;

/// How much memory one compiled pattern may take, in bytes.
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

/// A compiled pattern (ECMA-262 as far as it is regular).
#[derive(Debug)]
pub(crate) struct Pattern {
    validator: Validator,
}

impl Engine {
    /// Compiles a document without `$schema` and `$id` in it, and without references to other documents.
    ///
    /// # Errors
    /// The engine's own words, when it cannot index the document.
    pub(crate) fn new(document: Arc<Value>) -> Result<Self, String> {
        let registry = Registry::new().draft(Draft::Draft7).add(DOCUMENT, document);
        let registry = registry.and_then(|builder| builder.prepare()).map_err(|error| error.to_string())?;
        Ok(Self { registry })
    }

    /// Compiles the schema at a JSON pointer.
    ///
    /// # Errors
    /// The engine's own words, when a reference does not resolve or a keyword is malformed.
    pub(crate) fn compile(&self, pointer: &str) -> Result<Check, String> {
        self.compile_alone(&link(pointer))
    }

    /// Compiles a schema that is no part of the document but may [`link`] to it.
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
    /// Whether a value fits; much faster than listing what does not.
    pub(crate) fn accepts(&self, node: Node<'_>) -> bool {
        self.validator.is_valid(node)
    }

    /// What about a value does not fit, with paths from the value; of very many things the first
    /// [`MAX_VIOLATIONS`].
    pub(crate) fn errors(&self, node: Node<'_>) -> Vec<EngineError> {
        self.validator.iter_errors(node).take(MAX_VIOLATIONS).map(|error| EngineError::read(&error)).collect()
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The engine's own words, when it is no regular expression, is not regular, or is too large.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        let schema = json!({ "pattern": pattern });
        let validator = configure(jsonschema::options()).build(&schema).map_err(|error| error.to_string())?;
        Ok(Self { validator })
    }

    /// Whether the pattern is found in a text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.validator.is_valid(&Value::from(text))
    }
}

/// A schema that stands for the one at a JSON pointer of the document.
pub(crate) fn link(pointer: &str) -> Value {
    json!({ "$ref": format!("{DOCUMENT}{}", reference(pointer)) })
}

/// What a schema has against it by the metaschema of Draft-07, with paths from the schema.
pub(crate) fn malformed(schema: &Value) -> Vec<EngineError> {
    let errors = jsonschema::draft7::meta::validator();
    errors.iter_errors(schema).map(|error| EngineError::read(&error)).collect()
}

fn configure<'i, F: jsonschema::json::Json>(
    options: ValidationOptions<'i, Arc<dyn jsonschema::Retrieve>, F>,
) -> ValidationOptions<'i, Arc<dyn jsonschema::Retrieve>, F> {
    options
        .with_draft(Draft::Draft7)
        .offline()
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE))
        .with_content_encoding("base64", base64::is_base64, |_| Ok(None))
}

#[cfg(test)]
pub(crate) mod differential;
#[cfg(test)]
mod tests;
