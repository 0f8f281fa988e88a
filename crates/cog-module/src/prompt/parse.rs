use super::{PromptPart, call};
use crate::name::is_module_name;

/// Splits a text at its placeholders, in one pass.
pub(super) fn parts(text: &str) -> Vec<PromptPart> {
    let mut parts = Vec::new();
    let (mut rest, mut plain) = (text, String::new());
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

/// Returns the placeholder at the start of a text, and the rest.
fn placeholder(text: &str) -> Option<(PromptPart, &str)> {
    if let Some(rest) = text.strip_prefix('$') {
        dollar(rest)
    } else if let Some(rest) = text.strip_prefix("@call:") {
        let (call, after) = call::call(text, rest)?;
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
    let (module, path, raw) = (module.to_owned(), path.to_owned(), raw.to_owned());
    Some((PromptPart::Reference { module, path, raw }, after))
}
