//! Contracts under which no answer can succeed (ruling R78): the schema contradicts itself, or the rules of the runtime.
//!
//! The search only follows what certainly applies, so each conflict is a proof. A schema that it does not understand has none.

use std::collections::HashSet;

use cog_json::{Segment, Value as Tree};
use cog_spec::{Meta, Tier};
use serde_json::Value;

use crate::{
    contract::Contract,
    graph::{Id, SchemaNode},
    pattern::matches_only_blank,
    shape::Types,
    subschema::{is_annotation, names},
    violation::SchemaError,
    wording::quoted,
};

/// The maximum number of values that are examined. A schema can refer to itself, and alternatives multiply.
const MAX_EXAMINED: usize = 2_000;

/// The maximum nesting of the values that are examined, because the search is recursive.
const MAX_DEPTH: usize = 40;

/// What the rules of the runtime require of a value, in addition to its schema.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Demand {
    Any,
    /// An object with these members.
    Object(&'static [Member]),
    /// Not null, and not blank.
    NotEmpty,
    /// A string of at most this many characters.
    Text(u64),
    /// A number in this range.
    Number(f64, f64),
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An empty list, which counts as absent.
    NoItems,
    /// A list of at most this many items.
    Items(u64),
}

/// A member that the rules require.
type Member = (&'static str, Demand);

const META: &[Member] = &[
    ("confidence", Demand::Number(0.0, 1.0)),
    ("risk", Demand::Any),
    ("explain", Demand::Text(Meta::MAX_EXPLAIN as u64)),
];

/// Tier exec (rulings R2, R3).
const EXEC_META: &[Member] = &[
    ("confidence", Demand::Number(0.9, 1.0)),
    ("risk", Demand::OneOf(&["none", "low"])),
    ("explain", Demand::Text(Meta::MAX_EXPLAIN as u64)),
];

const RATIONALE: &[Member] = &[("rationale", Demand::NotEmpty)];

/// Where a schema excludes every value.
struct Proof {
    /// The keyword.
    pointer: String,
    reason: Reason,
}

enum Reason {
    /// The runtime requires something else of the member with this name.
    Demand(&'static str, Demand),
    /// The schema contradicts itself, as described.
    Schema(String),
}

impl Contract {
    /// Returns why no answer can succeed, if that is certain (ruling R78). Every answer would cost a call and fail.
    pub fn conflicts(&self) -> Vec<SchemaError> {
        let data = if self.facts.requires_rationale { RATIONALE } else { &[] };
        let meta = if self.rules.tier == Some(Tier::Exec) { EXEC_META } else { META };
        // The data of an envelope is an object. Answers of v1 and v2.1 have no envelope: their data can have any type, and their
        // meta is filled. Data of another type than an object needs no rationale.
        let is_envelope = self.rules.format.asks_for_envelope();
        let types = self.shape("data").map_or(Types::ANY, |data| data.types());
        let is_object = types == Types::OBJECT || is_envelope;
        let data = if is_object { Demand::Object(data) } else { Demand::Any };
        let meta = if is_envelope { Demand::Object(meta) } else { Demand::Any };
        let mut found = Vec::new();
        for (part, demand) in [(&self.data, data), (&self.meta, meta)] {
            let Some(part) = part else { continue };
            let mut search = Search::new(self);
            found.extend(search.examine(&[part.id], ("", demand)).map(|proof| self.explain(&proof)));
        }
        if found.is_empty() {
            found.extend(self.insights_conflict());
        }
        found
    }

    /// Returns the conflict of a schema that requires insights, and rules that forbid them (ruling R30).
    fn insights_conflict(&self) -> Option<SchemaError> {
        let data = self.data.as_ref()?.id;
        let extensions = self.graph.step(&[data], Segment::Key("extensions"));
        let insights = self.graph.step(&extensions, Segment::Key("insights"));
        let is_required =
            self.requires(data, "extensions") && extensions.iter().any(|id| self.requires(*id, "insights"));
        let demand = match (self.rules.overflow.enabled, self.rules.tier) {
            (false, _) => Demand::NoItems,
            (true, Some(Tier::Exec)) => Demand::Items(u64::from(self.rules.overflow.max_items)),
            (true, _) => return None,
        };
        let proof = Search::new(self).examine(&insights, ("insights", demand)).filter(|_| is_required)?;
        Some(self.explain(&proof))
    }

    fn explain(&self, proof: &Proof) -> SchemaError {
        let (name, demand) = match &proof.reason {
            Reason::Demand(name, demand) => (*name, *demand),
            Reason::Schema(what) => {
                return SchemaError::new(&proof.pointer, format!("no answer can succeed: {what}"))
                    .suggest("Correct the schema, or make the field optional.");
            }
        };
        let (rule, help) = match (name, demand) {
            ("rationale", _) if self.rules.format.asks_for_envelope() => (
                "every answer has a `rationale` that is not empty".to_owned(),
                "Define `\"rationale\": { \"type\": \"string\" }` in the data schema.",
            ),
            ("rationale", _) => (
                "`constraints.require_rationale` requires a `rationale` that is not empty".to_owned(),
                "Define `\"rationale\": { \"type\": \"string\" }`, or remove the constraint.",
            ),
            ("confidence", Demand::Number(min, _)) if min > 0.0 => (
                format!("`tier: exec` requires a confidence of at least {min}"),
                "Write `\"minimum\": 0, \"maximum\": 1`, or choose another tier.",
            ),
            ("confidence", _) => (
                "the confidence is a number from 0 to 1".to_owned(),
                "Write `\"type\": \"number\", \"minimum\": 0, \"maximum\": 1`.",
            ),
            ("risk", Demand::OneOf(_)) => (
                "`tier: exec` requires the risk `none` or `low`".to_owned(),
                "Allow `none` and `low`, or choose another tier.",
            ),
            ("risk", _) => ("every answer has a `risk`".to_owned(), "Define `risk` in the meta schema."),
            ("explain", _) => (
                format!("`explain` is a string of at most {} characters", Meta::MAX_EXPLAIN),
                "Write `\"type\": \"string\", \"maxLength\": 280`.",
            ),
            ("insights", Demand::NoItems) => (
                "`overflow` is disabled for this module".to_owned(),
                "Set `overflow.enabled: true`, or remove the field from `required`.",
            ),
            ("insights", _) => (
                format!("tier exec allows at most {} insights", self.rules.overflow.max_items),
                "Raise `overflow.max_items`, or lower the minimum.",
            ),
            _ => ("`data` and `meta` are objects".to_owned(), "Write `\"type\": \"object\"`."),
        };
        let message = format!("no answer can succeed: {rule}, which this excludes");
        SchemaError::new(&proof.pointer, message).suggest(help)
    }
}

/// The search for a proof.
struct Search<'a> {
    contract: &'a Contract,
    examined: usize,
    /// The values that are being examined, so that a schema that refers to itself ends.
    open: HashSet<Vec<Id>>,
}

impl<'a> Search<'a> {
    fn new(contract: &'a Contract) -> Self {
        Self { contract, examined: 0, open: HashSet::new() }
    }

    /// Returns why no value satisfies all these schemas and the demand of a member, if that is certain.
    fn examine(&mut self, ids: &[Id], wanted: (&'static str, Demand)) -> Option<Proof> {
        self.examined += 1;
        if self.examined > MAX_EXAMINED || self.open.len() > MAX_DEPTH || !self.open.insert(ids.to_vec()) {
            return None;
        }
        let proof = self.prove(ids, wanted);
        self.open.remove(ids);
        proof
    }

    fn prove(&mut self, ids: &[Id], wanted: (&'static str, Demand)) -> Option<Proof> {
        let certain = self.certain(ids);
        if let Some(shape) = certain.iter().find(|shape| self.is_false(shape)) {
            return Some(Proof::no_value(shape.pointer.clone(), wanted));
        }
        // Listed values decide alone: each is tried.
        for (shape, keyword) in certain.iter().flat_map(|shape| [(shape, "const"), (shape, "enum")]) {
            if let Some(values) = self.listed(shape, keyword) {
                let pointer = format!("{}/{keyword}", shape.pointer);
                return self.prove_listed(ids, values, pointer, wanted);
            }
        }
        if let Demand::OneOf(words) = wanted.1 {
            let is_excluded = words.iter().all(|word| !self.accepts(ids, &Value::from(*word)));
            let pointer = certain.first().map(|shape| shape.pointer.clone()).unwrap_or_default();
            return is_excluded.then(|| Proof::no_value(pointer, wanted));
        }
        self.prove_type(&certain, wanted)
            .or_else(|| self.prove_members(ids, &certain, wanted))
            .or_else(|| self.prove_not(&certain, wanted))
            .or_else(|| self.prove_branches(ids, &certain, wanted))
    }

    /// Returns the schemas that certainly apply, the inner ones last.
    fn certain(&self, ids: &[Id]) -> Vec<&'a SchemaNode> {
        let mut seen = HashSet::new();
        let all = ids.iter().flat_map(|id| self.contract.graph.certain(*id));
        all.filter(|shape| seen.insert(shape.pointer.as_str())).collect()
    }

    fn is_false(&self, shape: &SchemaNode) -> bool {
        self.contract.document().pointer(&shape.pointer) == Some(&Value::Bool(false))
    }

    fn accepts(&self, ids: &[Id], value: &Value) -> bool {
        let tree = Tree::from(value);
        ids.iter().all(|id| self.contract.check_of(*id).is_none_or(|check| check.accepts(tree.node())))
    }

    fn listed(&self, shape: &SchemaNode, keyword: &str) -> Option<&'a [Value]> {
        let value = self.contract.keyword(shape, keyword)?;
        match keyword {
            "const" => Some(std::slice::from_ref(value)),
            _ => value.as_array().map(Vec::as_slice),
        }
    }

    fn prove_listed(
        &self,
        ids: &[Id],
        values: &[Value],
        pointer: String,
        wanted: (&'static str, Demand),
    ) -> Option<Proof> {
        let is_possible = values.iter().any(|value| wanted.1.allows(value) && self.accepts(ids, value));
        (!is_possible).then(|| Proof::no_value(pointer, wanted))
    }

    /// Returns the types that are allowed, or the keyword that leaves none.
    fn types(&self, certain: &[&SchemaNode], wanted: Demand) -> Result<Types, String> {
        let mut types = wanted.types();
        for shape in certain {
            let Some(named) = self.contract.keyword(shape, "type") else { continue };
            types = types.and(Types::from_keyword(named));
            if types == Types::default() {
                return Err(format!("{}/type", shape.pointer));
            }
        }
        Ok(types)
    }

    /// Compares types and bounds.
    fn prove_type(&self, certain: &[&SchemaNode], wanted: (&'static str, Demand)) -> Option<Proof> {
        let types = match self.types(certain, wanted.1) {
            Ok(types) => types,
            Err(pointer) => return Some(Proof::no_value(pointer, wanted)),
        };
        if let Some(proof) = self.prove_not_empty(certain, types, wanted) {
            return Some(proof);
        }
        let [low, high] = match types {
            Types::NUMBER | Types::INTEGER => ["minimum", "maximum"],
            Types::STRING => ["minLength", "maxLength"],
            Types::ARRAY => ["minItems", "maxItems"],
            Types::OBJECT => ["minProperties", "maxProperties"],
            _ => return None,
        };
        let mut bounds = Bounds::default();
        for shape in certain {
            for (keyword, is_low, is_exclusive) in [
                (low, true, false),
                (high, false, false),
                ("exclusiveMinimum", true, types.meet(Types::NUMBER)),
                ("exclusiveMaximum", false, types.meet(Types::NUMBER)),
            ] {
                if let Some(number) = self.contract.keyword(shape, keyword).and_then(Value::as_f64)
                    && (is_exclusive || !keyword.starts_with("exclusive"))
                {
                    bounds.add(format!("{}/{keyword}", shape.pointer), number, is_low, is_exclusive);
                }
            }
        }
        bounds.contradiction().or_else(|| {
            let pointer = bounds.outside(wanted.1.bounds(types)?)?;
            Some(Proof::no_value(pointer, wanted))
        })
    }

    /// Returns the keyword that allows only empty strings, where no value of another type is allowed.
    fn prove_not_empty(
        &self,
        certain: &[&SchemaNode],
        types: Types,
        wanted: (&'static str, Demand),
    ) -> Option<Proof> {
        if wanted.1 != Demand::NotEmpty || types.and(Types::STRING.or(Types::NULL)) != types {
            return None;
        }
        certain.iter().find_map(|shape| {
            let is_zero = self.contract.keyword(shape, "maxLength").and_then(Value::as_f64) == Some(0.0);
            let pattern = self.contract.keyword(shape, "pattern").and_then(Value::as_str);
            let keyword = match pattern {
                _ if is_zero => "maxLength",
                Some(pattern) if matches_only_blank(pattern) => "pattern",
                _ => return None,
            };
            Some(Proof::no_value(format!("{}/{keyword}", shape.pointer), wanted))
        })
    }

    /// Examines the members that an object certainly has.
    fn prove_members(
        &mut self,
        ids: &[Id],
        certain: &[&SchemaNode],
        wanted: (&'static str, Demand),
    ) -> Option<Proof> {
        let is_object = match wanted.1 {
            Demand::Object(_) => true,
            demand => certain.iter().any(|shape| {
                let named = self.contract.keyword(shape, "type");
                named.is_some_and(|named| Types::from_keyword(named).and(demand.types()) == Types::OBJECT)
            }),
        };
        if !is_object {
            return None;
        }
        let members = self.members(certain, wanted.1);
        for (name, wanted) in members.iter().copied() {
            if let Some(pointer) = certain.iter().find_map(|shape| self.forbids(shape, name)) {
                let what = format!("{} is required, and only other fields are allowed", quoted(name));
                let reason = match wanted.1 {
                    Demand::Any if wanted.0.is_empty() => Reason::Schema(what),
                    demand => Reason::Demand(wanted.0, demand),
                };
                return Some(Proof { pointer, reason });
            }
            let inside = self.contract.graph.step(ids, Segment::Key(name));
            if let Some(proof) = self.examine(&inside, wanted) {
                return Some(proof);
            }
        }
        certain.iter().find_map(|shape| {
            let max = self.contract.keyword(shape, "maxProperties")?.as_f64()?;
            let required: Vec<String> = members.iter().map(|(name, _)| quoted(name)).collect();
            let what =
                format!("at most {max} fields are allowed, and these are required: {}", required.join(", "));
            let pointer = format!("{}/maxProperties", shape.pointer);
            (members.len() as f64 > max).then_some(Proof { pointer, reason: Reason::Schema(what) })
        })
    }

    /// Returns the members that an object certainly has, with what is required of each.
    fn members(&self, certain: &[&'a SchemaNode], wanted: Demand) -> Vec<(&'a str, (&'static str, Demand))> {
        let demanded = if let Demand::Object(members) = wanted { members } else { &[] };
        let mut members: Vec<(&str, (&'static str, Demand))> =
            demanded.iter().map(|(name, demand)| (*name, (*name, *demand))).collect();
        for name in certain.iter().flat_map(|shape| names(self.contract.keyword(shape, "required"))) {
            if members.iter().all(|(known, _)| *known != name) {
                members.push((name, ("", Demand::Any)));
            }
        }
        members
    }

    /// Returns the keyword by which a schema allows no member of this name.
    fn forbids(&self, shape: &SchemaNode, name: &str) -> Option<String> {
        if shape.forbids(name) {
            return Some(format!("{}/additionalProperties", shape.pointer));
        }
        let pointer = format!("{}/propertyNames", shape.pointer);
        let names = self.contract.graph.at(&pointer)?;
        (!self.accepts(&[names], &Value::from(name))).then_some(pointer)
    }

    /// Returns the `not` whose schema accepts every value that is still possible.
    fn prove_not(&self, certain: &[&'a SchemaNode], wanted: (&'static str, Demand)) -> Option<Proof> {
        let shape = certain.iter().find(|shape| {
            shape.links.not.is_some_and(|id| self.accepts_all(id, certain, wanted.1, MAX_DEPTH))
        })?;
        let pointer = format!("{}/not", shape.pointer);
        match wanted.1 {
            Demand::Object(_) => {
                let what = "this excludes every object with the required fields".to_owned();
                Some(Proof { pointer, reason: Reason::Schema(what) })
            }
            _ => Some(Proof::no_value(pointer, wanted)),
        }
    }

    /// Returns whether a schema certainly accepts each value that the `certain` schemas and the demand allow.
    fn accepts_all(&self, id: Id, certain: &[&'a SchemaNode], wanted: Demand, depth: usize) -> bool {
        let shape = self.contract.graph.get(id);
        let schema = self.contract.document().pointer(&shape.pointer);
        let keywords = match schema {
            Some(Value::Object(keywords)) if depth > 0 => keywords,
            schema => return schema == Some(&Value::Bool(true)),
        };
        let Ok(types) = self.types(certain, wanted) else { return true };
        let is_filled = wanted == Demand::NotEmpty;
        keywords.iter().filter(|(keyword, _)| !is_annotation(keyword)).all(|(keyword, value)| {
            let accepts = |id: &Id| self.accepts_all(*id, certain, wanted, depth - 1);
            match keyword.as_str() {
                "allOf" => shape.links.all.iter().all(accepts),
                "anyOf" => shape.links.any.iter().any(accepts),
                "type" => types.and(Types::from_keyword(value)) == types,
                "required" => {
                    let members = self.members(certain, wanted);
                    let is_member = |name: &str| members.iter().any(|(known, _)| *known == name);
                    types == Types::OBJECT && names(Some(value)).all(is_member)
                }
                "minProperties" => {
                    let least = self.members(certain, wanted).len().max(usize::from(is_filled));
                    types == Types::OBJECT && value.as_f64().is_some_and(|min| min <= least as f64)
                }
                "minLength" | "minItems" => {
                    let of = if keyword == "minItems" { Types::ARRAY } else { Types::STRING };
                    types == of && is_filled && value.as_f64().is_some_and(|min| min <= 1.0)
                }
                _ => false,
            }
        })
    }

    /// Examines the alternatives: if none of a list is possible, no value is.
    fn prove_branches(
        &mut self,
        ids: &[Id],
        certain: &[&SchemaNode],
        wanted: (&'static str, Demand),
    ) -> Option<Proof> {
        for shape in certain {
            for (keyword, branches) in [("anyOf", &shape.links.any), ("oneOf", &shape.links.one)] {
                let is_chosen = branches.iter().any(|branch| ids.contains(branch));
                let mut first = None;
                let is_excluded = !branches.is_empty()
                    && !is_chosen
                    && branches.iter().all(|branch| {
                        let with: Vec<Id> = ids.iter().copied().chain([*branch]).collect();
                        let proof = self.examine(&with, wanted);
                        let is_proved = proof.is_some();
                        first = first.take().or(proof);
                        is_proved
                    });
                if is_excluded {
                    let reason =
                        first.map_or_else(|| Reason::Schema(NO_VALUE.to_owned()), |proof| proof.reason);
                    return Some(Proof { pointer: format!("{}/{keyword}", shape.pointer), reason });
                }
            }
        }
        None
    }
}

const NO_VALUE: &str = "the answer requires this value, and the schema allows none";

impl Proof {
    fn no_value(pointer: String, (name, demand): (&'static str, Demand)) -> Self {
        let reason = match demand {
            Demand::Any => Reason::Schema(NO_VALUE.to_owned()),
            demand => Reason::Demand(name, demand),
        };
        Self { pointer, reason }
    }
}

impl Demand {
    fn types(self) -> Types {
        match self {
            Self::Any => Types::ANY,
            Self::Object(_) => Types::OBJECT,
            Self::NotEmpty => Types::ANY.without(Types::NULL),
            Self::Text(_) | Self::OneOf(_) => Types::STRING,
            Self::Number(..) => Types::NUMBER,
            Self::NoItems | Self::Items(_) => Types::ARRAY,
        }
    }

    /// Returns whether a value, which its schema allows, meets the demand.
    fn allows(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Object(_) => value.is_object(),
            Self::NotEmpty => match value {
                Value::Null => false,
                Value::String(text) => !text.trim().is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(members) => !members.is_empty(),
                Value::Bool(_) | Value::Number(_) => true,
            },
            Self::Text(max) => value.as_str().is_some_and(|text| text.chars().count() as u64 <= max),
            Self::Number(min, max) => value.as_f64().is_some_and(|number| (min..=max).contains(&number)),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::NoItems => value.as_array().is_some_and(Vec::is_empty),
            Self::Items(max) => value.as_array().is_some_and(|items| items.len() as u64 <= max),
        }
    }

    /// Returns the least and the greatest number, length or count, for a value of one type.
    fn bounds(self, types: Types) -> Option<(f64, f64)> {
        match self {
            Self::Number(min, max) => Some((min, max)),
            Self::Text(max) | Self::Items(max) => Some((0.0, max as f64)),
            Self::NoItems => Some((0.0, 0.0)),
            Self::NotEmpty if types == Types::STRING || types == Types::ARRAY || types == Types::OBJECT => {
                Some((1.0, f64::INFINITY))
            }
            _ => None,
        }
    }
}

/// The tightest bounds so far, with their keywords.
#[derive(Default)]
struct Bounds {
    low: Option<Bound>,
    high: Option<Bound>,
}

struct Bound {
    pointer: String,
    number: f64,
    is_exclusive: bool,
}

impl Bounds {
    fn add(&mut self, pointer: String, number: f64, is_low: bool, is_exclusive: bool) {
        let bound = if is_low { &mut self.low } else { &mut self.high };
        let is_tighter = bound.as_ref().is_none_or(|known| {
            let is_beyond = if is_low { number > known.number } else { number < known.number };
            is_beyond || number == known.number && is_exclusive
        });
        if is_tighter {
            *bound = Some(Bound { pointer, number, is_exclusive });
        }
    }

    /// Returns the proof that no number is between the bounds.
    fn contradiction(&self) -> Option<Proof> {
        let (low, high) = self.low.as_ref().zip(self.high.as_ref())?;
        let is_open = low.is_exclusive || high.is_exclusive;
        let is_empty = low.number > high.number || low.number == high.number && is_open;
        is_empty.then(|| Proof {
            pointer: low.pointer.clone(),
            reason: Reason::Schema(format!("{} leaves no value below {}", low.pointer, high.pointer)),
        })
    }

    /// Returns the keyword that excludes every number of a range.
    fn outside(&self, (min, max): (f64, f64)) -> Option<String> {
        let low = self.low.as_ref().filter(|low| low.number > max || low.number == max && low.is_exclusive);
        let high =
            self.high.as_ref().filter(|high| high.number < min || high.number == min && high.is_exclusive);
        low.or(high).map(|bound| bound.pointer.clone())
    }
}

#[cfg(test)]
mod tests;
