//! The answer of a composition, from the results of its parts.

use std::collections::{BTreeMap, HashMap};

use cog_answer::PartsSummary;
use cog_flow::{Answer, Callee, Plan, Results, as_text};
use cog_json::{Node, Object, Value, Writer};
use cog_module::{Prompt, PromptPart};
use cog_provider::{ModelFuture, ModelRequest, Provider, ProviderInfo};
use cog_spec::{
    ErrorBody, FinishReason, Meta, Modality, ModelEvent, PartReport, PartStatus, Risk, RiskRule, RiskValue,
    Usage, Warning,
};

use super::{call::Context, error};
use crate::{
    RunInput,
    provider::{COMPOSITION, reply},
};

/// The answer of the parts.
#[derive(Debug)]
pub(crate) enum CompositionAnswer {
    /// The module's own prompt gives the answer, with these texts instead of its `@call:` and `{{…}}`, in their order.
    Texts(Vec<String>),
    /// The answer: an envelope, which is checked like the reply of a model.
    Envelope(String),
}

/// Returns the answer. `ends_early` is whether a rule of the routing made the result so far the answer.
///
/// # Errors
/// No part has a result (E2004), or a mapping selects too much (E1005).
pub(super) fn answer(
    plan: &Plan,
    results: &Results,
    reports: &Reports,
    ends_early: bool,
) -> Result<CompositionAnswer, ErrorBody> {
    let (meta, data) = match plan.answer {
        Answer::OwnPrompt if !ends_early => return Ok(CompositionAnswer::Texts(plan.prompt_texts(results))),
        Answer::Output if !ends_early => output(plan, results, reports)?,
        _ => result_so_far(plan, results)?,
    };
    let emitted = emitted(plan, reports);
    let mut envelope = String::new();
    Writer::compact(&mut envelope).object(|w| {
        w.field("ok", &true);
        w.field("meta", &meta);
        w.field("data", &data);
        w.optional("_emitted_context", &emitted);
    });
    Ok(CompositionAnswer::Envelope(envelope))
}

/// Returns what the parts have emitted of the types that the module declares. Of several values of a type, the one counts whose
/// part started last.
fn emitted(plan: &Plan, reports: &Reports) -> Option<Value> {
    let rule = &plan.module.manifest.context;
    let mut emitted = Object::default();
    for (name, value) in reports.emitted().flat_map(Value::members) {
        if rule.emitted(name).is_some() && !value.is_null() {
            emitted.insert(name, value.to_value());
        }
    }
    emitted.non_empty()
}

/// Returns the answer of the steps to `output`.
fn output(plan: &Plan, results: &Results, reports: &Reports) -> Result<(Meta, Value), ErrorBody> {
    let data = plan.output(results).map_err(|error| error::mapping(&plan.module, &error))?;
    let Some(data) = data else { return Err(error::no_result(&plan.module)) };
    let own = meta_of(&results.get(Callee::Own));
    let confidence = own.as_ref().map_or_else(|| reports.min_confidence(), |meta| meta.confidence);
    let risk = match plan.module.manifest.risk_rule {
        // The module states the risk itself: with its own prompt, otherwise with its last part.
        RiskRule::Explicit => {
            let stating = own.clone().or_else(|| meta_of(&results.latest()?.1));
            stating.map(|meta| meta.risk)
        }
        RiskRule::MaxChangesRisk | RiskRule::MaxIssuesRisk => reports.max_risk().map(RiskValue::from),
    };
    let explain = own.map_or_else(|| explain(reports), |meta| meta.explain);
    let meta = Meta::new(confidence.or(Some(0.0)), risk.unwrap_or(Risk::Medium.into()), explain);
    Ok((meta, data))
}

fn meta_of(envelope: &Value) -> Option<Meta> {
    envelope.get("meta").and_then(Meta::read)
}

/// Returns the result so far as the answer.
fn result_so_far(plan: &Plan, results: &Results) -> Result<(Meta, Value), ErrorBody> {
    let latest = results.latest().ok_or_else(|| error::no_result(&plan.module))?.1;
    let (Some(meta), Some(data)) = (meta_of(&latest), latest.get("data")) else {
        return Err(error::no_result(&plan.module));
    };
    let mut own = Meta::new(meta.confidence, meta.risk, meta.explain);
    own.extra = meta.extra;
    Ok((own, latest.child(data)))
}

fn explain(reports: &Reports) -> String {
    let parts: Vec<&str> = reports.counted().map(|report| report.path.as_str()).collect();
    let text = format!("The confidence is the minimum of these parts: {}.", parts.join(", "));
    text.chars().take(Meta::MAX_EXPLAIN).collect()
}

/// Returns the data of the parts that have a result, for a composition that fails.
pub(super) fn partial(plan: &Plan, results: &Results) -> Option<Value> {
    let parts = (0..plan.parts.len()).map(Callee::Part);
    let done = parts.chain([Callee::Own]).filter_map(|callee| {
        let envelope = results.get(callee);
        let data = envelope.get("data").map(Node::to_serde)?;
        Some((plan.name_of(callee).to_owned(), data))
    });
    let done: serde_json::Map<_, _> = done.collect();
    (!done.is_empty()).then(|| Value::from(serde_json::Value::Object(done)))
}

// The arguments of a call in a prompt, with their placeholders filled.

/// The maximum length of filled arguments: 64 MB.
const MAX_LEN: usize = 64 << 20;

/// Where JSON text ends: inside a string, or between values.
#[derive(Debug, Clone, Copy, Default)]
struct Quotes {
    is_open: bool,
    is_escaped: bool,
}

/// Returns the input of a call: a JSON object as it is, other text as arguments. None if the text is too long.
///
/// In text that begins with `{`, a placeholder inside a string is escaped, and one outside is a JSON value, so that no
/// value can change the members of the object.
pub(super) fn input(
    plan: &Plan,
    results: &Results,
    context: &Context,
    arguments: &Prompt,
) -> Option<RunInput> {
    let is_json = matches!(arguments.parts(), [PromptPart::Text(text), ..] if text.starts_with('{'));
    let mut text = String::new();
    let mut quotes = Quotes::default();
    for part in arguments.parts() {
        let inserted = match part {
            PromptPart::Text(literal) => {
                quotes = quotes.after(literal);
                literal.clone()
            }
            PromptPart::Reference { module, path, .. } => {
                let found = plan.value_at(results, module, path);
                if is_json && !quotes.is_open { found.to_string() } else { as_text(found.node()) }
            }
            other => {
                let filled = context.fill(other)?;
                if is_json && !quotes.is_open { as_json(filled) } else { filled }
            }
        };
        let is_escaped = is_json && quotes.is_open && !matches!(part, PromptPart::Text(_));
        text += &if is_escaped { escaped(&inserted) } else { inserted };
        if text.len() > MAX_LEN {
            return None;
        }
    }
    let object = Value::parse(&text).ok().filter(|value| value.node().is_object());
    Some(object.map_or(RunInput::Args(text), RunInput::Json))
}

/// Returns JSON as it is, and other text as a JSON string.
fn as_json(text: String) -> String {
    match Value::parse(&text) {
        Ok(_) => text,
        Err(_) => serde_json::Value::from(text).to_string(),
    }
}

/// Returns text as it stands inside a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
}

impl Quotes {
    fn after(self, text: &str) -> Self {
        text.bytes().fold(self, |quotes, byte| match byte {
            _ if quotes.is_escaped => Self { is_escaped: false, ..quotes },
            b'\\' if quotes.is_open => Self { is_escaped: true, ..quotes },
            b'"' => Self { is_open: !quotes.is_open, ..quotes },
            _ => quotes,
        })
    }
}

// The answer of the parts of a composition as the reply of a provider, so that it is checked like any other.

/// The name of the model in `meta.model`.
const PARTS: &str = "parts";

/// A provider whose reply is the answer of the parts.
pub(crate) struct CompositionProvider {
    info: ProviderInfo,
    envelope: String,
}

impl CompositionProvider {
    pub(crate) const MODEL: &str = PARTS;

    /// Creates the provider of this answer.
    pub(crate) fn new(envelope: String) -> Self {
        let mut info = ProviderInfo::new(COMPOSITION, PARTS);
        info.input = Modality::ALL;
        Self { info, envelope }
    }
}

impl Provider for CompositionProvider {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        let events = [ModelEvent::Text(self.envelope.clone()), ModelEvent::Finished(FinishReason::Stop)];
        Box::pin(std::future::ready(Ok(reply(events))))
    }
}

// The reports about the parts of a composition, for `meta.parts`.

/// The reports about the calls of a composition, in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct Reports {
    entries: Vec<Entry>,
    /// What each call has emitted, by its entry.
    emitted: BTreeMap<usize, Value>,
    /// The entry of each path.
    by_path: HashMap<String, usize>,
    /// The number of calls that have ended.
    ended: usize,
    /// The round of the calls that start now; 0 before the rounds and after them.
    pub(super) round: u32,
    /// The round whose results the answer is from.
    pub(super) counted_round: u32,
    warnings: Vec<Warning>,
}

/// The reports about a call and its own parts.
#[derive(Debug)]
struct Entry {
    round: u32,
    reports: Vec<PartReport>,
}

impl Reports {
    /// Adds a call that has started.
    pub(super) fn start(&mut self, report: PartReport) {
        self.by_path.insert(report.path.clone(), self.entries.len());
        self.entries.push(Entry { round: self.round, reports: vec![report] });
    }

    /// Replaces the report about a call by those about its end and its own parts.
    pub(super) fn end(&mut self, reports: Vec<PartReport>) {
        let Some(path) = reports.first().map(|report| &report.path) else { return };
        let entry = self.by_path.get(path).and_then(|index| self.entries.get_mut(*index));
        if let Some(entry) = entry {
            entry.reports = reports;
            self.ended += 1;
        }
    }

    /// Adds what a call has emitted.
    pub(super) fn emit(&mut self, path: &str, emitted: Value) {
        if let Some(index) = self.by_path.get(path) {
            self.emitted.insert(*index, emitted);
        }
    }

    /// Returns what the calls have emitted, in the order in which they started.
    pub(super) fn emitted(&self) -> impl Iterator<Item = &Value> {
        self.emitted.values()
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Returns the number of calls.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of calls that have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended
    }

    /// Returns the reports about the calls that are done, without those about their own parts.
    fn done(&self) -> impl Iterator<Item = (u32, &PartReport)> {
        let reports = self.entries.iter().filter_map(|entry| Some((entry.round, entry.reports.first()?)));
        reports.filter(|(_, report)| report.status == PartStatus::Done)
    }

    /// Returns the finished calls whose results no later round has replaced.
    fn counted(&self) -> impl Iterator<Item = &PartReport> {
        let counted = self.done().filter(|(round, _)| *round == 0 || *round == self.counted_round);
        counted.map(|(_, report)| report)
    }

    /// Ends the composition. Calls that still run are cancelled.
    pub(super) fn close(mut self) -> PartsSummary {
        self.entries.iter_mut().flat_map(|entry| &mut entry.reports).for_each(close);
        PartsSummary {
            usage: self.usage(),
            risk: self.max_risk(),
            reports: self.entries.into_iter().flat_map(|entry| entry.reports).collect(),
            warnings: self.warnings,
        }
    }

    /// Returns the tokens and the cost of all calls. The cost is unknown if the cost of one call is.
    fn usage(&self) -> Option<Usage> {
        let usages = self.entries.iter().filter_map(|entry| entry.reports.first()?.usage.clone());
        usages.reduce(|sum, usage| sum.plus(&usage))
    }

    /// Returns the smallest confidence of the calls whose results count.
    pub(super) fn min_confidence(&self) -> Option<f64> {
        self.counted().filter_map(|report| report.confidence).min_by(f64::total_cmp)
    }

    /// Returns the greatest risk of the calls that are done.
    pub(super) fn max_risk(&self) -> Option<Risk> {
        self.done().filter_map(|(_, report)| report.risk).max()
    }
}

/// Ends a call that was dropped. Its tokens are unknown.
fn close(report: &mut PartReport) {
    if report.status == PartStatus::Running {
        report.status = PartStatus::Cancelled;
        report.usage = Some(Usage { uncounted_calls: Some(1), ..Usage::default() });
    }
}

/// Returns `style: done, confidence 0.93, $0.01`.
pub(super) fn describe(report: &PartReport) -> String {
    let mut text = format!("{}: {}", report.path, report.status);
    if let Some(error) = &report.error {
        text += &format!(", {}: {}", error.code, error.message);
    }
    if let Some(confidence) = report.confidence {
        text += &format!(", confidence {confidence:.2}");
    }
    if let Some(cost) = report.usage.as_ref().and_then(|usage| usage.cost) {
        text += &format!(", {cost}");
    }
    text
}
