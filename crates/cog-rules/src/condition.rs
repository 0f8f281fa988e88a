//! Conditions: `$.meta.confidence >= 0.8 && !exists($.data.error)` (docs/spec/composition.md).
//!
//! A condition is parsed once, when the manifest is checked. It compares values, calculates with numbers and dates, and tests the
//! elements of lists; evaluating it is linear in what it reads.

mod evaluate;
mod failure;
mod functions;
mod parser;
mod real;
mod time;
mod tokens;
mod value;
mod values;

use std::{
    cmp::Ordering,
    fmt,
    ops::{Bound, Deref, Range},
};

use cog_json::Node;

pub(crate) use self::{
    evaluate::Evaluation,
    failure::{each_located, shortened},
    functions::Function,
};
pub use self::{
    evaluate::{Document, EvaluationError},
    failure::{FailedValue, Failure},
    values::{Cases, Decimal, KnownValues, Values},
};
use self::{real::Short, values::Interval};
use crate::{
    cursor::TextError,
    path::{ListPath, PathRoot, ValuePath},
};

/// A parsed condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    root: Expression,
}

impl Condition {
    /// Parses a condition of at most 4,096 bytes.
    ///
    /// # Errors
    /// The first error, at its range.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        Ok(Self { root: parser::parse(text)?, text: text.to_owned() })
    }

    /// Returns the text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the condition is true for a document, which its `$` is. Values of other types than expected compare as
    /// unequal. A condition that cannot be evaluated, because of a division by zero, is not true.
    pub fn is_true(&self, document: Node<'_>) -> bool {
        self.evaluate(Document::Envelope(document)).unwrap_or_default()
    }

    /// Returns whether the condition is true for a document.
    ///
    /// # Errors
    /// When it divides by zero, or reads too much.
    pub fn evaluate(&self, document: Document<'_>) -> Result<bool, EvaluationError> {
        Evaluation::new(document).test(&self.root, None)
    }

    /// Returns whether the condition is true for a document, and whether it read a null.
    pub(crate) fn evaluate_noting_null(
        &self,
        document: Document<'_>,
    ) -> (Result<bool, EvaluationError>, bool) {
        let evaluation = Evaluation::new(document);
        let result = evaluation.test(&self.root, None);
        (result, evaluation.has_null())
    }

    /// Returns why a condition is not true: what it reads, and the values.
    pub fn explain(&self, document: Document<'_>) -> Failure {
        failure::explain(self, document)
    }

    /// Returns the paths of the document that it reads, each once. `[*]` stands for elements.
    pub fn reads(&self) -> Vec<ListPath> {
        let mut paths: Vec<ListPath> = Vec::new();
        self.root.each_path(true, &mut |path: &ListPath| {
            if path.root == PathRoot::Document && !paths.contains(path) {
                paths.push(path.clone());
            }
        });
        paths
    }

    /// Returns the operands that are not literals, each once.
    pub fn operands(&self) -> Vec<&Operand> {
        let mut found = Vec::new();
        self.root.add_operands(&mut found);
        found
    }

    /// Returns a name of an operand by which equal ones are recognised.
    pub fn name_of(&self, operand: &Operand) -> String {
        match &operand.content {
            Content::Path(path) => path.to_string(),
            Content::Length(path) => format!("{path} length"),
            Content::Literal(_) => String::new(),
            Content::Computed(_) => self.text.get(operand.range.clone()).unwrap_or_default().to_owned(),
        }
    }

    /// Returns the parts.
    pub fn root(&self) -> &Expression {
        &self.root
    }
}

// Describes sets of values in messages.

/// The maximum number of strings that a message lists.
const MAX_LISTED: usize = 12;
/// The maximum number of characters of each.
const MAX_CHARS: usize = 40;

impl fmt::Display for Values {
    /// `'low' or 'high'`, `a number from 0 to 1 or null`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = self.strings();
        words.extend(self.numbers.intervals().iter().map(numbers));
        words.extend(self.names().map(str::to_owned));
        f.write_str(&words.join(" or "))
    }
}

impl Values {
    fn strings(&self) -> Vec<String> {
        let intervals = self.strings.intervals().iter();
        let listed: Option<Vec<String>> = intervals.map(quoted_point).collect();
        match listed.filter(|listed| listed.len() <= MAX_LISTED) {
            Some(listed) => listed,
            None => vec!["a string".to_owned()],
        }
    }
}

/// Returns the only string of an interval as a message shows it; none if it has others.
fn quoted_point(interval: &Interval<String>) -> Option<String> {
    match interval {
        (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(quoted(lower)),
        _ => None,
    }
}

/// Returns a string of a schema as a message shows it.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    format!("'{shown}'")
}

/// Returns the numbers of an interval: `1`, `a number from 0 to 1`.
fn numbers(interval: &Interval<Decimal>) -> String {
    match (end(&interval.0), end(&interval.1)) {
        (None, None) => "a number".to_owned(),
        (Some(lower), None) => format!("a number from {lower}"),
        (None, Some(upper)) => format!("a number up to {upper}"),
        (Some(lower), Some(upper)) if lower == upper => lower,
        (Some(lower), Some(upper)) => format!("a number from {lower} to {upper}"),
    }
}

fn end(bound: &Bound<Decimal>) -> Option<String> {
    match bound {
        Bound::Included(value) => Some(value.to_string()),
        Bound::Excluded(value) => Some(format!("{value} (excluded)")),
        Bound::Unbounded => None,
    }
}

// The parts of a condition.

/// A part of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// `a || b || c`
    Any(Vec<Expression>),
    /// `a && b && c`
    All(Vec<Expression>),
    /// `!a`
    Not(Box<Expression>),
    /// `exists($.x)`
    Exists(Operand),
    /// `$.x` alone: whether it is `true`.
    Truth(Operand),
    /// `a == b`
    Compare(Operand, Comparison, Operand),
    /// `all($.x, @ > 0)`
    Test(Box<Test>),
}

/// A function that is true or false.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The byte range in the condition.
    pub range: Range<usize>,
    /// What it tests.
    pub kind: TestKind,
    /// Where its result is kept, because it does not depend on the element for which it is evaluated.
    pub(crate) slot: Option<usize>,
}

/// What a function tests.
#[derive(Debug, Clone, PartialEq)]
pub enum TestKind {
    /// `all(LIST, CONDITION)`
    All(List, Expression),
    /// `any(LIST, CONDITION)`
    Any(List, Expression),
    /// `unique(LIST)`
    Unique(List),
    /// `sorted(LIST)`
    Sorted(List),
    /// `contains(LIST, VALUE)`
    Lists(List, Operand),
    /// `contains(VALUE, VALUE)`
    Contains(Operand, Operand),
    /// `starts(TEXT, PART)`
    Starts(Operand, Operand),
    /// `ends(TEXT, PART)`
    Ends(Operand, Operand),
    /// `close(A, B, TOLERANCE)`
    Close(Operand, Operand, Operand),
}

/// The values that a path selects.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// The byte range in the condition.
    pub range: Range<usize>,
    /// The path.
    pub path: ListPath,
}

/// A side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// The byte range in the condition.
    pub range: Range<usize>,
    /// The content.
    pub content: Content,
}

/// The content of an operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A string, a number, true, false or null.
    Literal(Literal),
    /// `$.x`: the value; an absent one compares as null.
    Path(ValuePath),
    /// `$.x.length`: the number of elements or characters.
    Length(ValuePath),
    /// `$.x + 1`, `sum($.x[*])`
    Computed(Box<Computed>),
}

/// A value that a condition states.
#[derive(Debug, Clone)]
pub struct Literal {
    value: cog_json::Value,
    /// A short number, read once.
    number: Option<Short>,
}

impl Literal {
    pub(crate) fn new(value: cog_json::Value) -> Self {
        let number = Short::read(value.node());
        Self { value, number }
    }

    /// Compares a value with it; none if that takes more than a look at short numbers or strings.
    fn compared_with(&self, left: Node<'_>, comparison: Comparison) -> Option<bool> {
        let order = match self.number {
            Some(number) => Short::read(left)?.compare(number),
            None => left.as_str()?.cmp(self.value.as_str()?),
        };
        Some(comparison.holds(order))
    }
}

impl Deref for Literal {
    type Target = cog_json::Value;

    fn deref(&self) -> &cog_json::Value {
        &self.value
    }
}

/// Written by hand: the number follows from the value.
impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// A value that is calculated.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    /// How.
    pub kind: ComputedKind,
    /// Where it is kept, because it does not depend on the element for which it is evaluated.
    pub(crate) slot: Option<usize>,
}

/// How a value is calculated.
#[derive(Debug, Clone, PartialEq)]
pub enum ComputedKind {
    /// `a + b - c`: each with whether it is subtracted.
    Sum(Vec<(bool, Operand)>),
    /// `a * b / c`: each with whether it divides.
    Product(Vec<(bool, Operand)>),
    /// `sum(LIST)`
    Total(List),
    /// `count(LIST)`, `count(LIST, CONDITION)`
    Count(List, Option<Expression>),
    /// `min(LIST)`, and with `true` `max(LIST)`.
    Extreme(bool, List),
    /// `min(a, b)`, and with `true` `max(a, b)`.
    ExtremeOf(bool, Vec<Operand>),
    /// `length(VALUE)`
    Length(Operand),
    /// `abs(NUMBER)`
    Abs(Operand),
    /// `date(TEXT)`
    Date(Operand),
    /// `duration(TEXT)`
    Duration(Operand),
}

impl Expression {
    /// Visits the paths; with `is_deep` also those in conditions about the elements of a list.
    pub(crate) fn each_path(&self, is_deep: bool, visit: &mut dyn FnMut(&ListPath)) {
        match self {
            Expression::Any(parts) | Expression::All(parts) => {
                parts.iter().for_each(|part| part.each_path(is_deep, visit));
            }
            Expression::Not(inner) => inner.each_path(is_deep, visit),
            Expression::Exists(operand) | Expression::Truth(operand) => operand.each_path(is_deep, visit),
            Expression::Compare(left, _, right) => {
                left.each_path(is_deep, visit);
                right.each_path(is_deep, visit);
            }
            Expression::Test(test) => test.kind.each_path(is_deep, visit),
        }
    }
}

impl Expression {
    /// Adds the operands that are not literals, each once. The arguments of functions are none.
    fn add_operands<'e>(&'e self, found: &mut Vec<&'e Operand>) {
        match self {
            Expression::Any(parts) | Expression::All(parts) => {
                parts.iter().for_each(|part| part.add_operands(found));
            }
            Expression::Not(inner) => inner.add_operands(found),
            Expression::Exists(operand) | Expression::Truth(operand) => operand.add_to(found),
            Expression::Compare(left, _, right) => {
                left.add_to(found);
                right.add_to(found);
            }
            Expression::Test(_) => {}
        }
    }
}

impl Operand {
    fn add_to<'e>(&'e self, found: &mut Vec<&'e Operand>) {
        let is_new = found.iter().all(|known| known.content != self.content);
        if is_new && !matches!(self.content, Content::Literal(_)) {
            found.push(self);
        }
    }
}

impl TestKind {
    fn each_path(&self, is_deep: bool, visit: &mut dyn FnMut(&ListPath)) {
        match self {
            TestKind::All(list, condition) | TestKind::Any(list, condition) => {
                visit(&list.path);
                if is_deep {
                    condition.each_path(is_deep, visit);
                }
            }
            TestKind::Unique(list) | TestKind::Sorted(list) => visit(&list.path),
            TestKind::Lists(list, operand) => {
                visit(&list.path);
                operand.each_path(is_deep, visit);
            }
            TestKind::Contains(left, right) | TestKind::Starts(left, right) | TestKind::Ends(left, right) => {
                left.each_path(is_deep, visit);
                right.each_path(is_deep, visit);
            }
            TestKind::Close(left, right, tolerance) => {
                [left, right, tolerance].into_iter().for_each(|operand| operand.each_path(is_deep, visit));
            }
        }
    }
}

impl Operand {
    /// Visits the paths; with `is_deep` also those in conditions about the elements of a list.
    pub(crate) fn each_path(&self, is_deep: bool, visit: &mut dyn FnMut(&ListPath)) {
        match &self.content {
            Content::Literal(_) => {}
            Content::Path(path) | Content::Length(path) => visit(&ListPath::from(path)),
            Content::Computed(computed) => match &computed.kind {
                ComputedKind::Sum(parts) | ComputedKind::Product(parts) => {
                    parts.iter().for_each(|(_, part)| part.each_path(is_deep, visit));
                }
                ComputedKind::Total(list) | ComputedKind::Extreme(_, list) => visit(&list.path),
                ComputedKind::Count(list, condition) => {
                    visit(&list.path);
                    condition
                        .iter()
                        .filter(|_| is_deep)
                        .for_each(|condition| condition.each_path(is_deep, visit));
                }
                ComputedKind::ExtremeOf(_, parts) => {
                    parts.iter().for_each(|part| part.each_path(is_deep, visit));
                }
                ComputedKind::Length(part)
                | ComputedKind::Abs(part)
                | ComputedKind::Date(part)
                | ComputedKind::Duration(part) => part.each_path(is_deep, visit),
            },
        }
    }
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Returns the comparison with its sides exchanged.
    pub const fn mirrored(self) -> Self {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            Comparison::Equal | Comparison::NotEqual => self,
        }
    }

    /// Returns whether it is true of two values in this order.
    const fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }

    /// Returns whether it compares the order.
    pub const fn is_ordered(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
