//! The values that two types have in common.

use super::model::{Field, Object, Type};

/// The maximum number of arms of a union that is combined with another.
const MAX_ARMS: usize = 32;

/// Returns a type that contains every value that both contain. A reference remains, and is not compared.
pub(super) fn meet(left: Type, right: Type) -> Type {
    match (left, right) {
        (Type::Any, other) | (other, Type::Any) => other,
        (left, right) if left == right => left,
        (Type::Union(arms), other) | (other, Type::Union(arms)) => meet_arms(arms, other),
        (Type::Object(left), Type::Object(right)) => Type::Object(Box::new(merge(*left, *right))),
        (Type::List(left), Type::List(right)) => Type::list(meet(*left, *right)),
        (Type::Tuple(items), Type::List(each)) | (Type::List(each), Type::Tuple(items)) => {
            Type::Tuple(items.into_iter().map(|item| meet(item, (*each).clone())).collect())
        }
        (Type::Tuple(left), Type::Tuple(right)) if left.len() == right.len() => {
            Type::Tuple(left.into_iter().zip(right).map(|(left, right)| meet(left, right)).collect())
        }
        (reference @ Type::Reference(_), _) | (_, reference @ Type::Reference(_)) => reference,
        (Type::Integer, Type::Number) | (Type::Number, Type::Integer) => Type::Integer,
        (literal @ Type::Literal(_), other) | (other, literal @ Type::Literal(_)) => {
            meet_literal(literal, &other)
        }
        // A constant object or array is not compared in detail.
        (Type::Map(_), object @ Type::Object(_)) | (object @ Type::Object(_), Type::Map(_)) => object,
        _ => Type::Never,
    }
}

fn meet_literal(literal: Type, other: &Type) -> Type {
    let is_within = Type::union([literal.clone(), other.clone()]) == *other;
    if is_within { literal } else { Type::Never }
}

fn meet_arms(arms: Vec<Type>, other: Type) -> Type {
    let others = if let Type::Union(others) = &other { others.len() } else { 1 };
    if arms.len().saturating_mul(others) > MAX_ARMS * MAX_ARMS {
        return Type::Union(arms);
    }
    Type::union(arms.into_iter().map(|arm| meet(arm, other.clone())))
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
    left.is_closed &= right.is_closed;
    left.rest = match (left.rest, right.rest) {
        (Some(left), Some(right)) => Some(meet(left, right)),
        (left, right) => left.or(right),
    };
    left
}

fn merge_field(known: &mut Field, other: Field) {
    let kind = std::mem::replace(&mut known.kind, Type::Any);
    known.kind = meet(kind, other.kind);
    if known.about.is_none() {
        known.about = other.about;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn common_values() {
        let (a, b) = (Type::Literal(json!("a")), Type::Literal(json!("b")));
        let either = Type::union([a.clone(), b.clone()]);
        assert_eq!(meet(either.clone(), Type::Text), either);
        assert_eq!(meet(either.clone(), b.clone()), b);
        assert_eq!(meet(a, b), Type::Never);
        assert_eq!(meet(Type::union([Type::Text, Type::Null]), Type::Null), Type::Null);
        assert_eq!(meet(Type::Number, Type::Integer), Type::Integer);
        assert_eq!(meet(Type::list(Type::Any), Type::list(Type::Text)), Type::list(Type::Text));
        let reference = Type::Reference("A".to_owned());
        assert_eq!(
            meet(Type::list(reference.clone()), Type::list(Type::Text)),
            Type::list(reference.clone())
        );
        let nullable = Type::union([reference.clone(), Type::Null]);
        assert_eq!(meet(nullable, Type::Object(Box::default())), reference);
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
