//! Compares a condition with the schemas of the values that it reads.

use cog_json::Kind;
use cog_module::Rule;
use cog_schema::{Types, nearest};

use super::Known;
use crate::{
    Condition, Finding,
    condition::{Comparison, Content, Expression, Operand},
    cursor::TextError,
};

/// Returns the parts of a condition that do not fit.
pub(super) fn check(pointer: &str, condition: &Condition, document: &Known<'_>) -> Vec<Finding> {
    let mut errors = Vec::new();
    visit(condition.root(), document, &mut errors);
    let pointer = format!("/composition{pointer}");
    let finding = |error| {
        Finding::invalid_text(
            Rule::CompositionCondition,
            pointer.clone(),
            "condition",
            condition.text(),
            error,
        )
    };
    errors.into_iter().map(finding).collect()
}

/// Visits the parts of a condition, whose nesting is limited.
fn visit(expression: &Expression, document: &Known<'_>, errors: &mut Vec<TextError>) {
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
    document: &Known<'_>,
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
fn unlisted(literal: &Operand, other: &Operand, document: &Known<'_>) -> Option<TextError> {
    let (Content::Literal(value), Content::Path(path)) = (&literal.content, &other.content) else {
        return None;
    };
    let text = value.as_str()?;
    let Ok(Known::Schema(shape)) = document.find(path) else { return None };
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
fn types(operand: &Operand, document: &Known<'_>) -> Result<Types, TextError> {
    let find = |path| {
        document.find(path).map_err(|absent| TextError {
            range: operand.range.clone(),
            message: absent.message,
            suggestion: absent.suggestion,
        })
    };
    match &operand.content {
        Content::Literal(value) => Ok(types_of(value.node().kind())),
        Content::Path(path) => find(path).map(|known| known.types()),
        Content::Length(path) => {
            let known = find(path)?;
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

/// Returns the types of a kind of values.
pub(super) const fn types_of(kind: Kind) -> Types {
    match kind {
        Kind::Null => Types::NULL,
        Kind::Bool => Types::BOOLEAN,
        Kind::Number => Types::NUMBER,
        Kind::String => Types::STRING,
        Kind::Array => Types::ARRAY,
        Kind::Object => Types::OBJECT,
    }
}
