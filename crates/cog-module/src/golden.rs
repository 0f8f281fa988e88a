//! Golden tests: an input and the expected answer (docs/spec/golden-tests.md).

mod expected;
pub mod import;

use std::{collections::HashSet, path::PathBuf};

use cog_json::{Limits, Node, Path, Segment, Value};
use cog_schema::nearest;
use serde::Serialize;
use serde_json::Value as Json;

use self::expected::{OPERATORS, criteria};
use crate::{
    Diagnostic, Module, Origin, Rule,
    directory::unreadable,
    files::{self, FileError},
};

#[cfg(test)]
pub(crate) use self::expected::violations;
pub use self::expected::{Expected, ExpectedError, check_case};
pub(crate) use self::expected::{is_envelope, operator, path, property_names};

/// One golden test.
#[derive(Debug, Clone)]
pub struct GoldenCase {
    /// Its name: the name of its input file without `.input.json`.
    pub name: String,
    /// The input.
    pub input: Value,
    /// The expected answer.
    pub expected: Expected,
    /// What the answer must satisfy in addition, as sentences that a model judges (`$judge`).
    pub criteria: Vec<String>,
    /// The input file.
    pub input_file: PathBuf,
    /// The expected file.
    pub expected_file: PathBuf,
    /// The recording, if there is one: `tests/NAME.cassette/`.
    pub cassette: Option<PathBuf>,
}

impl GoldenCase {
    /// Reads the content of the expected file again, with its rules; none if it is gone.
    pub fn expected_document(&self, module: &Module) -> Option<Value> {
        let directory = module.origin.path_of("");
        let relative = self.expected_file.strip_prefix(&directory).unwrap_or(&self.expected_file);
        let source = module.origin.read(relative.to_str()?, files::MAX_CASE).ok()?;
        Value::parse_within(source.text.as_bytes(), Limits::default().with_bytes(files::MAX_CASE)).ok()
    }
}

/// A difference between the expected and the actual answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Its path in the envelope: `data.issues[0].risk` (ruling R44).
    pub path: String,
    /// The expectation: `equals`, `required`, `min`, `schema`, or a rule of the contract.
    pub rule: String,
    /// What was expected and what was found.
    pub message: String,
}

impl Mismatch {
    fn new(path: impl Into<String>, rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), rule: rule.into(), message: message.into() }
    }
}

/// Compares an envelope with the expected answer. Returns the differences. The error may have its code as the runtime
/// or as the model wrote it (ruling R31), and need not have the details that the runtime adds.
pub fn compare(expected: &Expected, envelope: Node<'_>) -> Vec<Mismatch> {
    let mut best = expected::compare(expected, envelope);
    for written in [without_origin(envelope), as_written(envelope)].into_iter().flatten() {
        if best.is_empty() {
            break;
        }
        let found = expected::compare(expected, written.node());
        if found.len() < best.len() {
            best = found;
        }
    }
    best
}

/// Returns the case with this input, compared as JSON: order of keys and form of numbers do not matter.
pub fn find_case<'a>(cases: &'a [GoldenCase], input: Node<'_>) -> Option<&'a GoldenCase> {
    let input = input.to_value();
    cases.iter().find(|case| case.input == input)
}

/// Returns an envelope without the origin of its error, which the runtime adds (ruling R88).
fn without_origin(envelope: Node<'_>) -> Option<Value> {
    envelope.get("error")?.get("details")?.get("origin")?;
    let mut envelope = serde_json::to_value(envelope).ok()?;
    let error = envelope.get_mut("error")?.as_object_mut()?;
    let details = error.get_mut("details")?.as_object_mut()?;
    details.remove("origin");
    if details.is_empty() {
        error.remove("details");
    }
    Some(Value::from(envelope))
}

/// Returns an envelope with the code of its error as the model wrote it, if the runtime replaced it.
fn as_written(envelope: Node<'_>) -> Option<Value> {
    envelope.get("error")?.get("details")?.get("legacy_code")?;
    let mut envelope = without_origin(envelope).unwrap_or_else(|| envelope.to_value()).to_serde();
    let error = envelope.get_mut("error")?.as_object_mut()?;
    let details = error.get_mut("details")?.as_object_mut()?;
    let code = details.remove("legacy_code").filter(Json::is_string)?;
    if details.is_empty() {
        error.remove("details");
    }
    error.insert("code".to_owned(), code);
    Some(Value::from(envelope))
}

// Warnings about paths of an expected file that no answer has.

/// Members of the data that exist without a schema of their own.
const COMMON: [&str; 2] = ["rationale", "extensions"];

/// Returns a warning for each path that starts with an unknown field of the data, or ends with a length.
pub(crate) fn unknown_paths(module: &Module, case: &GoldenCase) -> Vec<Diagnostic> {
    let names = property_names(&module.schema);
    if module.contract.data_schema().is_none_or(|data| data.get("properties").is_none()) {
        return Vec::new();
    }
    let keys = keys(&case.expected).into_iter();
    let warnings = keys.filter_map(|key| {
        let help = length(&key, &names).or_else(|| unknown_field(&key, &names))?;
        Some(warning(case, &key, help))
    });
    warnings.collect()
}

/// Returns the keys of an expected file that are paths.
fn keys(expected: &Expected) -> Vec<String> {
    match expected {
        Expected::Exact(_) => Vec::new(),
        Expected::Schemas { fields, .. } => fields.iter().map(|(path, _)| path.to_string()).collect(),
        Expected::Assertions { assertions, .. } => {
            let required = assertions.get("required").into_iter().flat_map(|paths| paths.elements());
            let required = required.filter_map(|path| path.as_str().map(str::to_owned));
            let keys = assertions.members().map(|(key, _)| key.to_owned());
            keys.filter(|key| key != "required").chain(required).collect()
        }
    }
}

/// Returns a suggestion if a key starts with a field that no schema of the module defines.
fn unknown_field(key: &str, names: &HashSet<&str>) -> Option<String> {
    let field = first_field(key)?;
    let without_operator = operator(&field).map(|(name, _)| name);
    let mut possible = [Some(field.as_ref()), without_operator].into_iter().flatten();
    if possible.any(|name: &str| names.contains(name) || COMMON.contains(&name)) {
        return None;
    }
    let begins_with =
        names.iter().find(|name| field.strip_prefix(**name).is_some_and(|rest| rest.starts_with('_')));
    Some(match begins_with {
        Some(name) => {
            let operators: Vec<_> = OPERATORS.iter().map(|(suffix, _)| format!("`{name}{suffix}`")).collect();
            format!("Write one of {}.", operators.join(", "))
        }
        None => match nearest(&field, names.iter().copied()) {
            Some(name) => format!("Did you mean `{name}`?"),
            None => "`cog info` lists the fields of the data.".to_owned(),
        },
    })
}

/// Returns a suggestion for `items.length` or `items.length_min`, unless a schema defines a field of that name.
fn length(key: &str, names: &HashSet<&str>) -> Option<String> {
    let (path, rest) = key.rsplit_once(".length")?;
    let is_end = rest.is_empty() || OPERATORS.iter().any(|(suffix, _)| *suffix == rest);
    (is_end && !names.contains("length"))
        .then(|| format!("`{path}_min` and `{path}_max` compare the length of a list or a string."))
}

/// Returns the first field of a path into the data, with the operator if there is one.
fn first_field(key: &str) -> Option<String> {
    let path: Path = path(key).ok()?;
    let mut fields = path.segments().filter_map(|segment| match segment {
        Segment::Key(name) => Some(name),
        Segment::Index(_) => None,
    });
    match fields.next()? {
        "ok" | "meta" | "error" => None,
        "data" => fields.next().map(str::to_owned),
        name => Some(name.to_owned()),
    }
}

fn warning(case: &GoldenCase, key: &str, help: String) -> Diagnostic {
    let message = format!("`{key}` names a field that the schema does not define");
    Diagnostic::warning(Rule::GoldenPath, &case.expected_file, message).suggest(help)
}

/// The golden tests of a module.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// The cases: those in the manifest, then those under `tests/`, then `examples/`.
    pub cases: Vec<GoldenCase>,
    /// Files that could not be read.
    pub problems: Vec<Diagnostic>,
}

/// Finds and reads the golden tests of a module: the pairs in its manifest, `*.input.json` with `*.expected.json`
/// under `tests/`, and `examples/input.json` with `output.json`.
pub fn discover(module: &Module) -> Discovery {
    let mut discovery = Discovery::default();
    let mut reader = Reader { origin: &module.origin, left: MAX_CASES };
    let pairs = pairs(module);
    let alone = without_input(&module.origin, &pairs);
    for (input, expected) in pairs {
        match reader.case(&input, expected.as_deref()) {
            Ok(case) => discovery.cases.push(case),
            Err(problem) => discovery.problems.push(problem),
        }
    }
    discovery.problems.extend(alone);
    discovery
}

/// Returns the path of a listed file: in `tests/` if only the name is listed, and the file is not next to the manifest.
fn located(origin: &Origin, path: String) -> String {
    let is_in_tests = !path.contains('/')
        && !origin.file_names_in("").contains(&path)
        && origin.file_names_in("tests").contains(&path);
    if is_in_tests { format!("tests/{path}") } else { path }
}

/// The maximum size of all golden tests of a module: 64 MB.
const MAX_CASES: u64 = 64 * 1024 * 1024;

const INPUT: &str = ".input.json";
const EXPECTED: &str = ".expected.json";

/// Returns each pair of files once; the second is none if an input has no expected file.
fn pairs(module: &Module) -> Vec<(String, Option<String>)> {
    let origin = &module.origin;
    let listed = module.manifest.tests.iter();
    let listed = listed.map(|(input, expected)| {
        (located(origin, relative(input)), Some(located(origin, relative(expected))))
    });
    let mut seen = HashSet::new();
    listed.chain(found(origin)).filter(|(input, _)| seen.insert(input.clone())).collect()
}

fn found(origin: &Origin) -> Vec<(String, Option<String>)> {
    let names = origin.file_names_in("tests");
    let mut cases: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(INPUT)).collect();
    cases.sort_by_key(|case| (case.len(), *case));
    let expected: HashSet<&str> = names.iter().filter_map(|name| name.strip_suffix(EXPECTED)).collect();
    let found = cases.into_iter().map(|case| {
        let expected = expected.contains(case).then(|| format!("tests/{case}{EXPECTED}"));
        (format!("tests/{case}{INPUT}"), expected)
    });
    let mut found: Vec<_> = found.collect();
    let examples = origin.file_names_in("examples");
    if examples.iter().any(|name| name == "input.json") {
        let output = examples.iter().any(|name| name == "output.json");
        found.push(("examples/input.json".to_owned(), output.then(|| "examples/output.json".to_owned())));
    }
    found
}

/// Returns a warning for each expected file under `tests/` that belongs to no input.
fn without_input(origin: &Origin, pairs: &[(String, Option<String>)]) -> Vec<Diagnostic> {
    let used: HashSet<&str> = pairs.iter().filter_map(|(_, expected)| expected.as_deref()).collect();
    let mut alone = origin.file_names_in("tests");
    alone.retain(|name| name.ends_with(EXPECTED) && !used.contains(format!("tests/{name}").as_str()));
    alone.sort();
    let warnings = alone.iter().map(|name| {
        let path = format!("tests/{name}");
        let input = path.replace(EXPECTED, INPUT);
        let message = format!("{path} has no matching input file");
        Diagnostic::warning(Rule::GoldenPair, origin.path_of(&path), message)
            .suggest(format!("Write the input to {input}."))
    });
    warnings.collect()
}

fn relative(path: &str) -> String {
    path.trim_start_matches("./").to_owned()
}

/// Reads the files of cases, up to a limit for all of them.
struct Reader<'a> {
    origin: &'a Origin,
    /// The remaining bytes.
    left: u64,
}

impl Reader<'_> {
    fn case(&mut self, input: &str, expected: Option<&str>) -> Result<GoldenCase, Diagnostic> {
        let input_value = self.json(input)?;
        let Some(expected) = expected else { return Err(self.without_expected(input)) };
        let expected_value = self.json(expected)?;
        let expected_file = self.origin.path_of(expected);
        let read = Expected::read(&expected_value).and_then(|read| Ok((read, criteria(&expected_value)?)));
        let (read, criteria) =
            read.map_err(|error| Diagnostic::error(Rule::GoldenSyntax, &expected_file, error.to_string()))?;
        let file_name = input.rsplit('/').next().unwrap_or(input);
        let name = file_name.strip_suffix(INPUT).unwrap_or("example").to_owned();
        Ok(GoldenCase {
            cassette: self.cassette(input, &name),
            name,
            input: input_value,
            expected: read,
            criteria,
            input_file: self.origin.path_of(input),
            expected_file,
        })
    }

    fn without_expected(&self, input: &str) -> Diagnostic {
        let message = format!("{input} has no matching expected file");
        let path = input.strip_suffix(INPUT).map(|case| format!("{case}{EXPECTED}"));
        let path = path.unwrap_or_else(|| "examples/output.json".to_owned());
        Diagnostic::warning(Rule::GoldenPair, self.origin.path_of(input), message)
            .suggest(format!("Write the expected answer to {path}."))
    }

    fn cassette(&self, input: &str, name: &str) -> Option<PathBuf> {
        let directory = input.rsplit_once('/').map_or("", |(directory, _)| directory);
        let cassette = format!("{directory}/{name}.cassette");
        self.origin.has_directory(&cassette).then(|| self.origin.path_of(&cassette))
    }

    fn json(&mut self, path: &str) -> Result<Value, Diagnostic> {
        // A limit for all cases together: each alone is small enough, and a module may have thousands of them.
        let limit = self.left.min(files::MAX_CASE);
        let source = self.origin.read(path, limit).map_err(|error| self.unread(path, &error))?;
        self.left = self.left.saturating_sub(source.text.len() as u64);
        let limits = Limits::default().with_bytes(files::MAX_CASE);
        Value::parse_within(source.text.as_bytes(), limits).map_err(|error| {
            let message = format!("{path} is not JSON: {error}");
            let span = error.offset()..error.offset() + 1;
            Diagnostic::error(Rule::GoldenSyntax, &source.path, message).at(&source, span)
        })
    }

    fn unread(&self, path: &str, error: &FileError) -> Diagnostic {
        let file = self.origin.path_of(path);
        match error {
            FileError::Missing => {
                let message = format!("the manifest lists {path}, but the file does not exist");
                Diagnostic::error(Rule::GoldenPair, file, message)
            }
            FileError::TooLarge { .. } if self.left < files::MAX_CASE => {
                let message = format!(
                    "{path} was skipped: the golden tests are larger than {MAX_CASES} bytes in total"
                );
                Diagnostic::error(Rule::FileTooLarge, file, message)
                    .suggest("Remove or shorten some of them.")
            }
            other => unreadable(&file, other),
        }
    }
}

#[cfg(test)]
mod tests;
