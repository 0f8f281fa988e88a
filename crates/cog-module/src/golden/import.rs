//! Golden tests from other formats (`cog test import`, docs/testing.md).

mod promptfoo;

use std::{collections::HashSet, path::PathBuf};

use cog_json::Value;
use serde_json::Value as Json;

pub use self::promptfoo::promptfoo;
use super::{EXPECTED, Expected, GoldenCase, INPUT, criteria, discover, find_case};
use crate::{
    Module, Origin,
    files::{self, FileError},
    golden::check_case,
};

/// The maximum length of the name of a case.
const MAX_NAME: usize = 60;

/// A golden test that was read from another format.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedCase {
    /// Where it was read: `tests.csv:3`.
    pub location: String,
    /// The name that it has there.
    pub name: Option<String>,
    /// The input.
    pub input: Json,
    /// The content of the expected file.
    pub expected: Json,
    /// What has no counterpart in an expected file, one line each.
    pub left_out: Vec<String>,
}

/// Why a case cannot be a golden test of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProblem {
    /// Where the case was read.
    pub location: String,
    /// What is wrong.
    pub message: String,
}

/// Golden tests that fit a module and are not yet written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCases {
    /// The name and the case.
    cases: Vec<(String, ImportedCase)>,
    /// The number of cases that were left out because their input has a golden test.
    pub known: usize,
}

impl NewCases {
    /// Checks cases against the contract of a module, and gives them names that are free.
    ///
    /// # Errors
    /// What is wrong with each case that does not fit.
    pub fn check(module: &Module, cases: Vec<ImportedCase>) -> Result<Self, Vec<ImportProblem>> {
        let mut present = discover(module).cases;
        let mut names: HashSet<String> = present.iter().map(|case| case.name.clone()).collect();
        let mut new = Self { cases: Vec::new(), known: 0 };
        let mut problems = Vec::new();
        for case in cases {
            let golden = match golden(&case) {
                Ok(golden) => golden,
                Err(message) => {
                    problems.push(ImportProblem { location: case.location, message });
                    continue;
                }
            };
            if find_case(&present, golden.input.node()).is_some() {
                new.known += 1;
                continue;
            }
            problems.extend(check_case(module, &golden).into_iter().map(|(_, mismatch)| ImportProblem {
                location: case.location.clone(),
                message: format!("{}: {}", mismatch.path, mismatch.message),
            }));
            let name = free_name(case.name.as_deref(), &mut names);
            present.push(golden);
            new.cases.push((name, case));
        }
        if problems.is_empty() { Ok(new) } else { Err(problems) }
    }

    /// Returns the names, in the order of the cases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().map(|(name, _)| name.as_str())
    }

    /// Returns what has no counterpart in an expected file, one line each.
    pub fn left_out(&self) -> impl Iterator<Item = String> {
        let cases = self.cases.iter();
        cases.flat_map(|(name, case)| case.left_out.iter().map(move |what| format!("{name}: {what}")))
    }

    /// Writes the files into `tests/` of the module. Returns that directory.
    ///
    /// # Errors
    /// If the module is built in, or a file cannot be written; those before it are written.
    pub fn write(&self, module: &Module) -> Result<PathBuf, FileError> {
        let Origin::Directory(directory) = &module.origin else { return Err(FileError::Missing) };
        let tests = directory.join("tests");
        files::create_directory(&tests)?;
        for (name, case) in &self.cases {
            files::write_atomic(&tests.join(format!("{name}{INPUT}")), format!("{:#}\n", case.input))?;
            files::write_atomic(&tests.join(format!("{name}{EXPECTED}")), format!("{:#}\n", case.expected))?;
        }
        Ok(tests)
    }
}

fn golden(case: &ImportedCase) -> Result<GoldenCase, String> {
    let expected = Value::from(case.expected.clone());
    let read = Expected::read(&expected).map_err(|error| error.to_string())?;
    Ok(GoldenCase {
        name: String::new(),
        input: Value::from(case.input.clone()),
        expected: read,
        criteria: criteria(&expected).map_err(|error| error.to_string())?,
        input_file: PathBuf::new(),
        expected_file: PathBuf::new(),
        cassette: None,
    })
}

/// Returns whether a name is one for the files of a case: lower-case letters and digits with single hyphens between them.
pub fn is_case_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= MAX_NAME && name.split('-').all(|part| !part.is_empty()) && name.chars().all(is_plain)
}

/// Returns a name for the files of a case: its own in lower case with hyphens, or `caseN`; with a number if it is taken.
fn free_name(name: Option<&str>, taken: &mut HashSet<String>) -> String {
    let slug = name.map(slug).filter(|slug| !slug.is_empty());
    let mut numbers = 1..;
    let mut candidates = slug.iter().cloned().chain(std::iter::from_fn(|| {
        let number: u32 = numbers.next()?;
        Some(match &slug {
            Some(slug) => format!("{slug}-{}", number + 1),
            None => format!("case{number}"),
        })
    }));
    let free = candidates.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

fn slug(name: &str) -> String {
    let mut slug = String::new();
    for character in name.chars().flat_map(char::to_lowercase) {
        if slug.len() >= MAX_NAME {
            break;
        }
        match character {
            _ if character.is_alphanumeric() => slug.push(character),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// Returns the only field of the data that holds the answer: what an expected text is compared with.
///
/// The rationale and extensions are not the answer. None if there are several fields, or none.
pub fn answer_field(module: &Module) -> Option<&str> {
    let data = module.schema.get("data").or_else(|| module.schema.get("output"))?;
    let names = data.get("properties")?.as_object()?.keys();
    let mut fields = names.map(String::as_str).filter(|name| !super::COMMON.contains(name));
    let first = fields.next()?;
    fields.next().is_none().then_some(first)
}
