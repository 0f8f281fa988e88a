//! Problems of messages, and where they are.

use std::fmt;

use serde::Serialize;

use crate::rules::{MORE, Rule};

/// A problem of a message: its path, the rule, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path, such as `messages[0].content[1].image_url.url`.
    pub path: String,
    /// The rule that is violated.
    pub rule: &'static Rule,
    /// A message with what was found and what is allowed.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(path: &impl fmt::Display, rule: &'static Rule, message: impl Into<String>) -> Self {
        Self { path: path.to_string(), rule, message: message.into() }
    }
}

/// The maximum number of problems in a report.
const MAX_PROBLEMS: usize = 1000;

/// The problems found so far. The list is bounded; the others are counted.
#[derive(Default)]
pub(crate) struct Problems {
    list: Vec<Problem>,
    more: usize,
}

impl Problems {
    pub(crate) fn add(&mut self, path: &impl fmt::Display, rule: &'static Rule, message: impl Into<String>) {
        match self.list.len() < MAX_PROBLEMS {
            true => self.list.push(Problem::new(path, rule, message)),
            false => self.more += 1,
        }
    }

    /// Returns the problems, with a last one for those that are not listed.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        if self.more > 0 {
            let message = format!("{} more problems are not listed", self.more);
            self.list.push(Problem::new(&"", &MORE, message));
        }
        self.list
    }

    /// Returns a value that was read without problems.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Vec<Problem>> {
        if self.list.is_empty() { Ok(value) } else { Err(self.finish()) }
    }
}

/// A path, which is formatted only if something is reported.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// Returns a path that starts with `name`.
    pub(crate) const fn root(name: &'a str) -> Self {
        Self { parent: None, step: Step::Key(name) }
    }

    /// Returns the path of a member.
    pub(crate) const fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    /// Returns the path of an element.
    pub(crate) const fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) if self.parent.is_none() => f.write_str(key),
            Step::Key(key) => write!(f, ".{key}"),
        }
    }
}

/// A rule that a document violates, with its path and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The path, such as `citation_map.cit_01.location.bbox`.
    pub path: String,
    /// The name of the rule, such as `bbox`.
    pub rule: &'static str,
    /// What was found, and what is allowed.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Finding {
    /// Creates a finding without a suggestion.
    pub(crate) fn new(path: impl ToString, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.to_string(), rule, message: message.into(), suggestion: None }
    }

    /// Adds what to do about it.
    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}
