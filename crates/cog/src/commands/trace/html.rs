//! The timeline as one HTML page.

use std::path::Path;

use cog_harmony::{
    Role,
    timeline::{Content, Entry, Timeline},
};
use cog_json::{ToJson as _, Value};

use super::entry::{Bar, author_name, cost, counted, duration, facts, short, tokens, without_status};
use crate::output::{self, Escaped};

const STYLE: &str = include_str!("trace.css");
/// The width of all bars in the units of the image.
const BAR: usize = 1000;
/// The minimum width of a bar.
const MIN_BAR: usize = 4;
/// The columns of a summary.
const SUMMARY: usize = 110;
/// The maximum characters of a part.
const MAX_CHARS: usize = 100_000;

/// Formats the page.
pub(super) fn page(timeline: &Timeline<'_>, file: &Path) -> String {
    let file = file.to_string_lossy();
    let span = timeline.totals.duration_ms.unwrap_or_default();
    let mut body = format!("<h1>Trace <small>{}</small></h1>\n", Escaped(&file));
    body += &head(timeline, span);
    timeline.messages.iter().for_each(|entry| body += &message(entry, span));
    body += &foot(timeline);
    body += "</table>\n</div>\n<h2>Totals</h2>\n<dl>\n";
    for (title, fact) in facts(&timeline.totals) {
        body += &format!("<dt>{title}</dt><dd>{}</dd>\n", Escaped(&fact));
    }
    output::page(&format!("Trace of {file}"), STYLE, &(body + "</dl>\n"))
}

fn head(timeline: &Timeline<'_>, span: u64) -> String {
    let mut head = format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"Messages\" tabindex=\"0\">\n<table>\n\
         <caption>{} in {}. A bar is pale until the first token.</caption>\n<thead><tr>",
        counted(timeline.messages.len(), "message"),
        duration(span)
    );
    for title in ["#", "Message", "Timeline"] {
        head += &format!("<th scope=\"col\">{title}</th>");
    }
    for title in ["Time", "Input", "Output", "Cost"] {
        head += &format!("<th scope=\"col\" class=\"number\">{title}</th>");
    }
    head + "</tr></thead>\n"
}

/// The figures of a message, and its content below.
fn message(entry: &Entry<'_>, span: u64) -> String {
    let role = entry.role;
    let index = entry.index;
    let [input, output, cost] = match &entry.usage {
        Some(usage) => [tokens(usage.input_tokens), tokens(usage.output_tokens), cost(usage.cost_usd)],
        None => Default::default(),
    };
    let time = entry.duration_ms.map(duration).unwrap_or_default();
    let mut text = format!(
        "<tbody id=\"m{index}\" class=\"{role}\">\n<tr><td>{index}</td><th scope=\"rowgroup\">{role} {}</th><td>{}</td>",
        names(entry),
        bar(entry, span)
    );
    for cell in [time, input, output, cost] {
        text += &format!("<td class=\"number\">{cell}</td>");
    }
    text += "</tr>\n<tr><td></td><td colspan=\"6\">\n";
    entry.content.iter().for_each(|part| text += &content(part, entry.is_answer));
    if !entry.flagged.is_empty() {
        text += &format!("<p class=\"failed\">flagged: {}</p>\n", Escaped(&entry.flagged.join(", ")));
    }
    text + "</td></tr>\n</tbody>\n"
}

fn names(entry: &Entry<'_>) -> String {
    let name = author_name(entry).map(|name| format!("<b>{}</b> ", Escaped(name)));
    let model = entry.model.map(|model| format!("<small>{}</small>", Escaped(model)));
    name.into_iter().chain(model).collect()
}

/// The bar as an image, with the times as its text.
fn bar(entry: &Entry<'_>, span: u64) -> String {
    let Some(start) = entry.start_ms else { return String::new() };
    let bar = Bar::new(entry, span, BAR);
    let active = if bar.is_moment { MIN_BAR } else { bar.active.max(MIN_BAR) };
    let first = bar.start.min(BAR - MIN_BAR);
    let length = entry.duration_ms.map(|ms| format!(", {} long", duration(ms))).unwrap_or_default();
    let class = if entry.role == Role::Tool { "call" } else { "model" };
    format!(
        "<svg viewBox=\"0 0 {BAR} 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"at {}{length}\">{}{}</svg>",
        duration(start),
        if bar.waiting > 0 { rect("waiting", first, bar.waiting) } else { String::new() },
        rect(class, first + bar.waiting, active),
    )
}

fn rect(class: &str, x: usize, width: usize) -> String {
    format!("<rect class=\"{class}\" x=\"{x}\" width=\"{width}\" height=\"10\"/>")
}

fn content(content: &Content<'_>, is_answer: bool) -> String {
    match content {
        Content::Text { text } if is_answer => long("<b class=\"passed\">answer</b> ", text, text, true),
        Content::Text { text } => long("", text, text, false),
        Content::Refusal { text } => long("<b class=\"failed\">refusal</b> ", text, text, true),
        Content::Media { kind, description } => {
            format!("<p>{kind}: <bdi>{}</bdi></p>\n", Escaped(description))
        }
        Content::Native { provider } => format!("<p>part of {}</p>\n", Escaped(provider)),
        Content::ToolCall { name, arguments, has_result, .. } => {
            let note = if *has_result { "" } else { " <b class=\"other\">no result</b>" };
            long(&format!("→ <b>{}</b>{note} ", Escaped(name)), arguments, arguments, false)
        }
        Content::ToolResult { status, text, .. } => {
            let status = status.as_deref();
            let word = Escaped(status.unwrap_or("result"));
            let head = format!("← <b class=\"{}\">{word}</b> ", class_of(status));
            long(&head, without_status(text, status), text, false)
        }
        _ => String::new(),
    }
}

fn class_of(status: Option<&str>) -> &'static str {
    match status {
        Some("success") => "passed",
        Some("error") => "failed",
        _ => "other",
    }
}

/// A text after a head, which is HTML: a paragraph, or a summary that opens.
fn long(head: &str, start: &str, text: &str, is_open: bool) -> String {
    let start = short(start, SUMMARY);
    if start == text {
        return format!("<p>{head}<bdi>{}</bdi></p>\n", Escaped(text));
    }
    let open = if is_open { " open" } else { "" };
    let pretty = indented(text);
    let text = pretty.as_deref().unwrap_or(text);
    let (shown, more) = match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => text.split_at(end),
        None => (text, ""),
    };
    let more = match more.chars().count() {
        0 => String::new(),
        count => format!("<p>… {count} more characters</p>\n"),
    };
    format!(
        "<details{open}><summary>{head}<bdi>{}</bdi></summary><pre dir=\"auto\">{}</pre>\n{more}</details>\n",
        Escaped(&start),
        Escaped(shown)
    )
}

/// Returns JSON with line breaks; none for anything else.
fn indented(text: &str) -> Option<String> {
    // A longer one would be cut, and so no JSON any more.
    let is_json = text.len() <= MAX_CHARS && text.trim_start().starts_with(['{', '[']);
    let value = is_json.then(|| Value::parse(text).ok())??;
    Some(value.to_json_pretty())
}

fn foot(timeline: &Timeline<'_>) -> String {
    let totals = &timeline.totals;
    let time = totals.duration_ms.map(duration).unwrap_or_default();
    let [input, output, cost] = match totals.replies {
        0 => Default::default(),
        _ => [tokens(totals.input_tokens), tokens(totals.output_tokens), cost(totals.cost_usd)],
    };
    let mut foot = "<tfoot><tr><td></td><th scope=\"row\" colspan=\"2\">all messages</th>".to_owned();
    for cell in [time, input, output, cost] {
        foot += &format!("<td class=\"number\">{cell}</td>");
    }
    foot + "</tr></tfoot>\n"
}
