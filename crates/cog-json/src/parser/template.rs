//! The headers of chat templates: channels, roles and recipients.
//!
//! A template marks who speaks: `<|im_start|>assistant`, `<start_of_turn>model`, `<|channel|>final<|message|>`. A header of the
//! assistant begins a message and says nothing about what is in it, unless its channel or its recipient does. What another role
//! says is not the answer.

use crate::parser::markup::{Form, Look, Role, angle, found};

/// The tokens that a role follows, without what only says that they open.
const HEADERS: [&str; 6] = ["header", "header_id", "im", "message", "role", "turn"];

/// The names of the role that answers.
const ASSISTANT: [&str; 5] = ["ai", "assistant", "bot", "chatbot", "model"];

/// The names of all other roles.
const OTHERS: [&str; 9] =
    ["developer", "environment", "function", "human", "ipython", "observation", "system", "tool", "user"];

/// The channels of gpt-oss.
const CHANNELS: [&str; 3] = ["analysis", "commentary", "final"];

/// The name of the marks of a message.
const MESSAGE: &str = "message";

/// Whether a token with this name begins or ends the header of a message.
pub(super) fn is_header(name: &str) -> bool {
    HEADERS.contains(&name)
}

/// Reads a token that is a role itself, such as `<|assistant|>`, or that a role follows, such as `<|im_start|>user`. None for
/// other tokens. `name` is its name, `length` its length in bytes, and `is_full` says that the text goes on after the window.
pub(super) fn role(name: &str, window: &str, length: usize, is_full: bool) -> Option<Look> {
    let own = name.strip_prefix("im_").or_else(|| name.strip_prefix("message_")).unwrap_or(name);
    let is_assistant = ASSISTANT.contains(&own);
    if !is_assistant && !is_header(name) {
        return None;
    }
    let rest = window.get(length..).unwrap_or_default();
    let after = rest.trim_start_matches(|char: char| char.is_ascii_alphabetic());
    let word = rest.get(..rest.len() - after.len()).unwrap_or_default().to_ascii_lowercase();
    let end = match header_end(after) {
        Some(end) => end,
        // What is longer than the window is no header.
        None if is_full => 0,
        None => return Some(Look::Cut),
    };
    let role = match word.as_str() {
        word if ASSISTANT.contains(&word) => Role::End,
        word if is_assistant && (word.is_empty() || end == 0) => {
            return Some(found(Form::Token, MESSAGE, Role::End, length));
        }
        "" => return None,
        word if OTHERS.contains(&word) || end > 0 => Role::Open,
        _ => return None,
    };
    Some(found(Form::Token, MESSAGE, role, length + word.len() + end))
}

/// Returns the length of the token that ends a header after its role: `<|end_header_id|>`, `<|im_middle|>`, `<|message|>`; 0 if
/// another text follows. None if the text ends before that is known.
fn header_end(after: &str) -> Option<usize> {
    match after.chars().next()? {
        '<' => match angle(after, false) {
            Look::Cut => None,
            Look::Mark(mark) if mark.ends_header || mark.name.ends_with("middle") => Some(mark.length),
            // `<|message|>`
            Look::Mark(mark) if mark.role == Role::Neutral && mark.name == MESSAGE => Some(mark.length),
            Look::Mark(_) | Look::None => Some(0),
        },
        _ => Some(0),
    }
}

/// Reads the header of a message of gpt-oss, up to `<|message|>` or the end of its line: the channel, the recipient and the format.
pub(super) fn header(window: &str, length: usize, is_channel: bool, is_full: bool) -> Look {
    const END: &str = "<|message|>";
    let rest = window.get(length..).unwrap_or_default();
    let message = rest.find(END);
    let line = rest.find(['\n', '{']);
    let (header, end) = match (message, line) {
        (Some(message), line) if line.is_none_or(|line| message < line) => (message, message + END.len()),
        (_, Some(line)) => (line, line),
        _ if !is_full => return Look::Cut,
        _ => (rest.len(), 0),
    };
    let header = rest.get(..header).unwrap_or_default();
    let length = length + end;
    // A recipient makes the message a call, whatever its channel.
    if header.contains("to=") {
        return found(Form::Channel, "call", Role::Open, length);
    }
    let channel = match is_channel {
        true => header,
        false => match header.split_once("<|channel|>") {
            Some((_, channel)) => channel,
            None if header.trim() == "assistant" => {
                return found(Form::Channel, MESSAGE, Role::End, length);
            }
            None => "",
        },
    };
    let word = channel.trim_start().split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
    found(Form::Channel, "channel", if word == "final" { Role::Final } else { Role::Open }, length)
}

/// Reads a header whose tokens were not decoded: `assistantfinal`, or at the start of a reply also `analysis` before a capital
/// letter, since the role belongs to the prompt. `before` is all text before it.
pub(super) fn undecoded(before: &str, window: &str) -> Look {
    const ROLE: &str = "assistant";
    const FIRST: &str = "analysis";
    if let Some(rest) = window.strip_prefix(ROLE) {
        return match CHANNELS.into_iter().find(|channel| rest.starts_with(channel)) {
            Some(channel) => {
                let role = if channel == "final" { Role::Final } else { Role::Open };
                found(Form::Channel, "channel", role, ROLE.len() + channel.len())
            }
            None if CHANNELS.iter().any(|channel| channel.starts_with(rest)) => Look::Cut,
            None => Look::None,
        };
    }
    if ROLE.starts_with(window) {
        return Look::Cut;
    }
    // From the end, since a reply may begin with much white space and have this word often.
    if !before.trim_end().is_empty() {
        return Look::None;
    }
    match window.strip_prefix(FIRST).map(|rest| rest.chars().next()) {
        Some(Some('{' | 'A'..='Z')) => found(Form::Channel, "channel", Role::Open, FIRST.len()),
        Some(Some(_)) => Look::None,
        Some(None) => Look::Cut,
        None if FIRST.starts_with(window) => Look::Cut,
        None => Look::None,
    }
}

/// Reads the recipient of a call whose header has no tokens, at its `=`: `to=functions.find`.
pub(super) fn recipient(before: &str, window: &str) -> Look {
    let is_recipient = before
        .strip_suffix("to")
        .is_some_and(|before| !before.ends_with(|last: char| last.is_alphanumeric()));
    if !is_recipient {
        return Look::None;
    }
    let own = window.get(1..).unwrap_or_default();
    let after =
        own.trim_start_matches(|char: char| char.is_alphanumeric() || matches!(char, '.' | '_' | '-'));
    let name = own.get(..own.len() - after.len()).unwrap_or_default();
    if after.is_empty() {
        return Look::Cut;
    }
    // In prose, `to=5` is an assignment.
    let is_tool = name.starts_with(|first: char| first.is_alphabetic())
        && (name.contains('.') || matches!(name, "python" | "browser" | "container"));
    if is_tool { found(Form::Channel, "call", Role::Open, 1 + name.len()) } else { Look::None }
}
