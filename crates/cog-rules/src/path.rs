//! Paths to one value: the singular queries of RFC 9535.

use std::fmt;

use cog_json::{Key, Node};

use crate::cursor::{Cursor, TextError};

/// The maximum number of steps of a path.
const MAX_STEPS: usize = 32;

/// A path from the root `$` to at most one value, such as `$.data.issues[0]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValuePath {
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
        cursor.take("$").then(|| Self::read_steps(cursor))
    }

    /// Reads a complete text as a path; none if it is another kind of JSONPath.
    pub fn parse(text: &str) -> Option<Self> {
        let mut cursor = Cursor::new(text.trim());
        let path = Self::read(&mut cursor)?.ok()?;
        cursor.is_at_end().then_some(path)
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

    /// Returns the value in a document.
    pub fn find<'n>(&self, root: Node<'n>) -> Option<Node<'n>> {
        self.steps.iter().try_fold(root, |node, step| match step {
            PathStep::Key(key) => node.get_key(key),
            PathStep::Index(index) => element(node, *index),
        })
    }

    fn read_steps(cursor: &mut Cursor<'_>) -> Result<Self, TextError> {
        let mut steps = Vec::new();
        loop {
            let start = cursor.at();
            let step = match cursor.peek() {
                Some('.') => dotted(cursor)?,
                Some('[') => bracketed(cursor)?,
                _ => return Ok(Self { steps }),
            };
            steps.push(step);
            if steps.len() > MAX_STEPS {
                let message = format!("the path has more than {MAX_STEPS} steps");
                return Err(TextError::new(cursor.since(start), message));
            }
        }
    }
}

fn element(node: Node<'_>, index: i64) -> Option<Node<'_>> {
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
        .suggest("A condition compares single values: name each member, such as `$.data.issues[0]`.")
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        self.steps.iter().try_for_each(|step| match step {
            PathStep::Key(key) if key.as_str().chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                write!(f, ".{}", key.as_str())
            }
            PathStep::Key(key) => write!(f, "['{}']", key.as_str().escape_default()),
            PathStep::Index(index) => write!(f, "[{index}]"),
        })
    }
}

#[cfg(test)]
mod tests;
