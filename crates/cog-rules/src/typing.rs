//! Compares a condition with the schemas of the values that it reads.

mod values;

use cog_json::Kind;
use cog_schema::{Types, nearest};

pub use self::values::values;
use crate::{
    condition::{Comparison, ComputedKind, Condition, Content, Expression, List, Operand, Test, TestKind},
    cursor::TextError,
    path::{ListPath, PathRoot, PathStep, ValuePath},
    static_type::{AbsentMember, StaticType},
};

/// Returns the parts of a condition that do not fit the schemas; `document` is what is known about `$`.
pub fn check(condition: &Condition, document: &StaticType<'_>) -> Vec<TextError> {
    let mut errors = Vec::new();
    Scope { document, item: None }.visit(condition.root(), &mut errors);
    errors
}

/// Returns the types of the values that a path of the document selects. A path without `[*]` may lead to a text or to a list of
/// them.
pub(crate) fn text_types(path: &ListPath, document: &StaticType<'_>) -> Result<Types, AbsentMember> {
    let scope = Scope { document, item: None };
    let known = scope.follow_steps(path)?;
    let elements = known.elements().filter(|_| path.is_spread).map(|elements| elements.types());
    Ok(elements.map_or(known.types(), |types| types.or(known.types())))
}

/// What is known where an expression stands.
struct Scope<'s, 'c> {
    document: &'s StaticType<'c>,
    /// What is known about `@`.
    item: Option<StaticType<'c>>,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Json(Types),
    Date,
    Duration,
}

const NUMBER: Sort = Sort::Json(Types::NUMBER);

impl Sort {
    fn is_number(self) -> bool {
        matches!(self, Sort::Json(types) if types.meet(Types::NUMBER))
    }

    fn name(self) -> String {
        match self {
            Sort::Json(types) => types.to_string(),
            Sort::Date => "a date".to_owned(),
            Sort::Duration => "a duration".to_owned(),
        }
    }
}

impl<'c> Scope<'_, 'c> {
    /// Visits the parts of an expression, whose nesting is limited.
    fn visit(&self, expression: &Expression, errors: &mut Vec<TextError>) {
        match expression {
            Expression::Any(parts) | Expression::All(parts) => {
                parts.iter().for_each(|part| self.visit(part, errors));
            }
            Expression::Not(inner) => self.visit(inner, errors),
            Expression::Exists(operand) => {
                self.sort(operand, errors);
            }
            Expression::Truth(operand) => {
                if let Some(sort) = self.sort(operand, errors)
                    && !matches!(sort, Sort::Json(types) if types.meet(Types::BOOLEAN))
                {
                    let message = format!("the value is {}, so it is never true", sort.name());
                    errors.push(
                        TextError::new(operand.range.clone(), message).suggest("Compare it with a value."),
                    );
                }
            }
            Expression::Compare(left, comparison, right) => self.compare(left, *comparison, right, errors),
            Expression::Test(test) => self.test(test, errors),
        }
    }

    fn test(&self, test: &Test, errors: &mut Vec<TextError>) {
        match &test.kind {
            TestKind::All(list, condition) | TestKind::Any(list, condition) => {
                self.elements(list, condition, errors);
            }
            TestKind::Unique(list) => drop(self.list(list, errors)),
            TestKind::Sorted(list) => self.list_of(list, Types::NUMBER.or(Types::STRING), "sorted", errors),
            TestKind::Lists(list, operand) => {
                let element = self.list(list, errors);
                let sort = self.sort(operand, errors);
                if let (Some(element), Some(Sort::Json(types))) = (element, sort)
                    && let Some((message, help)) = mismatch(element.types(), Comparison::Equal, types)
                {
                    errors.push(TextError::new(operand.range.clone(), message).suggest(help));
                }
            }
            TestKind::Contains(whole, part) => {
                let sort = self.needs(whole, Types::STRING.or(Types::ARRAY), "a string or a list", errors);
                let is_text = matches!(sort, Some(Sort::Json(types)) if !types.meet(Types::ARRAY));
                if is_text {
                    self.needs(part, Types::STRING, "a string", errors);
                } else {
                    self.sort(part, errors);
                }
            }
            TestKind::Starts(whole, part) | TestKind::Ends(whole, part) => {
                self.needs(whole, Types::STRING, "a string", errors);
                self.needs(part, Types::STRING, "a string", errors);
            }
            TestKind::Close(left, right, tolerance) => self.close([left, right, tolerance], errors),
        }
    }

    /// Checks `close(a, b, tolerance)`: three numbers, or two dates or durations with a duration.
    fn close(&self, parts: [&Operand; 3], errors: &mut Vec<TextError>) {
        let before = errors.len();
        let [left, right, tolerance] = parts.map(|part| self.sort(part, errors));
        let (Some(left), Some(right), Some(tolerance)) = (left, right, tolerance) else { return };
        let fits = match (left, right) {
            (Sort::Date, Sort::Date) | (Sort::Duration, Sort::Duration) => tolerance == Sort::Duration,
            (left, right) => left.is_number() && right.is_number() && tolerance.is_number(),
        };
        if !fits && errors.len() == before {
            let [first, .., last] = parts;
            let message = format!("{}, {} and {} do not fit", left.name(), right.name(), tolerance.name());
            errors.push(
                TextError::new(first.range.start..last.range.end, message)
                    .suggest("Write three numbers, or two dates and a duration."),
            );
        }
    }

    fn compare(&self, left: &Operand, comparison: Comparison, right: &Operand, errors: &mut Vec<TextError>) {
        let (Some(left_sort), Some(right_sort)) = (self.sort(left, errors), self.sort(right, errors)) else {
            return;
        };
        let range = left.range.start..right.range.end;
        match (left_sort, right_sort) {
            (Sort::Json(left_types), Sort::Json(right_types)) => {
                if let Some((message, help)) = mismatch(left_types, comparison, right_types) {
                    errors.push(TextError::new(range, message).suggest(help));
                } else {
                    errors.extend(self.unlisted(left, right));
                    errors.extend(self.unlisted(right, left));
                }
            }
            (left, right) if left == right => {}
            // `date($.x) == null` is true for a text that is no date.
            (Sort::Json(Types::NULL), _) | (_, Sort::Json(Types::NULL)) if !comparison.is_ordered() => {}
            (left, right) => {
                let message = format!("{} is never compared with {}", left.name(), right.name());
                let has_text = [left, right]
                    .iter()
                    .any(|sort| matches!(sort, Sort::Json(types) if types.meet(Types::STRING)));
                let help = match (has_text, [left, right].contains(&Sort::Date)) {
                    (true, true) => "Write `date(…)` around the string.",
                    (true, false) => "Write `duration(…)` around the string.",
                    (false, _) => "Compare two dates, two durations or two numbers.",
                };
                errors.push(TextError::new(range, message).suggest(help));
            }
        }
    }

    /// Returns the error for a literal that is not a value of the enum with which it is compared.
    fn unlisted(&self, literal: &Operand, other: &Operand) -> Option<TextError> {
        let (Content::Literal(value), Content::Path(path)) = (&literal.content, &other.content) else {
            return None;
        };
        let text = value.as_str()?;
        let Ok(StaticType::Schema(shape)) = self.find(path) else { return None };
        let listed = shape.listed_values()?;
        let names: Vec<&str> = listed.iter().filter_map(|value| value.as_str()).collect();
        if names.len() != listed.len() || names.contains(&text) {
            return None;
        }
        let error = TextError::new(literal.range.clone(), format!("the schema does not list `{text}`"));
        Some(match nearest(text, names.iter().copied()) {
            Some(near) => error.suggest(format!("Did you mean `{near}`?")),
            None => error.suggest(format!(
                "It lists: {}.",
                names.iter().take(12).copied().collect::<Vec<_>>().join(", ")
            )),
        })
    }

    /// Returns the type of an operand that must have one of these.
    fn needs(
        &self,
        operand: &Operand,
        types: Types,
        what: &str,
        errors: &mut Vec<TextError>,
    ) -> Option<Sort> {
        let sort = self.sort(operand, errors)?;
        if matches!(sort, Sort::Json(found) if found.meet(types)) {
            return Some(sort);
        }
        let message = format!("the value is {}; expected {what}", sort.name());
        errors.push(TextError::new(operand.range.clone(), message));
        None
    }

    /// Returns the type of an operand; none if an error was added.
    fn sort(&self, operand: &Operand, errors: &mut Vec<TextError>) -> Option<Sort> {
        match &operand.content {
            Content::Literal(value) => Some(Sort::Json(types_of(value.node().kind()))),
            Content::Path(path) => Some(Sort::Json(self.known_at(path, operand, errors)?.types())),
            Content::Length(path) => {
                let known = self.known_at(path, operand, errors)?;
                if known.types().meet(Types::ARRAY.or(Types::STRING)) || known.member("length").is_some() {
                    let member = known.member("length").map(|member| member.types());
                    return Some(Sort::Json(member.map_or(Types::INTEGER, |types| types.or(Types::INTEGER))));
                }
                let message = format!("the value is {}, which has no length", known.types());
                errors.push(
                    TextError::new(operand.range.clone(), message)
                        .suggest("Only arrays and strings have a length."),
                );
                None
            }
            Content::Computed(computed) => self.computed(&computed.kind, operand, errors),
        }
    }

    fn computed(&self, kind: &ComputedKind, operand: &Operand, errors: &mut Vec<TextError>) -> Option<Sort> {
        match kind {
            ComputedKind::Sum(parts) => self.fold(parts, operand, errors, added),
            ComputedKind::Product(parts) => self.fold(parts, operand, errors, multiplied),
            ComputedKind::Total(list) => {
                self.list_of(list, Types::NUMBER, "added", errors);
                Some(NUMBER)
            }
            ComputedKind::Count(list, condition) => {
                match condition {
                    Some(condition) => self.elements(list, condition, errors),
                    None => drop(self.list(list, errors)),
                }
                Some(Sort::Json(Types::INTEGER))
            }
            ComputedKind::Extreme(_, list) => {
                let ordered = Types::NUMBER.or(Types::STRING);
                let element = self.list(list, errors)?;
                self.element_of(&element, list, ordered, "compared", errors);
                Some(Sort::Json(element.types().and(ordered)))
            }
            ComputedKind::ExtremeOf(_, parts) => {
                let sorts: Vec<Sort> = parts.iter().filter_map(|part| self.sort(part, errors)).collect();
                let (first, rest) = sorts.split_first()?;
                let fits = |sort: &Sort| *sort == *first || (sort.is_number() && first.is_number());
                if let Some(other) = rest.iter().find(|sort| !fits(sort)) {
                    let message = format!("{} and {} have no order", first.name(), other.name());
                    errors.push(TextError::new(operand.range.clone(), message));
                }
                Some(*first)
            }
            ComputedKind::Length(part) => {
                let types = Types::STRING.or(Types::ARRAY).or(Types::OBJECT);
                self.needs(part, types, "a string, a list or an object", errors)?;
                Some(Sort::Json(Types::INTEGER))
            }
            ComputedKind::Abs(part) => match self.sort(part, errors)? {
                Sort::Duration => Some(Sort::Duration),
                sort if sort.is_number() => Some(NUMBER),
                sort => {
                    let message = format!("the value is {}; expected a number", sort.name());
                    errors.push(TextError::new(part.range.clone(), message));
                    None
                }
            },
            ComputedKind::Date(part) => {
                self.needs(part, Types::STRING, "a string with a date", errors).map(|_| Sort::Date)
            }
            ComputedKind::Duration(part) => {
                self.needs(part, Types::STRING, "a string with a duration", errors).map(|_| Sort::Duration)
            }
        }
    }

    /// Returns the type of a chain of operators.
    fn fold(
        &self,
        parts: &[(bool, Operand)],
        operand: &Operand,
        errors: &mut Vec<TextError>,
        join: fn(Sort, bool, Sort) -> Option<Sort>,
    ) -> Option<Sort> {
        let sorts: Option<Vec<(bool, Sort)>> =
            parts.iter().map(|(is_inverse, part)| Some((*is_inverse, self.sort(part, errors)?))).collect();
        let mut sum: Option<Sort> = None;
        for (is_inverse, sort) in sorts? {
            let joined = match sum {
                Some(sum) => join(sum, is_inverse, sort),
                None if is_inverse && sort == Sort::Date => None,
                None => Some(sort).filter(|sort| sort.is_number() || !matches!(sort, Sort::Json(_))),
            };
            if joined.is_none() {
                let message = match sum {
                    Some(sum) => format!("cannot calculate with {} and {}", sum.name(), sort.name()),
                    None => format!("cannot calculate with {}", sort.name()),
                };
                errors.push(
                    TextError::new(operand.range.clone(), message).suggest(
                        "Calculate with numbers, dates (`date(…)`) and durations (`duration('P1D')`).",
                    ),
                );
            }
            sum = Some(joined?);
        }
        sum
    }

    /// Checks a condition about the elements of a list.
    fn elements(&self, list: &List, condition: &Expression, errors: &mut Vec<TextError>) {
        if let Some(element) = self.list(list, errors) {
            Scope { document: self.document, item: Some(element) }.visit(condition, errors);
        }
    }

    fn list_of(&self, list: &List, types: Types, what: &str, errors: &mut Vec<TextError>) {
        if let Some(element) = self.list(list, errors) {
            self.element_of(&element, list, types, what, errors);
        }
    }

    fn element_of(
        &self,
        element: &StaticType<'c>,
        list: &List,
        types: Types,
        what: &str,
        errors: &mut Vec<TextError>,
    ) {
        if !element.types().meet(types) {
            let message = format!("the elements are {}, which cannot be {what}", element.types());
            errors.push(TextError::new(list.range.clone(), message).suggest("Select a member: `[*].name`."));
        }
    }

    /// Returns what is known about the elements of a list; none if an error was added.
    fn list(&self, list: &List, errors: &mut Vec<TextError>) -> Option<StaticType<'c>> {
        match self.follow(list) {
            Ok(element) => Some(element),
            Err(absent) => {
                errors.push(TextError {
                    range: list.range.clone(),
                    message: absent.message,
                    suggestion: absent.suggestion,
                });
                None
            }
        }
    }

    fn follow(&self, list: &List) -> Result<StaticType<'c>, AbsentMember> {
        let known = self.follow_steps(&list.path)?;
        if list.path.is_spread { known.elements_or_absent() } else { Ok(known) }
    }

    fn follow_steps(&self, path: &ListPath) -> Result<StaticType<'c>, AbsentMember> {
        let root = self.root(path.root);
        let mut known = root.clone();
        for step in &path.steps {
            known = match step {
                Some(PathStep::Key(key)) => known.member_or_absent(key.as_str(), &root)?,
                Some(PathStep::Index(_)) => known.elements_or_absent()?,
                None if known.types().meet(Types::OBJECT) => known.elements().unwrap_or(StaticType::Any),
                None => known.elements_or_absent()?,
            };
        }
        Ok(known)
    }

    fn root(&self, root: PathRoot) -> StaticType<'c> {
        match root {
            PathRoot::Document => self.document.clone(),
            PathRoot::Item => self.item.clone().unwrap_or(StaticType::Any),
        }
    }

    fn find(&self, path: &ValuePath) -> Result<StaticType<'c>, AbsentMember> {
        self.root(path.root()).find(path)
    }

    fn known_at(
        &self,
        path: &ValuePath,
        operand: &Operand,
        errors: &mut Vec<TextError>,
    ) -> Option<StaticType<'c>> {
        match self.find(path) {
            Ok(known) => Some(known),
            Err(absent) => {
                errors.push(TextError {
                    range: operand.range.clone(),
                    message: absent.message,
                    suggestion: absent.suggestion,
                });
                None
            }
        }
    }
}

/// Returns the type of a sum or a difference.
fn added(left: Sort, is_subtracted: bool, right: Sort) -> Option<Sort> {
    match (left, right) {
        (Sort::Date, Sort::Date) => is_subtracted.then_some(Sort::Duration),
        (Sort::Date, Sort::Duration) => Some(Sort::Date),
        (Sort::Duration, Sort::Date) => (!is_subtracted).then_some(Sort::Date),
        (Sort::Duration, Sort::Duration) => Some(Sort::Duration),
        (left, right) => (left.is_number() && right.is_number()).then_some(NUMBER),
    }
}

/// Returns the type of a product or a quotient.
fn multiplied(left: Sort, divides: bool, right: Sort) -> Option<Sort> {
    match (left, right) {
        (Sort::Duration, Sort::Duration) => divides.then_some(NUMBER),
        (Sort::Duration, number) => number.is_number().then_some(Sort::Duration),
        (number, Sort::Duration) => (number.is_number() && !divides).then_some(Sort::Duration),
        (left, right) => (left.is_number() && right.is_number()).then_some(NUMBER),
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
