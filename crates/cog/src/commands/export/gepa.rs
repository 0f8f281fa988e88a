//! A module and its golden tests as a program for GEPA, which improves prompts in Python.

use cog_contract::optimize::{Part, Split};
use cog_json::Node;
use cog_module::{Module, Origin, golden};
use cog_spec::{Code, ErrorBody};
use serde_json::json;

use crate::{error::CliError, output::Console};

const PROGRAM: &str = include_str!("gepa.py");

/// Returns the program. Its cases are split as `cog optimize` does; the held-out ones are not in it.
pub(super) fn program(module: &Module, console: &Console) -> Result<String, CliError> {
    let name = &module.manifest.name;
    let Origin::Directory(directory) = &module.origin else {
        let message = format!("`{name}` is built in, so that its prompt cannot be replaced");
        let error = ErrorBody::new(Code::InvalidInput, message);
        return Err(error.suggest(format!("Copy it with `cog new NAME --from {name}`.")).into());
    };
    let found = golden::discover(module);
    console.diagnose(&found.problems);
    let inputs: Vec<Node<'_>> = found.cases.iter().map(|case| case.input.node()).collect();
    let split = Split::new(inputs).map_err(|few| ErrorBody::new(Code::InvalidInput, few.to_string()))?;
    let cases = |part: Part| {
        let cases = split.cases(part).into_iter().filter_map(|index| found.cases.get(index));
        let cases = cases.map(|case| json!({ "name": case.name, "input": case.input.to_string() }));
        json!(cases.collect::<Vec<_>>())
    };
    let names = split.cases(Part::HeldOut).into_iter().filter_map(|index| found.cases.get(index));
    let names: Vec<&str> = names.map(|case| case.name.as_str()).collect();
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
    let values = [
        ("MODULE", json!(directory)),
        ("TRAINING", cases(Part::Training)),
        ("VALIDATION", cases(Part::Validation)),
        ("HELD_OUT", json!(names)),
    ];
    // JSON without true, false and null is Python: names and texts are strings.
    let filled = values.iter().fold(PROGRAM.to_owned(), |text, (name, value)| {
        text.replacen(&format!("\n{name}: "), &format!("\n{name} = {value:#}  # "), 1)
    });
    Ok(filled)
}
