//! Limits on the text of a path, so that the number of selected values grows linearly with the document.
//!
//! A path visits every value of a document at most once for each way to write its selectors: `..` occurs once, a segment
//! lists few selectors, and filters compare single values.

use std::ops::Range;

use crate::cursor::{Cursor, TextError};

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
pub(super) fn check(text: &str) -> Result<(), TextError> {
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
        let (range, c) = (cursor.next_range(), cursor.peek().unwrap_or_default());
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
            (self.listed, self.is_wide) = (1, false);
        }
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.filter = self.filter.filter(|depth| *depth <= self.depth);
        if self.depth == 0 {
            self.selectors = self.selectors.saturating_mul(self.listed);
            (self.listed, self.is_wide) = (1, false);
        }
    }

    fn widen(&mut self) {
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
