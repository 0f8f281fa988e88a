//! `cog test import`: golden tests from CSV, JSON Lines and promptfoo.

use std::{collections::BTreeSet, path::Path};

use cog_batch::{ColumnsError, Compression, Format, ReadError, RowErrorKind, Source};
use cog_host::settings::Environment;
use cog_json::Value;
use cog_module::{
    Module, Origin,
    golden::import::{self, ImportProblem, ImportedCase, NewCases},
};
use cog_schema::{Contract, Rules};
use cog_spec::{Code, ErrorBody};
use serde_json::{Map, Value as Json, json};

use super::answer;
use crate::{
    args::TestImportArgs,
    commands::{
        input,
        runtime::{self, default_finder},
    },
    error::{CliError, Exit},
    output::{Console, ErrorReport},
};

/// The problems that are reported.
const MAX_PROBLEMS: usize = 20;

/// The prefix of columns with a field of the expected answer.
const EXPECTED: &str = "expected.";

/// The columns with the name of a case, the first one that a file has.
const NAMES: [&str; 2] = ["name", "case"];

/// The column with an expected answer: JSON, or the value of its only field.
const ANSWER: &str = "expected";

/// The column with a criterion for a model.
const JUDGE: &str = "judge";

/// Writes the cases of a file as golden tests of a module.
pub(super) fn import(
    args: &TestImportArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let named: Vec<String> = args.module.iter().cloned().collect();
    let mut targets = runtime::targets(&default_finder(environment)?, &named, false)?;
    let Some((name, origin)) = targets.pop() else { return Ok(Exit::Failed) };
    let module = cog_module::load(&origin)?;
    console.diagnose(&module.warnings);
    if !matches!(module.origin, Origin::Directory(_)) {
        return Err(answer::built_in(&module).into());
    }
    let read = match format_of(&args.file) {
        Some(FileFormat::Promptfoo) => {
            ReadCases { cases: promptfoo(&args.file, &module)?, problems: Vec::new() }
        }
        Some(FileFormat::Rows(format)) => {
            let source = Source::new(&args.file, format);
            let Some(read) = runtime::wait(rows(&source, &module))? else { return Ok(Exit::Interrupted) };
            read?
        }
        None => return Err(unknown_format(&args.file)),
    };
    let ReadCases { cases, mut problems } = read;
    let new = match NewCases::check(&module, cases) {
        Ok(new) if problems.is_empty() => new,
        checked => {
            problems.extend(checked.err().into_iter().flatten());
            return Ok(report(&problems, console));
        }
    };
    new.left_out().for_each(|what| console.note(&what));
    if new.known > 0 {
        console.note(&format!("{} left out: their input has a golden test", counted(new.known)));
    }
    let tests = new.write(&module).map_err(|source| CliError::File {
        what: "cannot write the golden tests",
        path: name.clone().into(),
        source,
    })?;
    let names: Vec<&str> = new.names().collect();
    console.print(&names.join("\n"))?;
    let shown = tests.strip_prefix(".").unwrap_or(&tests).display();
    console.note(&format!("{} written to {shown}; next: `cog test {}`", counted(names.len()), name));
    Ok(Exit::Ok)
}

/// The cases of a file, and what is wrong with the others.
struct ReadCases {
    cases: Vec<ImportedCase>,
    problems: Vec<ImportProblem>,
}

/// `1 case`, `2 cases`.
fn counted(count: usize) -> String {
    format!("{count} case{}", if count == 1 { "" } else { "s" })
}

/// How a file is read.
enum FileFormat {
    Promptfoo,
    Rows(Format),
}

fn format_of(file: &Path) -> Option<FileFormat> {
    let extension = Compression::strip(file).extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "yaml" | "yml" => FileFormat::Promptfoo,
        "csv" | "tsv" => FileFormat::Rows(Format::Csv),
        "jsonl" | "ndjson" => FileFormat::Rows(Format::JsonLines),
        "json" => FileFormat::Rows(Format::Json),
        _ => return None,
    })
}

fn unknown_format(file: &Path) -> CliError {
    CliError::Usage {
        message: format!("the format of {} is unknown", file.display()),
        suggestion: Some(
            "Name a file .csv, .tsv, .jsonl or .json, or .yaml for a configuration of promptfoo.".to_owned(),
        ),
    }
}

pub(super) fn report(problems: &[ImportProblem], console: &Console) -> Exit {
    for ImportProblem { location, message } in problems.iter().take(MAX_PROBLEMS) {
        let code = Some(Code::InvalidInput.as_str());
        console.error(&ErrorReport { code, message, location: Some(location), help: None });
    }
    if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|more| *more > 0) {
        console.note(&format!("{more} more problems"));
    }
    console.note("nothing was written");
    Exit::Failed
}

fn promptfoo(file: &Path, module: &Module) -> Result<Vec<ImportedCase>, CliError> {
    let text = input::any_text(file)?
        .map_err(|error| ErrorBody::new(Code::ParseError, format!("{}: {error}", file.display())))?;
    import::promptfoo(&text, file, module).map_err(|found| {
        let location = found.location.as_ref().map_or_else(String::new, |at| format!(":{}", at.line));
        let error =
            ErrorBody::new(Code::ParseError, format!("{}{location}: {}", file.display(), found.message));
        error.suggest(found.suggestion.unwrap_or_default()).into()
    })
}

/// Reads the rows of a table, or JSON objects.
async fn rows(source: &Source, module: &Module) -> Result<ReadCases, ErrorBody> {
    let columns = Columns::new(module)?;
    let mut rows = source.open(&columns.contract).map_err(|error| columns.unreadable(&error))?;
    let mut cases = Vec::new();
    let mut problems = Vec::new();
    while let Some(group) = rows.next().await.map_err(|error| columns.unreadable(&error))? {
        for row in group {
            let location = format!("{}, {}", source.name(), row.input.location());
            let case = match row.input.get() {
                Ok(row) if row.is_object() => columns.case(row, location.clone()),
                Ok(_) => Err(NOT_AN_OBJECT.to_owned()),
                Err(error) if matches!(error.kind, RowErrorKind::NotAnInput { .. }) => {
                    Err(NOT_AN_OBJECT.to_owned())
                }
                Err(error) => Err(error.kind.to_string()),
            };
            match case {
                Ok(case) => cases.push(case),
                Err(message) => problems.push(ImportProblem { location, message }),
            }
        }
    }
    Ok(ReadCases { cases, problems })
}

const NOT_AN_OBJECT: &str = "a case must be a JSON object";

/// The columns that a file can have.
struct Columns {
    /// A contract whose input has all of them, so that their cells get the types of the fields.
    contract: Contract,
    /// The names of the input fields.
    fields: BTreeSet<String>,
    /// The field that holds the answer, if there is only one.
    answer: Option<String>,
}

impl Columns {
    fn new(module: &Module) -> Result<Self, ErrorBody> {
        let fields: BTreeSet<String> =
            module.contract.input_fields().into_iter().map(|field| field.name).collect();
        let mut document = module.schema.clone();
        let mut extra = Map::new();
        let data = module.schema.get("data").or_else(|| module.schema.get("output"));
        let data = data.and_then(|data| data.get("properties")).and_then(Json::as_object);
        for (name, schema) in data.into_iter().flatten() {
            extra.insert(format!("{EXPECTED}{name}"), schema.clone());
        }
        for name in NAMES.iter().chain([&ANSWER, &JUDGE]).filter(|name| !fields.contains(**name)) {
            extra.insert((*name).to_owned(), json!({ "type": "string" }));
        }
        if let Some(document) = document.as_object_mut() {
            let input = document.remove("input").unwrap_or_else(|| json!({}));
            let merged = json!({ "allOf": [input, { "properties": extra }] });
            document.insert("input".to_owned(), merged);
        }
        let contract = Contract::compile(&document, &Rules::from(&*module.manifest)).map_err(|errors| {
            let first = errors.first().map(ToString::to_string).unwrap_or_default();
            ErrorBody::new(Code::ModuleInvalid, format!("the columns of a table cannot be derived: {first}"))
        })?;
        Ok(Self { contract, fields, answer: import::answer_field(module).map(str::to_owned) })
    }

    /// Creates the error of a file that cannot be read. For unknown columns, it lists those that exist.
    fn unreadable(&self, error: &ReadError) -> ErrorBody {
        let suggestion = match error {
            ReadError::Columns { source: ColumnsError::Unknown { .. }, .. } => {
                let fields = self.contract.input_fields();
                let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name)).collect();
                format!("The columns can be {}.", names.join(", "))
            }
            error => error.suggestion(),
        };
        ErrorBody::new(Code::InvalidReference, error.to_string()).suggest(suggestion)
    }

    /// Returns the case of a row: `{"input": …, "expected": …}`, or the columns of a table.
    fn case(&self, row: &Value, location: String) -> Result<ImportedCase, String> {
        let row = row.to_serde();
        let Json::Object(mut row) = row else { return Err(NOT_AN_OBJECT.to_owned()) };
        let name =
            NAMES.iter().filter(|name| !self.fields.contains(**name)).find_map(|name| row.remove(*name));
        let name = name.and_then(|name| match name {
            Json::String(name) => Some(name),
            Json::Number(number) => Some(number.to_string()),
            _ => None,
        });
        let criteria = match row.remove(JUDGE).filter(|_| !self.fields.contains(JUDGE)) {
            None | Some(Json::Null) => Vec::new(),
            Some(Json::Array(all)) => all,
            Some(one) => vec![one],
        };
        let is_nested = row.get("input").is_some_and(Json::is_object) && !self.fields.contains("input");
        let expected = match row.remove(ANSWER).filter(|_| !self.fields.contains(ANSWER)) {
            None | Some(Json::Null) => None,
            Some(expected) => Some(self.expected(expected)?),
        };
        let mut rules = Map::new();
        let mut input = Map::new();
        for (column, value) in row {
            match column.strip_prefix(EXPECTED) {
                _ if value.is_null() => {}
                Some(field) if !self.fields.contains(&column) => _ = rules.insert(field.to_owned(), value),
                _ => _ = input.insert(column, value),
            }
        }
        if is_nested && let Some(Json::Object(nested)) = input.remove("input") {
            input = nested;
        }
        let mut expected = match (expected, rules.is_empty()) {
            (Some(expected), true) => expected,
            (None, false) => json!({ "_validate": rules }),
            (None, true) if !criteria.is_empty() => json!({}),
            (None, true) => {
                return Err("there is no `expected`, no `expected.FIELD` and no `judge`".to_owned());
            }
            (Some(_), false) => return Err("`expected` and `expected.FIELD` cannot be combined".to_owned()),
        };
        if !criteria.is_empty() {
            let members = expected.as_object_mut().filter(|members| {
                members.is_empty() || members.contains_key("_validate") || members.contains_key("$validate")
            });
            let members = members.ok_or("`judge` needs rules, and `expected` is an exact answer")?;
            members.insert("$judge".to_owned(), Json::Array(criteria));
        }
        Ok(ImportedCase { location, name, input: Json::Object(input), expected, left_out: Vec::new() })
    }

    /// Returns the content of the expected file for an answer: an object as it is, another value for the only field.
    fn expected(&self, answer: Json) -> Result<Json, String> {
        let parsed = answer.as_str().and_then(|text| serde_json::from_str(text).ok()).filter(Json::is_object);
        match parsed.unwrap_or(answer) {
            object @ Json::Object(_) => Ok(object),
            value => match &self.answer {
                Some(field) => Ok(json!({ "_validate": { field: value } })),
                None => Err("`expected` must be a JSON object: the answer has several fields; or use columns `expected.FIELD`".to_owned()),
            },
        }
    }
}
