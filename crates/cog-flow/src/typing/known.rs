//! What is known about a value before anything runs.

use std::rc::Rc;

use cog_schema::{Member, Shape, Types, nearest};

use crate::{
    json_path::{JsonPath, PathStep, ValuePath, WildPath, WildStep},
};

/// The maximum number of alternatives that are compared. A value with more of them can be anything.
pub(super) const MAX_ALTERNATIVES: usize = 32;

/// The maximum number of members that a suggestion lists.
const MAX_LISTED: usize = 12;

/// What is known about a value. Clones share their members, so that they are cheap.
#[derive(Debug, Clone)]
pub(crate) enum Known<'c> {
    /// Nothing.
    Any,
    /// Its types.
    Types(Types),
    /// It is a confidence: a number from 0 to 1.
    Confidence,
    /// It is `true`.
    True,
    /// The schema that it satisfies.
    Schema(Shape<'c>),
    /// It is an object with these members and no others.
    Object(Rc<[(String, Known<'c>)]>),
    /// It is one of these, or all of them merged.
    Either(Rc<[Known<'c>]>),
    /// It is all of these; the first that knows the type of a member decides.
    Layers(Rc<[Known<'c>]>),
    /// It is an array with these elements.
    List(Rc<Known<'c>>),
    /// It is this, or null if a module has no result.
    Maybe(Rc<Known<'c>>),
}

/// A member that a value cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Absent {
    pub(crate) message: String,
    pub(crate) suggestion: Option<String>,
}

impl<'c> Known<'c> {
    /// Returns what is known about an object with these members and no others.
    pub(super) fn object<N: Into<String>>(members: impl IntoIterator<Item = (N, Self)>) -> Self {
        Known::Object(members.into_iter().map(|(name, known)| (name.into(), known)).collect())
    }

    /// Returns what is known about a value that is one of these, or all of them merged.
    pub(super) fn either(all: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Vec<_> = all.into_iter().take(MAX_ALTERNATIVES + 1).collect();
        match all.len() {
            1 => all.pop().unwrap_or(Known::Any),
            2..=MAX_ALTERNATIVES => Known::Either(all.into()),
            _ => Known::Any,
        }
    }

    /// Returns what is known about a value that is null if a module has no result.
    pub(super) fn or_null(self) -> Self {
        Known::Maybe(Rc::new(self))
    }

    /// Returns the types that the value can have.
    pub(crate) fn types(&self) -> Types {
        match self {
            Known::Any => Types::ANY,
            Known::Types(types) => *types,
            Known::Confidence => Types::NUMBER.or(Types::NULL),
            Known::True => Types::BOOLEAN,
            Known::Schema(shape) => shape.types(),
            Known::Object(_) => Types::OBJECT,
            Known::Either(all) => all.iter().fold(Types::default(), |sum, one| sum.or(one.types())),
            Known::Layers(all) => all.first().map_or(Types::ANY, Known::types),
            Known::List(_) => Types::ARRAY,
            Known::Maybe(known) => known.types(),
        }
    }

    /// Returns the type for a drawing, such as `array of string`.
    pub(crate) fn describe(&self) -> String {
        let types = self.types();
        match self.elements() {
            Some(elements) if types == Types::ARRAY && elements.types() != Types::ANY => {
                format!("array of {}", elements.types())
            }
            _ => types.to_string(),
        }
    }

    /// Returns what is known about a member; none if the value cannot have it.
    pub(crate) fn member(&self, name: &str) -> Option<Known<'c>> {
        match self {
            Known::Any => Some(Known::Any),
            Known::Types(types) => types.meet(Types::OBJECT).then_some(Known::Any),
            Known::Schema(shape) => match shape.member(name) {
                Member::Known(member) => Some(Known::Schema(member)),
                Member::Any => shape.types().meet(Types::OBJECT).then_some(Known::Any),
                Member::Absent => None,
            },
            Known::Object(members) => {
                members.iter().find(|(known, _)| known == name).map(|(_, member)| member.clone())
            }
            Known::Either(all) => {
                let members: Vec<_> = all.iter().filter_map(|one| one.member(name)).collect();
                (!members.is_empty()).then(|| Known::either(members))
            }
            Known::Layers(all) => {
                let members: Vec<_> = all.iter().filter_map(|one| one.member(name)).collect();
                let first =
                    members.iter().position(|member| !matches!(member, Known::Any)).unwrap_or_default();
                members.into_iter().nth(first)
            }
            Known::Maybe(known) => known.member(name),
            Known::List(_) | Known::Confidence | Known::True => None,
        }
    }

    /// Returns what is known about the elements of an array.
    pub(crate) fn elements(&self) -> Option<Known<'c>> {
        match self {
            Known::Any => Some(Known::Any),
            Known::Types(types) => types.meet(Types::ARRAY).then_some(Known::Any),
            Known::Schema(shape) => {
                let is_array = shape.types().meet(Types::ARRAY);
                is_array.then(|| shape.elements().map_or(Known::Any, Known::Schema))
            }
            Known::Object(_) | Known::Layers(_) | Known::Confidence | Known::True => None,
            Known::Maybe(known) => known.elements(),
            Known::Either(all) => {
                let elements: Vec<_> = all.iter().filter_map(Known::elements).collect();
                (!elements.is_empty()).then(|| Known::either(elements))
            }
            Known::List(elements) => Some((**elements).clone()),
        }
    }

    /// Returns the names of the known members.
    pub(crate) fn member_names(&self) -> Vec<&str> {
        match self {
            Known::Schema(shape) => shape.member_names(),
            Known::Object(members) => members.iter().map(|(name, _)| name.as_str()).collect(),
            Known::Either(all) | Known::Layers(all) => all.iter().flat_map(Known::member_names).collect(),
            Known::Maybe(known) => known.member_names(),
            Known::Any | Known::Types(_) | Known::Confidence | Known::True | Known::List(_) => Vec::new(),
        }
    }

    /// Returns the members that the value certainly has.
    pub(crate) fn certain_members(&self) -> Vec<&str> {
        match self {
            Known::Schema(shape) => shape.required_names(),
            Known::Object(_) => self.member_names(),
            _ => Vec::new(),
        }
    }

    /// Returns whether an object with a member of this name is certainly invalid.
    pub(crate) fn forbids(&self, name: &str) -> bool {
        matches!(self, Known::Schema(shape) if shape.forbids(name))
    }

    /// Returns what is known if the value is not null.
    #[must_use]
    pub(crate) fn existing(self) -> Self {
        match self {
            Known::Maybe(known) => (*known).clone(),
            known => known,
        }
    }

    /// Follows a path to one value.
    pub(crate) fn find(&self, path: &ValuePath) -> Result<Known<'c>, Absent> {
        let mut known = self.clone();
        for step in path.steps() {
            known = match step {
                PathStep::Key(key) => known.member_or_absent(key.as_str(), self)?,
                PathStep::Index(_) => known.elements_or_absent()?,
            };
        }
        Ok(known)
    }

    /// Follows the path of a mapping. A path to several values selects a list.
    pub(crate) fn select(&self, path: &JsonPath) -> Result<Known<'c>, Absent> {
        match path {
            JsonPath::One(path) => self.find(path),
            JsonPath::Many(_, path) => self.select_many(path),
        }
    }

    fn select_many(&self, path: &WildPath) -> Result<Known<'c>, Absent> {
        let mut known = self.clone();
        for step in &path.steps {
            known = match step {
                WildStep::Key(key) => known.member_or_absent(key, self)?,
                WildStep::Index => known.elements_or_absent()?,
                WildStep::All => known.elements().unwrap_or(Known::Any),
            };
        }
        Ok(Known::List(Rc::new(if path.is_complete { known } else { Known::Any })))
    }

    fn member_or_absent(&self, name: &str, root: &Known<'_>) -> Result<Known<'c>, Absent> {
        self.member(name).ok_or_else(|| {
            let types = self.types();
            if !types.meet(Types::OBJECT) {
                let message = format!("the value has the type {types}, so it has no member `{name}`");
                let is_counted = name == "length" && types.meet(Types::ARRAY.or(Types::STRING));
                let help = is_counted
                    .then(|| "`.length` counts only at the end of a path in a condition.".to_owned());
                return Absent { message, suggestion: help };
            }
            let message = format!("no schema defines the member `{name}`");
            let help = self.similar(name).or_else(|| root.deeper(name)).or_else(|| self.listed());
            Absent { message, suggestion: help }
        })
    }

    fn elements_or_absent(&self) -> Result<Known<'c>, Absent> {
        self.elements().ok_or_else(|| {
            let message = format!("the value has the type {}, so it has no elements", self.types());
            Absent { message, suggestion: None }
        })
    }

    /// Returns the suggestion of a similar member.
    pub(crate) fn similar(&self, name: &str) -> Option<String> {
        nearest(name, self.member_names()).map(|near| format!("Did you mean `{near}`?"))
    }

    /// Returns the suggestion of the members of an object that has no others.
    fn listed(&self) -> Option<String> {
        match self {
            Known::Object(members) if (1..=MAX_LISTED).contains(&members.len()) => {
                let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                Some(format!("It has: {}.", names.join(", ")))
            }
            Known::Maybe(known) => known.listed(),
            _ => None,
        }
    }

    /// Returns the suggestion of a member that an envelope has in `data` or `meta`.
    fn deeper(&self, name: &str) -> Option<String> {
        let has = |part: &&str| self.member(part).is_some_and(|known| known.member_names().contains(&name));
        ["data", "meta"].into_iter().find(has).map(|part| format!("Write `$.{part}.{name}`."))
    }
}
