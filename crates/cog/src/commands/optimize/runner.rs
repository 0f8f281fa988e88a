//! Runs cases with a prompt, and asks for the next prompt.

use std::{cell::RefCell, collections::BTreeSet, sync::Arc};

use cog_contract::optimize::PromptRules;
use cog_host::run_log::{RequestedModel, RunLog};
use cog_json::{Node, ToJson as _, Value};
use cog_module::{
    Module, Prompt, PromptPart,
    golden::{Expected, GoldenCase},
};
use cog_run::{Budget, RunInput, RunOptions, Runtime};
use cog_spec::{Code, Envelope, ErrorBody};
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use super::search::{Draft, Ended, Proposal, Random, Scored, Trial, Written};
use crate::{
    commands::test::{
        figures::is_about_provider,
        judge::{self, Judge},
        report::Verdict,
    },
    output::Progress,
};

/// The maximum size of an input, an answer and a line of feedback that the writer sees, in bytes.
const MAX_SHOWN: usize = 4 << 10;
/// The maximum number of lines of feedback.
const MAX_LINES: usize = 8;
/// The maximum size of the contract that the writer sees, in bytes.
const MAX_CONTRACT: usize = 32 << 10;
/// The most examples that a prompt shows, and their size together in bytes.
const MAX_EXAMPLES: usize = 3;
const MAX_EXAMPLE_BYTES: usize = 4 << 10;
/// The heading under which a prompt shows examples.
const EXAMPLES: &str = "# Examples";

/// Who writes the next prompt.
pub(super) enum Writer {
    /// A model, which sees the failures.
    Model {
        /// The module that it runs.
        module: Arc<Module>,
        /// The provider and the model.
        options: Box<RunOptions>,
    },
    /// Nobody: other cases are shown as examples.
    Examples,
}

/// What all runs of a search share.
pub(super) struct Runner<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) module: &'a Arc<Module>,
    pub(super) cases: &'a [GoldenCase],
    /// Returns which secret stands in a text.
    pub(super) secret_in: &'a dyn Fn(&str) -> Option<String>,
    pub(super) rules: PromptRules<'a>,
    /// The options of the run of a case.
    pub(super) options: RunOptions,
    /// The options of the run that judges a criterion.
    pub(super) judge: RunOptions,
    pub(super) writer: Writer,
    /// The budgets of the calls that are made now.
    pub(super) budgets: RefCell<Vec<Budget>>,
    pub(super) log: Option<Arc<RunLog>>,
    pub(super) jobs: usize,
    pub(super) progress: Option<RefCell<Progress<'a>>>,
}

impl Trial for Runner<'_> {
    async fn run(&self, prompt: &str, cases: &[usize]) -> Result<Vec<Scored>, Ended> {
        let module = Arc::new(with_prompt(self.module, prompt));
        let runs = cases.iter().map(|case| self.score(&module, *case));
        let scored: Vec<Result<Scored, Ended>> = stream::iter(runs).buffered(self.jobs).collect().await;
        scored.into_iter().collect()
    }

    async fn write(&self, draft: Draft<'_>) -> Result<Written, Ended> {
        match &self.writer {
            Writer::Model { module, options } => self.rewrite(module, options, &draft).await,
            Writer::Examples => Ok(self.with_examples(&draft)),
        }
    }

    fn refuse(&self, prompt: &str) -> Option<String> {
        if let Some(name) = (self.secret_in)(prompt) {
            return Some(format!("it contains a secret of the environment: {name}"));
        }
        match self.writer {
            Writer::Model { .. } => self.rules.check(prompt).err().map(|refusal| refusal.to_string()),
            // Cases are copied on purpose, and as data: their text was checked for placeholders.
            Writer::Examples => None,
        }
    }
}

// Runs cases.

impl Runner<'_> {
    async fn score(&self, module: &Arc<Module>, index: usize) -> Result<Scored, Ended> {
        let Some(case) = self.cases.get(index) else { return Ok(Scored::default()) };
        self.show(format!("{} {}", module.manifest.name, case.name));
        let input = RunInput::Json(case.input.clone());
        let envelope = self.runtime.run(module, input, self.counted(&self.options)).await;
        if let Some(ended) = envelope.error().and_then(ended) {
            return Err(ended);
        }
        let json = Value::parse(&envelope.to_json()).unwrap_or_default();
        let verdict = match judge::compare(case, &envelope, &json) {
            Verdict::Passed if !case.criteria.is_empty() => {
                let options = self.counted(&self.judge);
                let judge = Judge { loader: self.runtime, runtime: self.runtime, options };
                judge.verdict(case, &json).await
            }
            verdict => verdict,
        };
        match verdict {
            Verdict::Passed => Ok(Scored { is_right: true, ..Scored::default() }),
            Verdict::Error(mismatches) => {
                let spent = mismatches.iter().any(|found| found.rule == Code::RateLimited.as_str());
                let message = mismatches.first().map(|found| found.message.clone()).unwrap_or_default();
                Err(if spent {
                    Ended::Spent
                } else {
                    Ended::Failed(Box::new(ErrorBody::new(Code::ProviderUnavailable, message)))
                })
            }
            verdict => {
                let feedback = feedback(&verdict, &envelope);
                let answer = json.get("data").filter(|data| !data.is_null()).map(|data| data.to_string());
                Ok(Scored { is_right: false, feedback, answer })
            }
        }
    }

    fn show(&self, what: String) {
        if let Some(progress) = &self.progress {
            progress.borrow_mut().show(what);
        }
    }

    /// Returns the options of one call, counted and logged.
    fn counted(&self, options: &RunOptions) -> RunOptions {
        let mut options = RunOptions { budgets: self.budgets.borrow().clone(), ..options.clone() };
        if let Some(log) = &self.log {
            let requested =
                RequestedModel { provider: options.provider.clone(), model: options.model.clone() };
            // A run that is not in the log is no reason to end a search that costs money.
            options.events.push(log.listener(requested, |_| {}));
        }
        options
    }
}

/// Returns why a run ends the search; none for an answer, and for an error that the prompt may have caused.
fn ended(error: &ErrorBody) -> Option<Ended> {
    let reason = error.details.as_ref().and_then(|details| details.get_str("reason"));
    match reason {
        Some("budget") => Some(Ended::Spent),
        _ if is_about_provider(error) => Some(Ended::Failed(Box::new(error.clone()))),
        _ => None,
    }
}

/// Returns what is wrong with an answer: the code and the violations of its error, the failed check, the differences to the expected
/// answer, and the reason of the judge.
fn feedback(verdict: &Verdict, envelope: &Envelope) -> Vec<String> {
    let lines = verdict
        .mismatches()
        .iter()
        .map(|found| format!("{} ({}): {}", found.path, found.rule, found.message));
    let mut lines: Vec<String> = lines.collect();
    let details = envelope.error().and_then(|error| error.details.as_ref());
    let violations = details.and_then(|details| details.get("violations"));
    for violation in violations.into_iter().flat_map(Node::elements) {
        let text = |key: &str| violation.get_str(key).unwrap_or_default();
        lines.push(format!("{} ({}): {}", text("path"), text("rule"), text("message")));
    }
    lines.truncate(MAX_LINES);
    lines.into_iter().map(|line| shortened(&line)).collect()
}

/// Returns a module with another prompt.
pub(super) fn with_prompt(module: &Module, prompt: &str) -> Module {
    Module { prompt: Prompt::parse(prompt), ..module.clone() }
}

fn shortened(text: &str) -> String {
    match text.split_at_checked(text.floor_char_boundary(MAX_SHOWN)) {
        Some((kept, rest)) if !rest.is_empty() => format!("{kept}… (shortened)"),
        _ => text.to_owned(),
    }
}

// Asks a model for the next prompt.

impl Runner<'_> {
    async fn rewrite(
        &self,
        writer: &Arc<Module>,
        options: &RunOptions,
        draft: &Draft<'_>,
    ) -> Result<Written, Ended> {
        self.show("writing a prompt".to_owned());
        let failures = draft.failures.iter().map(|(case, scored)| {
            let input = self.cases.get(*case).map(|case| case.input.to_string()).unwrap_or_default();
            json!({
                "input": shortened(&input),
                "answer": shortened(scored.answer.as_deref().unwrap_or("")),
                "feedback": scored.feedback,
            })
        });
        let failures: Vec<_> = failures.collect();
        let input = writer_input(self.module, draft.prompt, failures, draft.last_reason.unwrap_or_default());
        let envelope = self.runtime.run(writer, input, self.counted(options)).await;
        if let Some(error) = envelope.error() {
            return match ended(error) {
                Some(ended) => Err(ended),
                None => Ok(Written::Nothing(format!("the model wrote none: {}", error.message))),
            };
        }
        let prompt = envelope.data().and_then(|data| data.get_str("prompt")).unwrap_or_default();
        // Models leave out the last line break, or add some.
        let prompt = format!("{}\n", prompt.trim_end());
        Ok(Written::Prompt(Proposal { prompt, shown: BTreeSet::new() }))
    }
}

fn writer_input(module: &Module, prompt: &str, failures: Vec<serde_json::Value>, reason: &str) -> RunInput {
    let data = module.contract.data_schema().map(ToString::to_string).unwrap_or_default();
    let contract = data.get(..data.floor_char_boundary(MAX_CONTRACT)).unwrap_or_default();
    let input = json!({
        "prompt": prompt, "contract": contract, "failures": failures, "last_reason": shortened(reason),
    });
    RunInput::Json(Value::from(input))
}

/// Returns the largest input that the writer can get. A quotation mark is two bytes in JSON, as few characters are more.
pub(super) fn largest_writer_input(module: &Module, max_prompt: usize) -> RunInput {
    let text = |bytes: usize| "\"".repeat(bytes);
    let failure = json!({
        "input": text(MAX_SHOWN), "answer": text(MAX_SHOWN), "feedback": vec![text(MAX_SHOWN); MAX_LINES],
    });
    writer_input(module, &text(max_prompt), vec![failure; 3], &text(MAX_SHOWN))
}

// Shows cases as examples.

impl Runner<'_> {
    /// Returns the prompt with other examples: one more or another one than before.
    fn with_examples(&self, draft: &Draft<'_>) -> Written {
        let mut random = Random(draft.seed);
        let mut free: Vec<(usize, String)> =
            draft.free.iter().filter_map(|case| Some((*case, example(self.cases.get(*case)?)?))).collect();
        if free.is_empty() {
            return Written::Nothing("no training case that is right can be an example".to_owned());
        }
        random.shuffle(&mut free);
        // Those that the prompt already shows stay first, so that each step changes one or two of them.
        let kept = random.below(MAX_EXAMPLES);
        let mut chosen: Vec<(usize, String)> = Vec::new();
        let (known, new): (Vec<_>, Vec<_>) =
            free.into_iter().partition(|(case, _)| draft.shown.contains(case));
        for (case, text) in known.into_iter().take(kept).chain(new) {
            let size: usize = chosen.iter().map(|(_, text)| text.len()).sum();
            if chosen.len() < MAX_EXAMPLES && size + text.len() <= MAX_EXAMPLE_BYTES {
                chosen.push((case, text));
            }
        }
        if chosen.is_empty() {
            return Written::Nothing("every example is too long".to_owned());
        }
        chosen.sort_unstable();
        let base = self.rules.old.text();
        let base = base.split(&format!("\n{EXAMPLES}\n")).next().unwrap_or(base).trim_end();
        let shown: Vec<&str> = chosen.iter().map(|(_, text)| text.as_str()).collect();
        let prompt = format!("{base}\n\n{EXAMPLES}\n\n{}\n", shown.join("\n\n"));
        Written::Prompt(Proposal { prompt, shown: chosen.iter().map(|(case, _)| *case).collect() })
    }
}

/// Returns a case as an example in a prompt; none if it has no complete answer, or if its text would be a placeholder.
fn example(case: &GoldenCase) -> Option<String> {
    let answer = match &case.expected {
        Expected::Exact(answer) => answer,
        Expected::Schemas { example, .. } | Expected::Assertions { example, .. } => example.as_ref()?,
        _ => return None,
    };
    let data = match answer.get("ok").and_then(Node::as_bool) {
        Some(true) => answer.get("data")?,
        Some(false) => return None,
        None => answer.node(),
    };
    let text = format!("Input: {}\nAnswer: {data}", case.input);
    let is_text = Prompt::parse(&*text).parts().iter().all(|part| matches!(part, PromptPart::Text(_)));
    is_text.then_some(text)
}
