//! Parses the prompt once (docs/spec/modules.md, *Placeholders*).

use std::{ops::Range, time::Duration};

use cog_schema::nearest;
use cog_spec::Tier;
use thiserror::Error;

use crate::{diagnostic::shown, name::is_module_name};

/// A prompt: its source text, and its parts.
///
/// The parts, concatenated with [`PromptPart::raw`], equal the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    text: String,
    parts: Vec<PromptPart>,
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptPart {
    /// Literal text.
    Text(String),
    /// `$ARGUMENTS`: the text of `--args`, otherwise the input's `$ARGUMENTS` or `query`.
    Arguments,
    /// `$ARGUMENTS[n]` or `$n`: a word of that text, counted from 0.
    Word {
        /// The index of the word, from 0.
        index: usize,
        /// Whether it is written as `$n`.
        short: bool,
    },
    /// `$INPUT`: the input as JSON.
    Input,
    /// `$MEDIA_INPUTS`: the position of the media.
    MediaInputs,
    /// `@call:NAME(ARGUMENTS)[OPTIONS]`: the result of another module (docs/spec/composition.md).
    Call(Call),
    /// `{{NAME.path}}`: a value from the result of a module that was called before.
    Reference {
        /// The module.
        module: String,
        /// The path in its envelope, without the leading dot.
        path: String,
        /// The source text.
        raw: String,
    },
}

impl Prompt {
    /// Parses a prompt. There are no errors: everything except placeholders is text.
    pub fn parse(text: impl Into<String>) -> Self {
        let text = text.into();
        let parts = parts(&text);
        Self { text, parts }
    }

    /// Returns the source.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the parts, in order; texts are never adjacent.
    pub fn parts(&self) -> &[PromptPart] {
        &self.parts
    }

    /// Returns the parts with their byte ranges in the source.
    pub fn located(&self) -> impl Iterator<Item = (Range<usize>, &PromptPart)> {
        self.parts.iter().scan(0, |start, part| {
            let range = *start..*start + part.raw().len();
            *start = range.end;
            Some((range, part))
        })
    }

    /// Returns whether a placeholder includes the input, which is then not sent separately.
    pub fn places_input(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| matches!(part, PromptPart::Arguments | PromptPart::Word { .. } | PromptPart::Input))
    }

    /// Returns whether the prompt has a placeholder for media.
    pub fn places_media(&self) -> bool {
        self.parts.contains(&PromptPart::MediaInputs)
    }
}

impl PromptPart {
    /// Returns the source text of the part.
    pub fn raw(&self) -> String {
        match self {
            PromptPart::Text(text) => text.clone(),
            PromptPart::Arguments => "$ARGUMENTS".to_owned(),
            PromptPart::Word { index, short: true } => format!("${index}"),
            PromptPart::Word { index, short: false } => format!("$ARGUMENTS[{index}]"),
            PromptPart::Input => "$INPUT".to_owned(),
            PromptPart::MediaInputs => "$MEDIA_INPUTS".to_owned(),
            PromptPart::Call(call) => call.raw.clone(),
            PromptPart::Reference { raw, .. } => raw.clone(),
        }
    }
}

/// Splits text at its placeholders, in one pass.
fn parts(text: &str) -> Vec<PromptPart> {
    // One pass over the author's text. Inputs and results are filled in later and never scanned, so that what a user
    // or a model writes cannot become a placeholder or a call.
    let mut parts = Vec::new();
    let mut rest = text;
    let mut plain = String::new();
    while let Some(at) = rest.find(['$', '@', '{']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        rest = match placeholder(from) {
            Some((part, after)) => {
                flush(&mut plain, &mut parts);
                parts.push(part);
                after
            }
            None => {
                let (sign, after) = from.split_at(1);
                plain.push_str(sign);
                after
            }
        };
    }
    plain.push_str(rest);
    flush(&mut plain, &mut parts);
    parts
}

fn flush(plain: &mut String, parts: &mut Vec<PromptPart>) {
    if !plain.is_empty() {
        parts.push(PromptPart::Text(std::mem::take(plain)));
    }
}

/// Returns the placeholder at the start of text, and the rest.
fn placeholder(text: &str) -> Option<(PromptPart, &str)> {
    if let Some(rest) = text.strip_prefix('$') {
        dollar(rest)
    } else if let Some(rest) = text.strip_prefix("@call:") {
        let (call, after) = call(text, rest)?;
        Some((PromptPart::Call(call), after))
    } else {
        reference(text)
    }
}

fn dollar(rest: &str) -> Option<(PromptPart, &str)> {
    if let Some(after) = after_name(rest, "ARGUMENTS") {
        return Some(indexed(after).unwrap_or((PromptPart::Arguments, after)));
    }
    if let Some(after) = after_name(rest, "INPUT") {
        return Some((PromptPart::Input, after));
    }
    if let Some(after) = after_name(rest, "MEDIA_INPUTS") {
        return Some((PromptPart::MediaInputs, after));
    }
    let (index, after) = number(rest)?;
    is_end_of_short(after).then_some((PromptPart::Word { index, short: true }, after))
}

/// Returns the rest after `name` if the name ends there: `$INPUTS` is not `$INPUT`.
fn after_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let after = text.strip_prefix(name)?;
    (!after.starts_with(|c: char| c.is_alphanumeric() || c == '_')).then_some(after)
}

fn indexed(after: &str) -> Option<(PromptPart, &str)> {
    let (index, after) = number(after.strip_prefix('[')?)?;
    Some((PromptPart::Word { index, short: false }, after.strip_prefix(']')?))
}

/// Reads a number of at most three digits without leading zeros.
fn number(text: &str) -> Option<(usize, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = text.split_at(length);
    let is_plain = digits == "0" || !digits.starts_with('0');
    (length <= 3 && is_plain).then(|| digits.parse().ok()).flatten().map(|index| (index, after))
}

/// Returns whether `$n` ends here: prices such as `$5.00`, `$1,000` and `$5k` are text.
fn is_end_of_short(after: &str) -> bool {
    let mut next = after.chars();
    match next.next() {
        Some(c) if c.is_alphanumeric() || c == '_' => false,
        Some('.' | ',') => !next.next().is_some_and(|c| c.is_ascii_digit()),
        _ => true,
    }
}

/// Reads `{{module.path}}`; other text between braces is literal.
fn reference(text: &str) -> Option<(PromptPart, &str)> {
    let rest = text.strip_prefix("{{")?;
    let (inside, closing) = rest.split_at(rest.find(['{', '}'])?);
    let after = closing.strip_prefix("}}")?;
    let raw = text.get(..inside.len() + 4)?;
    let (module, path) = inside.trim().split_once('.')?;
    let is_path = !path.is_empty() && path.chars().all(|c| c.is_alphanumeric() || "_-$.[]".contains(c));
    if !is_module_name(module) || !is_path {
        return None;
    }
    let reference =
        PromptPart::Reference { module: module.to_owned(), path: path.to_owned(), raw: raw.to_owned() };
    Some((reference, after))
}

// Calls: `@call:NAME(ARGUMENTS)[OPTIONS]` (docs/spec/composition.md).

/// A call of another module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The module.
    pub name: String,
    /// The text between the parentheses; none without parentheses.
    pub arguments: Option<String>,
    /// The options between the brackets.
    pub options: CallOptions,
    /// The invalid options.
    pub errors: Vec<CallError>,
    /// The source text.
    pub raw: String,
}

/// The options of a call: `[async, timeout=30s, optional, tier=exec, as=NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CallOptions {
    /// Whether later calls need not wait for this one.
    pub is_async: bool,
    /// Whether the prompt continues without the result.
    pub optional: bool,
    /// The maximum duration of the call.
    pub timeout: Option<Duration>,
    /// The tier whose thresholds the answer must meet.
    pub tier: Option<Tier>,
    /// `as`: the name of its result; none for the name of its module.
    pub result_name: Option<String>,
}

/// An invalid option of a call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CallError {
    /// The byte range of the option in the source text of the call.
    pub range: Range<usize>,
    /// What was found.
    pub message: String,
    /// What to write.
    pub suggestion: String,
}

/// The options of a call, for suggestions.
const OPTIONS: [&str; 5] = ["async", "optional", "timeout", "tier", "as"];

/// The maximum of `timeout`: one day.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses the call at the start of `text`, and returns the rest. `rest` is the text after `@call:`.
fn call<'a>(text: &'a str, rest: &'a str) -> Option<(Call, &'a str)> {
    let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(rest.len());
    let (name, mut after) = rest.split_at(length);
    // Of `my_module`, `my` is not the name.
    if !is_module_name(name) || after.starts_with('_') {
        return None;
    }
    let mut arguments = None;
    if after.starts_with('(') {
        let (inside, behind) = enclosed(after, b'(', b')')?;
        arguments = Some(inside.to_owned());
        after = behind;
    }
    // Brackets that do not close are text of the prompt: the call before them is still meant.
    let mut options = CallOptions::default();
    let mut errors = Vec::new();
    if after.starts_with('[')
        && let Some((inside, behind)) = enclosed(after, b'[', b']')
    {
        let offset = text.len() - after.len() + 1;
        (options, errors) = self::options(inside, offset);
        after = behind;
    }
    let raw = text.get(..text.len() - after.len())?.to_owned();
    Some((Call { name: name.to_owned(), arguments, options, errors, raw }, after))
}

/// Parses the text between the brackets, which starts at `offset` of the placeholder.
fn options(text: &str, offset: usize) -> (CallOptions, Vec<CallError>) {
    let mut options = CallOptions::default();
    let mut errors = Vec::new();
    let mut start = offset;
    for item in text.split(',') {
        let option = item.trim();
        let at = start + (item.len() - item.trim_start().len());
        if let Err((message, suggestion)) = set(&mut options, option) {
            errors.push(CallError { range: at..at + option.len(), message, suggestion });
        }
        start += item.len() + 1;
    }
    (options, errors)
}

type OptionError = (String, String);

/// Sets one option.
fn set(options: &mut CallOptions, option: &str) -> Result<(), OptionError> {
    match option.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
        None if option == "async" => options.is_async = true,
        None if option == "optional" => options.optional = true,
        Some(("timeout", value)) => options.timeout = Some(timeout(value)?),
        Some(("tier", value)) => options.tier = Some(tier(value)?),
        Some(("as", value)) => options.result_name = Some(result_name(value)?),
        None if OPTIONS.contains(&option) => {
            let message = format!("the option `{option}` has no value");
            return Err((message, format!("Write `{option}={}`.", example(option))));
        }
        Some((name @ ("async" | "optional"), _)) => {
            let message = format!("the option `{name}` takes no value");
            return Err((message, format!("Write `{name}`.")));
        }
        _ => return Err(unknown(option)),
    }
    Ok(())
}

fn example(option: &str) -> &'static str {
    match option {
        "tier" => "exec",
        "as" => "NAME",
        _ => "30s",
    }
}

fn unknown(option: &str) -> OptionError {
    let name = option.split('=').next().unwrap_or_default().trim();
    let message = match option {
        "" => "an option is empty".to_owned(),
        _ => format!("unknown option `{}` of a call", shown(option)),
    };
    let suggestion = match nearest(name, OPTIONS) {
        Some(near) if !name.is_empty() => format!("Did you mean `{near}`?"),
        _ => "Use `async`, `optional`, `timeout=30s`, `tier=exec` or `as=NAME`.".to_owned(),
    };
    (message, suggestion)
}

fn tier(value: &str) -> Result<Tier, OptionError> {
    value.parse().map_err(|_| {
        let message = format!("`{}` is not a tier", shown(value));
        let near = nearest(value, Tier::NAMES.iter().copied());
        let suggestion = match near {
            Some(near) => format!("Did you mean `{near}`?"),
            None => format!("Use one of: {}.", Tier::NAMES.join(", ")),
        };
        (message, suggestion)
    })
}

/// Reads the name of a result, which has the form of a module name.
fn result_name(value: &str) -> Result<String, OptionError> {
    if is_module_name(value) {
        return Ok(value.to_owned());
    }
    let message = format!("`{}` is not a name for a result", shown(value));
    Err((message, "Use lower case letters, digits and hyphens, such as `as=first-page`.".to_owned()))
}

/// Parses a duration: an integer with `ms`, `s` or `m`.
fn timeout(value: &str) -> Result<Duration, OptionError> {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let number: Option<u64> = number.parse().ok();
    let duration = match unit {
        "ms" => number.map(Duration::from_millis),
        "s" => number.map(Duration::from_secs),
        "m" => number.and_then(|minutes| minutes.checked_mul(60)).map(Duration::from_secs),
        _ => None,
    };
    let duration = duration.filter(|duration| !duration.is_zero() && *duration <= MAX_TIMEOUT);
    duration.ok_or_else(|| {
        let message = format!("`{}` is not a valid timeout, from 1ms to one day", shown(value));
        (message, "Write a number with `ms`, `s` or `m`, such as `timeout=30s`.".to_owned())
    })
}

/// The maximum length of a placeholder in bytes, which bounds the work on look-alikes.
const MAX_PLACEHOLDER: usize = 2_000;

/// The maximum nesting of brackets in a placeholder.
const MAX_NESTING: usize = 32;

/// Returns the text between matching brackets, and the rest.
fn enclosed(text: &str, opening: u8, closing: u8) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().take(MAX_PLACEHOLDER) {
        // Bytes are enough: no byte of a longer UTF-8 character equals an ASCII bracket.
        if byte == opening {
            depth += 1;
        } else if byte == closing {
            depth -= 1;
        }
        if depth > MAX_NESTING {
            return None;
        }
        if depth == 0 {
            return Some((text.get(1..at)?, text.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod call_tests {
    use super::*;

    fn parsed(text: &str) -> Call {
        call(text, text.strip_prefix("@call:").unwrap()).unwrap().0
    }

    #[test]
    fn options_have_types() {
        let call = parsed("@call:a(x)[async, timeout=1500ms,optional , tier = exec, as=first-page]");
        let expected = CallOptions {
            is_async: true,
            optional: true,
            timeout: Some(Duration::from_millis(1500)),
            tier: Some(Tier::Exec),
            result_name: Some("first-page".to_owned()),
        };
        assert_eq!((call.options, call.errors), (expected, Vec::new()));
    }

    #[test]
    fn each_invalid_option_is_an_error_at_its_column() {
        let text = "@call:a(x)[asinc, timeout=soon, tier=exce, async=1, timeout, , x, as=Page 1, as]";
        let found: Vec<_> = parsed(text)
            .errors
            .into_iter()
            .map(|error| (text[error.range].to_owned(), error.message, error.suggestion))
            .collect();
        let found: Vec<_> = found.iter().map(|(at, message, help)| (&**at, &**message, &**help)).collect();
        let units = "Write a number with `ms`, `s` or `m`, such as `timeout=30s`.";
        let all = "Use `async`, `optional`, `timeout=30s`, `tier=exec` or `as=NAME`.";
        let name = "Use lower case letters, digits and hyphens, such as `as=first-page`.";
        assert_eq!(
            found,
            [
                ("asinc", "unknown option `asinc` of a call", "Did you mean `async`?"),
                ("timeout=soon", "`soon` is not a valid timeout, from 1ms to one day", units),
                ("tier=exce", "`exce` is not a tier", "Did you mean `exec`?"),
                ("async=1", "the option `async` takes no value", "Write `async`."),
                ("timeout", "the option `timeout` has no value", "Write `timeout=30s`."),
                ("", "an option is empty", all),
                ("x", "unknown option `x` of a call", all),
                ("as=Page 1", "`Page 1` is not a name for a result", name),
                ("as", "the option `as` has no value", "Write `as=NAME`."),
            ]
        );
    }

    #[test]
    fn timeout_is_bounded() {
        for value in ["0s", "25h", "1441m", "86401s", "99999999999999999999s", "", "s", "-1s", "1.5s"] {
            assert!(timeout(value).is_err(), "{value}");
        }
        assert_eq!(timeout("1440m"), Ok(MAX_TIMEOUT));
    }
}
