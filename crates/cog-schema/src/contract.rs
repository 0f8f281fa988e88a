use std::sync::{Arc, OnceLock};

use cog_json::Node;
use serde_json::Value;

use crate::{
    document::Document,
    engine::{Check, Engine},
    graph::{Id, SchemaGraph, SchemaNode},
    pattern::own_keywords,
    rules::Rules,
    subschema::names,
    violation::SchemaError,
};

/// The contract of a module, compiled once and shared: its input, data, meta and error.
///
/// Checks accept nodes of any tree, also of a partial answer, and return every violation.
#[derive(Debug)]
pub struct Contract {
    pub(crate) rules: Rules,
    pub(crate) document: Document,
    pub(crate) graph: SchemaGraph,
    pub(crate) input: Option<Part>,
    pub(crate) data: Option<Part>,
    pub(crate) meta: Option<Part>,
    pub(crate) error: Option<Part>,
    pub(crate) facts: Facts,
    engine: Engine,
    /// The check of each schema, compiled on first use.
    checks: Vec<OnceLock<Option<Check>>>,
    /// The check of each schema's own keywords, compiled on first use.
    own_checks: Vec<OnceLock<Option<Check>>>,
}

/// One of the four parts of a contract.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) pointer: String,
    pub(crate) id: Id,
}

/// Properties of the schemas that checks need often.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    /// An answer without a rationale fails (ruling R30).
    pub(crate) requires_rationale: bool,
    /// The data schema has a field `rationale`.
    pub(crate) names_rationale: bool,
    /// The data schema has a field `extensions`.
    pub(crate) names_extensions: bool,
    /// The data schema has a field `extensions.insights`, so it checks them.
    pub(crate) names_insights: bool,
    /// The meta schema has a field `risk`, so it decides which values are allowed.
    pub(crate) names_risk: bool,
}

impl Contract {
    /// Compiles `schema.json`: finds its parts (`input`, `data`, `meta`, `error`; `output` in older formats), resolves
    /// references inside the file, and inserts the definition of media inputs (rulings R13, R14).
    ///
    /// An absent part is checked by the rules of the specification only.
    ///
    /// # Errors
    /// Every error of the document, with its location (E4008).
    pub fn compile(document: &Value, rules: &Rules) -> Result<Contract, Vec<SchemaError>> {
        let document = Document::read(document, rules)?;
        let graph =
            SchemaGraph::build(&document, &rules.enums.unknown_tag).map_err(|problem| vec![problem])?;
        let engine = Engine::new(Arc::clone(&document.value)).map_err(|reason| vec![refused("", reason)])?;
        let mut contract = Self {
            rules: rules.clone(),
            checks: uncompiled(graph.len()),
            own_checks: uncompiled(graph.len()),
            input: Part::find(document.parts.input.as_ref(), &graph),
            data: Part::find(document.parts.data.as_ref(), &graph),
            meta: Part::find(document.parts.meta.as_ref(), &graph),
            error: Part::find(document.parts.error.as_ref(), &graph),
            facts: Facts::default(),
            document,
            graph,
            engine,
        };
        contract.compile_parts()?;
        contract.facts = Facts::new(&contract);
        Ok(contract)
    }

    /// Compiles the checks of the parts, so that what cannot be compiled is an error now. The checks of other schemas are
    /// compiled on first use: a document has hundreds, and a run needs few.
    fn compile_parts(&self) -> Result<(), Vec<SchemaError>> {
        let mut problems = Vec::new();
        for part in [&self.input, &self.data, &self.meta, &self.error].into_iter().flatten() {
            match (self.engine.compile(&part.pointer), self.checks.get(part.id.index())) {
                (Ok(check), Some(slot)) => drop(slot.set(Some(check))),
                (Ok(_), None) => {}
                (Err(reason), _) => problems.push(refused(&part.pointer, reason)),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Returns the rules of the manifest.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns what the document contains that has no effect or excludes every value, such as a misspelt keyword.
    pub fn warnings(&self) -> &[SchemaError] {
        &self.document.warnings
    }

    /// Returns the document as it is enforced: with local references and the definition of media inputs.
    pub fn document(&self) -> &Value {
        &self.document.value
    }

    /// Returns the schema of the input.
    pub fn input_schema(&self) -> Option<&Value> {
        self.schema_of(self.input.as_ref())
    }

    /// Returns the schema of the data.
    pub fn data_schema(&self) -> Option<&Value> {
        self.schema_of(self.data.as_ref())
    }

    /// Returns the schema of the meta.
    pub fn meta_schema(&self) -> Option<&Value> {
        self.schema_of(self.meta.as_ref())
    }

    /// Returns the schema of an error.
    pub fn error_schema(&self) -> Option<&Value> {
        self.schema_of(self.error.as_ref())
    }

    /// Returns whether the data schema defines or requires a field `rationale` (ruling R72).
    pub fn names_rationale(&self) -> bool {
        let is_required = self.data.as_ref().is_some_and(|data| self.requires(data.id, "rationale"));
        self.facts.names_rationale || is_required
    }

    /// Returns whether data must have a rationale: the format, the tier or the schema requires it.
    pub fn requires_rationale(&self) -> bool {
        self.facts.requires_rationale
    }

    /// Returns whether data can have a rationale: it is required, or the schema has the field.
    pub fn takes_rationale(&self) -> bool {
        self.facts.requires_rationale || self.facts.names_rationale
    }

    fn schema_of(&self, part: Option<&Part>) -> Option<&Value> {
        part.and_then(|part| self.document.value.pointer(&part.pointer))
    }

    /// Returns the part of an answer with this name.
    pub(crate) fn part(&self, name: &str) -> Option<&Part> {
        match name {
            "data" => self.data.as_ref(),
            "meta" => self.meta.as_ref(),
            "error" => self.error.as_ref(),
            _ => None,
        }
    }

    /// Returns the schemas that can apply to a field of a part.
    fn fields(&self, part: Option<&Part>, key: &str) -> Vec<Id> {
        part.map(|part| self.graph.members(part.id, key)).unwrap_or_default()
    }

    /// Returns a keyword of a schema, as written in the document.
    pub(crate) fn keyword(&self, schema: &SchemaNode, keyword: &str) -> Option<&Value> {
        self.document.value.pointer(&schema.pointer)?.get(keyword)
    }

    /// Returns whether an object certainly needs a field.
    pub(crate) fn requires(&self, object: Id, key: &str) -> bool {
        self.graph.certain(object).any(|schema| self.requires_here(schema, key))
    }

    /// Returns whether this schema itself requires a field.
    pub(crate) fn requires_here(&self, schema: &SchemaNode, key: &str) -> bool {
        names(self.keyword(schema, "required")).any(|other| other == key)
    }

    /// Returns whether a value is valid, without caching verdicts: for documents that are not wide.
    pub(crate) fn accepts_unshared(&self, id: Id, node: Node<'_>) -> bool {
        self.graph.fits(id, node, &|id, node| self.check_of(id).is_some_and(|check| check.accepts(node)))
    }

    /// Returns the check of a schema's own keywords, compiled on first use.
    pub(crate) fn own_check(&self, id: Id) -> Option<&Check> {
        let slot = self.own_checks.get(id.index())?;
        let check = slot.get_or_init(|| {
            let pointer = &self.graph.get(id).pointer;
            let schema = self.document.value.pointer(pointer)?;
            self.engine.compile_alone(&own_keywords(schema, pointer)).ok()
        });
        check.as_ref()
    }

    /// Returns the check of any schema of the document, compiled on first use.
    pub(crate) fn check_of(&self, id: Id) -> Option<&Check> {
        let slot = self.checks.get(id.index())?;
        slot.get_or_init(|| self.engine.compile(&self.graph.get(id).pointer).ok()).as_ref()
    }
}

impl Part {
    fn find(pointer: Option<&String>, graph: &SchemaGraph) -> Option<Self> {
        Some(Self { pointer: pointer?.clone(), id: graph.at(pointer?)? })
    }
}

impl Facts {
    fn new(contract: &Contract) -> Self {
        let rules = &contract.rules;
        let is_required =
            rules.require_rationale || rules.format.asks_for_envelope() && rules.needs_rationale;
        let data = contract.data.as_ref();
        let extensions = contract.fields(data, "extensions");
        Self {
            requires_rationale: is_required
                || data.is_some_and(|data| contract.requires(data.id, "rationale")),
            names_rationale: !contract.fields(data, "rationale").is_empty(),
            names_insights: extensions.iter().any(|id| !contract.graph.members(*id, "insights").is_empty()),
            names_extensions: !extensions.is_empty(),
            names_risk: !contract.fields(contract.meta.as_ref(), "risk").is_empty(),
        }
    }
}

fn uncompiled(count: usize) -> Vec<OnceLock<Option<Check>>> {
    std::iter::repeat_with(OnceLock::new).take(count).collect()
}

fn refused(pointer: &str, reason: String) -> SchemaError {
    SchemaError::new(pointer, format!("the schema cannot be compiled: {reason}"))
}

// Whether a contract receives or emits a handoff (docs/handoff.md).

impl Contract {
    /// Returns whether the input can be a handoff packet: its schema refers to `#/$defs/HandoffPacket`.
    pub fn takes_packet(&self) -> bool {
        let input = self.input.as_ref().map(|part| part.id);
        input.is_some_and(|input| self.is_one_of(input, &self.document.handoffs.packets))
    }

    /// Returns whether the input must be a handoff packet.
    pub fn requires_packet(&self) -> bool {
        let packets = &self.document.handoffs.packets;
        let mut certain = self.input.iter().flat_map(|input| self.graph.certain(input.id));
        certain.any(|shape| packets.contains(&shape.pointer))
    }

    /// Returns whether the data have a field `handoff` that refers to `#/$defs/Handoff`.
    pub fn emits_handoff(&self) -> bool {
        self.handoff_fields().iter().any(|id| self.is_one_of(*id, &self.document.handoffs.contexts))
    }

    /// Returns whether the data have a field `handoff`, with any schema.
    pub fn has_handoff(&self) -> bool {
        !self.handoff_fields().is_empty()
    }

    fn handoff_fields(&self) -> Vec<Id> {
        let data = self.data.as_ref().map(|part| part.id);
        data.map(|data| self.graph.members(data, "handoff")).unwrap_or_default()
    }

    fn is_one_of(&self, id: Id, pointers: &[String]) -> bool {
        self.graph.possible(id).any(|shape| pointers.contains(&shape.pointer))
    }
}

#[cfg(test)]
mod tests {
    use cog_spec::{Format, Manifest};
    use serde_json::json;

    use super::*;

    fn contract(format: Format, document: Value) -> Contract {
        let manifest = Manifest::with_defaults("test", format, None);
        Contract::compile(&document, &Rules::from(&manifest)).unwrap()
    }

    #[test]
    fn each_part_has_its_schema() {
        let part = |name: &str| json!({ "title": name });
        let parts = ["input", "data", "meta", "error"];
        let document = json!({ "input": part("input"), "data": part("data"), "meta": part("meta"), "error": part("error") });
        let schemas = |contract: &Contract| {
            [contract.input_schema(), contract.data_schema(), contract.meta_schema(), contract.error_schema()]
                .map(|schema| schema.cloned())
        };
        let full = contract(Format::V22, document);
        let empty = contract(Format::V22, json!({}));
        assert_eq!(schemas(&full), parts.map(|name| Some(part(name))));
        assert_eq!(schemas(&empty), [const { None }; 4]);
        for name in parts {
            assert!(full.shape(name).is_some() && empty.shape(name).is_none(), "{name}");
        }
        assert!(full.shape("other").is_none());
    }

    #[test]
    fn rationale_is_named_by_the_schema_or_taken_because_of_the_format() {
        let named = || json!({ "properties": { "rationale": {} } });
        let required = || json!({ "required": ["rationale"] });
        for (format, data, names, takes) in [
            (Format::V1, json!({}), false, false),
            (Format::V1, named(), true, true),
            (Format::V1, required(), true, true),
            (Format::V22, json!({}), false, true),
            (Format::V22, named(), true, true),
            (Format::V22, required(), true, true),
        ] {
            let contract = contract(format, json!({ "data": data }));
            assert_eq!((contract.names_rationale(), contract.takes_rationale()), (names, takes), "{data}");
        }
        assert!(!contract(Format::V22, json!({})).names_rationale());
    }
}

#[cfg(test)]
mod handoff_tests {
    use cog_spec::{Dialect, Format, Manifest, Tier};
    use serde_json::{Value, json};

    use crate::{Contract, Rules};

    fn contract(document: &Value) -> Contract {
        let rules = Rules::from(&Manifest::with_defaults("test", Format::V25, Some(Tier::Decision)));
        Contract::compile(document, &rules).unwrap()
    }

    fn emitting(input: &Value) -> Contract {
        let handoff = json!({ "$ref": "#/$defs/Handoff" });
        let data = json!({ "required": ["handoff"], "properties": {
            "handoff": handoff, "rationale": { "type": "string" } } });
        contract(&json!({ "input": input, "data": data }))
    }

    fn paths(contract: &Contract, handoff: &Value) -> Vec<String> {
        let data = json!({ "rationale": "r", "handoff": handoff });
        let data = cog_json::Value::from(data);
        let violations = contract.check_data(data.node()).violations;
        violations.into_iter().map(|one| format!("{} {}", one.path, one.rule)).collect()
    }

    #[test]
    fn reference_to_the_definition_is_found() {
        let packet = json!({ "anyOf": [{ "$ref": "#/$defs/HandoffPacket" }, { "required": ["task"] }] });
        let both = emitting(&packet);
        assert!(both.takes_packet() && !both.requires_packet() && both.emits_handoff() && both.has_handoff());
        let own = contract(&json!({
            "data": { "properties": { "handoff": { "$ref": "#/$defs/Handoff" } } },
            "$defs": { "Handoff": { "type": "string" } },
        }));
        assert!(!own.takes_packet() && !own.emits_handoff() && own.has_handoff());
        assert!(!contract(&json!({ "data": {} })).has_handoff());
    }

    #[test]
    fn emitted_handoff_is_checked_by_the_definition() {
        let first = emitting(&json!({}));
        assert_eq!(
            paths(&first, &json!({ "constraints": [""], "steps": 1 })),
            [
                "data.handoff.primary_objective required",
                "data.handoff.artifacts required",
                "data.handoff.constraints[0] minLength",
                "data.handoff.steps additionalProperties",
            ]
        );
        let artifact = json!({ "name": "doc", "reference": "a.md" });
        let complete = json!({ "primary_objective": "Build it", "constraints": [], "artifacts": [artifact] });
        assert_eq!(paths(&first, &complete), [""; 0]);
    }

    #[test]
    fn receiver_of_a_packet_may_omit_the_objective() {
        let next = emitting(&json!({ "$ref": "#/$defs/HandoffPacket" }));
        assert!(next.requires_packet());
        assert_eq!(paths(&next, &json!({ "constraints": [], "artifacts": [] })), [""; 0]);
    }

    #[test]
    fn every_dialect_receives_the_definition() {
        for dialect in [
            Dialect::OpenAiStrict,
            Dialect::JsonSchema,
            Dialect::Anthropic,
            Dialect::Gemini,
            Dialect::LlamaCpp,
        ] {
            let projection = emitting(&json!({})).project(dialect);
            assert_eq!(projection.dialect, dialect);
            let schema = projection.schema.unwrap().to_string();
            for name in ["primary_objective", "next_immediate_step", "constraints", "reference"] {
                assert!(schema.contains(&format!("\"{name}\"")), "{dialect:?}: {name}");
            }
            assert!(!schema.contains("#/$defs/Handoff\"") || schema.contains("\"Handoff\":{"), "{schema}");
        }
    }

    #[test]
    fn sample_satisfies_the_definition() {
        for seed in 0..20 {
            let contract = emitting(&json!({}));
            let sample = contract.sample(seed).unwrap();
            assert_eq!(contract.check_data(sample.node()).violations, [], "{sample}");
        }
    }
}
