use std::{collections::HashSet, path::PathBuf};

use cog_json::{Limits, Value};

use super::{Expected, GoldenCase, expected::criteria};
use crate::{
    Diagnostic, Module, Origin, Rule,
    directory::unreadable,
    files::{self, FileError},
};

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

/// Returns the path of a listed file: in `tests/` if only the name is listed, and the file is not beside the manifest.
fn located(origin: &Origin, path: String) -> String {
    let has_file = |directory: &str| origin.file_names_in(directory).contains(&path);
    let is_in_tests = !path.contains('/') && !has_file("") && has_file("tests");
    if is_in_tests { format!("tests/{path}") } else { path }
}

/// The maximum size of all golden tests of a module: 64 MB.
const MAX_CASES: u64 = 64 * 1024 * 1024;

const INPUT: &str = ".input.json";
const EXPECTED: &str = ".expected.json";

/// Returns each pair of files once; the second is none if an input has no expected file.
fn pairs(module: &Module) -> Vec<(String, Option<String>)> {
    let locate = |path: &str| located(&module.origin, relative(path));
    let listed = module.manifest.tests.iter();
    let listed = listed.map(|(input, expected)| (locate(input), Some(locate(expected))));
    let mut seen = HashSet::new();
    listed.chain(found(&module.origin)).filter(|(input, _)| seen.insert(input.clone())).collect()
}

fn found(origin: &Origin) -> Vec<(String, Option<String>)> {
    let names = origin.file_names_in("tests");
    let mut cases: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(INPUT)).collect();
    cases.sort_by_key(|case| (case.len(), *case));
    let expected: HashSet<&str> = names.iter().filter_map(|name| name.strip_suffix(EXPECTED)).collect();
    let file = |case: &str, end: &str| format!("tests/{case}{end}");
    let mut found: Vec<_> = cases
        .into_iter()
        .map(|case| (file(case, INPUT), expected.contains(case).then(|| file(case, EXPECTED))))
        .collect();
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
    let warning = |name: &String| {
        let path = format!("tests/{name}");
        let input = path.replace(EXPECTED, INPUT);
        Diagnostic::warning(
            Rule::GoldenPair,
            origin.path_of(&path),
            format!("{path} has no matching input file"),
        )
        .suggest(format!("Write the input to {input}."))
    };
    alone.iter().map(warning).collect()
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
        let beside = input.strip_suffix(INPUT).map(|case| format!("{case}{EXPECTED}"));
        let beside = beside.unwrap_or_else(|| "examples/output.json".to_owned());
        Diagnostic::warning(Rule::GoldenPair, self.origin.path_of(input), message)
            .suggest(format!("Write the expected answer to {beside}."))
    }

    fn cassette(&self, input: &str, name: &str) -> Option<PathBuf> {
        let directory = input.rsplit_once('/').map_or("", |(directory, _)| directory);
        let cassette = format!("{directory}/{name}.cassette");
        self.origin.has_directory(&cassette).then(|| self.origin.path_of(&cassette))
    }

    fn json(&mut self, path: &str) -> Result<Value, Diagnostic> {
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
