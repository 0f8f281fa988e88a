//! Paths to one value, the singular queries of RFC 9535, and paths to several.

use std::fmt;

use cog_json::{Key, Node};

use crate::cursor::{Cursor, TextError};

/// The maximum number of steps of a path.
const MAX_STEPS: usize = 32;

/// A path from the root `$` to at most one value, such as `$.data.issues[0]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValuePath {
    root: PathRoot,
    steps: Vec<PathStep>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// The member of an object.
    Key(Key),
    /// The element of an array; a negative index counts from the end.
    Index(i64),
}

impl ValuePath {
    /// Reads a path, if `$` is next. Names after a dot may contain hyphens, as the names of modules do.
    ///
    /// # Errors
    /// When it is not valid, or selects several values.
    pub fn read(cursor: &mut Cursor<'_>) -> Option<Result<Self, TextError>> {
        let start = cursor.at();
        cursor.take("$").then(|| match read_steps(cursor, PathRoot::Document)? {
            AnyPath::Value(path) => Ok(path),
            AnyPath::List(_) => Err(several(cursor, start)),
        })
    }

    /// Reads a complete text as a path; none if it is another kind of JSONPath.
    pub fn parse(text: &str) -> Option<Self> {
        let mut cursor = Cursor::new(text.trim());
        let path = Self::read(&mut cursor)?.ok()?;
        cursor.is_at_end().then_some(path)
    }

    /// Returns where it starts.
    pub const fn root(&self) -> PathRoot {
        self.root
    }

    /// Returns the steps.
    pub fn steps(&self) -> &[PathStep] {
        &self.steps
    }

    /// Removes the last step if it is this name.
    pub fn strip_last(&mut self, name: &str) -> bool {
        let is_last = matches!(self.steps.last(), Some(PathStep::Key(key)) if key.as_str() == name);
        if is_last {
            self.steps.pop();
        }
        is_last
    }

    /// Returns the value in a document, or below the element that `@` is.
    pub fn find<'n>(&self, root: Node<'n>) -> Option<Node<'n>> {
        follow(&self.steps, root)
    }
}

/// Follows steps from a value.
pub(crate) fn follow<'n>(steps: &[PathStep], from: Node<'n>) -> Option<Node<'n>> {
    steps.iter().try_fold(from, step)
}

/// Follows one step.
#[inline]
pub(crate) fn step<'n>(from: Node<'n>, step: &PathStep) -> Option<Node<'n>> {
    match step {
        PathStep::Key(key) => from.get_key(key),
        PathStep::Index(index) => element(from, *index),
    }
}

/// Where a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathRoot {
    /// `$`: the document.
    #[default]
    Document,
    /// `@`: the element of a list for which a condition is tested.
    Item,
}

/// A path to several values, such as `$.data.items[*].price`, or to one array, whose elements are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPath {
    /// Where it starts.
    pub root: PathRoot,
    /// The steps; one that is none selects all elements or members.
    pub steps: Vec<Option<PathStep>>,
    /// Whether it was written without `[*]`, so that the elements of its value are meant.
    pub is_spread: bool,
}

impl From<&ValuePath> for ListPath {
    fn from(path: &ValuePath) -> Self {
        Self { root: path.root, steps: path.steps.iter().cloned().map(Some).collect(), is_spread: true }
    }
}

/// A path to one value or to several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnyPath {
    Value(ValuePath),
    List(ListPath),
}

/// The maximum number of `[*]` in a path.
const MAX_WIDE: usize = 4;

impl AnyPath {
    /// Reads a path, if `$` or `@` is next.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Option<Result<Self, TextError>> {
        let root = match cursor.peek()? {
            '$' => PathRoot::Document,
            '@' => PathRoot::Item,
            _ => return None,
        };
        cursor.skip(1);
        Some(read_steps(cursor, root))
    }
}

fn read_steps(cursor: &mut Cursor<'_>, root: PathRoot) -> Result<AnyPath, TextError> {
    let mut steps: Vec<Option<PathStep>> = Vec::new();
    loop {
        let start = cursor.at();
        let step = match cursor.peek() {
            Some('.' | '[') if all(cursor) => None,
            Some('.') => Some(dotted(cursor)?),
            Some('[') => Some(bracketed(cursor)?),
            _ => break,
        };
        steps.push(step);
        if steps.len() > MAX_STEPS {
            let message = format!("the path has more than {MAX_STEPS} steps");
            return Err(TextError::new(cursor.since(start), message));
        }
        if steps.iter().filter(|step| step.is_none()).count() > MAX_WIDE {
            let message = format!("the path has more than {MAX_WIDE} `[*]`");
            return Err(TextError::new(cursor.since(start), message));
        }
    }
    match steps.iter().cloned().collect::<Option<Vec<PathStep>>>() {
        Some(steps) => Ok(AnyPath::Value(ValuePath { root, steps })),
        None => Ok(AnyPath::List(ListPath { root, steps, is_spread: false })),
    }
}

/// Reads `.*` or `[*]`, if one is next.
fn all(cursor: &mut Cursor<'_>) -> bool {
    let mut ahead = cursor.clone();
    let is_all = if ahead.take("[") {
        ahead.skip_space();
        let is_star = ahead.take("*");
        ahead.skip_space();
        is_star && ahead.take("]")
    } else {
        ahead.take(".*")
    };
    if is_all {
        *cursor = ahead;
    }
    is_all
}

/// Returns the element of an array; a negative index counts from the end.
pub(crate) fn element(node: Node<'_>, index: i64) -> Option<Node<'_>> {
    if !node.is_array() {
        return None;
    }
    match usize::try_from(index) {
        Ok(index) => node.at(index),
        Err(_) => node.at(node.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?),
    }
}

fn dotted(cursor: &mut Cursor<'_>) -> Result<PathStep, TextError> {
    let start = cursor.at();
    cursor.skip(1);
    if matches!(cursor.peek(), Some('.' | '*')) {
        cursor.skip(1);
        return Err(several(cursor, start));
    }
    let name = cursor.take_while(|c| is_name(c) || c == '-');
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        let error = TextError::new(start..cursor.at().max(start + 1), "a name is missing after the dot");
        return Err(error.suggest("Write `$.name`, or `$['other name']`."));
    }
    Ok(PathStep::Key(Key::new(name)))
}

fn bracketed(cursor: &mut Cursor<'_>) -> Result<PathStep, TextError> {
    let start = cursor.at();
    cursor.skip(1);
    cursor.skip_space();
    let step = if let Some(string) = cursor.string() {
        PathStep::Key(Key::new(&string?))
    } else if let Some(digits) = cursor.integer() {
        let index =
            digits.parse().map_err(|_| TextError::new(cursor.since(start), "the index is too large"))?;
        PathStep::Index(index)
    } else if matches!(cursor.peek(), Some('*' | '?' | ':')) {
        return Err(several(cursor, start));
    } else {
        let error = TextError::new(cursor.next_range(), "expected an index or a name in quotes");
        return Err(error.suggest("Write `[0]` or `['name']`."));
    };
    cursor.skip_space();
    if matches!(cursor.peek(), Some(':' | ',')) {
        return Err(several(cursor, start));
    }
    if !cursor.take("]") {
        return Err(TextError::new(cursor.next_range(), "expected `]`"));
    }
    Ok(step)
}

fn several(cursor: &Cursor<'_>, start: usize) -> TextError {
    TextError::new(cursor.since(start), "the path selects several values")
        .suggest("Write names, indices and `[*]`, such as `$.data.issues[0]`.")
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

impl fmt::Display for PathRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PathRoot::Document => "$",
            PathRoot::Item => "@",
        })
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)?;
        self.steps.iter().try_for_each(|step| step.fmt(f))
    }
}

impl fmt::Display for ListPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)?;
        self.steps.iter().try_for_each(|step| match step {
            Some(step) => step.fmt(f),
            None => f.write_str("[*]"),
        })
    }
}

impl fmt::Display for PathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathStep::Key(key) if key.as_str().chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                write!(f, ".{}", key.as_str())
            }
            PathStep::Key(key) => write!(f, "['{}']", key.as_str().escape_default()),
            PathStep::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests;
