//! Reading tags, channels and markers in the text around a document (ruling R82).
//!
//! Models and their templates mark reasoning, tool calls and answers in many ways: `<think>`, `<plan step="1">`,
//! `[TOOL_CALLS]`, `[[notes]]`, `◁think▷`, `<|START_THINKING|>`, `<|channel|>analysis<|message|>`. Names are not listed, because
//! no list is complete: what has the form of a mark is one. The names that are listed only decide where the form alone does
//! not, as in the middle of a sentence. Each check looks at a bounded number of bytes, and the text inside a mark has no `<`,
//! so that searching stays linear.

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
    /// Whether prose has this form too, so that it counts only as one of a pair with an object inside.
    pub(super) is_weak: bool,
    /// Whether it ends the header of a message, such as `<|end_header_id|>`.
    pub(super) ends_header: bool,
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
    /// The line before a block of code: three backticks, and `name`.
    Fence,
    /// `<!--`
    Comment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Open,
    Close,
    /// The header of the channel with the answer.
    Final,
    /// The end of a message or turn, whatever opened it, or the beginning of the next message.
    End,
    /// `<|call|>`, which follows the arguments of a call.
    AfterCall,
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
const VOID: [&str; 7] = ["bos", "br", "eos", "hr", "img", "s", "wbr"];

/// What begins and ends a block of code.
const FENCE: &str = "```";

impl Mark {
    /// Whether it only wraps the answer.
    pub(super) fn is_wrapper(&self) -> bool {
        let is_box = self.form == Form::Token && self.name == "box";
        self.form != Form::Channel && (is_box || WRAPPERS.contains(&self.name.as_str()))
    }

    /// Whether it counts even where it looks like a word of a sentence.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.form, Form::Token | Form::Channel) || self.is_reasoning() || self.is_tool_call()
    }

    /// Whether it has a name in which models are known to reason.
    pub(super) fn is_reasoning(&self) -> bool {
        KNOWN.contains(&self.name.as_str())
    }

    /// Whether it marks a call of a tool or its arguments.
    pub(super) fn is_tool_call(&self) -> bool {
        is_tool_call(&self.name)
    }

    /// Whether it is a fence around code. One around reasoning or a call, such as `tool_code`, is a mark like any other.
    pub(super) fn is_code(&self) -> bool {
        let is_reasoning = ["think", "thought", "reasoning"].iter().any(|part| self.name.contains(part));
        self.form == Form::Fence && !is_reasoning && !self.is_tool_call()
    }
}

fn is_tool_call(name: &str) -> bool {
    const PARTS: [&str; 8] =
        ["tool", "function", "call", "invoke", "args", "argument", "parameter", "python_tag"];
    PARTS.iter().any(|part| name.contains(part)) || matches!(name, "action" | "plugin")
}

/// Returns whether a mark may begin with this byte.
pub(super) fn may_begin(byte: u8) -> bool {
    // `a` of `assistantfinal`, `=` of `to=functions.find`, and the first byte of `◁` and `✿`.
    matches!(byte, b'<' | b'[' | b'`' | b'a' | b'=' | 0xe2)
}

/// Reads the mark at `at`; `is_end` says that the text ends with it.
pub(super) fn read(text: &str, at: usize, is_end: bool) -> Look {
    let (before, rest) = text.split_at_checked(at).unwrap_or_default();
    let window = rest.get(..rest.floor_char_boundary(WINDOW)).unwrap_or_default();
    let is_full = window.len() < rest.len();
    let read = match rest.chars().next() {
        Some('<') => angle(window, is_full),
        Some('[') => square(window, is_end),
        Some('◁') => triangle(window),
        Some('✿') => flower(window),
        Some('`') => fence(window),
        Some('a') => undecoded(before, window),
        Some('=') => recipient(before, window),
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
    let after = text.get(start + mark.length..).unwrap_or_default();
    if is_before_object(after)? {
        return Some(false);
    }
    let mut after = after.chars();
    match after.next()? {
        ' ' => after.next().map(|char| char.is_lowercase() || char.is_ascii_digit()),
        ',' | '.' | ';' | '?' | '!' | ')' => Some(true),
        _ => Some(false),
    }
}

/// Returns whether an object or a fence follows directly: what precedes it encloses it, and is no word of a sentence. `None` if
/// the text ends before that is known.
fn is_before_object(after: &str) -> Option<bool> {
    let window = after.get(..after.floor_char_boundary(WINDOW)).unwrap_or_default();
    let rest = window.trim_start();
    let inner = rest.trim_start_matches('[').trim_start();
    // The white space is bounded, since it is read again with each chunk.
    let is_more = window.len() == after.len();
    match (inner.chars().next(), rest.chars().next()) {
        (None, _) => (!is_more).then_some(false),
        (Some('`'), Some('`')) if is_more && FENCE.starts_with(inner) && inner != FENCE => None,
        (Some('`'), Some('`')) => Some(inner.starts_with(FENCE)),
        (first, _) => Some(first == Some('{')),
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
pub(super) fn angle(window: &str, is_full: bool) -> Look {
    let inner = window.get(1..).unwrap_or_default();
    if inner.starts_with("!--") {
        return found(Form::Comment, "--", Role::Open, 4);
    }
    // `a < b` is a comparison, but `< think >` is none.
    let own = inner.trim_start_matches(' ');
    let is_spaced = own.len() < inner.len();
    let is_closing = own.starts_with('/');
    let own = own.strip_prefix('/').unwrap_or(own).trim_start_matches(' ');
    let look = match own.chars().next() {
        None => Look::Cut,
        Some('!') if !is_spaced && "!--".starts_with(own) => Look::Cut,
        Some(bar) if is_bar(bar) && !is_spaced => {
            token(window, own.get(bar.len_utf8()..).unwrap_or_default(), is_closing, is_full)
        }
        Some(first) if is_name(first) && !first.is_numeric() && !matches!(first, '-' | ':' | '.') => {
            tag(window, own, is_closing, is_full)
        }
        Some(_) => Look::None,
    };
    match look {
        Look::Mark(mark) if is_spaced && !mark.is_known() => Look::None,
        look => look,
    }
}

/// A tag whose name begins `inner`.
fn tag(window: &str, inner: &str, is_closing: bool, is_full: bool) -> Look {
    let rest = inner.trim_start_matches(is_name);
    let name = inner.get(..inner.len() - rest.len()).unwrap_or_default();
    let name_end = window.len() - rest.len();
    let normal = name.to_ascii_lowercase().replace(['-', '▁', '.'], "_");
    let normal = normal.trim_matches(['_', '$']).to_owned();
    let is_known = KNOWN.contains(&normal.as_str()) || is_tool_call(&normal);
    let end = match rest.chars().next() {
        None => return Look::Cut,
        Some('>') => name_end + 1,
        // The `>` is missing.
        Some('{') if is_known => name_end,
        Some(bar) if is_bar(bar) => {
            let length = name_end + bar.len_utf8();
            return match window.get(length..).unwrap_or_default().chars().next() {
                None => Look::Cut,
                Some('>') => closing_token(name, length + 1),
                Some(_) => Look::None,
            };
        }
        Some(char) if char.is_whitespace() || matches!(char, '/' | '=') => {
            match attributes(rest, is_known, is_full) {
                Ok(length) => name_end + length,
                Err(look) => return look,
            }
        }
        Some(_) => return Look::None,
    };
    // Some templates write their tokens as tags: `<start_of_turn>model`, `<end_function_call>`.
    if !is_closing && let Some(look) = token_in_tag(&normal, window, end, is_full) {
        return look;
    }
    let is_empty = window.get(..end).is_some_and(|tag| tag.ends_with("/>"));
    let role = match is_closing {
        // `<s>` and `</s>` begin and end a sequence; HTML that crosses something out is not meant.
        _ if is_empty || VOID.contains(&normal.as_str()) => Role::Neutral,
        true => Role::Close,
        false => Role::Open,
    };
    found(Form::Tag, &normal, role, end)
}

fn token_in_tag(name: &str, window: &str, length: usize, is_full: bool) -> Option<Look> {
    if let Some(role) = reserved(name) {
        return Some(found(Form::Tag, "reserved", role, length));
    }
    if is_end(name) && name.contains('_') {
        return Some(found(Form::Tag, name, Role::End, length));
    }
    let base = base(name);
    if base == name {
        return None;
    }
    if is_header(base) {
        return role(base, window, length, is_full);
    }
    let role = if closes(name) { Role::Close } else { Role::Open };
    (KNOWN.contains(&base) || is_tool_call(base)).then(|| found(Form::Tag, base, role, length))
}

/// Returns the role of a token that a vocabulary reserves. Models open and close their reasoning with two that follow each
/// other: `<unused94>thought … <unused95>` of MedGemma.
fn reserved(name: &str) -> Option<Role> {
    let number: u32 = name.strip_prefix("unused")?.trim_start_matches('_').parse().ok()?;
    Some(if number.is_multiple_of(2) { Role::Open } else { Role::Close })
}

/// Reads what follows the name of a tag, up to `>`. Bare words are no attributes, since `x <y and z> w` is prose, unless the
/// name is known.
fn attributes(rest: &str, is_known: bool, is_full: bool) -> Result<usize, Look> {
    let own = rest.trim_start();
    let is_assigned = own.starts_with('=') && own.len() == rest.len();
    let value = own.trim_start_matches(is_name).trim_start();
    let has_name = value.len() < own.len();
    let is_attribute =
        has_name && value.strip_prefix('=').is_some_and(|value| value.trim_start().starts_with(['"', '\'']));
    match rest.find(['>', '<', '{']) {
        Some(at) if rest.as_bytes().get(at) == Some(&b'>') => {
            let is_ended = matches!(own.as_bytes().first(), Some(b'>')) || own.starts_with("/>");
            let is_tag = is_known || is_ended || is_assigned || has_name && value.starts_with('=');
            if is_tag { Ok(at + 1) } else { Err(Look::None) }
        }
        // An attribute was seen, so it is a tag wherever it ends: a quoted value may have a `<` or a `{`.
        Some(at) if is_attribute => Ok(at),
        Some(at) if is_known && rest.as_bytes().get(at) == Some(&b'{') => Ok(at),
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
        return closed(&name, length);
    }
    if matches!(name.as_str(), "channel" | "start") {
        return header(window, length, name == "channel", is_full);
    }
    if is_end(&name) {
        return found(Form::Token, &name, Role::End, length);
    }
    if closes(&name) {
        return closed(&name, length);
    }
    // The token that begins a sequence says nothing about the text in it. The other two are inside the header of a message.
    let neutral = ["bos", "begin_of_text", "begin_of_sentence", "startoftext", "message", "constrain"];
    if neutral.contains(&name.as_str()) {
        return found(Form::Token, &name, Role::Neutral, length);
    }
    if name == "call" {
        return found(Form::Token, &name, Role::AfterCall, length);
    }
    if let Some(look) = role(base(&name), window, length, is_full) {
        return look;
    }
    found(Form::Token, base(&name), Role::Open, length)
}

fn closing_token(name: &str, length: usize) -> Look {
    let name = normal(name);
    match name.as_str() {
        "channel" => found(Form::Channel, "channel", Role::Close, length),
        name => closed(name, length),
    }
}

/// Returns the closing token with a name. What ends the header of a message, or the message itself, closes no draft of its own.
fn closed(name: &str, length: usize) -> Look {
    let base = base(name);
    match found(Form::Token, base, Role::Close, length) {
        Look::Mark(mark) if is_header(base) => {
            Look::Mark(Mark { role: Role::End, ends_header: true, ..mark })
        }
        look => look,
    }
}

/// At `[`: `[NAME]` or `[[name]]`. Other words in one pair of brackets are usually prose, such as `[note]`.
fn square(window: &str, is_end: bool) -> Look {
    let inner = window.trim_start_matches('[');
    let brackets = window.len() - inner.len();
    let role = if inner.starts_with('/') { Role::Close } else { Role::Open };
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    let rest = inner.trim_start_matches(|char| is_name(char) || char == ' ');
    let name = inner.get(..inner.len() - rest.len()).unwrap_or_default();
    let closing = if brackets == 2 { "]]" } else { "]" };
    if brackets > 2 || inner.starts_with(|first: char| !first.is_alphabetic()) {
        return Look::None;
    }
    if !rest.starts_with(closing) {
        return if closing.starts_with(rest) { Look::Cut } else { Look::None };
    }
    let is_upper = name.chars().all(|char| char.is_ascii_uppercase() || char == '_');
    let lower = name.to_ascii_lowercase().replace(['-', ' '], "_");
    let is_literal = ["true", "false", "null", "none", "nan"].contains(&lower.as_str());
    if name.len() < 3 || is_literal {
        return Look::None;
    }
    let is_known = KNOWN.contains(&lower.as_str()) || lower.contains('_') && is_tool_call(&lower);
    if name.contains(' ') && !is_known {
        return Look::None;
    }
    let is_weak = brackets == 1 && !is_upper && !is_known;
    let length = window.len() - rest.len() + closing.len();
    // `[think](…)` is a link, so that one more character decides.
    match window.get(length..).unwrap_or_default().chars().next() {
        None if !is_end => Look::Cut,
        Some('(') => Look::None,
        _ => match found(Form::Square, &lower, role, length) {
            Look::Mark(mark) => Look::Mark(Mark { is_weak, ..mark }),
            look => look,
        },
    }
}

/// At three backticks: a fence. The closing one, or an opening one without a name, has the empty name.
fn fence(window: &str) -> Look {
    let Some(rest) = window.strip_prefix(FENCE) else {
        return if FENCE.starts_with(window) { Look::Cut } else { Look::None };
    };
    match rest.find(['\n', '{', '`']) {
        None => Look::Cut,
        Some(at) => {
            let name = rest.get(..at).unwrap_or_default().trim();
            let is_line = rest.as_bytes().get(at) == Some(&b'\n');
            if !is_line || name.is_empty() || !name.chars().all(is_name) {
                return found(Form::Fence, "", Role::Close, FENCE.len());
            }
            found(Form::Fence, &name.to_lowercase().replace('-', "_"), Role::Open, FENCE.len() + at)
        }
    }
}

/// At `✿`: the parts of a call, `✿FUNCTION✿: find` and `✿ARGS✿: {…}`, and the answer after `✿RETURN✿`.
fn flower(window: &str) -> Look {
    let inner = window.get('✿'.len_utf8()..).unwrap_or_default();
    let rest = inner.trim_start_matches(|char: char| char.is_ascii_uppercase() || char == '_');
    let name = inner.get(..inner.len() - rest.len()).unwrap_or_default();
    match rest.chars().next() {
        None => Look::Cut,
        Some('✿') if !name.is_empty() => {
            let length = window.len() - rest.len() + '✿'.len_utf8();
            let role = if name == "RETURN" { Role::Final } else { Role::Open };
            found(Form::Channel, "call", role, length)
        }
        Some(_) => Look::None,
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

pub(super) fn found(form: Form, name: &str, role: Role, length: usize) -> Look {
    Look::Mark(Mark { form, name: name.to_owned(), role, length, is_weak: false, ends_header: false })
}

/// Returns the name of a token in one spelling, without attributes.
fn normal(text: &str) -> String {
    let name = text.split([' ', '=']).next().unwrap_or_default();
    let name = name.to_lowercase().replace(['-', '▁', '|', '｜'], "_");
    name.strip_suffix("_token").unwrap_or(&name).to_owned()
}

/// Whether a token with this name closes what another one opened.
fn closes(name: &str) -> bool {
    name.starts_with('/') || name.starts_with("end_") || name.ends_with("_end") || name.ends_with("_suffix")
}

/// Returns the name of a token without what says that it opens or closes.
fn base(name: &str) -> &str {
    let name = name.trim_start_matches('/');
    let openings = ["start_of_", "begin_of_", "end_of_", "start_", "begin_", "end_"];
    let name = openings.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let endings = ["_start", "_begin", "_end", "_prefix", "_suffix"];
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
            | "end_of_sentence"
            | "end_of_message"
    )
}

fn is_bar(char: char) -> bool {
    matches!(char, '|' | '｜')
}

/// Whether a name may have this letter. Models make up their marks, with the letters of other templates and with pictures.
fn is_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | ':' | '.' | '$' | '▁' | '\u{1f000}'..)
}

// The headers of chat templates: channels, roles and recipients.
//
// A template marks who speaks: `<|im_start|>assistant`, `<start_of_turn>model`, `<|channel|>final<|message|>`. A header of the
// assistant begins a message and says nothing about what is in it, unless its channel or its recipient does. What another role
// says is not the answer.

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
fn is_header(name: &str) -> bool {
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
fn undecoded(before: &str, window: &str) -> Look {
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
fn recipient(before: &str, window: &str) -> Look {
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
