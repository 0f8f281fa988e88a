//! JSONPath (RFC 9535): the paths of mappings, with limits.

use std::{cell::OnceCell, ops::Range};

use cog_json::{Limits, Value};
use cog_rules::{Cursor, PathStep, TextError, ValuePath};
use serde_json_path::JsonPath as Query;
use thiserror::Error;

/// The maximum size of the values that a path selects, as JSON: 8 MB.
const MAX_RESULT: usize = 8 << 20;

/// A parsed path of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JsonPath {
    /// A path to at most one value, which is read in place.
    One(ValuePath),
    /// A path that selects a list of values.
    Many(Box<Query>, WildPath),
}

/// What a step selects cannot be passed on (E1005).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// The values are larger than this limit.
    #[error("the selected values exceed {0} bytes")]
    TooLarge(usize),
    /// `each` selects a list with so many elements.
    #[error("`each` selects {0} elements; the maximum is {MAX_ELEMENTS}")]
    TooMany(usize),
    /// `each` selects a value of this type.
    #[error("`each` selects {0}, not a list")]
    NotAList(&'static str),
}

/// The maximum number of elements for which a step runs.
pub(crate) const MAX_ELEMENTS: usize = 10_000;

/// The values of one path are too large.
const TOO_LARGE: PathError = PathError::TooLarge(MAX_RESULT);

/// A document from which paths select values.
pub(crate) struct Document<'v> {
    value: &'v Value,
    /// The same document for paths to several values, whose library reads another tree. Most mappings need no copy.
    copy: OnceCell<serde_json::Value>,
}

impl<'v> Document<'v> {
    pub(crate) const fn new(value: &'v Value) -> Self {
        Self { value, copy: OnceCell::new() }
    }
}

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// When it is not valid, or exceeds a limit that bounds the time to evaluate it.
    pub(crate) fn parse(text: &str) -> Result<Self, TextError> {
        check(text)?;
        if let Some(path) = ValuePath::parse(text) {
            return Ok(JsonPath::One(path));
        }
        match Query::parse(text.trim()) {
            Ok(query) => Ok(JsonPath::Many(Box::new(query), WildPath::read(text))),
            Err(error) => Err(explain(text, &error)),
        }
    }

    /// Returns the value that it selects; a list if it can select several, none if the only value is absent.
    ///
    /// # Errors
    /// When the values are too large.
    pub(crate) fn select(&self, document: &Document<'_>) -> Result<Option<Value>, PathError> {
        let Document { value, copy } = document;
        match self {
            JsonPath::One(path) => Ok(path.find(value.node()).map(|node| value.child(node))),
            JsonPath::Many(query, _) => many(query, value, copy.get_or_init(|| value.to_serde())).map(Some),
        }
    }

    /// Returns the name of the member of the document that it reads, if it names one.
    pub(crate) fn first_key(&self) -> Option<&str> {
        match self {
            JsonPath::One(path) => match path.steps().first()? {
                PathStep::Key(key) => Some(key.as_str()),
                PathStep::Index(_) => None,
            },
            JsonPath::Many(_, path) => match path.steps.first()? {
                WildStep::Key(key) => Some(key),
                WildStep::Index | WildStep::All => None,
            },
        }
    }
}

/// Returns the values that a query selects. The library reads a copy, whose long numbers are rounded: the values come from the
/// document.
fn many(query: &Query, document: &Value, copy: &serde_json::Value) -> Result<Value, PathError> {
    let mut text = String::from("[");
    for location in query.query_located(copy).locations() {
        if let Some(selected) = document.pointer(&location.to_json_pointer()) {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&selected.to_string());
        }
        // The values are copied one by one: a path can select one value many times.
        if text.len() > MAX_RESULT {
            return Err(TOO_LARGE);
        }
    }
    text.push(']');
    Value::parse_within(text.as_bytes(), Limits::unbounded()).map_err(|_| TOO_LARGE)
}

/// Returns the error of the library at its position.
fn explain(text: &str, error: &serde_json_path::ParseError) -> TextError {
    let start = text.len() - text.trim_start().len();
    let at = text.floor_char_boundary((start + error.position()).min(text.len()));
    let end = at + text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    let found = TextError::new(at..end, "not a valid JSONPath");
    if text.trim().starts_with('$') {
        found.suggest("Write a path such as `$.data.issues[*].id` (RFC 9535).")
    } else {
        found.suggest(format!("Start with `$`: `$.{}`.", text.trim().chars().take(40).collect::<String>()))
    }
}

// The part of a path that can be compared with a schema: members, elements and `[*]`.

/// A step that can be compared with a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WildStep {
    Key(String),
    Index,
    /// All elements or members.
    All,
}

/// The beginning of a path, up to the first selector that a schema cannot decide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WildPath {
    pub(crate) steps: Vec<WildStep>,
    /// Whether it is the complete path.
    pub(crate) is_complete: bool,
}

impl WildPath {
    fn read(text: &str) -> Self {
        let mut cursor = Cursor::new(text.trim());
        let mut path = WildPath::default();
        cursor.take("$");
        while let Some(step) = step(&mut cursor) {
            path.steps.push(step);
        }
        path.is_complete = cursor.is_at_end();
        path
    }
}

/// Reads a step; none, without moving, if a schema cannot decide it.
fn step(cursor: &mut Cursor<'_>) -> Option<WildStep> {
    let mut ahead = cursor.clone();
    let step = if ahead.take("[") {
        ahead.skip_space();
        let step = selector(&mut ahead)?;
        ahead.skip_space();
        ahead.take("]").then_some(step)?
    } else {
        ahead.take(".").then_some(())?;
        if ahead.take("*") { WildStep::All } else { name(&mut ahead)? }
    };
    *cursor = ahead;
    Some(step)
}

fn selector(cursor: &mut Cursor<'_>) -> Option<WildStep> {
    if cursor.take("*") {
        return Some(WildStep::All);
    }
    match cursor.string() {
        Some(key) => key.ok().map(WildStep::Key),
        None => cursor.integer().map(|_| WildStep::Index),
    }
}

fn name(cursor: &mut Cursor<'_>) -> Option<WildStep> {
    let name = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    (!name.is_empty()).then(|| WildStep::Key(name.to_owned()))
}

// Limits on the text of a path, so that the number of selected values grows linearly with the document.
//
// A path visits every value of a document at most once for each way to write its selectors: `..` occurs once, a segment
// lists few selectors, and filters compare single values.

/// The maximum length of a path, in bytes.
const MAX_LENGTH: usize = 1024;
/// The maximum number of segments that select several values.
const MAX_WIDE: usize = 8;
/// The maximum product of the numbers of selectors in brackets.
const MAX_SELECTORS: usize = 16;

/// What a path contains that multiplies the selected values.
struct Counts {
    descents: usize,
    /// The segments that select several values.
    wide: usize,
    /// The product of the numbers of selectors of all brackets that were closed.
    selectors: usize,
    /// The selectors of the open bracket, and whether one of them selects several values.
    listed: usize,
    is_wide: bool,
    /// The nesting of brackets and parentheses, and the nesting at which a filter started.
    depth: usize,
    filter: Option<usize>,
}

/// Checks a path against the limits.
fn check(text: &str) -> Result<(), TextError> {
    if text.len() > MAX_LENGTH {
        let message = format!("the path has {} bytes; the maximum is {MAX_LENGTH}", text.len());
        return Err(TextError::new(0..0, message).suggest("Select less in one path."));
    }
    let mut cursor = Cursor::new(text);
    let mut counts =
        Counts { descents: 0, wide: 0, selectors: 1, listed: 1, is_wide: false, depth: 0, filter: None };
    while !cursor.is_at_end() {
        counts.next(&mut cursor)?;
    }
    Ok(())
}

/// Reads the name of a function with a regular expression.
fn function(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    let name = ["match", "search"].into_iter().find(|name| cursor.rest().starts_with(name))?;
    let is_call = cursor.rest().get(name.len()..)?.trim_start().starts_with('(');
    is_call.then(|| cursor.skip(name.len())).map(|()| name)
}

impl Counts {
    /// Counts what is next: a string, `..`, a function or a character.
    fn next(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        let start = cursor.at();
        if let Some(string) = cursor.string() {
            return string.map(drop);
        }
        if cursor.take("..") {
            return self.descent(cursor.since(start));
        }
        if let Some(name) = function(cursor) {
            let message = format!("`{name}` is not supported: each value would compile a regular expression");
            return Err(TextError::new(cursor.since(start), message)
                .suggest("Compare with `==`, or map the complete list."));
        }
        let range = cursor.next_range();
        let c = cursor.peek().unwrap_or_default();
        cursor.skip(range.len());
        self.character(c, range)
    }

    fn descent(&mut self, range: Range<usize>) -> Result<(), TextError> {
        self.descents += 1;
        self.outside_filter("..", &range)?;
        match self.descents {
            1 => Ok(()),
            _ => Err(TextError::new(range, "a second `..` selects the same values many times")
                .suggest("Use `..` once, and name the members after it.")),
        }
    }

    fn character(&mut self, c: char, range: Range<usize>) -> Result<(), TextError> {
        match c {
            '[' | '(' => self.open(),
            ']' | ')' => self.close(),
            '?' => {
                self.outside_filter("?", &range)?;
                self.widen();
                self.filter = Some(self.depth);
            }
            '*' | ':' => {
                self.outside_filter(c.encode_utf8(&mut [0; 4]), &range)?;
                self.widen();
            }
            // A comma at the depth at which a filter began ends it; one inside its parentheses is part of it.
            ',' if self.filter.is_none_or(|depth| depth == self.depth) => {
                self.filter = None;
                self.listed += 1;
            }
            _ => {}
        }
        self.check(range)
    }

    fn open(&mut self) {
        self.depth += 1;
        if self.depth == 1 {
            self.listed = 1;
            self.is_wide = false;
        }
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.filter = self.filter.filter(|depth| *depth <= self.depth);
        if self.depth == 0 {
            self.selectors = self.selectors.saturating_mul(self.listed);
            self.listed = 1;
            self.is_wide = false;
        }
    }

    fn widen(&mut self) {
        // Brackets count once, however many of their selectors select several values.
        self.wide += usize::from(!self.is_wide || self.depth == 0);
        self.is_wide = self.depth > 0;
    }

    fn check(&self, range: Range<usize>) -> Result<(), TextError> {
        let message = if self.wide > MAX_WIDE {
            format!("more than {MAX_WIDE} segments select several values")
        } else if self.is_wide && self.listed > 1 {
            "a selector of several values is listed with others, so that values are selected twice".to_owned()
        } else if self.selectors.saturating_mul(self.listed) > MAX_SELECTORS {
            format!("the brackets list more than {MAX_SELECTORS} combinations")
        } else {
            return Ok(());
        };
        Err(TextError::new(range, message)
            .suggest("Select less in one path: several fields of the mapping can select the rest."))
    }

    fn outside_filter(&self, found: &str, range: &Range<usize>) -> Result<(), TextError> {
        match self.filter {
            None => Ok(()),
            Some(_) => Err(TextError::new(range.clone(), format!("`{found}` in a filter is not supported"))
                .suggest("Compare single values in a filter: `[?@.severity == 'high']`.")),
        }
    }
}

#[cfg(test)]
mod tests;
