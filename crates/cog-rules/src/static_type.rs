//! What is known about a value before anything runs.

use std::rc::Rc;

use cog_schema::{Member, Shape, Types, nearest};

use crate::path::{PathStep, ValuePath};

/// The maximum number of alternatives that are compared. A value with more of them can be anything.
pub const MAX_ALTERNATIVES: usize = 32;

/// The maximum number of members that a suggestion lists.
const MAX_LISTED: usize = 12;

/// What is known about a value. Clones share their members, so that they are cheap.
#[derive(Debug, Clone)]
pub enum StaticType<'c> {
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
    Object(Rc<[(String, StaticType<'c>)]>),
    /// It is one of these, or all of them merged.
    Either(Rc<[StaticType<'c>]>),
    /// It is all of these; the first that knows the type of a member decides.
    Layers(Rc<[StaticType<'c>]>),
    /// It is an array with these elements.
    List(Rc<StaticType<'c>>),
    /// It is this, or null if a module has no result.
    Maybe(Rc<StaticType<'c>>),
}

/// A member that a value cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentMember {
    /// Why.
    pub message: String,
    /// What to write.
    pub suggestion: Option<String>,
}

impl<'c> StaticType<'c> {
    /// Returns what is known about an object with these members and no others.
    pub fn object<N: Into<String>>(members: impl IntoIterator<Item = (N, Self)>) -> Self {
        StaticType::Object(members.into_iter().map(|(name, known)| (name.into(), known)).collect())
    }

    /// Returns what is known about a value that is one of these, or all of them merged.
    pub fn either(all: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Vec<_> = all.into_iter().take(MAX_ALTERNATIVES + 1).collect();
        match all.len() {
            1 => all.pop().unwrap_or(StaticType::Any),
            2..=MAX_ALTERNATIVES => StaticType::Either(all.into()),
            _ => StaticType::Any,
        }
    }

    /// Returns what is known about a value that is null if a module has no result.
    pub fn or_null(self) -> Self {
        StaticType::Maybe(Rc::new(self))
    }

    /// Returns the types that the value can have.
    pub fn types(&self) -> Types {
        match self {
            StaticType::Any => Types::ANY,
            StaticType::Types(types) => *types,
            StaticType::Confidence => Types::NUMBER.or(Types::NULL),
            StaticType::True => Types::BOOLEAN,
            StaticType::Schema(shape) => shape.types(),
            StaticType::Object(_) => Types::OBJECT,
            StaticType::Either(all) => all.iter().fold(Types::default(), |sum, one| sum.or(one.types())),
            StaticType::Layers(all) => all.first().map_or(Types::ANY, StaticType::types),
            StaticType::List(_) => Types::ARRAY,
            StaticType::Maybe(known) => known.types(),
        }
    }

    /// Returns the type for a drawing, such as `array of string`.
    pub fn describe(&self) -> String {
        let types = self.types();
        match self.elements() {
            Some(elements) if types == Types::ARRAY && elements.types() != Types::ANY => {
                format!("array of {}", elements.types())
            }
            _ => types.to_string(),
        }
    }

    /// Returns what is known about a member; none if the value cannot have it.
    pub fn member(&self, name: &str) -> Option<StaticType<'c>> {
        match self {
            StaticType::Any => Some(StaticType::Any),
            StaticType::Types(types) => types.meet(Types::OBJECT).then_some(StaticType::Any),
            StaticType::Schema(shape) => match shape.member(name) {
                Member::Known(member) => Some(StaticType::Schema(member)),
                Member::Any => shape.types().meet(Types::OBJECT).then_some(StaticType::Any),
                Member::Absent => None,
            },
            StaticType::Object(members) => {
                members.iter().find(|(known, _)| known == name).map(|(_, member)| member.clone())
            }
            StaticType::Either(all) => {
                let members: Vec<_> = all.iter().filter_map(|one| one.member(name)).collect();
                (!members.is_empty()).then(|| StaticType::either(members))
            }
            StaticType::Layers(all) => {
                let members: Vec<_> = all.iter().filter_map(|one| one.member(name)).collect();
                let first =
                    members.iter().position(|member| !matches!(member, StaticType::Any)).unwrap_or_default();
                members.into_iter().nth(first)
            }
            StaticType::Maybe(known) => known.member(name),
            StaticType::List(_) | StaticType::Confidence | StaticType::True => None,
        }
    }

    /// Returns what is known about the elements of an array.
    pub fn elements(&self) -> Option<StaticType<'c>> {
        match self {
            StaticType::Any => Some(StaticType::Any),
            StaticType::Types(types) => types.meet(Types::ARRAY).then_some(StaticType::Any),
            StaticType::Schema(shape) => {
                let is_array = shape.types().meet(Types::ARRAY);
                is_array.then(|| shape.elements().map_or(StaticType::Any, StaticType::Schema))
            }
            StaticType::Object(_) | StaticType::Layers(_) | StaticType::Confidence | StaticType::True => None,
            StaticType::Maybe(known) => known.elements(),
            StaticType::Either(all) => {
                let elements: Vec<_> = all.iter().filter_map(StaticType::elements).collect();
                (!elements.is_empty()).then(|| StaticType::either(elements))
            }
            StaticType::List(elements) => Some((**elements).clone()),
        }
    }

    /// Returns the names of the known members.
    pub fn member_names(&self) -> Vec<&str> {
        match self {
            StaticType::Schema(shape) => shape.member_names(),
            StaticType::Object(members) => members.iter().map(|(name, _)| name.as_str()).collect(),
            StaticType::Either(all) | StaticType::Layers(all) => {
                all.iter().flat_map(StaticType::member_names).collect()
            }
            StaticType::Maybe(known) => known.member_names(),
            StaticType::Any
            | StaticType::Types(_)
            | StaticType::Confidence
            | StaticType::True
            | StaticType::List(_) => Vec::new(),
        }
    }

    /// Returns the members that the value certainly has.
    pub fn certain_members(&self) -> Vec<&str> {
        match self {
            StaticType::Schema(shape) => shape.required_names(),
            StaticType::Object(_) => self.member_names(),
            _ => Vec::new(),
        }
    }

    /// Returns whether an object with a member of this name is certainly invalid.
    pub fn forbids(&self, name: &str) -> bool {
        matches!(self, StaticType::Schema(shape) if shape.forbids(name))
    }

    /// Returns what is known if the value is not null.
    #[must_use]
    pub fn existing(self) -> Self {
        match self {
            StaticType::Maybe(known) => (*known).clone(),
            known => known,
        }
    }

    /// Follows a path to one value.
    ///
    /// # Errors
    /// When a step leads to a member or element that the value cannot have.
    pub fn find(&self, path: &ValuePath) -> Result<StaticType<'c>, AbsentMember> {
        let mut known = self.clone();
        for step in path.steps() {
            known = match step {
                PathStep::Key(key) => known.member_or_absent(key.as_str(), self)?,
                PathStep::Index(_) => known.elements_or_absent()?,
            };
        }
        Ok(known)
    }

    /// Returns what is known about a member; `root` is the document, for the suggestion.
    ///
    /// # Errors
    /// When the value cannot have it.
    pub fn member_or_absent(
        &self,
        name: &str,
        root: &StaticType<'_>,
    ) -> Result<StaticType<'c>, AbsentMember> {
        self.member(name).ok_or_else(|| {
            let types = self.types();
            if !types.meet(Types::OBJECT) {
                let message = format!("the value has the type {types}, so it has no member `{name}`");
                let is_counted = name == "length" && types.meet(Types::ARRAY.or(Types::STRING));
                let help = is_counted
                    .then(|| "`.length` counts only at the end of a path in a condition.".to_owned());
                return AbsentMember { message, suggestion: help };
            }
            let message = format!("no schema defines the member `{name}`");
            let help = self.similar(name).or_else(|| root.deeper(name)).or_else(|| self.listed());
            AbsentMember { message, suggestion: help }
        })
    }

    /// Returns what is known about the elements.
    ///
    /// # Errors
    /// When the value cannot have any.
    pub fn elements_or_absent(&self) -> Result<StaticType<'c>, AbsentMember> {
        self.elements().ok_or_else(|| {
            let message = format!("the value has the type {}, so it has no elements", self.types());
            AbsentMember { message, suggestion: None }
        })
    }

    /// Returns the suggestion of a similar member.
    pub fn similar(&self, name: &str) -> Option<String> {
        nearest(name, self.member_names()).map(|near| format!("Did you mean `{near}`?"))
    }

    /// Returns the suggestion of the members of an object that has no others.
    fn listed(&self) -> Option<String> {
        match self {
            StaticType::Object(members) if (1..=MAX_LISTED).contains(&members.len()) => {
                let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                Some(format!("It has: {}.", names.join(", ")))
            }
            StaticType::Maybe(known) => known.listed(),
            _ => None,
        }
    }

    /// Returns the suggestion of a member that an envelope has in `data` or `meta`.
    fn deeper(&self, name: &str) -> Option<String> {
        let part = ["data", "meta"]
            .into_iter()
            .find(|part| self.member(part).is_some_and(|known| known.member_names().contains(&name)))?;
        Some(format!("Write `$.{part}.{name}`."))
    }
}
