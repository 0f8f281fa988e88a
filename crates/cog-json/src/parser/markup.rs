//! Reading tags, channels and markers in the text around a document (ruling R82).
//!
//! Models and their templates mark reasoning, tool calls and answers in many ways: `<think>`, `<plan step="1">`,
//! `[TOOL_CALLS]`, `[[notes]]`, `◁think▷`, `<|START_THINKING|>`, `<|channel|>analysis<|message|>`. Names are not listed, because
//! no list is complete: what has the form of a mark is one. Each check looks at a bounded number of bytes, and the text
//! inside a mark has no `<`, so that searching stays linear.

/// What is at an offset of the text.
pub(super) enum Look {
    Mark(Mark),
    /// The text ends where it may become a mark.
    Cut,
    None,
}

/// A tag, a channel or a marker.
pub(super) struct Mark {
    pub(super) form: Form,
    /// The name in lower case, without what only says that it opens or closes.
    pub(super) name: String,
    pub(super) role: Role,
    /// The length in bytes.
    pub(super) length: usize,
}

/// How a mark is written. A mark is only closed by one of the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `<name>`
    Tag,
    /// `<|name|>`, `<|name>`, `<name|>`
    Token,
    /// The header of a message: `<|channel|>analysis<|message|>`, `<|channel>thought`
    Channel,
    /// `[NAME]`, `[[name]]`
    Square,
    /// `◁name▷`
    Triangle,
    /// `<!--`
    Comment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Open,
    Close,
    /// The header of the channel with the answer.
    Final,
    /// The end of a message or turn, whatever opened it.
    End,
    /// Neither opens nor closes: `<br>`, `<x/>`, `<|message|>`.
    Neutral,
}

/// The maximum number of bytes of a mark.
const WINDOW: usize = 256;

/// The tags that only wrap the answer.
const WRAPPERS: [&str; 6] = ["answer", "output", "response", "result", "final", "json"];

/// Names in which models are known to write what is not their answer. They count even inside a sentence.
const KNOWN: [&str; 19] = [
    "analysis",
    "chain_of_thought",
    "cot",
    "deliberation",
    "inner_monologue",
    "inner_thoughts",
    "internal_monologue",
    "monologue",
    "plan",
    "planning",
    "reasoning",
    "reflection",
    "scratch_pad",
    "scratchpad",
    "seed:think",
    "think",
    "thinking",
    "thought",
    "thoughts",
];

/// Elements of HTML that never enclose anything, and the tokens that begin and end a sequence, such as `<s>` and `</s>`.
const VOID: [&str; 8] = ["bos", "br", "eos", "hr", "img", "input", "s", "wbr"];

impl Mark {
    /// Whether it only wraps the answer.
    pub(super) fn is_wrapper(&self) -> bool {
        let is_box = self.form == Form::Token && self.name == "box";
        self.form != Form::Channel && (is_box || WRAPPERS.contains(&self.name.as_str()))
    }

    /// Whether it counts even where it looks like a word of a sentence.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.form, Form::Token | Form::Channel)
            || KNOWN.contains(&self.name.as_str())
            || self.is_tool_call()
    }

    /// Whether it marks a call of a tool or its arguments.
    pub(super) fn is_tool_call(&self) -> bool {
        ["tool", "function", "call", "invoke", "args", "argument", "parameter", "python_tag"]
            .iter()
            .any(|word| self.name.contains(word))
    }
}

/// Returns whether a mark may begin with this byte.
pub(super) fn may_begin(byte: u8) -> bool {
    // The last one is the first byte of `◁`.
    matches!(byte, b'<' | b'[' | 0xe2)
}

/// Reads a mark at the start of `rest`; `is_end` says that the text ends with it.
pub(super) fn read(rest: &str, is_end: bool) -> Look {
    let window = rest.get(..rest.floor_char_boundary(WINDOW)).unwrap_or_default();
    let is_full = window.len() < rest.len();
    let read = match rest.chars().next() {
        Some('<') => angle(window, is_full),
        Some('[') => square(window, is_end),
        Some('◁') => triangle(window),
        _ => return Look::None,
    };
    match read {
        // What is longer than the window is prose. Waiting for its end would hold back the answer, and examine the text
        // again with each chunk.
        Look::Cut if is_full || is_end => Look::None,
        read => read,
    }
}

/// Returns whether `mark`, which is at `start`, is only mentioned: it is quoted, glued to a word, or in a sentence like a word.
/// `None` if the text ends before that is known.
pub(super) fn is_mention(text: &str, start: usize, mark: &Mark) -> Option<bool> {
    if is_quoted(text, start, mark)? {
        return Some(true);
    }
    let before = text.get(text.floor_char_boundary(start.saturating_sub(WINDOW))..start).unwrap_or_default();
    let word = before.trim_end_matches([' ', '\t', '\r']);
    let is_glued = word.len() == before.len();
    match word.chars().next_back() {
        // At the start of a line, or after another mark.
        None | Some('\n' | '>' | ']' | '▷') => return Some(false),
        Some('"' | '\'' | '`' | '“' | '‘' | '(') if is_glued => {}
        // `Vec<u8>` opens nothing, but what a tag closes usually ends with a word.
        Some(last) if is_glued => return Some(mark.role == Role::Open && last.is_alphanumeric()),
        Some(_) => {}
    }
    let mut after = text.get(start + mark.length..).unwrap_or_default().chars();
    match after.next()? {
        ' ' => after.next().map(|char| char.is_lowercase() || char.is_ascii_digit()),
        ',' | '.' | ';' | '?' | '!' | ')' => Some(true),
        _ => Some(false),
    }
}

/// Returns whether `mark`, which is at `start`, has quotes on both sides. One quote is not enough: reasoning often ends with
/// one, as in `so it is "yes"</think>`. `None` if the text ends before that is known.
pub(super) fn is_quoted(text: &str, start: usize, mark: &Mark) -> Option<bool> {
    let before = text.get(..start).and_then(|before| before.chars().next_back());
    let closing = match before {
        Some(quote @ ('"' | '\'' | '`')) => quote,
        Some('“') => '”',
        Some('‘') => '’',
        _ => return Some(false),
    };
    let after = text.get(start + mark.length..).unwrap_or_default();
    after.chars().next().map(|next| next == closing)
}

/// Returns the first offset from `from` on at which a comment ends, or otherwise the offset to search from next.
pub(super) fn end_of_comment(text: &str, from: usize) -> Result<usize, usize> {
    const END: &str = "-->";
    match text.get(from..).unwrap_or_default().find(END) {
        Some(at) => Ok(from + at + END.len()),
        None => Err(text.floor_char_boundary(from.max(text.len().saturating_sub(END.len())))),
    }
}

/// At `<`: a tag, a token or a comment. `is_full` says that the text goes on after the window.
fn angle(window: &str, is_full: bool) -> Look {
    let inner = window.get(1..).unwrap_or_default();
    if inner.starts_with("!--") {
        return found(Form::Comment, "--", Role::Open, 4);
    }
    let is_closing = inner.starts_with('/');
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    match inner.chars().next() {
        None => Look::Cut,
        Some('!') if "!--".starts_with(inner) => Look::Cut,
        Some(bar) if is_bar(bar) => {
            token(window, inner.get(bar.len_utf8()..).unwrap_or_default(), is_closing, is_full)
        }
        Some(first) if first.is_alphabetic() => tag(window, inner, is_closing, is_full),
        Some(_) => Look::None,
    }
}

/// A tag whose name begins `inner`.
fn tag(window: &str, inner: &str, is_closing: bool, is_full: bool) -> Look {
    let rest = inner.trim_start_matches(is_name);
    let name = inner.get(..inner.len() - rest.len()).unwrap_or_default();
    let name_end = window.len() - rest.len();
    let end = match rest.chars().next() {
        None => return Look::Cut,
        Some('>') => name_end + 1,
        Some(bar) if is_bar(bar) => {
            let length = name_end + bar.len_utf8();
            return match window.get(length..).unwrap_or_default().chars().next() {
                None => Look::Cut,
                Some('>') => closing_token(name, length + 1),
                Some(_) => Look::None,
            };
        }
        Some(char) if char.is_whitespace() || matches!(char, '/' | '=') => match attributes(rest, is_full) {
            Ok(length) => name_end + length,
            Err(look) => return look,
        },
        Some(_) => return Look::None,
    };
    let is_empty = window.get(..end).is_some_and(|tag| tag.ends_with("/>"));
    let name = name.to_ascii_lowercase().replace('-', "_");
    let role = match is_closing {
        // `<s>` and `</s>` begin and end a sequence; HTML that crosses something out is not meant.
        _ if is_empty || VOID.contains(&name.as_str()) => Role::Neutral,
        true => Role::Close,
        false => Role::Open,
    };
    found(Form::Tag, &name, role, end)
}

/// Reads what follows the name of a tag, up to `>`. Bare words are no attributes, since `x <y and z> w` is prose.
fn attributes(rest: &str, is_full: bool) -> Result<usize, Look> {
    let own = rest.trim_start();
    let is_assigned = own.starts_with('=') && own.len() == rest.len();
    let value = own.trim_start_matches(is_name).trim_start();
    let has_name = value.len() < own.len();
    let is_attribute =
        has_name && value.strip_prefix('=').is_some_and(|value| value.trim_start().starts_with(['"', '\'']));
    match rest.find(['>', '<', '{']) {
        Some(at) if rest.as_bytes().get(at) == Some(&b'>') => {
            let is_ended = matches!(own.as_bytes().first(), Some(b'>')) || own.starts_with("/>");
            let is_tag = is_ended || is_assigned || has_name && value.starts_with('=');
            if is_tag { Ok(at + 1) } else { Err(Look::None) }
        }
        // An attribute was seen, so it is a tag wherever it ends: a quoted value may have a `<` or a `{`.
        Some(at) if is_attribute => Ok(at),
        Some(_) => Err(Look::None),
        None if is_attribute && is_full => Ok(rest.len()),
        None => Err(Look::Cut),
    }
}

/// A token whose text after its first bar begins `inner`. Some tokenizers write `｜` and `▁`.
fn token(window: &str, inner: &str, is_closing: bool, is_full: bool) -> Look {
    let first = inner.chars().next();
    if first.is_some_and(|first| !first.is_alphanumeric() && first != '/') {
        return Look::None;
    }
    let Some(at) = inner.find(['>', '<', '{', '}', '\n']) else { return Look::Cut };
    let text = inner.get(..at).unwrap_or_default();
    // `|a| <|b| and b > 0` is mathematics.
    if inner.as_bytes().get(at) != Some(&b'>') || text.contains("| ") {
        return Look::None;
    }
    let length = window.len() - inner.len() + at + 1;
    let name = normal(text.trim_end_matches(is_bar));
    if is_closing {
        return found(Form::Token, base(&name), Role::Close, length);
    }
    if matches!(name.as_str(), "channel" | "start") {
        return header(window, length, name == "channel", is_full);
    }
    // The token that begins a sequence says nothing about the text in it. The other two are inside the header of a message.
    let neutral = ["bos", "begin_of_text", "begin_of_sentence", "startoftext", "message", "constrain"];
    if neutral.contains(&name.as_str()) {
        return found(Form::Token, &name, Role::Neutral, length);
    }
    if is_end(&name) {
        return found(Form::Token, &name, Role::End, length);
    }
    let closes = name.starts_with('/') || name.starts_with("end_") || name.ends_with("_end");
    found(Form::Token, base(&name), if closes { Role::Close } else { Role::Open }, length)
}

fn closing_token(name: &str, length: usize) -> Look {
    let name = normal(name);
    match name.as_str() {
        "channel" => found(Form::Channel, "channel", Role::Close, length),
        name => found(Form::Token, base(name), Role::Close, length),
    }
}

/// The header of a message, up to `<|message|>` or the end of its line: the channel, the recipient and the format.
fn header(window: &str, length: usize, is_channel: bool, is_full: bool) -> Look {
    const MESSAGE: &str = "<|message|>";
    let rest = window.get(length..).unwrap_or_default();
    let message = rest.find(MESSAGE);
    let line = rest.find(['\n', '{']);
    let (header, end) = match (message, line) {
        (Some(message), line) if line.is_none_or(|line| message < line) => (message, message + MESSAGE.len()),
        (_, Some(line)) => (line, line),
        _ if !is_full => return Look::Cut,
        _ => (rest.len(), 0),
    };
    let header = rest.get(..header).unwrap_or_default();
    let channel = match is_channel {
        true => header,
        false => header.split_once("<|channel|>").map_or("", |(_, channel)| channel),
    };
    let word = channel.trim_start().split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
    // A recipient makes the message a call, whatever its channel.
    let is_call = header.contains("to=");
    let role = if word == "final" && !is_call { Role::Final } else { Role::Open };
    found(Form::Channel, if is_call { "call" } else { "channel" }, role, length + end)
}

/// At `[`: `[NAME]` or `[[name]]`. Other words in one pair of brackets are prose, such as `[Note]`.
fn square(window: &str, is_end: bool) -> Look {
    let inner = window.trim_start_matches('[');
    let brackets = window.len() - inner.len();
    let role = if inner.starts_with('/') { Role::Close } else { Role::Open };
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    let rest = inner.trim_start_matches(is_name);
    let name = inner.get(..inner.len() - rest.len()).unwrap_or_default();
    let closing = if brackets == 2 { "]]" } else { "]" };
    if brackets > 2 || inner.starts_with(|first: char| !first.is_alphabetic()) {
        return Look::None;
    }
    if !rest.starts_with(closing) {
        return if closing.starts_with(rest) { Look::Cut } else { Look::None };
    }
    let is_upper = name.chars().all(|char| char.is_ascii_uppercase() || char == '_');
    let lower = name.to_ascii_lowercase().replace('-', "_");
    let is_literal = ["true", "false", "null", "none", "nan"].contains(&lower.as_str());
    if name.len() < 3 || is_literal || !(brackets == 2 || is_upper || KNOWN.contains(&lower.as_str())) {
        return Look::None;
    }
    let length = window.len() - rest.len() + closing.len();
    // `[think](…)` is a link, so that one more character decides.
    match window.get(length..).unwrap_or_default().chars().next() {
        None if !is_end => Look::Cut,
        Some('(') => Look::None,
        _ => found(Form::Square, &lower, role, length),
    }
}

/// At `◁`.
fn triangle(window: &str) -> Look {
    let inner = window.get('◁'.len_utf8()..).unwrap_or_default();
    let role = if inner.starts_with('/') { Role::Close } else { Role::Open };
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    let rest = inner.trim_start_matches(is_name);
    let name = inner.get(..inner.len() - rest.len()).unwrap_or_default();
    match rest.chars().next() {
        None => Look::Cut,
        Some('▷') if !name.is_empty() => {
            let length = window.len() - rest.len() + '▷'.len_utf8();
            found(Form::Triangle, &name.to_lowercase(), role, length)
        }
        Some(_) => Look::None,
    }
}

fn found(form: Form, name: &str, role: Role, length: usize) -> Look {
    Look::Mark(Mark { form, name: name.to_owned(), role, length })
}

/// Returns the name of a token in one spelling, without attributes.
fn normal(text: &str) -> String {
    let name = text.split([' ', '=']).next().unwrap_or_default();
    name.to_lowercase().replace(['-', '▁', '|', '｜'], "_")
}

/// Returns the name of a token without what says that it opens or closes.
fn base(name: &str) -> &str {
    let name = name.trim_start_matches('/');
    let openings = ["start_of_", "begin_of_", "end_of_", "start_", "begin_", "end_"];
    let name = openings.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let endings = ["_start", "_begin", "_end"];
    endings.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Returns whether a token ends a message, a turn or the text.
fn is_end(name: &str) -> bool {
    matches!(
        name,
        "end"
            | "return"
            | "eos"
            | "eod"
            | "eot"
            | "eot_id"
            | "eom_id"
            | "im_end"
            | "endoftext"
            | "endofprompt"
            | "end_of_text"
            | "end_text"
            | "end_of_turn"
            | "end_of_turn_token"
            | "end_of_sentence"
            | "end_of_message"
    )
}

fn is_bar(char: char) -> bool {
    matches!(char, '|' | '｜')
}

fn is_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | ':')
}
