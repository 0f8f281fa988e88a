//! The types of a module, independent of the language that they are printed in, and what two types have in common.

use serde_json::{Number, Value};

/// The maximum number of arms of a union that is combined with another.
const MAX_ARMS: usize = 32;

/// A type. It contains every valid value, and as few others as the languages allow.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Any,
    Never,
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    /// One string, number or boolean.
    Literal(Value),
    List(Box<Type>),
    /// Exactly these items.
    Tuple(Vec<Type>),
    /// An object with any keys.
    Map(Box<Type>),
    Object(Box<Object>),
    Union(Vec<Type>),
    /// A JSON pointer in the schema; once it has a name, that name.
    Reference(String),
}

/// An object with known fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Object {
    pub(super) about: Option<String>,
    pub(super) fields: Vec<Field>,
    /// The keys that every value has.
    pub(super) required: Vec<String>,
    /// The type of further fields, if the schema describes them.
    pub(super) rest: Option<Type>,
    /// Whether there are no further fields.
    pub(super) is_closed: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) key: String,
    pub(super) about: Option<String>,
    pub(super) kind: Type,
}

/// A type with a name.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) about: Option<String>,
    pub(super) kind: Type,
}

impl Object {
    pub(super) fn requires(&self, field: &Field) -> bool {
        self.required.contains(&field.key)
    }
}

impl Type {
    pub(super) fn list(items: Type) -> Self {
        Self::List(Box::new(items))
    }

    /// Returns the union of types, without what other arms contain.
    pub(super) fn union(arms: impl IntoIterator<Item = Type>) -> Self {
        let mut kept: Vec<Type> = Vec::new();
        for arm in arms.into_iter().flat_map(Type::into_arms) {
            if !kept.iter().any(|other| other.contains(&arm)) {
                kept.retain(|other| !arm.contains(other));
                kept.push(arm);
            }
        }
        match kept.len() {
            0 => Self::Never,
            1 => kept.remove(0),
            _ => Self::Union(kept),
        }
    }

    /// Returns the arms of a union, otherwise the type itself.
    pub(super) fn into_arms(self) -> Vec<Type> {
        match self {
            Self::Union(arms) => arms,
            Self::Never => Vec::new(),
            other => vec![other],
        }
    }

    /// Returns the type without null, and whether null was in it.
    pub(super) fn split_null(self) -> (Type, bool) {
        let mut arms = self.into_arms();
        let before = arms.len();
        arms.retain(|arm| *arm != Self::Null);
        let is_nullable = arms.len() < before;
        (Self::union(arms), is_nullable)
    }

    fn contains(&self, other: &Type) -> bool {
        match (self, other) {
            (Self::Any, _) | (Self::Number, Self::Integer) => true,
            (_, Self::Literal(value)) => {
                self == other || Self::from_value(value) == *self || {
                    *self == Self::Number && value.is_number()
                }
            }
            _ => self == other,
        }
    }

    /// Whether a condition on objects or lists narrows another type.
    pub(super) fn concerns(&self, other: &Type) -> bool {
        match self {
            Self::Union(arms) => arms.iter().any(|arm| arm.concerns(other)),
            Self::List(_) | Self::Tuple(_) => {
                matches!(other, Self::List(_) | Self::Tuple(_) | Self::Reference(_))
            }
            _ => matches!(other, Self::Object(_) | Self::Map(_) | Self::Reference(_)),
        }
    }

    /// Returns the type of a value, without its members.
    pub(super) fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::list(Self::Any),
            Value::Object(_) => Self::Map(Box::new(Self::Any)),
        }
    }

    /// Returns the type of exactly this value, or of values like it. `1.0` is the integer 1.
    pub(super) fn constant(value: &Value) -> Self {
        match value {
            Value::Number(number) if number.is_f64() => Self::Literal(whole(number).unwrap_or(value.clone())),
            Value::String(_) | Value::Number(_) | Value::Bool(_) => Self::Literal(value.clone()),
            other => Self::from_value(other),
        }
    }
}

/// Returns a number without a fraction as an integer, if every bit of it is exact.
fn whole(number: &Number) -> Option<Value> {
    let float = number.as_f64()?;
    // Above this, a 64-bit float no longer has every integer.
    let limit = 1_i64 << 53;
    let is_exact = float.fract() == 0.0 && float.abs() <= limit as f64;
    is_exact.then(|| Value::from(float as i64))
}

/// Returns a type that contains every value that both contain. A reference remains, and is not compared.
pub(super) fn intersection(left: Type, right: Type) -> Type {
    match (left, right) {
        (Type::Any, other) | (other, Type::Any) => other,
        (left, right) if left == right => left,
        (Type::Union(arms), other) | (other, Type::Union(arms)) => intersect_arms(arms, other),
        (Type::Object(left), Type::Object(right)) => Type::Object(Box::new(merge(*left, *right))),
        (Type::List(left), Type::List(right)) => Type::list(intersection(*left, *right)),
        (Type::Tuple(items), Type::List(each)) | (Type::List(each), Type::Tuple(items)) => {
            Type::Tuple(items.into_iter().map(|item| intersection(item, (*each).clone())).collect())
        }
        (Type::Tuple(left), Type::Tuple(right)) if left.len() == right.len() => {
            Type::Tuple(left.into_iter().zip(right).map(|(left, right)| intersection(left, right)).collect())
        }
        // A reference within itself is never opened, so what it contains is unknown here.
        (reference @ Type::Reference(_), _) | (_, reference @ Type::Reference(_)) => reference,
        (Type::Integer, Type::Number) | (Type::Number, Type::Integer) => Type::Integer,
        (literal @ Type::Literal(_), other) | (other, literal @ Type::Literal(_)) => {
            intersect_literal(literal, &other)
        }
        // A constant object or array is not compared in detail.
        (Type::Map(_), object @ Type::Object(_)) | (object @ Type::Object(_), Type::Map(_)) => object,
        _ => Type::Never,
    }
}

fn intersect_literal(literal: Type, other: &Type) -> Type {
    let is_within = Type::union([literal.clone(), other.clone()]) == *other;
    if is_within { literal } else { Type::Never }
}

fn intersect_arms(arms: Vec<Type>, other: Type) -> Type {
    let others = if let Type::Union(others) = &other { others.len() } else { 1 };
    if arms.len().saturating_mul(others) > MAX_ARMS * MAX_ARMS {
        // The product would be larger than any reader wants. Wider is allowed, narrower is not.
        return Type::Union(arms);
    }
    Type::union(arms.into_iter().map(|arm| intersection(arm, other.clone())))
}

/// Returns the object with the fields of both.
fn merge(mut left: Object, right: Object) -> Object {
    for field in right.fields {
        match left.fields.iter_mut().find(|known| known.key == field.key) {
            Some(known) => merge_field(known, field),
            None => left.fields.push(field),
        }
    }
    let added = right.required.into_iter().filter(|key| !left.required.contains(key)).collect::<Vec<_>>();
    left.required.extend(added);
    left.about = left.about.or(right.about);
    // With `allOf`, a closed schema would reject the fields of the other one, so that no value is valid. Open is wider, and
    // what the author meant.
    left.is_closed &= right.is_closed;
    left.rest = match (left.rest, right.rest) {
        (Some(left), Some(right)) => Some(intersection(left, right)),
        (left, right) => left.or(right),
    };
    left
}

fn merge_field(known: &mut Field, other: Field) {
    let kind = std::mem::replace(&mut known.kind, Type::Any);
    known.kind = intersection(kind, other.kind);
    if known.about.is_none() {
        known.about = other.about;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_union_has_no_arm_that_another_contains() {
        let text = Type::Literal(json!("a"));
        assert_eq!(
            Type::union([text.clone(), Type::Text, Type::Null]),
            Type::Union(vec![Type::Text, Type::Null])
        );
        assert_eq!(Type::union([Type::Integer, Type::Number]), Type::Number);
        assert_eq!(Type::union([Type::Literal(json!(1)), Type::Any]), Type::Any);
        assert_eq!(Type::union([text.clone(), Type::Never]), text);
        assert_eq!(Type::union([]), Type::Never);
    }

    #[test]
    fn common_values() {
        let a = Type::Literal(json!("a"));
        let b = Type::Literal(json!("b"));
        let either = Type::union([a.clone(), b.clone()]);
        assert_eq!(intersection(either.clone(), Type::Text), either);
        assert_eq!(intersection(either.clone(), b.clone()), b);
        assert_eq!(intersection(a, b), Type::Never);
        assert_eq!(intersection(Type::union([Type::Text, Type::Null]), Type::Null), Type::Null);
        assert_eq!(intersection(Type::Number, Type::Integer), Type::Integer);
        assert_eq!(intersection(Type::list(Type::Any), Type::list(Type::Text)), Type::list(Type::Text));
        let reference = Type::Reference("A".to_owned());
        assert_eq!(
            intersection(Type::list(reference.clone()), Type::list(Type::Text)),
            Type::list(reference.clone())
        );
        let nullable = Type::union([reference.clone(), Type::Null]);
        assert_eq!(intersection(nullable, Type::Object(Box::default())), reference);
    }

    #[test]
    fn an_object_has_the_fields_of_both() {
        let object = |key: &str, kind: Type| Object {
            fields: vec![Field { key: key.to_owned(), about: None, kind }],
            required: vec![key.to_owned()],
            ..Object::default()
        };
        let merged = merge(object("a", Type::Text), object("b", Type::Number));
        assert_eq!(merged.required, ["a", "b"]);
        let merged = merge(merged, object("b", Type::Integer));
        let kinds: Vec<_> = merged.fields.iter().map(|field| &field.kind).collect();
        assert_eq!(kinds, [&Type::Text, &Type::Integer]);
    }
}
