use std::sync::{Arc, OnceLock};

use cog_json::Node;
use serde_json::Value;

use crate::document::Document;
use crate::engine::{Check, Engine, EngineError};
use crate::facts::Facts;
use crate::rules::Rules;
use crate::schema_error::SchemaError;
use crate::search::{Search, own};
use crate::shape::{Id, SchemaGraph};

/// A module's contract, compiled once and shared: what goes in, what comes out, what a failure visited like.
///
/// Checks take nodes of any tree, finished or the finished parts of a draft, and report every violation.
#[derive(Debug)]
pub struct Contract {
    pub(crate) rules: Rules,
    pub(crate) document: Document,
    pub(crate) shapes: SchemaGraph,
    pub(crate) input: Option<Part>,
    pub(crate) data: Option<Part>,
    pub(crate) meta: Option<Part>,
    pub(crate) error: Option<Part>,
    pub(crate) facts: Facts,
    engine: Engine,
    places: Vec<OnceLock<Option<Check>>>,
    /// What each schema says by itself.
    own: Vec<OnceLock<Option<Check>>>,
}

/// One of the four parts of a contract.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) pointer: String,
    pub(crate) shape: Id,
}

impl Contract {
    /// Compiles `schema.json`: finds its parts (`input`, `data`, `meta`, `error`; `output` in older formats),
    /// resolves references inside the file, puts in the definition of media inputs (rulings R13, R14).
    ///
    /// A part that is absent is checked by the specification's own rules alone.
    ///
    /// # Errors
    /// Everything that makes the document unusable, each with its place (E4008).
    pub fn compile(document: &Value, rules: &Rules) -> Result<Contract, Vec<SchemaError>> {
        let document = Document::read(document, rules)?;
        let shapes =
            SchemaGraph::build(&document, &rules.enums.unknown_tag).map_err(|problem| vec![problem])?;
        let engine = Engine::new(Arc::clone(&document.value)).map_err(|words| vec![refused("", words)])?;
        let (mut problems, mut checks) = (Vec::new(), Vec::new());
        let mut part = |pointer: &Option<String>| {
            let pointer = pointer.as_ref()?;
            let check =
                engine.compile(pointer).map_err(|words| problems.push(refused(pointer, words))).ok()?;
            let shape = shapes.at(pointer)?;
            checks.push((shape, check));
            Some(Part { pointer: pointer.clone(), shape })
        };
        let (input, data) = (part(&document.parts.input), part(&document.parts.data));
        let (meta, error) = (part(&document.parts.meta), part(&document.parts.error));
        if !problems.is_empty() {
            return Err(problems);
        }
        let none_yet = || (0..shapes.len()).map(|_| OnceLock::new()).collect();
        let (mut places, own): (Vec<_>, _) = (none_yet(), none_yet());
        for (id, check) in checks {
            if let Some(place) = places.get_mut(id.index()) {
                *place = OnceLock::from(Some(check));
            }
        }
        let facts = Facts::default();
        let mut contract = Self {
            rules: rules.clone(),
            document,
            shapes,
            input,
            data,
            meta,
            error,
            facts,
            engine,
            places,
            own,
        };
        contract.facts = Facts::new(&contract);
        Ok(contract)
    }

    /// What the manifest says about the contract.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The document as it is enforced: references local, media inputs defined.
    pub fn document(&self) -> &Value {
        &self.document.value
    }

    /// The schema of the input.
    pub fn input_schema(&self) -> Option<&Value> {
        self.schema_of(self.input.as_ref())
    }

    /// The schema of the data.
    pub fn data_schema(&self) -> Option<&Value> {
        self.schema_of(self.data.as_ref())
    }

    /// The schema of the meta.
    pub fn meta_schema(&self) -> Option<&Value> {
        self.schema_of(self.meta.as_ref())
    }

    /// The schema of an error.
    pub fn error_schema(&self) -> Option<&Value> {
        self.schema_of(self.error.as_ref())
    }

    fn schema_of(&self, part: Option<&Part>) -> Option<&Value> {
        part.and_then(|part| self.document.value.pointer(&part.pointer))
    }

    /// Whether a value fits a schema of the document.
    pub(crate) fn accepts(&self, id: Id, node: Node<'_>) -> bool {
        if self.shapes.is_wide { Search::new(self).fits(id, node) } else { self.accepts_unshared(id, node) }
    }

    /// Whether a value fits, without remembering anything on the way: for documents that are not wide.
    pub(crate) fn accepts_unshared(&self, id: Id, node: Node<'_>) -> bool {
        self.shapes.fits(id, node, &|id, node| self.check_of(id).is_some_and(|check| check.accepts(node)))
    }

    /// Lists what of a value does not fit a schema of the document.
    pub(crate) fn errors(&self, id: Id, node: Node<'_>) -> Vec<EngineError> {
        if self.accepts(id, node) { Vec::new() } else { Search::new(self).list(id, node).to_vec() }
    }

    /// The check of what a schema says by itself, compiled when it is first asked for.
    pub(crate) fn own_check(&self, id: Id) -> Option<&Check> {
        let place = self.own.get(id.index())?;
        let compile = || {
            let pointer = &self.shapes.get(id).pointer;
            self.engine.compile_alone(&own(self.document.value.pointer(pointer)?, pointer)).ok()
        };
        place.get_or_init(compile).as_ref()
    }

    /// The check of any schema of the document, compiled when it is first asked for.
    pub(crate) fn check_of(&self, id: Id) -> Option<&Check> {
        let place = self.places.get(id.index())?;
        place.get_or_init(|| self.engine.compile(&self.shapes.get(id).pointer).ok()).as_ref()
    }
}

fn refused(pointer: &str, words: String) -> SchemaError {
    SchemaError::new(pointer, format!("the schema cannot be compiled: {words}"))
}
