//! Explains why a condition is not true: the paths that decide, and their values.

use std::{collections::HashMap, ops::ControlFlow};

use cog_json::{Kind, Node, Path, Value as Json};

use super::{
    Comparison, Condition, Content, Document, Evaluation, Expression, List, Operand, Test, TestKind,
    value::{Value, ValueKey, compare_nodes},
};
use crate::path::{ListPath, PathRoot, PathStep, element};

/// Why a condition is not true.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Failure {
    /// The paths that decide, from the document: `data.total`, `data.items[*].amount`, `data.items[3].price`.
    pub paths: Vec<String>,
    /// Single values at these paths; at most 20.
    pub values: Vec<FailedValue>,
    /// What the parts are: "`sum($.data.items[*].amount)` is 13, and `$.data.total` is 12".
    pub detail: Option<String>,
}

/// A value that a condition read.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedValue {
    /// Its path, from the document.
    pub path: String,
    /// The value, not an array or object; a string has at most 200 characters.
    pub value: Json,
}

const MAX_VALUES: usize = 20;
const MAX_PATHS: usize = 20;
/// The maximum number of characters of a string, and of a side of a comparison.
const MAX_CHARS: usize = 200;

pub(super) fn explain(condition: &Condition, document: Document<'_>) -> Failure {
    let mut explainer = Explainer {
        text: &condition.text,
        document,
        evaluation: Evaluation::new(document),
        failure: Failure::default(),
    };
    explainer.blame(&condition.root, None);
    explainer.failure
}

/// The element that `@` is, with its path.
type Item<'i, 'a> = Option<(&'i Path, Node<'a>)>;

struct Explainer<'a> {
    text: &'a str,
    document: Document<'a>,
    evaluation: Evaluation<'a>,
    failure: Failure,
}

impl<'a> Explainer<'a> {
    /// Adds what an expression reads that is not true.
    fn blame(&mut self, expression: &'a Expression, item: Item<'_, 'a>) {
        match expression {
            Expression::All(parts) => {
                let node = item.map(|(_, node)| node);
                let failed = parts.iter().find(|part| self.evaluation.test(part, node) != Ok(true));
                failed.into_iter().for_each(|part| self.blame(part, item));
            }
            Expression::Any(parts) => parts.iter().for_each(|part| self.blame(part, item)),
            Expression::Compare(left, _, right) => {
                self.detail([left, right], item);
                self.collect(expression, item);
            }
            Expression::Test(test) => self.blame_test(test, expression, item),
            Expression::Not(_) | Expression::Exists(_) | Expression::Truth(_) => {
                self.collect(expression, item);
            }
        }
    }

    fn blame_test(&mut self, test: &'a Test, expression: &'a Expression, item: Item<'_, 'a>) {
        match &test.kind {
            TestKind::All(list, condition) => {
                let mut failed = None;
                let evaluation = &self.evaluation;
                each(self.document, &list.path, item, &mut |path, node| {
                    if evaluation.test(condition, Some(node)) == Ok(true) {
                        return ControlFlow::Continue(());
                    }
                    failed = Some((path.clone(), node));
                    ControlFlow::Break(())
                });
                match failed {
                    Some((path, node)) => {
                        self.blame(condition, Some((&path, node)));
                        if self.failure.paths.is_empty() {
                            self.add_path(path.to_string());
                        }
                    }
                    None => self.collect(expression, item),
                }
            }
            TestKind::Unique(list) => self.pair(list, expression, item, &mut Repeats(HashMap::new())),
            TestKind::Sorted(list) => self.pair(list, expression, item, &mut Disorder(None)),
            _ => self.collect(expression, item),
        }
    }

    /// Adds the two elements of a list that make a test of pairs false.
    fn pair(
        &mut self,
        list: &'a List,
        expression: &'a Expression,
        item: Item<'_, 'a>,
        pairs: &mut dyn Pairs<'a>,
    ) {
        let mut found = None;
        each(self.document, &list.path, item, &mut |path, node| match pairs.conflict(path, node) {
            Some(earlier) => {
                found = Some((earlier, path.to_string(), node));
                ControlFlow::Break(())
            }
            None => ControlFlow::Continue(()),
        });
        let Some((earlier, path, node)) = found else { return self.collect(expression, item) };
        self.add_path(earlier);
        self.add_value(path.clone(), node);
        self.add_path(path);
    }

    /// Adds the paths of an expression and their values.
    fn collect(&mut self, expression: &'a Expression, item: Item<'_, 'a>) {
        expression.each_path(false, &mut |path| self.record(path, item));
    }

    fn record(&mut self, path: &ListPath, item: Item<'_, 'a>) {
        let written = match (path.root, item) {
            (PathRoot::Item, None) => return,
            (PathRoot::Item, Some((at, _))) => join(at.to_string(), &path.steps),
            (PathRoot::Document, _) => join(String::new(), &path.steps),
        };
        self.add_path(written);
        let mut found = Vec::new();
        each(self.document, path, item, &mut |path, node| {
            found.push((path.to_string(), node));
            if found.len() < MAX_VALUES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        found.into_iter().for_each(|(path, node)| self.add_value(path, node));
    }

    fn add_path(&mut self, path: String) {
        if self.failure.paths.len() < MAX_PATHS && !self.failure.paths.contains(&path) {
            self.failure.paths.push(path);
        }
    }

    fn add_value(&mut self, path: String, node: Node<'_>) {
        let value = match node.kind() {
            Kind::Array | Kind::Object => return,
            Kind::String => Json::from(serde_json::Value::from(shortened(node.as_str().unwrap_or_default()))),
            _ => node.to_value(),
        };
        let known = &mut self.failure.values;
        if known.len() < MAX_VALUES && known.iter().all(|known| known.path != path) {
            known.push(FailedValue { path, value });
        }
    }

    /// Says what the sides of a comparison are.
    fn detail(&mut self, sides: [&'a Operand; 2], item: Item<'_, 'a>) {
        if self.failure.detail.is_some() {
            return;
        }
        let node = item.map(|(_, node)| node);
        let named = sides.into_iter().filter(|side| !matches!(side.content, Content::Literal(_)));
        let said = named.filter_map(|side| {
            let value = self.evaluation.value(side, node).ok()?;
            let text = self.text.get(side.range.clone())?.trim();
            Some(format!("`{text}` is {}", shortened(&value.to_string())))
        });
        let said: Vec<String> = said.collect();
        self.failure.detail = (!said.is_empty()).then(|| said.join(", and "));
    }
}

/// A test of an element with the elements before it.
trait Pairs<'a> {
    /// Returns the path of the earlier element with which this one conflicts.
    fn conflict(&mut self, path: &Path, node: Node<'a>) -> Option<String>;
}

struct Repeats<'a>(HashMap<ValueKey<'a>, String>);

impl<'a> Pairs<'a> for Repeats<'a> {
    fn conflict(&mut self, path: &Path, node: Node<'a>) -> Option<String> {
        let key = ValueKey::new(Value::Node(node)).filter(|key| *key != ValueKey::Null)?;
        match self.0.get(&key) {
            Some(earlier) => Some(earlier.clone()),
            None => {
                self.0.insert(key, path.to_string());
                None
            }
        }
    }
}

struct Disorder<'a>(Option<(String, Node<'a>)>);

impl<'a> Pairs<'a> for Disorder<'a> {
    fn conflict(&mut self, path: &Path, node: Node<'a>) -> Option<String> {
        if node.is_null() {
            return None;
        }
        let last = self.0.replace((path.to_string(), node));
        last.filter(|(_, last)| !compare_nodes(*last, Comparison::LessOrEqual, node)).map(|(path, _)| path)
    }
}

pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Appends steps to a path as it is written in violations.
fn join(mut written: String, steps: &[Option<PathStep>]) -> String {
    for step in steps {
        match step {
            Some(PathStep::Key(key)) => {
                let mut one = Path::root();
                one.push_key(key.as_str());
                let key = one.to_string();
                if !written.is_empty() && !key.starts_with('[') {
                    written.push('.');
                }
                written.push_str(&key);
            }
            Some(PathStep::Index(index)) => written.push_str(&format!("[{index}]")),
            None => written.push_str("[*]"),
        }
    }
    written
}

// Visits the values of a path with their own paths.

type Visit<'v, 'a> = &'v mut dyn FnMut(&Path, Node<'a>) -> ControlFlow<()>;

/// Visits the values that a path of the document selects, with their paths, while `visit` is true.
pub(crate) fn each_located<'a>(
    document: Document<'a>,
    path: &ListPath,
    visit: &mut dyn FnMut(&Path, Node<'a>) -> bool,
) {
    each(document, path, None, &mut |path, node| match visit(path, node) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
}

/// Visits the values that a path selects, until `visit` breaks.
fn each<'a>(document: Document<'a>, path: &ListPath, item: Item<'_, 'a>, visit: Visit<'_, 'a>) {
    let (entered, mut at) = match path.root {
        PathRoot::Document => {
            let entered = document.enter(&path.steps);
            let skipped = entered.map_or(0, |(_, rest)| path.steps.len() - rest.len());
            let mut at = Path::root();
            path.steps.iter().take(skipped).flatten().for_each(|step| push(&mut at, step));
            (entered, at)
        }
        PathRoot::Item => (
            item.map(|(_, node)| (node, path.steps.as_slice())),
            item.map(|(at, _)| at.clone()).unwrap_or_default(),
        ),
    };
    if let Some((node, steps)) = entered {
        let _ = walk(steps, node, &mut at, path.is_spread, visit);
    }
}

fn push(path: &mut Path, step: &PathStep) {
    match step {
        PathStep::Key(key) => path.push_key(key.as_str()),
        PathStep::Index(index) => path.push_index(usize::try_from(*index).unwrap_or_default()),
    }
}

fn walk<'a>(
    steps: &[Option<PathStep>],
    node: Node<'a>,
    at: &mut Path,
    is_spread: bool,
    visit: Visit<'_, 'a>,
) -> ControlFlow<()> {
    let Some((step, rest)) = steps.split_first() else {
        return match is_spread && node.is_array() {
            true => children(&[], node, at, visit),
            false if is_spread && node.is_null() => ControlFlow::Continue(()),
            false => visit(at, node),
        };
    };
    let next = match step {
        None => return children(rest, node, at, visit),
        Some(PathStep::Key(key)) => {
            at.push_key(key.as_str());
            node.get_key(key)
        }
        Some(PathStep::Index(index)) => {
            let from_end =
                node.len().saturating_sub(usize::try_from(index.unsigned_abs()).unwrap_or_default());
            at.push_index(usize::try_from(*index).unwrap_or(from_end));
            element(node, *index)
        }
    };
    let flow = next.map_or(ControlFlow::Continue(()), |next| walk(rest, next, at, is_spread, visit));
    at.pop();
    flow
}

fn children<'a>(
    rest: &[Option<PathStep>],
    node: Node<'a>,
    at: &mut Path,
    visit: Visit<'_, 'a>,
) -> ControlFlow<()> {
    for (index, child) in node.elements().enumerate() {
        at.push_index(index);
        let flow = walk(rest, child, at, false, visit);
        at.pop();
        flow?;
    }
    for (key, child) in node.members() {
        at.push_key(key);
        let flow = walk(rest, child, at, false, visit);
        at.pop();
        flow?;
    }
    ControlFlow::Continue(())
}
