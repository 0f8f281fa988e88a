//! The card of an envelope: module, confidence, risk and explanation, then the data.

use cog_host::settings::show_duration;
use cog_json::{Kind, Node};
use cog_module::Module;
use cog_spec::{Code, Envelope, ErrorBody, Meta, Outcome, RiskValue, RuntimeMeta, Warning};

use super::{
    Palette,
    text::{printable, printable_lines, truncate},
    wrap,
};

/// Formats an envelope for a terminal; `module` is none if it was not loaded.
pub(crate) fn card(envelope: &Envelope, module: Option<&Module>, layout: Layout) -> String {
    let mut text = head(envelope, module, layout.palette);
    match &envelope.outcome {
        Outcome::Success { data } => {
            text += &summary(&envelope.meta, layout);
            text += &format!("\n{}", layout.tree(data.node(), 0));
        }
        Outcome::Failure { error, partial_data } => {
            text += &failure(error, layout);
            if let Some(partial) = partial_data {
                text += &format!(
                    "\n{}\n{}",
                    layout.palette.dim("partial answer"),
                    layout.tree(partial.node(), 2)
                );
            }
        }
    }
    text + &notes(envelope, layout)
}

/// `code-reviewer 1.0.0 · decision · openai/gpt-…`.
fn head(envelope: &Envelope, module: Option<&Module>, palette: Palette) -> String {
    let mut parts = Vec::new();
    if let Some(module) = module {
        parts.push(format!(
            "{} {}",
            palette.bold(&module.manifest.name),
            palette.dim(&module.manifest.version)
        ));
        parts.extend(module.manifest.tier.map(|tier| tier.to_string()));
    }
    parts.extend(envelope.meta.runtime.model.as_deref().map(printable));
    if parts.is_empty() { String::new() } else { format!("{}\n", parts.join(&palette.dim(" · "))) }
}

/// Formats confidence, risk and explanation.
fn summary(meta: &Meta, layout: Layout) -> String {
    let palette = layout.palette;
    let mut text = format!("{}   {}\n", confidence(meta.confidence, palette), risk(&meta.risk, palette));
    for line in wrap(&meta.explain, layout.width) {
        text += &format!("{line}\n");
    }
    text
}

const BAR: usize = 10;

fn confidence(value: Option<f64>, palette: Palette) -> String {
    let Some(value) = value else { return format!("confidence {}", palette.dim("unknown")) };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of ten cells")]
    let full = (value.clamp(0.0, 1.0) * BAR as f64).floor() as usize;
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR.saturating_sub(full)));
    let bar = match value {
        value if value >= 0.9 => palette.success(bar),
        value if value >= 0.5 => palette.warning(bar),
        _ => palette.error(bar),
    };
    format!("confidence {bar} {value:.2}")
}

fn risk(risk: &RiskValue, palette: Palette) -> String {
    let word = match risk {
        RiskValue::Level(level) => level.as_str(),
        RiskValue::Custom { custom, .. } => custom,
    };
    format!("risk {}", palette.risk(risk.level(), printable(word)))
}

fn failure(error: &ErrorBody, layout: Layout) -> String {
    let palette = layout.palette;
    let name = error.code.as_str().parse::<Code>().map(Code::name).unwrap_or_default();
    let mut text = format!("{} {}\n", palette.error(error.code.as_str()), palette.bold(name));
    let violations = violations(error);
    for line in wrap(without(&violations, &error.attributed_message()), layout.width) {
        text += &format!("{line}\n");
    }
    for violation in violations {
        let lines = wrap(&violation, layout.width.saturating_sub(4));
        text += &format!("  {} {}\n", palette.dim("-"), lines.join("\n    "));
    }
    if let Some(suggestion) = &error.suggestion {
        text += &format!("{} {}\n", palette.name("help:"), printable_lines(suggestion));
    }
    text
}

/// Returns the message without the violations that are listed below it.
fn without<'a>(violations: &[String], message: &'a str) -> &'a str {
    // The runtime's message ends with the violations, and the card lists them.
    let listed = violations.first().and_then(|first| message.split_once(first.as_str()));
    let head = listed.map_or("", |(head, _)| head.trim_end_matches([':', ' ']));
    if head.is_empty() { message } else { head }
}

/// Returns `details.violations` if there are several; a single one is in the message.
fn violations(error: &ErrorBody) -> Vec<String> {
    let list = error.details.as_ref().and_then(|details| details.get("violations"));
    let lines: Vec<String> = list
        .into_iter()
        .flat_map(Node::elements)
        .map(|violation| {
            printable(&format!("{}: {}", string(violation, "path"), string(violation, "message")))
        })
        .collect();
    if lines.len() > 1 { lines } else { Vec::new() }
}

fn string<'a>(node: Node<'a>, key: &str) -> &'a str {
    node.get(key).and_then(Node::as_str).unwrap_or_default()
}

/// Formats warnings, repairs, time, tokens and cost.
fn notes(envelope: &Envelope, layout: Layout) -> String {
    let palette = layout.palette;
    let runtime = &envelope.meta.runtime;
    let mut text = String::new();
    for Warning { code, message, .. } in &envelope.warnings {
        let lines = wrap(message, layout.width.saturating_sub(6));
        text += &format!("{} {}\n", palette.warning(code), lines.join("\n      "));
    }
    for repair in &runtime.repairs {
        let place = if repair.path.is_empty() { "the reply" } else { &repair.path };
        text += &format!("{}\n", palette.dim(format_args!("repaired {place}: {}", repair.rule.as_str())));
    }
    let facts = facts(runtime);
    if !facts.is_empty() {
        text += &format!("{}\n", palette.dim(facts.join(" · ")));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Returns the time, the tokens, the cost and the attempts, as far as they are known.
fn facts(runtime: &RuntimeMeta) -> Vec<String> {
    let usage = runtime.usage.as_ref();
    let facts = [
        runtime.processing_time_ms.map(|ms| show_duration(std::time::Duration::from_millis(ms.max(1)))),
        usage.map(|usage| format!("{} + {} tokens", usage.input_tokens, usage.output_tokens)),
        usage.and_then(|usage| usage.cost).map(|cost| cost.to_string()),
        runtime.attempts.map(|attempts| format!("{attempts} attempts")),
    ];
    facts.into_iter().flatten().collect()
}

// A JSON value as an indented tree, without brackets and quotes.

/// A longer text without spaces, in bytes, is truncated: media as base64.
const MAX_UNBROKEN: usize = 1024;

/// The format of a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Its colours.
    pub(crate) palette: Palette,
    /// The width of the terminal.
    pub(crate) width: usize,
}

impl Layout {
    /// Formats the value as lines, indented by `indent` columns.
    pub(crate) fn tree(self, node: Node<'_>, indent: usize) -> String {
        let mut lines = Lines { layout: self, text: String::new() };
        lines.value(node, indent);
        lines.text
    }
}

struct Lines {
    layout: Layout,
    text: String,
}

impl Lines {
    fn value(&mut self, node: Node<'_>, indent: usize) {
        match node.kind() {
            Kind::Object if !node.is_empty() => {
                node.members().for_each(|(key, value)| self.member(key, value, indent));
            }
            Kind::Array if !node.is_empty() => {
                node.elements().for_each(|value| self.element(value, indent));
            }
            _ => self.scalar(node, indent, indent),
        }
    }

    fn member(&mut self, key: &str, value: Node<'_>, indent: usize) {
        let key = printable(key);
        self.start(indent);
        self.text += &format!("{}:", self.layout.palette.name(&key));
        if is_container(value) {
            self.text.push('\n');
            self.value(value, indent + 2);
        } else {
            self.text.push(' ');
            self.scalar(value, indent + super::width(&key) + 2, indent + 2);
        }
    }

    /// Formats `- ` and the element; an object's first member goes on the same line.
    fn element(&mut self, value: Node<'_>, indent: usize) {
        if !is_container(value) {
            self.start(indent);
            self.text += "- ";
            return self.scalar(value, indent + 2, indent + 2);
        }
        let from = self.text.len();
        self.value(value, indent + 2);
        // The dash goes into the indentation of the first line.
        self.text.replace_range(from..from + indent + 2, &format!("{}- ", " ".repeat(indent)));
    }

    /// Formats a value on the current line at column `at`; further lines are indented by `indent`.
    fn scalar(&mut self, node: Node<'_>, at: usize, indent: usize) {
        let palette = self.layout.palette;
        let Some(text) = node.as_str().filter(|text| !text.is_empty()) else {
            return self.text.push_str(&format!("{}\n", palette.bold(node)));
        };
        if text.len() > MAX_UNBROKEN && !text.contains(char::is_whitespace) {
            let length = text.chars().count();
            let shown = printable(&truncate(text, 25));
            return self.text.push_str(&format!("{shown} ({length} characters)\n"));
        }
        if !text.contains('\n') && at + super::width(text) <= self.layout.width {
            return self.text.push_str(&format!("{}\n", printable(text)));
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
        for line in wrap(text, self.layout.width.saturating_sub(indent).max(20)) {
            if !line.is_empty() {
                self.start(indent);
            }
            self.text += &format!("{line}\n");
        }
    }

    fn start(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }
}

fn is_container(node: Node<'_>) -> bool {
    (node.is_object() || node.is_array()) && !node.is_empty()
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::{Amount, Cost, Currency, PriceDate, PriceSource, Usage};

    use super::*;

    #[test]
    fn shows_tokens_and_their_cost_if_it_is_known() {
        let cost = Cost {
            amount: Amount::new(0.001_234).unwrap(),
            currency: Currency::Usd,
            source: PriceSource::GenaiPrices,
            date: PriceDate::new("2026-11-22").unwrap(),
        };
        let shown = |cost| {
            let usage = Usage { input_tokens: 10, output_tokens: 5, cost, ..Usage::default() };
            let mut runtime = RuntimeMeta::default();
            (runtime.usage, runtime.attempts) = (Some(usage), Some(2));
            facts(&runtime)
        };
        assert_eq!(shown(Some(cost)), ["10 + 5 tokens", "$0.00123", "2 attempts"]);
        assert_eq!(shown(None), ["10 + 5 tokens", "2 attempts"]);
    }

    fn tree(json: &str) -> String {
        let layout = Layout { palette: Palette::new(false), width: 40 };
        layout.tree(Value::parse(json).unwrap().node(), 0)
    }

    #[test]
    fn one_member_per_line() {
        assert_eq!(tree(r#"{"a": "x", "b": {"c": 1.50, "d": null}}"#), "a: x\nb:\n  c: 1.50\n  d: null\n");
    }

    #[test]
    fn truncates_base64() {
        let json = format!(r#"{{"data": "{}"}}"#, "QUJD".repeat(300));
        assert_eq!(tree(&json), format!("data: {}… (1200 characters)\n", "QUJD".repeat(6)));
    }

    #[test]
    fn marks_elements_with_dashes() {
        let text = tree(r#"{"a": ["x", {"b": 1, "c": [2]}, [], {}]}"#);
        assert_eq!(text, "a:\n  - x\n  - b: 1\n    c:\n      - 2\n  - []\n  - {}\n");
    }

    #[test]
    fn wraps_long_text_below_its_key() {
        let text = tree(r#"{"why": "a text that is longer than the terminal is wide", "n": 1}"#);
        assert_eq!(text, "why:\n  a text that is longer than the\n  terminal is wide\nn: 1\n");
    }

    #[test]
    fn preserves_line_breaks() {
        assert_eq!(tree(r#"{"code": "one\n\n  two"}"#), "code:\n  one\n\n    two\n");
        assert_eq!(tree(r#"{"empty": ""}"#), "empty: \"\"\n");
    }
}
