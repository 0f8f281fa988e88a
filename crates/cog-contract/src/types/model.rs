//! The types of a module, independent of the language that they are printed in.

use serde_json::{Number, Value};

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
    /// One text, number or boolean.
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
        let is_list = |kind: &Type| matches!(kind, Type::List(_) | Type::Tuple(_));
        match self {
            Self::Union(arms) => arms.iter().any(|arm| arm.concerns(other)),
            Self::List(_) | Self::Tuple(_) => is_list(other) || matches!(other, Self::Reference(_)),
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
    let (float, limit) = (number.as_f64()?, 1_i64 << 53);
    let is_exact = float.fract() == 0.0 && float.abs() <= limit as f64;
    is_exact.then(|| Value::from(float as i64))
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
}
