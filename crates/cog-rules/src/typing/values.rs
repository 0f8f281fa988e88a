//! The values that a path can find, as far as the schemas guarantee them.

use std::ops::Bound;

use cog_schema::{CertainShape, Types};
use serde_json::Value as Json;

use crate::{
    condition::{ComputedKind, Content, Decimal, List, Values},
    path::{PathRoot, PathStep},
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
        Content::Computed(computed) => match &computed.kind {
            ComputedKind::Count(list, None) => counts(document, list),
            ComputedKind::Count(_, Some(_)) => any_count(),
            ComputedKind::Length(part) => match &part.content {
                Content::Path(path) if path.root() == PathRoot::Document => {
                    find(document, path.steps(), true).and(&any_count().or(Values::ABSENT))
                }
                _ => any_count().or(Values::ABSENT),
            },
            _ => Values::all(),
        },
    }
}

fn any_count() -> Values {
    Values::from_types(Types::INTEGER).and(&Values::between(included(0), Bound::Unbounded)).counted()
}

/// Returns the numbers of elements that a list can have.
fn counts(document: &StaticType<'_>, list: &List) -> Values {
    let steps = match list.path.steps.split_last() {
        _ if list.path.root != PathRoot::Document => return any_count(),
        Some((None, steps)) if !list.path.is_spread => steps,
        _ if list.path.is_spread => &list.path.steps,
        _ => return any_count(),
    };
    let steps: Option<Vec<PathStep>> = steps.iter().cloned().collect();
    match steps.map(|steps| find(document, &steps, true)) {
        // The length of a string is no number of elements; a string counts as one.
        Some(lengths) if !list.path.is_spread => lengths.counted().and(&any_count()),
        _ => any_count(),
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
