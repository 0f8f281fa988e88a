//! Evaluates a condition for a document.

use std::{
    cell::{Cell, RefCell},
    cmp::Ordering,
    collections::HashSet,
    ops::Range,
};

use cog_json::Node;
use foldhash::fast::RandomState;

use super::{
    Comparison, Computed, ComputedKind, Content, Expression, List, Operand, Test, TestKind,
    real::Real,
    time,
    value::{
        Compared, Value, ValueKey, better, calculated, compare, difference, is_equal, length,
        length_or_member, negated, over, plus, real, text, times,
    },
};
use crate::path::{self, PathRoot, PathStep};

/// What `$` is.
#[derive(Debug, Clone, Copy)]
pub enum Document<'a> {
    /// A value, such as the envelope of a result.
    Envelope(Node<'a>),
    /// An object with the input of a run, and data and meta of its answer, each of which may be missing.
    Answer {
        /// `$.input`
        input: Option<Node<'a>>,
        /// `$.data`
        data: Option<Node<'a>>,
        /// `$.meta`
        meta: Option<Node<'a>>,
    },
}

impl<'a> Document<'a> {
    /// Returns where a path continues after the root, and the rest of its steps.
    pub(crate) fn enter<'s>(
        self,
        steps: &'s [Option<PathStep>],
    ) -> Option<(Node<'a>, &'s [Option<PathStep>])> {
        match self {
            Document::Envelope(node) => Some((node, steps)),
            Document::Answer { .. } => match steps.split_first()? {
                (Some(PathStep::Key(key)), rest) => Some((self.part(key.as_str())?, rest)),
                _ => None,
            },
        }
    }

    fn find(self, steps: &[PathStep]) -> Option<Node<'a>> {
        match self {
            Document::Envelope(node) => path::follow(steps, node),
            Document::Answer { .. } => match steps.split_first()? {
                (PathStep::Key(key), rest) => path::follow(rest, self.part(key.as_str())?),
                (PathStep::Index(_), _) => None,
            },
        }
    }

    fn part(self, name: &str) -> Option<Node<'a>> {
        match (self, name) {
            (Document::Answer { input, .. }, "input") => input,
            (Document::Answer { data, .. }, "data") => data,
            (Document::Answer { meta, .. }, "meta") => meta,
            _ => None,
        }
    }
}

/// Why a condition cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A divisor is zero: its byte range in the condition.
    #[error("division by zero")]
    DivisionByZero(Range<usize>),
    /// It reads too many values, or too much text.
    #[error("it reads too much: the maximum is {MAX_WORK} values, or 16 bytes of text for each")]
    TooMuch,
}

/// The maximum number of values that are read, and of 16 bytes of searched text.
const MAX_WORK: u64 = 4_000_000;
/// The bytes of searched text that count as one value.
const TEXT_UNIT: usize = 16;

type Outcome<T> = Result<T, EvaluationError>;

/// The result of a part that does not depend on the element for which it is evaluated.
#[derive(Clone)]
enum Kept<'a> {
    Truth(bool),
    Value(Value<'a>),
}

/// The evaluation of one condition for one document.
pub(crate) struct Evaluation<'a> {
    document: Document<'a>,
    /// By slot. Most conditions keep nothing, so there is no place before the first result.
    kept: RefCell<Vec<Option<Kept<'a>>>>,
    /// The elements of lists in which values are looked up, by slot.
    sets: RefCell<Vec<Option<Set<'a>>>>,
    work: Cell<u64>,
    has_null: Cell<bool>,
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(document: Document<'a>) -> Self {
        Self {
            document,
            kept: RefCell::default(),
            sets: RefCell::default(),
            work: Cell::new(0),
            has_null: Cell::new(false),
        }
    }

    /// Returns whether a value was null that the answer may leave out instead.
    pub(crate) fn has_null(&self) -> bool {
        self.has_null.get()
    }

    /// Returns whether an expression is true; `item` is what `@` is.
    pub(crate) fn test(&self, expression: &'a Expression, item: Option<Node<'a>>) -> Outcome<bool> {
        match expression {
            Expression::Any(parts) => {
                for part in parts {
                    if self.test(part, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Expression::All(parts) => {
                for part in parts {
                    if !self.test(part, item)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Expression::Not(inner) => self.test(inner, item).map(|is_true| !is_true),
            Expression::Exists(operand) => Ok(!matches!(self.value(operand, item)?, Value::Absent)),
            Expression::Truth(operand) => {
                let value = self.value(operand, item)?;
                Ok(matches!(value, Value::Node(node) if node.as_bool() == Some(true)))
            }
            Expression::Compare(left, comparison, right) => {
                // Most conditions compare a value of the document with a literal. That needs no copies of values.
                if let (Content::Path(path), Content::Literal(literal)) = (&left.content, &right.content)
                    && let Some(node) = self.find(path.root(), path.steps(), item)
                    && let Some(is_true) = literal.compared_with(node, *comparison)
                {
                    return Ok(is_true);
                }
                Ok(compare(self.value(left, item)?, *comparison, self.value(right, item)?))
            }
            Expression::Test(test) => self.kept_test(test, item),
        }
    }

    fn kept_test(&self, test: &'a Test, item: Option<Node<'a>>) -> Outcome<bool> {
        let Some(slot) = test.slot.filter(|_| !matches!(test.kind, TestKind::Lists(..))) else {
            return self.function(test, item);
        };
        if let Some(Some(Kept::Truth(is_true))) = self.kept.borrow().get(slot) {
            return Ok(*is_true);
        }
        let is_true = self.function(test, item)?;
        self.keep(slot, Kept::Truth(is_true));
        Ok(is_true)
    }

    fn keep(&self, slot: usize, result: Kept<'a>) {
        put(&mut self.kept.borrow_mut(), slot, result);
    }

    fn function(&self, test: &'a Test, item: Option<Node<'a>>) -> Outcome<bool> {
        match &test.kind {
            TestKind::All(list, condition) => self.every(list, item, |node| self.test(condition, Some(node))),
            TestKind::Any(list, condition) => {
                let none = self.every(list, item, |node| Ok(!self.test(condition, Some(node))?))?;
                Ok(!none)
            }
            // Identifiers often ascend, and need not be collected then.
            TestKind::Unique(list) => Ok(self.ascends(list, Comparison::Less, item)? || {
                let mut seen = Set::default();
                self.every(list, item, |node| {
                    self.charge(8 * seen.others.len() as u64)?;
                    Ok(node.is_null() || seen.insert(node))
                })?
            }),
            TestKind::Sorted(list) => self.ascends(list, Comparison::LessOrEqual, item),
            TestKind::Lists(list, operand) => {
                let value = self.value(operand, item)?;
                self.lists(list, value, test.slot, item)
            }
            TestKind::Contains(whole, part) => {
                let whole = self.value(whole, item)?;
                let part = self.value(part, item)?;
                self.contains(whole, part)
            }
            TestKind::Starts(whole, part) => {
                self.compare_texts(whole, part, item, |whole, part| whole.starts_with(part))
            }
            TestKind::Ends(whole, part) => {
                self.compare_texts(whole, part, item, |whole, part| whole.ends_with(part))
            }
            TestKind::Close(left, right, tolerance) => {
                let distance = difference(self.value(left, item)?, self.value(right, item)?);
                let tolerance = self.value(tolerance, item)?;
                Ok(distance.is_some_and(|distance| compare(distance, Comparison::LessOrEqual, tolerance)))
            }
        }
    }

    /// Returns whether each value of a list stands in this order to the next one.
    fn ascends(&self, list: &'a List, order: Comparison, item: Option<Node<'a>>) -> Outcome<bool> {
        let mut last: Option<Compared<'a>> = None;
        self.every(list, item, |node| {
            if node.is_null() {
                return Ok(true);
            }
            let value = Compared::new(node);
            let is_before = |last: Compared<'a>| last.order(value).is_some_and(|found| order.holds(found));
            Ok(last.replace(value).is_none_or(is_before))
        })
    }

    fn compare_texts(
        &self,
        whole: &'a Operand,
        part: &'a Operand,
        item: Option<Node<'a>>,
        test: impl Fn(&str, &str) -> bool,
    ) -> Outcome<bool> {
        let whole = self.value(whole, item)?;
        let part = self.value(part, item)?;
        Ok(text(whole).zip(text(part)).is_some_and(|(whole, part)| test(whole, part)))
    }

    fn contains(&self, whole: Value<'a>, part: Value<'a>) -> Outcome<bool> {
        match whole {
            Value::Node(node) if node.is_array() => {
                self.charge(node.len() as u64)?;
                Ok(node.elements().any(|element| is_equal(Value::Node(element), part)))
            }
            whole => match text(whole).zip(text(part)) {
                Some((whole, part)) => {
                    self.charge((whole.len() / TEXT_UNIT) as u64)?;
                    Ok(whole.contains(part))
                }
                None => Ok(false),
            },
        }
    }

    /// Returns whether a list has a value. The elements of a list of the document are collected once.
    fn lists(
        &self,
        list: &'a List,
        value: Value<'a>,
        slot: Option<usize>,
        item: Option<Node<'a>>,
    ) -> Outcome<bool> {
        let Some(slot) = slot else {
            return self.every(list, item, |node| Ok(!is_equal(Value::Node(node), value))).map(|none| !none);
        };
        let is_known = matches!(self.sets.borrow().get(slot), Some(Some(_)));
        if !is_known {
            let mut set = Set::default();
            self.every(list, item, |node| {
                self.charge(8 * set.others.len() as u64)?;
                set.insert(node);
                Ok(true)
            })?;
            put(&mut self.sets.borrow_mut(), slot, set);
        }
        let sets = self.sets.borrow();
        let Some(Some(set)) = sets.get(slot) else { return Ok(false) };
        self.charge(8 * set.others.len() as u64)?;
        Ok(set.has(value))
    }

    /// Returns the value of an operand.
    pub(crate) fn value(&self, operand: &'a Operand, item: Option<Node<'a>>) -> Outcome<Value<'a>> {
        Ok(match &operand.content {
            Content::Literal(literal) => Value::Node(literal.node()),
            Content::Path(path) => {
                self.find(path.root(), path.steps(), item).map_or(Value::Absent, Value::Node)
            }
            Content::Length(path) => {
                self.find(path.root(), path.steps(), item).map_or(Value::Absent, length_or_member)
            }
            Content::Computed(computed) => return self.kept_value(computed, item),
        })
    }

    fn find(&self, root: PathRoot, steps: &[PathStep], item: Option<Node<'a>>) -> Option<Node<'a>> {
        let found = match root {
            PathRoot::Document => self.document.find(steps),
            PathRoot::Item => path::follow(steps, item?),
        };
        self.note(found?);
        found
    }

    fn note(&self, node: Node<'a>) {
        if node.is_null() {
            self.has_null.set(true);
        }
    }

    fn kept_value(&self, computed: &'a Computed, item: Option<Node<'a>>) -> Outcome<Value<'a>> {
        let Some(slot) = computed.slot else { return self.compute(&computed.kind, item) };
        if let Some(Some(Kept::Value(value))) = self.kept.borrow().get(slot) {
            return Ok(*value);
        }
        let value = self.compute(&computed.kind, item)?;
        self.keep(slot, Kept::Value(value));
        Ok(value)
    }

    fn compute(&self, kind: &'a ComputedKind, item: Option<Node<'a>>) -> Outcome<Value<'a>> {
        Ok(match kind {
            ComputedKind::Sum(parts) => {
                let mut sum: Option<Value<'a>> = None;
                for (is_subtracted, part) in parts {
                    let value = self.value(part, item)?;
                    let value = if *is_subtracted { negated(value) } else { value };
                    sum = Some(sum.map_or(value, |sum| plus(sum, value)));
                }
                sum.map_or(Value::Absent, calculated)
            }
            ComputedKind::Product(parts) => {
                let mut product: Option<Value<'a>> = None;
                for (divides, part) in parts {
                    let value = self.value(part, item)?;
                    product = Some(match product {
                        None => value,
                        Some(product) if *divides => over(product, value, &part.range)?,
                        Some(product) => times(product, value),
                    });
                }
                product.map_or(Value::Absent, calculated)
            }
            ComputedKind::Total(list) => {
                let mut total = Some(Real::count(0));
                self.every(list, item, |node| {
                    if !node.is_null() {
                        total = total.zip(real(Value::Node(node))).map(|(total, value)| total.plus(value));
                    }
                    Ok(total.is_some())
                })?;
                total.map_or(Value::Absent, Value::Real)
            }
            ComputedKind::Count(list, condition) => {
                let mut count = 0;
                self.every(list, item, |node| {
                    let counts = match condition {
                        Some(condition) => self.test(condition, Some(node))?,
                        None => true,
                    };
                    count += usize::from(counts);
                    Ok(true)
                })?;
                Value::Real(Real::count(count))
            }
            ComputedKind::Extreme(is_max, list) => {
                let wanted = if *is_max { Ordering::Greater } else { Ordering::Less };
                let mut best: Option<Compared<'a>> = None;
                let is_ordered = self.every(list, item, |node| {
                    if node.is_null() {
                        return Ok(true);
                    }
                    let value = Compared::new(node);
                    // The first value is compared with itself: it may have no order.
                    let order = value.order(best.unwrap_or(value));
                    if best.is_none() || order == Some(wanted) {
                        best = Some(value);
                    }
                    Ok(order.is_some())
                })?;
                best.filter(|_| is_ordered).map_or(Value::Absent, |best| Value::Node(best.node))
            }
            ComputedKind::ExtremeOf(is_max, parts) => {
                let mut best = None;
                for part in parts {
                    best = better(*is_max, best, self.value(part, item)?);
                    if best.is_none() {
                        return Ok(Value::Absent);
                    }
                }
                best.unwrap_or(Value::Absent)
            }
            ComputedKind::Length(part) => match self.value(part, item)? {
                Value::Node(node) => length(node),
                _ => Value::Absent,
            },
            ComputedKind::Abs(part) => match self.value(part, item)? {
                Value::Duration(length) => Value::Duration(length.abs()),
                value => real(value).map_or(Value::Absent, |number| Value::Real(number.abs())),
            },
            ComputedKind::Date(part) => {
                text(self.value(part, item)?).and_then(time::date).map_or(Value::Absent, Value::Date)
            }
            ComputedKind::Duration(part) => text(self.value(part, item)?)
                .and_then(|text| time::duration(text).ok())
                .map_or(Value::Absent, Value::Duration),
        })
    }

    /// Visits the values of a list while `visit` is true of them. Returns whether it was true of all.
    fn every(
        &self,
        list: &'a List,
        item: Option<Node<'a>>,
        mut visit: impl FnMut(Node<'a>) -> Outcome<bool>,
    ) -> Outcome<bool> {
        let path = &list.path;
        let entered = match path.root {
            PathRoot::Document => self.document.enter(&path.steps),
            PathRoot::Item => item.map(|item| (item, path.steps.as_slice())),
        };
        match entered {
            Some((node, steps)) => self.walk(steps, node, path.is_spread, &mut visit),
            None => Ok(true),
        }
    }

    // Generic, so that what is done with each value is compiled into the loop over them.
    fn walk<V: FnMut(Node<'a>) -> Outcome<bool>>(
        &self,
        steps: &'a [Option<PathStep>],
        node: Node<'a>,
        is_spread: bool,
        visit: &mut V,
    ) -> Outcome<bool> {
        let Some((step, rest)) = steps.split_first() else {
            return match is_spread && node.is_array() {
                true => self.children(&[], node, visit),
                false if is_spread && node.is_null() => Ok(true),
                false => {
                    self.charge(1)?;
                    self.note(node);
                    visit(node)
                }
            };
        };
        match step {
            Some(step) => match path::step(node, step) {
                Some(node) => self.walk(rest, node, is_spread, visit),
                None => Ok(true),
            },
            None => self.children(rest, node, visit),
        }
    }

    fn children<V: FnMut(Node<'a>) -> Outcome<bool>>(
        &self,
        rest: &'a [Option<PathStep>],
        node: Node<'a>,
        visit: &mut V,
    ) -> Outcome<bool> {
        let is_last = rest.iter().all(Option::is_some);
        let mut each = |child| match is_last {
            true => self.leaf(rest, child, visit),
            false => self.walk(rest, child, false, visit),
        };
        for child in node.elements() {
            if !each(child)? {
                return Ok(false);
            }
        }
        for (_, child) in node.members() {
            if !each(child)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Visits the value at steps of which none selects several. This is the innermost loop, so it calls no other walk.
    fn leaf<V: FnMut(Node<'a>) -> Outcome<bool>>(
        &self,
        steps: &'a [Option<PathStep>],
        node: Node<'a>,
        visit: &mut V,
    ) -> Outcome<bool> {
        let Some(node) = steps.iter().flatten().try_fold(node, path::step) else { return Ok(true) };
        self.charge(1)?;
        self.note(node);
        visit(node)
    }

    fn charge(&self, work: u64) -> Outcome<()> {
        self.work.set(self.work.get() + work);
        if self.work.get() > MAX_WORK { Err(EvaluationError::TooMuch) } else { Ok(()) }
    }
}

/// Puts a value into its slot.
fn put<T>(slots: &mut Vec<Option<T>>, slot: usize, value: T) {
    if slots.len() <= slot {
        slots.resize_with(slot + 1, || None);
    }
    if let Some(place) = slots.get_mut(slot) {
        *place = Some(value);
    }
}

/// Values that are looked up: strings, numbers and truths by their hash, others one by one.
#[derive(Default)]
struct Set<'a> {
    keys: HashSet<ValueKey<'a>, RandomState>,
    others: Vec<Node<'a>>,
}

impl<'a> Set<'a> {
    /// Adds a value. Returns whether it is new.
    fn insert(&mut self, node: Node<'a>) -> bool {
        match ValueKey::new(Value::Node(node)) {
            Some(key) => self.keys.insert(key),
            None => {
                let is_new = !self.others.contains(&node);
                self.others.push(node);
                is_new
            }
        }
    }

    fn has(&self, value: Value<'a>) -> bool {
        match ValueKey::new(value) {
            Some(key) => self.keys.contains(&key),
            None => self.others.iter().any(|node| is_equal(Value::Node(*node), value)),
        }
    }
}
