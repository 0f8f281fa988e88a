//! Calls whose options are invalid, and text that looks like a call.

use std::collections::HashMap;

use super::{MAX_VARIABLES, Note};
use crate::{
    CallError, Prompt, PromptPart, Rule, Severity,
    diagnostic::shown,
    name::{is_module_name, similar_module_name},
};

/// Returns an error for each invalid option of a call, and a note for each text that looks like a call.
pub(super) fn notes(prompt: &Prompt) -> Vec<Note> {
    let mut notes = invalid_options(prompt);
    notes.extend(look_alikes(prompt));
    notes
}

fn invalid_options(prompt: &Prompt) -> Vec<Note> {
    let calls = prompt.located().filter_map(|(range, part)| match part {
        PromptPart::Call(call) => Some((range.start, call)),
        _ => None,
    });
    let errors = calls.flat_map(|(start, call)| call.errors.iter().map(move |error| (start, error)));
    let note = |(start, error): (usize, &CallError)| Note {
        severity: Severity::Error,
        range: start + error.range.start..start + error.range.end,
        rule: Rule::PromptCall,
        message: error.message.clone(),
        help: error.suggestion.clone(),
    };
    errors.map(note).collect()
}

/// Returns the texts that look like a call, except in code and in the arguments of another call.
fn look_alikes(prompt: &Prompt) -> Vec<Note> {
    let text = prompt.text();
    let calls = prompt.located().filter(|(_, part)| matches!(part, PromptPart::Call(_)));
    let ends: HashMap<usize, usize> = calls.map(|(range, _)| (range.start, range.end)).collect();
    let (mut notes, mut examined, mut end_of_call) = (Vec::new(), 0, 0);
    let (mut start, mut is_block) = (0, false);
    for line in text.split_inclusive('\n') {
        is_block ^= line.trim_start().starts_with("```");
        for at in line.match_indices('@').map(|(at, _)| start + at) {
            let Some(rest) = text.get(at..).filter(|_| at >= end_of_call) else { continue };
            let found = match ends.get(&at) {
                Some(end) => {
                    end_of_call = *end;
                    unclosed_options(rest, end - at)
                }
                None => {
                    let found = look_alike(rest);
                    examined += usize::from(found.is_some());
                    found.filter(|_| is_prose(line, at - start, is_block))
                }
            };
            notes.extend(found.map(|found| found.note(at)));
            if examined == MAX_VARIABLES {
                return notes;
            }
        }
        start += line.len();
    }
    notes
}

/// Returns whether a position of a line is neither in code nor in an e-mail address.
fn is_prose(line: &str, at: usize, is_block: bool) -> bool {
    let before = line.get(..at).unwrap_or_default();
    let is_code = is_block || before.matches('`').count() % 2 == 1;
    !is_code && !before.ends_with(|c: char| c.is_alphanumeric() || "._%+-".contains(c))
}

/// A text that looks like a call.
struct LookAlike<'a> {
    severity: Severity,
    written: &'a str,
    help: String,
}

impl LookAlike<'_> {
    fn note(self, start: usize) -> Note {
        let written = shown(self.written);
        Note {
            severity: self.severity,
            range: start..start + self.written.len(),
            rule: Rule::PromptCall,
            message: format!("`{written}` is not a complete call: the model reads it as written"),
            help: self.help,
        }
    }
}

/// Returns the call at the start of a text, if its options have no end: it would run without them.
fn unclosed_options(text: &str, length: usize) -> Option<LookAlike<'_>> {
    let (written, after) = text.split_at_checked(length)?;
    let help = "Close the options with `]`, or write a space before a bracket that is text.".to_owned();
    after.starts_with('[').then_some(LookAlike { severity: Severity::Error, written, help })
}

/// Returns the look-alike at the start of a text that is not a call: `@call:Name`, `@call(name)`, `@Call:name`.
fn look_alike(text: &str) -> Option<LookAlike<'_>> {
    let word = text.get(1..5).filter(|word| word.eq_ignore_ascii_case("call"))?;
    let after = text.get(5..)?;
    let sign = after.trim_start_matches(' ').chars().next().filter(|sign| matches!(sign, ':' | '('))?;
    if sign == '(' && !after.starts_with('(') {
        return None;
    }
    let target = after.trim_start_matches(' ').get(1..)?;
    let behind = target.trim_start_matches(' ');
    let length = behind.find(|c: char| !(c.is_alphanumeric() || "-_./".contains(c))).unwrap_or(behind.len());
    let (name, rest) = (behind.get(..length)?.trim_end_matches(['.', '/']), behind.get(length..)?);
    let end = text.len() - behind.len() + name.len();
    let is_written_right = word == "call" && after.starts_with(':') && target.starts_with(name);
    let is_open = is_written_right && is_module_name(name) && rest.starts_with('(');
    let help = if is_open {
        "Close the arguments with `)`; they have at most 2,000 bytes and 32 levels of parentheses.".to_owned()
    } else if name.is_empty() {
        "Write the name of a module: `@call:reader`. In backticks it is text.".to_owned()
    } else {
        let last = name.rsplit('/').next().unwrap_or_default();
        let similar = similar_module_name(last).unwrap_or_else(|| "reader".to_owned());
        format!("Write `@call:{similar}`. In backticks it is text.")
    };
    let severity = if is_open { Severity::Error } else { Severity::Warning };
    Some(LookAlike { severity, written: text.get(..end)?, help })
}
