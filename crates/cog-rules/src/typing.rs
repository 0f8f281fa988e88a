//! The values that a path can find, as far as the schemas guarantee them.

use std::ops::Bound;

use cog_json::Kind;
use cog_schema::{CertainShape, Types, nearest};
use serde_json::Value as Json;

use crate::{
    condition::{Comparison, Condition, Content, Decimal, Expression, Operand, Values},
    cursor::TextError,
    path::{PathStep, ValuePath},
    static_type::StaticType,
};

/// The maximum depth of alternatives in alternatives that are read.
const MAX_DEPTH: usize = 4;
/// The maximum number of alternatives that are read for one value. Those of a longer list can be anything.
const MAX_READ: usize = 256;

/// Returns the values that an operand of a condition can have.
pub fn values(document: &StaticType<'_>, operand: &Content) -> Values {
    match operand {
        Content::Path(path) => find(document, path.steps(), false),
        Content::Length(path) => find(document, path.steps(), true),
        Content::Literal(_) => Values::all(),
    }
}

/// Returns the values at the end of a path, or their lengths.
fn find(known: &StaticType<'_>, path: &[PathStep], is_length: bool) -> Values {
    let is_here = path.is_empty() && !is_length;
    match known {
        StaticType::Types(types) if is_here => Values::from_types(*types),
        StaticType::True if is_here => Values::truth(),
        StaticType::Confidence if is_here => {
            Values::from_types(Types::NUMBER).and(&Values::between(included(0), included(1)))
        }
        StaticType::Schema(shape) => of_path(&shape.certain(), path, is_length),
        StaticType::Object(members) => match path.split_first() {
            Some((PathStep::Key(key), rest)) => {
                let member = members.iter().find(|(name, _)| name == key.as_str());
                member.map_or_else(Values::all, |(_, known)| find(known, rest, is_length))
            }
            None if !is_length => Values::from_types(Types::OBJECT),
            _ => Values::all(),
        },
        StaticType::Either(all) => {
            let values = all.iter().map(|one| find(one, path, is_length));
            values.reduce(Values::or).unwrap_or_else(Values::all)
        }
        StaticType::Layers(layers) => of_layers(layers, path, is_length),
        StaticType::Maybe(inner) => {
            let null = if is_here { Values::from_types(Types::NULL) } else { Values::ABSENT };
            find(inner, path, is_length).or(null)
        }
        StaticType::Any
        | StaticType::Types(_)
        | StaticType::True
        | StaticType::Confidence
        | StaticType::List(_) => Values::all(),
    }
}

/// Returns the values in `meta`. The runtime writes those that the last layer knows, except the confidence, after the first
/// layer, the module's schema, was checked.
fn of_layers(layers: &[StaticType<'_>], path: &[PathStep], is_length: bool) -> Values {
    let Some((last, first)) = layers.split_last() else { return Values::all() };
    let known = find(last, path, is_length);
    let is_written = match path.first() {
        Some(PathStep::Key(key)) => key.as_str() != "confidence" && last.member(key.as_str()).is_some(),
        _ => true,
    };
    if is_written {
        return known;
    }
    first.iter().fold(known, |values, layer| values.and(&find(layer, path, is_length)))
}

fn of_path(shape: &CertainShape<'_>, path: &[PathStep], is_length: bool) -> Values {
    let Some((step, rest)) = path.split_first() else {
        let mut left = MAX_READ;
        return if is_length { lengths(shape) } else { of_shape(shape, 0, &mut left) };
    };
    let PathStep::Key(key) = step else { return Values::all() };
    if !shape.types().meet(Types::OBJECT) {
        return Values::ABSENT;
    }
    let values = of_path(&shape.member(key.as_str()), rest, is_length);
    let is_certain = shape.types() == Types::OBJECT && shape.requires(key.as_str());
    if is_certain { values } else { values.or(Values::ABSENT) }
}

/// Returns the values of a shape; `left` is how many alternatives may still be read.
fn of_shape(shape: &CertainShape<'_>, depth: usize, left: &mut usize) -> Values {
    let values = shape.schemas().fold(Values::from_types(shape.types()), |values, schema| {
        values.and(&listed(schema)).and(&bounded(schema, "minimum", "maximum")).and(&exclusive(schema))
    });
    if depth == MAX_DEPTH {
        return values;
    }
    shape.alternatives().iter().fold(values, |values, alternatives| {
        // Unread alternatives only make the set larger, and a larger set reports nothing that is not certain.
        let Some(rest) = left.checked_sub(alternatives.len()) else { return values };
        *left = rest;
        let either = alternatives.iter().map(|one| of_shape(one, depth + 1, left)).reduce(Values::or);
        either.map_or_else(|| values.clone(), |either| values.and(&either))
    })
}

/// Returns the values of `enum` and `const`.
fn listed(schema: &Json) -> Values {
    let list = schema.get("enum").and_then(Json::as_array).map(|list| Values::listed(list));
    let single = schema.get("const").map(|value| Values::listed(std::slice::from_ref(value)));
    list.into_iter().chain(single).fold(Values::all(), |values, one| values.and(&one))
}

/// Returns the values between the limits in two keywords.
fn bounded(schema: &Json, min: &str, max: &str) -> Values {
    Values::between(
        limit(schema, min).map_or(Bound::Unbounded, Bound::Included),
        limit(schema, max).map_or(Bound::Unbounded, Bound::Included),
    )
}

fn exclusive(schema: &Json) -> Values {
    Values::between(
        limit(schema, "exclusiveMinimum").map_or(Bound::Unbounded, Bound::Excluded),
        limit(schema, "exclusiveMaximum").map_or(Bound::Unbounded, Bound::Excluded),
    )
}

fn limit(schema: &Json, keyword: &str) -> Option<Decimal> {
    schema.get(keyword).and_then(Decimal::read)
}

/// Returns the lengths of the values. That of an object is any of its members.
fn lengths(shape: &CertainShape<'_>) -> Values {
    let types = shape.types();
    if types.meet(Types::OBJECT) {
        return Values::all();
    }
    let integers = Values::from_types(Types::INTEGER).and(&Values::between(included(0), Bound::Unbounded));
    let measured = [(Types::ARRAY, "minItems", "maxItems"), (Types::STRING, "minLength", "maxLength")];
    let measured = measured.into_iter().filter(|(measured, ..)| types.meet(*measured));
    let lengths = measured.map(|(_, min, max)| {
        shape.schemas().fold(integers.clone(), |lengths, schema| lengths.and(&bounded(schema, min, max)))
    });
    let is_certain = types.and(Types::ARRAY.or(Types::STRING)) == types;
    let other = (!is_certain).then_some(Values::ABSENT);
    lengths.chain(other).reduce(Values::or).unwrap_or(Values::ABSENT)
}

fn included(number: u32) -> Bound<Decimal> {
    Bound::Included(Decimal::from(number))
}

// Compares a condition with the schemas of the values that it reads.

/// Returns the parts of a condition that do not fit.
pub fn check(condition: &Condition, document: &StaticType<'_>) -> Vec<TextError> {
    let mut errors = Vec::new();
    visit(condition.root(), document, &mut errors);
    errors
}

/// Visits the parts of a condition, whose nesting is limited.
fn visit(expression: &Expression, document: &StaticType<'_>, errors: &mut Vec<TextError>) {
    match expression {
        Expression::Any(parts) | Expression::All(parts) => {
            parts.iter().for_each(|part| visit(part, document, errors));
        }
        Expression::Not(inner) => visit(inner, document, errors),
        Expression::Exists(operand) => errors.extend(types(operand, document).err()),
        Expression::Truth(operand) => match types(operand, document) {
            Ok(types) if !types.meet(Types::BOOLEAN) => {
                let message = format!("the value is {types}, so it is never true");
                errors
                    .push(TextError::new(operand.range.clone(), message).suggest("Compare it with a value."));
            }
            Ok(_) => {}
            Err(error) => errors.push(error),
        },
        Expression::Compare(left, comparison, right) => compare(left, *comparison, right, document, errors),
    }
}

fn compare(
    left: &Operand,
    comparison: Comparison,
    right: &Operand,
    document: &StaticType<'_>,
    errors: &mut Vec<TextError>,
) {
    match (types(left, document), types(right, document)) {
        (Ok(left_types), Ok(right_types)) => {
            if let Some((message, help)) = mismatch(left_types, comparison, right_types) {
                let range = left.range.start..right.range.end;
                errors.push(TextError::new(range, message).suggest(help));
            } else {
                errors.extend(unlisted(left, right, document));
                errors.extend(unlisted(right, left, document));
            }
        }
        (left, right) => errors.extend(left.err().into_iter().chain(right.err())),
    }
}

/// Returns why two values can never be compared, and what to write. Every value can be compared with null, which represents an absent one.
fn mismatch(left: Types, comparison: Comparison, right: Types) -> Option<(String, &'static str)> {
    let common = left.and(right);
    if comparison.is_ordered() {
        let has_order = common.meet(Types::NUMBER) || common.meet(Types::STRING);
        let both = left.meet(Types::NUMBER) && right.meet(Types::NUMBER);
        let message = format!("{left} and {right} have no order");
        return (!has_order && !both).then_some((message, "Compare two numbers or two strings."));
    }
    let is_null = left == Types::NULL || right == Types::NULL;
    let numbers = left.meet(Types::NUMBER) && right.meet(Types::NUMBER);
    let never = !is_null && !numbers && common == Types::default();
    never.then(|| (format!("{left} never equals {right}"), "Compare two values of the same type."))
}

/// Returns the error for a literal that is not a value of the enum with which it is compared.
fn unlisted(literal: &Operand, other: &Operand, document: &StaticType<'_>) -> Option<TextError> {
    let (Content::Literal(value), Content::Path(path)) = (&literal.content, &other.content) else {
        return None;
    };
    let text = value.as_str()?;
    let Ok(StaticType::Schema(shape)) = document.find(path) else { return None };
    let listed = shape.listed_values()?;
    let names: Vec<&str> = listed.iter().filter_map(|value| value.as_str()).collect();
    if names.len() != listed.len() || names.contains(&text) {
        return None;
    }
    let error = TextError::new(literal.range.clone(), format!("the schema does not list `{text}`"));
    Some(match nearest(text, names.iter().copied()) {
        Some(near) => error.suggest(format!("Did you mean `{near}`?")),
        None => error
            .suggest(format!("It lists: {}.", names.iter().take(12).copied().collect::<Vec<_>>().join(", "))),
    })
}

/// Returns the types of an operand.
fn types(operand: &Operand, document: &StaticType<'_>) -> Result<Types, TextError> {
    match &operand.content {
        Content::Literal(value) => Ok(types_of(value.node().kind())),
        Content::Path(path) => known_at(path, operand, document).map(|known| known.types()),
        Content::Length(path) => {
            let known = known_at(path, operand, document)?;
            if known.types().meet(Types::ARRAY.or(Types::STRING)) || known.member("length").is_some() {
                return Ok(known
                    .member("length")
                    .map_or(Types::INTEGER, |member| member.types().or(Types::INTEGER)));
            }
            let message = format!("the value is {}, which has no length", known.types());
            Err(TextError::new(operand.range.clone(), message)
                .suggest("Only arrays and strings have a length."))
        }
    }
}

fn known_at<'c>(
    path: &ValuePath,
    operand: &Operand,
    document: &StaticType<'c>,
) -> Result<StaticType<'c>, TextError> {
    document.find(path).map_err(|absent| TextError {
        range: operand.range.clone(),
        message: absent.message,
        suggestion: absent.suggestion,
    })
}

/// Returns the types of a kind of values.
pub const fn types_of(kind: Kind) -> Types {
    match kind {
        Kind::Null => Types::NULL,
        Kind::Bool => Types::BOOLEAN,
        Kind::Number => Types::NUMBER,
        Kind::String => Types::STRING,
        Kind::Array => Types::ARRAY,
        Kind::Object => Types::OBJECT,
    }
}
