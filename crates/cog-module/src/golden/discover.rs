use cog_json::{Limits, Value};

use super::{Expected, GoldenCase};
use crate::{
    Diagnostic, Module, Origin, Rule,
    files::{self, FileError},
    folder::unreadable,
};

/// What was found of golden tests.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// The cases, those of the manifest in front, then those found under `tests/`, then `examples/`.
    pub cases: Vec<GoldenCase>,
    /// What could not be read.
    pub problems: Vec<Diagnostic>,
}

/// Finds and reads the golden tests of a module: the pairs its manifest lists, `*.input.json` with
/// `*.expected.json` under `tests/`, and `examples/input.json` with `output.json`.
pub fn discover(module: &Module) -> Discovery {
    let mut discovery = Discovery::default();
    for (input, expected) in pairs(module) {
        match read_case(&module.origin, &input, expected.as_deref()) {
            Ok(case) => discovery.cases.push(case),
            Err(problem) => discovery.problems.push(problem),
        }
    }
    discovery
}

const INPUT: &str = ".input.json";
const EXPECTED: &str = ".expected.json";

/// The files, each pair once; an input that stands alone has no second.
fn pairs(module: &Module) -> Vec<(String, Option<String>)> {
    let listed = module.manifest.tests.iter();
    let listed = listed.map(|(input, expected)| (plain(input), Some(plain(expected))));
    let mut pairs: Vec<(String, Option<String>)> = Vec::new();
    for (input, expected) in listed.chain(found(&module.origin)) {
        if !pairs.iter().any(|(other, _)| *other == input) {
            pairs.push((input, expected));
        }
    }
    pairs
}

fn found(origin: &Origin) -> Vec<(String, Option<String>)> {
    let names = origin.file_names_in("tests");
    let mut cases: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(INPUT)).collect();
    cases.sort_by_key(|case| (case.len(), *case));
    let expected = |case: &str| names.iter().find(|name| name.strip_suffix(EXPECTED) == Some(case));
    let under_tests = |name: &str| format!("tests/{name}");
    let cases = cases.into_iter();
    let mut found: Vec<_> = cases
        .map(|case| (under_tests(&format!("{case}{INPUT}")), expected(case).map(|name| under_tests(name))))
        .collect();
    let examples = origin.file_names_in("examples");
    if examples.iter().any(|name| name == "input.json") {
        let output = examples.iter().any(|name| name == "output.json");
        found.push(("examples/input.json".to_owned(), output.then(|| "examples/output.json".to_owned())));
    }
    found
}

fn plain(path: &str) -> String {
    path.trim_start_matches("./").to_owned()
}

fn read_case(origin: &Origin, input: &str, expected: Option<&str>) -> Result<GoldenCase, Diagnostic> {
    let input_value = read_json(origin, input)?;
    let Some(expected) = expected else {
        let message = format!("{input} stands alone: nothing says what is expected of its answer");
        let diagnostic = Diagnostic::warning(Rule::GoldenPair, origin.path_of(input), message);
        let beside = input.strip_suffix(INPUT).map(|case| format!("{case}{EXPECTED}"));
        let beside = beside.unwrap_or_else(|| "examples/output.json".to_owned());
        return Err(diagnostic.suggest(format!("put the expected answer into {beside}")));
    };
    let expected_value = read_json(origin, expected)?;
    let expected_file = origin.path_of(expected);
    let read = Expected::read(&expected_value)
        .map_err(|error| Diagnostic::error(Rule::GoldenSyntax, &expected_file, error.to_string()))?;
    let file_name = input.rsplit('/').next().unwrap_or(input);
    let name = file_name.strip_suffix(INPUT).unwrap_or("example").to_owned();
    Ok(GoldenCase {
        cassette: cassette(origin, input, &name),
        name,
        input: input_value,
        expected: read,
        input_file: origin.path_of(input),
        expected_file,
    })
}

fn cassette(origin: &Origin, input: &str, name: &str) -> Option<std::path::PathBuf> {
    let folder = input.rsplit_once('/').map_or("", |(folder, _)| folder);
    let cassette = format!("{name}.cassette");
    let is_there = origin.folder_names_in(folder).contains(&cassette);
    is_there.then(|| origin.path_of(&format!("{folder}/{cassette}")))
}

fn read_json(origin: &Origin, path: &str) -> Result<Value, Diagnostic> {
    let source = origin.read(path, files::MAX_CASE).map_err(|error| match error {
        FileError::Missing => {
            let message = format!("the manifest lists {path}, which is not there");
            Diagnostic::error(Rule::GoldenPair, origin.path_of(path), message)
        }
        other => unreadable(&origin.path_of(path), &other),
    })?;
    let limits = Limits::default().with_bytes(files::MAX_CASE);
    Value::parse_within(source.text.as_bytes(), limits).map_err(|error| {
        let message = format!("{path} is not JSON: {error}");
        let span = error.offset()..error.offset() + 1;
        Diagnostic::error(Rule::GoldenSyntax, &source.path, message).at(&source, span)
    })
}
