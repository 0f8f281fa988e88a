//! The schema that a model is called with, in the dialect of its provider.
//!
//! Providers support subsets of JSON Schema. A projection contains what a provider supports, and lists the rest as losses.
//! Answers are always checked with the module's own contract.

mod bounds;
mod defs;
mod describe;
mod parts;
mod walk;

use std::collections::HashSet;

use cog_json::{Node, Path};
use cog_spec::{Dialect, Form};
use serde::Serialize;
use serde_json::{Map, Value};

use self::{
    parts::PartSchema,
    walk::{Unsupported, Walk},
};
use crate::{
    contract::Contract,
    dialect::{AS_WRITTEN, profile},
    graph::{Id, PathStack, SchemaNode, Visit, WalkFilter},
    locate::context_pointer,
};

pub(crate) use self::{
    defs::{flattened, merge},
    describe::is_describable,
};

/// A contract in the dialect of a provider.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Projection {
    /// The dialect: the requested one, or the next weaker one that can express this contract.
    pub dialect: Dialect,
    /// The schema, an object; none if the dialect has no schema.
    pub schema: Option<Value>,
    /// Whether the provider shows the schema to the model.
    pub is_shown: bool,
    /// What is not sent, or is sent in another form. All of it is enforced when the answer is checked.
    pub lost: Vec<Loss>,
    /// Whether the contract accepts values that the schema excludes, such as members of any name.
    pub is_narrower: bool,
}

impl Contract {
    /// Projects the contract to a dialect (docs/spec/modules.md).
    ///
    /// Since v2.2 the schema is a choice of two envelopes, success and failure, each with `ok`, `meta`, `data`, `error`, in
    /// this order, all required. It is the root, or the value of [`Contract::wrapper`]. In older formats the root is the
    /// data. The rationale, and the insights if overflow is enabled, are included even if the schema does not define
    /// them.
    ///
    /// If a dialect cannot express the contract (maps in a strict mode, recursion, limits), the next weaker dialect is
    /// used, and the losses contain the reason.
    pub fn project(&self, dialect: Dialect) -> Projection {
        self.project_form(dialect, Form::ENVELOPE)
    }

    /// Projects what a model writes in a form (ruling R91). In a form of data alone, the schema is the data, or a choice
    /// between the data and `{error}`. The root of an older format is the data in every form.
    pub fn project_form(&self, dialect: Dialect, form: &Form) -> Projection {
        self.project_with(dialect, |walk| walk.root(self, form))
    }

    /// Projects the input to a dialect, as the arguments of a tool (docs/tools.md). A dialect without schemas describes
    /// tools in JSON Schema.
    pub fn project_input(&self, dialect: Dialect) -> Projection {
        let dialect = if profile(dialect).is_some() { dialect } else { Dialect::JsonSchema };
        self.project_with(dialect, |walk| walk.input(self))
    }

    fn project_with(
        &self,
        mut dialect: Dialect,
        root: impl Fn(&mut Walk<'_>) -> Result<Value, Unsupported>,
    ) -> Projection {
        let mut lost = Vec::new();
        loop {
            let Some(profile) = profile(dialect) else { return without_schema(dialect, lost) };
            let mut walk = Walk::new(self.document(), profile);
            match root(&mut walk) {
                Ok(schema) => {
                    let is_narrower = walk.is_narrower;
                    lost.extend(walk.into_lost());
                    return Projection {
                        dialect,
                        schema: Some(schema),
                        is_shown: profile.shows_schema,
                        lost,
                        is_narrower,
                    };
                }
                Err(reason) => {
                    lost.push(Loss::for_dialect(dialect, &reason));
                    dialect = profile.weaker;
                }
            }
        }
    }
}

/// The members of a schema whose number a vendor limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemberCount {
    /// Members that are not required.
    pub optional: usize,
    /// Members that accept several types.
    pub unions: usize,
}

impl Projection {
    /// Counts the members of the schema.
    pub fn members(&self) -> MemberCount {
        self.schema.as_ref().map_or_else(MemberCount::default, walk::members)
    }
}

impl Contract {
    /// Returns the key that contains the answer in replies to a projection to this dialect; none if the answer is the
    /// root, as in dialects whose root may be a choice, or if there is no choice between an answer and an error.
    pub fn wrapper(&self, dialect: Dialect, form: &Form) -> Option<&'static str> {
        profile(dialect)?.wrapper().filter(|_| self.has_error_arm(form))
    }

    /// Returns whether a model is offered a choice between an answer and an error of its own.
    pub fn has_error_arm(&self, form: &Form) -> bool {
        form.offers_error && self.accepts_error(form)
    }

    /// Returns whether an error that a model writes instead of its answer is one, though it may not be offered. A model that
    /// writes its data alone writes `{"error": {code, message}}`, unless its data have a field of that name.
    pub fn accepts_error(&self, form: &Form) -> bool {
        let defines_error = || self.shape("data").is_some_and(|data| data.member_names().contains(&"error"));
        let rules = self.rules();
        rules.format.asks_for_envelope() && rules.model_errors && !(form.is_data() && defines_error())
    }
}

fn without_schema(dialect: Dialect, mut lost: Vec<Loss>) -> Projection {
    lost.push(Loss::for_dialect(dialect, "it takes no schema; the prompt contains the contract"));
    Projection { dialect, schema: None, is_shown: false, lost, is_narrower: false }
}

/// A keyword of a contract that is not sent to the provider as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Loss {
    /// The JSON pointer of the schema in the module's document, or in the schema that is sent if the engine does not enforce
    /// it; empty for the complete contract.
    pub pointer: String,
    /// The keyword; empty for the complete schema.
    pub keyword: String,
    /// How it is handled.
    pub kind: LossKind,
    /// The reason.
    pub reason: String,
}

/// How a keyword is handled that is not sent as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// It is sent in another form.
    Projected,
    /// It is not sent; the check of the answer enforces it.
    EnforcedLocally,
    /// It is sent, and the engine ignores it; the check of the answer enforces it.
    NotEnforced,
}

impl LossKind {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LossKind::Projected => "projected",
            LossKind::EnforcedLocally => "enforced_locally",
            LossKind::NotEnforced => "not_enforced",
        }
    }
}

impl Loss {
    /// Returns the loss of a contract that a dialect cannot express.
    fn for_dialect(dialect: Dialect, reason: &str) -> Self {
        Self {
            pointer: String::new(),
            keyword: String::new(),
            kind: LossKind::EnforcedLocally,
            reason: format!("{dialect}: {reason}"),
        }
    }
}

// The schemas that a prompt shows to a model.

impl Contract {
    /// Returns the schemas that a prompt contains for a model that does not see the projected schema, by the name of their
    /// part: `data`, and `meta` and `error` if the module defines fields beyond the fields of the specification. In formats
    /// without an envelope, and where the model writes its data alone, it is the answer, without a name.
    ///
    /// Each schema contains the definitions that it refers to.
    pub fn prompt_schemas(&self, form: &Form) -> Vec<(&'static str, Value)> {
        let mut lost = Vec::new();
        if !self.rules().format.asks_for_envelope() {
            return self.shown("", parts::bare(self, &mut lost)).into_iter().collect();
        }
        let data = parts::data(self, form, &mut lost);
        if form.is_data() {
            return self.shown("", data).into_iter().collect();
        }
        let meta = parts::meta(self, &mut lost);
        let error = parts::error(self, &mut lost);
        let parts = [
            ("data", Some(data)),
            ("meta", Some(meta).filter(|meta| defines_more(meta, &META))),
            ("error", Some(error).filter(|error| defines_more(error, &ERROR))),
            ("_emitted_context", parts::emitted(self)),
        ];
        parts.into_iter().filter_map(|(name, part)| self.shown(name, part?)).collect()
    }

    fn shown(&self, name: &'static str, part: PartSchema) -> Option<(&'static str, Value)> {
        Some((name, Walk::new(self.document(), AS_WRITTEN).alone(part).ok()?))
    }
}

/// The fields of `meta` that the text of a prompt explains.
const META: [&str; 3] = ["confidence", "risk", "explain"];
/// The fields of `error` that the text of a prompt explains, or that a model need not write.
const ERROR: [&str; 5] = ["code", "message", "recoverable", "suggestion", "details"];

fn defines_more(part: &PartSchema, known: &[&str]) -> bool {
    let properties = part.schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).any(|name| !known.contains(&name.as_str()))
}

impl Contract {
    /// Returns the nulls in a part of an answer (`data`, `meta`, `error`), or in an `input`, that mean an absent member.
    /// Paths start at that part.
    ///
    /// OpenAI's strict dialect has no optional members, and Anthropic's a limited number, so projections make them nullable.
    /// If the module's schema neither requires a member nor allows null, its null is removed on reading, which is not a
    /// repair. In other dialects nulls are not removed.
    pub fn added_nulls(&self, part: &str, node: Node<'_>) -> Vec<Path> {
        let schema = if part == "input" { self.input.as_ref() } else { self.part(part) };
        let mut paths = self.nulls_at(schema.map(|part| part.id), part, node);
        let is_added = part == "data" && !self.facts.names_extensions;
        if is_added && node.get("extensions").is_some_and(Node::is_null) {
            paths.push(PathStack::root(part).key("extensions").path());
        }
        paths
    }

    /// Returns the nulls in a context of this type that an answer emits, as [`Contract::added_nulls`]. Paths start at the
    /// type.
    pub fn added_nulls_of_emitted(&self, name: &str, node: Node<'_>) -> Vec<Path> {
        self.nulls_at(self.graph.at(&context_pointer("emits", name)), name, node)
    }

    fn nulls_at(&self, schema: Option<Id>, root: &str, node: Node<'_>) -> Vec<Path> {
        let mut walk = NullWalk { contract: self, paths: Vec::new(), known: HashSet::new() };
        if let Some(id) = schema {
            self.graph.walk(&[id], node, &PathStack::root(root), &mut walk);
        }
        walk.paths
    }

    fn allows_null(&self, id: Id) -> bool {
        self.accepts(id, cog_json::Value::null().node())
    }
}

struct NullWalk<'a> {
    contract: &'a Contract,
    paths: Vec<Path>,
    /// The same paths as a set, because a value is visited once for each schema that applies.
    known: HashSet<Path>,
}

impl Visit for NullWalk<'_> {
    fn filter(&self) -> WalkFilter {
        WalkFilter::ALL
    }

    fn value(&mut self, shape: &SchemaNode, node: Node<'_>, stack: &PathStack<'_>) {
        for (key, _) in node.members().filter(|(_, member)| member.is_null()) {
            let Some(member) = shape.property(key) else { continue };
            let path = stack.key(key).path();
            let is_meant = self.contract.requires_here(shape, key) || self.contract.allows_null(member);
            if !is_meant && self.known.insert(path.clone()) {
                self.paths.push(path);
            }
        }
    }
}

#[cfg(test)]
mod tests;
