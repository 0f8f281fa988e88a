//! `cargo xtask generate [--check]`: the pages that are printed from the program.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use cog_spec::{Category, Code, Recoverable};

use crate::conformance;
use crate::dag;
use crate::docs;
use crate::links;
use crate::prices;
use crate::project::{Outcome, capture, cargo, programs, read, say, write};

/// What to do where a page differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write it.
    Write,
    /// Fail.
    Check,
}

/// Prints every page, and writes or compares it.
pub(crate) fn run(mode: Mode) -> Outcome {
    // The program that prints the other pages contains the schemas.
    let mut stale = update(mode, schemas()?)?;
    stale.extend(update(mode, prices::pages()?)?);
    stale.extend(update(mode, [(conformance::LEVELS.to_owned(), conformance::levels()?)])?);
    let cog = programs()?.join("cog");
    let pages = [
        ("docs/error-codes.md", error_codes()),
        ("docs/openapi.json", openapi(&cog)?),
        (FLOW, with_block(FLOW, &dag::picture()?)?),
        (SETTINGS, with_block(SETTINGS, &providers(&cog)?)?),
    ];
    let broken = links::broken()?;
    if !broken.is_empty() {
        return Err(format!("links that lead nowhere:\n  {}", broken.join("\n  ")));
    }
    let problems = docs::problems()?;
    if !problems.is_empty() {
        return Err(format!("pages:\n  {}", problems.join("\n  ")));
    }
    let pages = pages.into_iter().chain(conformance::pages()?);
    stale.extend(update(mode, pages.map(|(path, text)| (path.to_owned(), text)))?);
    stale.extend(update(mode, command_line(&cog)?)?);
    if stale.is_empty() {
        say(format_args!("generate: every page is up to date"));
        return Ok(());
    }
    Err(format!("out of date, run `cargo xtask generate`: {}", stale.join(", ")))
}

/// The page with the picture of the crates, and the page with the table of providers. Each has one printed block, between
/// these lines.
const FLOW: &str = "docs/flow.md";
const SETTINGS: &str = "docs/settings.md";
const START: &str = "<!-- The next block is printed by `cargo xtask generate`. -->\n";
const END: &str = "<!-- The end of the printed block. -->\n";

/// Returns the page with this block as its printed one.
fn with_block(path: &str, block: &str) -> Outcome<String> {
    let page = read(path)?;
    let parts = page.split_once(START).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) =
        parts.ok_or_else(|| format!("{path}: the lines around the printed block are missing"))?;
    Ok(format!("{before}{START}\n{block}\n{END}{after}"))
}

/// Returns the table of providers, as `cog doctor` lists them without a setting.
fn providers(cog: &Path) -> Outcome<String> {
    let mut doctor = Command::new(cog);
    doctor.args(["doctor", "--all", "--format", "json"]).env_clear().env("COG_DETECT_OLLAMA", "off");
    let report: serde_json::Value =
        serde_json::from_str(&capture(&mut doctor)?).map_err(|error| error.to_string())?;
    let providers = report.get("providers").and_then(|providers| providers.as_array());
    let mut table =
        "| Name | Provider | Enabled by | Default model | Input |\n|---|---|---|---|---|\n".to_owned();
    for provider in providers.ok_or("`cog doctor` lists no providers")? {
        let model = match text(provider, "model") {
            "" => "–".to_owned(),
            model => format!("`{model}`"),
        };
        let input = provider.get("input").and_then(|input| input.as_array()).into_iter().flatten();
        let input: Vec<&str> = input.filter_map(|kind| kind.as_str()).collect();
        let _ = writeln!(
            table,
            "| `{}` | {} | `{}` | {model} | {} |",
            text(provider, "name"),
            text(provider, "title"),
            text(provider, "variable"),
            input.join(", "),
        );
    }
    Ok(table)
}

/// Returns a string member of an object, or an empty string.
fn text<'a>(object: &'a serde_json::Value, member: &str) -> &'a str {
    object.get(member).and_then(|value| value.as_str()).unwrap_or_default()
}

/// Writes the pages, or returns the paths of those that differ.
fn update(mode: Mode, pages: impl IntoIterator<Item = (String, String)>) -> Outcome<Vec<String>> {
    let mut stale = Vec::new();
    for (path, text) in pages {
        // A schema that is written again, though it is the same, makes Cargo compile the workspace again.
        if read(&path).is_ok_and(|found| found == text) {
            continue;
        }
        match mode {
            Mode::Write => write(&path, &text)?,
            Mode::Check => stale.push(path),
        }
    }
    Ok(stale)
}

/// Returns the JSON Schemas that cog-spec generates from its types, with their paths.
fn schemas() -> Outcome<Vec<(String, String)>> {
    let example = [
        "run",
        "--quiet",
        "--locked",
        "--package",
        "cog-spec",
        "--features",
        "schema",
        "--example",
        "schemas",
    ];
    let printed = capture(cargo().args(example))?;
    printed.lines().map(schema_page).collect()
}

/// Returns the path and the text of the schema that a printed line holds.
fn schema_page(line: &str) -> Outcome<(String, String)> {
    let document: serde_json::Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let name = document.get("name").and_then(|name| name.as_str()).ok_or("a schema without a name")?;
    let schema = document.get("schema").ok_or("a name without a schema")?;
    Ok((format!("crates/cog-spec/schemas/{name}.schema.json"), format!("{schema:#}\n")))
}

const ERROR_CODES_HEAD: &str = "\
# Error codes

Every value of `error.code`, from the one table in `crates/cog-spec/src/code.rs`. `cog errors CODE` explains
one on the command line. *Recoverable* says whether another attempt can help; *maybe* means that the error itself says.
The status is sent by the HTTP interface. A module may declare its own codes, E5000 to E9999, under `error_codes` in its
manifest; their status is 422. Text codes of older modules are read and normalised; the original is kept in
`error.details.legacy_code`.

This page is printed by `cargo xtask generate`.
";

fn error_codes() -> String {
    let mut page = ERROR_CODES_HEAD.to_owned();
    let mut category = None;
    for code in Code::ALL {
        if category != Some(code.category()) {
            category = Some(code.category());
            let _ = write!(page, "\n## {}\n", heading(code.category()));
            let _ = write!(
                page,
                "\n| Code | Name | Recoverable | HTTP | What it means, and what to do |\n|---|---|---|---|---|\n"
            );
        }
        let older = code.legacy().filter(|text| *text != code.name());
        let older = older.map_or_else(String::new, |text| format!("<br>older: `{text}`"));
        let _ = writeln!(
            page,
            "| {} | {}{older} | {} | {} | {} {} |",
            code.as_str(),
            code.name(),
            recoverable(code.recoverable()),
            code.http_status(),
            code.meaning(),
            code.advice(),
        );
    }
    page
}

fn heading(category: Category) -> &'static str {
    match category {
        Category::Input => "E1xxx: the input",
        Category::Processing => "E2xxx: the processing",
        Category::Output => "E3xxx: the output",
        _ => "E4xxx: the runtime",
    }
}

fn recoverable(word: Recoverable) -> &'static str {
    match word {
        Recoverable::Yes => "yes",
        Recoverable::No => "no",
        Recoverable::Maybe => "maybe",
    }
}

const COMMAND_LINE_HEAD: &str = "\
# The command line

What `cog help` prints. `cogn` is the same program. The commands have pages of their own:";

const PRINTED: &str = "This page is printed by `cargo xtask generate`.\n";

/// Returns the page of the program and those of its commands, with their paths.
fn command_line(cog: &Path) -> Outcome<Vec<(String, String)>> {
    let overview = help(cog, &[])?;
    let mut links = Vec::new();
    let mut pages = Vec::new();
    for command in commands(&overview) {
        let printed = help(cog, &[&command])?;
        let mut page = format!("# cog {command}\n\n```text\n{}\n```\n", printed.trim_end());
        for step in commands(&printed) {
            let printed = help(cog, &[&command, &step])?;
            let _ = write!(page, "\n## cog {command} {step}\n\n```text\n{}\n```\n", printed.trim_end());
        }
        links.push(format!("[{command}](cli/{command}.md)"));
        pages.push((format!("docs/cli/{command}.md"), format!("{page}\n{PRINTED}")));
    }
    let links = links.join(", ");
    let page = format!("{COMMAND_LINE_HEAD}\n{links}.\n\n{PRINTED}\n```text\n{}\n```\n", overview.trim_end());
    pages.push(("docs/cli.md".to_owned(), page));
    Ok(pages)
}

/// The server's OpenAPI document, as `GET /openapi.json` gives it.
fn openapi(cog: &Path) -> Outcome<String> {
    capture(Command::new(cog).args(["schema", "openapi"]))
}

/// The help of one command, at the width of these pages.
fn help(cog: &Path, command: &[&str]) -> Outcome<String> {
    let printed =
        capture(Command::new(cog).args(command).arg("--help").env("COLUMNS", "100").env("NO_COLOR", "1"))?;
    Ok(printed.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
}

/// The commands that a help page lists, before its arguments and options, in its order.
fn commands(page: &str) -> Vec<String> {
    page.lines()
        .take_while(|line| !["Arguments:", "Options:", "Global options:"].contains(line))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| *word != "help")
        .map(str::to_owned)
        .collect()
}
