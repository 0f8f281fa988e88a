//! Warnings about parts of a module that have no effect.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use cog_schema::{Member, Shape, nearest};
use cog_spec::{ErrorCode, Modality, Risk, RiskRule};
use serde_json::Value;

use crate::{
    Diagnostic, Module, Prompt, PromptPart, Rule, Severity,
    diagnostic::shown,
    layout,
    name::{is_module_name, similar_module_name},
    schema::SchemaSources,
};

/// Returns the warnings about a module that loads.
pub(crate) fn lint(module: &Module, sources: &SchemaSources) -> Vec<Diagnostic> {
    let mut found = sources.warnings(&module.contract);
    found.extend(media(module));
    found.extend(risk_rule(module));
    found.extend(risk_levels(module));
    found.extend(payload(module));
    found.extend(implicit_context(module, sources));
    found.extend(prompt(module));
    found
}

/// Warns about modalities that no field of the input accepts, and about a media field without modalities.
fn media(module: &Module) -> Option<Diagnostic> {
    let input = &module.manifest.modalities.input;
    let kinds: Vec<&str> =
        input.iter().filter(|kind| **kind != Modality::Text).map(|kind| kind.as_str()).collect();
    // A composition can hand its media to a part that accepts them.
    if kinds.is_empty() && module.contract.takes_media() && !module.calls_modules() {
        let message = "the input has a media field, but `modalities.input` lists no media: every file is refused (E1010)";
        let help = "List the accepted types, such as `modalities: { input: [text, image] }`.";
        return Some(warning(module, Rule::ModalityField, message.to_owned()).suggest(help));
    }
    if kinds.is_empty() || has_media(&module.schema) {
        return None;
    }
    let message = format!("`modalities.input` lists {}, but the input has no media field", kinds.join(", "));
    let help = "Use `\"$ref\": \"#/$defs/MediaInput\"` for a media field.";
    Some(warning(module, Rule::ModalityField, message).suggest(help))
}

/// Warns about a risk rule that reads a list which the data does not have.
fn risk_rule(module: &Module) -> Option<Diagnostic> {
    if module.manifest.risk_rule != RiskRule::MaxIssuesRisk || has_field(module, "issues") {
        return None;
    }
    let message =
        "`meta.risk_rule` is `max_issues_risk`, but the data has no `issues`: the risk is always the same";
    Some(
        warning(module, Rule::RiskRuleField, message.to_owned())
            .suggest("Define `issues`, or write `explicit`."),
    )
}

/// Warns about levels of risk that a list of the data allows and the meta schema does not: the highest of them replaces the risk
/// of the model, and then violates the schema (ruling R21).
fn risk_levels(module: &Module) -> Option<Diagnostic> {
    let list = match module.manifest.risk_rule {
        RiskRule::MaxChangesRisk => "changes",
        RiskRule::MaxIssuesRisk => "issues",
        _ => return None,
    };
    let allowed = member(&module.contract.shape("meta")?, "risk")?.listed_values()?;
    let risk = member(&member(&module.contract.shape("data")?, list)?.elements()?, "risk")?;
    let levels = risk.listed_values().unwrap_or_default();
    let levels: Vec<&str> = match levels.is_empty() {
        true => Risk::NAMES.to_vec(),
        false => levels.into_iter().filter_map(Value::as_str).collect(),
    };
    let missing: Vec<String> = levels
        .into_iter()
        .filter(|level| allowed.iter().all(|value| *value != level))
        .map(|level| format!("`{level}`"))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let message = format!(
        "`meta.risk` becomes the highest risk of `{list}`, which can be {}; the meta schema does not allow it",
        missing.join(" or ")
    );
    let help =
        "List the same levels in both schemas, or write `risk_rule: explicit` under `meta` in the manifest.";
    Some(warning(module, Rule::RiskRuleField, message).suggest(help))
}

fn member<'a>(shape: &Shape<'a>, name: &str) -> Option<Shape<'a>> {
    match shape.member(name) {
        Member::Known(shape) => Some(shape),
        Member::Any | Member::Absent => None,
    }
}

/// Warns about a setting without effect: envelopes of v2.2 and v2.5 have the same form.
fn payload(module: &Module) -> Option<Diagnostic> {
    let message =
        "`compat.accepts_v22_payload: false` has no effect: the envelope of v2.2 is the one of v2.5";
    let is_set = !module.manifest.compat.accepts_v22_payload;
    is_set.then(|| warning(module, Rule::KeyValue, message.to_owned()).suggest("Remove it."))
}

/// Warns about fields of the input that contain a conversation or a hidden state by their name (ruling R79).
fn implicit_context(module: &Module, sources: &SchemaSources) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![module.manifest.io.input.clone().unwrap_or_else(|| "/input".to_owned())];
    while let Some(pointer) = open.pop() {
        let Some(schema) = module.schema.pointer(&pointer).filter(|_| seen.insert(pointer.clone())) else {
            continue;
        };
        let fields = schema.get("properties").and_then(Value::as_object);
        for name in fields.into_iter().flat_map(|fields| fields.keys()) {
            if is_implicit_context(name) && found.len() < MAX_VARIABLES {
                let pointer = format!("{pointer}/properties/{}", token(name));
                let message = format!(
                    "the field `{}` is context by its name: an input contains no conversation or state",
                    shown(name)
                );
                let help =
                    "Declare it under `context.accepts` in the manifest; callers send it in `_context`.";
                found.push(sources.warning_at(Rule::ImplicitContext, message, &pointer).suggest(help));
            }
        }
        open.extend(inner_schemas(schema, &pointer));
    }
    found
}

/// Returns the pointers of the schemas that a schema applies to the same value or to a part of it. The runtime's own definitions
/// have no context.
fn inner_schemas(schema: &Value, pointer: &str) -> Vec<String> {
    const MAPS: [&str; 3] = ["properties", "patternProperties", "dependencies"];
    const LISTS: [&str; 4] = ["items", "allOf", "anyOf", "oneOf"];
    const SINGLE: [&str; 6] =
        ["items", "additionalItems", "additionalProperties", "contains", "then", "else"];
    let keyword = |name: &'static str| Some((name, schema.get(name)?));
    let maps = MAPS.into_iter().filter_map(keyword).flat_map(|(name, map)| {
        let keys = map.as_object().into_iter().flat_map(|map| map.keys());
        keys.map(move |key| format!("{pointer}/{name}/{}", token(key)))
    });
    let lists = LISTS.into_iter().filter_map(keyword).flat_map(|(name, list)| {
        let count = list.as_array().map_or(0, Vec::len);
        (0..count).map(move |index| format!("{pointer}/{name}/{index}"))
    });
    let single = SINGLE.into_iter().filter_map(keyword).map(|(name, _)| format!("{pointer}/{name}"));
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
    let is_own = |target: &&str| !target.ends_with("/MediaInput") && !target.ends_with("/HandoffPacket");
    let reference = reference.filter(is_own).map(str::to_owned);
    maps.chain(lists).chain(single).chain(reference).collect()
}

/// Returns a name as a part of a JSON pointer.
fn token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns whether a field is a history or a hidden state by its name: `chatHistory`, `messages`, `full_session-state`.
fn is_implicit_context(name: &str) -> bool {
    let words = words(name);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    // How much of it there is, and its form, do not change what it is.
    const AMOUNTS: [&str; 8] = ["all", "complete", "current", "entire", "full", "last", "raw", "recent"];
    const FORMS: [&str; 6] = ["array", "far", "json", "list", "so", "text"];
    while words.len() > 1 && words.last().is_some_and(|last| FORMS.contains(last)) {
        words.pop();
    }
    let start = words.iter().take_while(|word| AMOUNTS.contains(word)).count();
    match words.get(start..).unwrap_or_default() {
        ["history" | "messages" | "chathistory" | "sessionstate" | "scratchpad"] => true,
        ["context"] => name.starts_with('_'),
        [
            "agent" | "chat" | "conversation" | "dialog" | "dialogue" | "interaction" | "message"
            | "messages" | "session" | "thread" | "turn",
            "history" | "messages" | "turns" | "state" | "memory" | "memories" | "log" | "context",
        ]
        | ["hidden" | "internal" | "private", "state" | "memory" | "context"]
        | ["history", "messages" | "turns"]
        | ["long" | "short", "term", "memory"]
        | [
            "previous" | "prev" | "prior" | "past" | "earlier" | "preceding",
            "messages" | "turns" | "conversation" | "conversations" | "dialog" | "dialogue" | "chat"
            | "exchanges" | "context",
        ] => true,
        _ => false,
    }
}

/// Returns the words of a name in lower case, which `_`, `-` and capitals separate.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether any schema of the module defines a field.
fn has_field(module: &Module, name: &str) -> bool {
    any_below(&module.schema, |schema| {
        schema.get("properties").is_some_and(|fields| fields.get(name).is_some())
    })
}

/// Returns whether there is a media field below a schema: a reference to `MediaInput`, its structure, or a reference to
/// `HandoffPacket`, whose artifacts can be media.
pub(crate) fn has_media(schema: &Value) -> bool {
    any_below(schema, |schema| match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => reference.ends_with("/MediaInput") || reference.ends_with("/HandoffPacket"),
        None => schema.pointer("/properties/type/const").is_some_and(|kind| kind == "base64"),
    })
}

/// Returns whether a value, or a value in it, is as described.
fn any_below(value: &Value, is_found: impl Fn(&Value) -> bool) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if is_found(value) {
            return true;
        }
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

fn warning(module: &Module, rule: Rule, message: String) -> Diagnostic {
    Diagnostic::warning(rule, module.manifest_file(), message)
}

// Text of a prompt that looks like a placeholder, and error codes that it names.

/// The placeholders for an input.
const PLACEHOLDERS: [&str; 3] = ["ARGUMENTS", "INPUT", "MEDIA_INPUTS"];

/// Other names that authors use for a placeholder.
const SYNONYMS: [(&str, &str); 8] = [
    ("ARGS", "ARGUMENTS"),
    ("ARG", "ARGUMENTS"),
    ("QUERY", "ARGUMENTS"),
    ("USER_INPUT", "INPUT"),
    ("JSON", "INPUT"),
    ("MEDIA", "MEDIA_INPUTS"),
    ("IMAGE", "MEDIA_INPUTS"),
    ("IMAGES", "MEDIA_INPUTS"),
];

/// Words next to an amount of money.
const CURRENCY_WORDS: [&str; 22] = [
    "usd", "us", "dollar", "dollars", "cent", "cents", "cost", "costs", "price", "priced", "fee", "pay",
    "paid", "budget", "above", "below", "under", "over", "per", "million", "billion", "thousand",
];

/// The maximum number of variables of a prompt that are checked.
const MAX_VARIABLES: usize = 1_000;
/// The maximum length of a variable in braces.
const MAX_BRACES: usize = 80;

/// A diagnostic of a part of the prompt.
struct Note {
    severity: Severity,
    range: Range<usize>,
    rule: Rule,
    message: String,
    help: String,
}

/// Returns the diagnostics of a prompt; warnings are at their first occurrence.
fn prompt(module: &Module) -> Vec<Diagnostic> {
    let mut notes = misspelt_placeholders(module);
    notes.extend(amounts(module.prompt.text()));
    notes.extend(undeclared_codes(module));
    notes.extend(call_notes(&module.prompt));
    if notes.is_empty() {
        return Vec::new();
    }
    let family = layout::family_of(module.manifest.format);
    let name = family.prompt();
    let source = layout::prompt_source(&module.origin, family).ok();
    // In a v1 module the prompt follows the front matter.
    let offset = source.as_ref().and_then(|source| source.text.rfind(module.prompt.text()));
    let diagnostics = notes.into_iter().map(|note| {
        let found = Diagnostic::warning(note.rule, module.origin.path_of(name), note.message);
        let found = Diagnostic { severity: note.severity, ..found }.suggest(note.help);
        match (&source, offset) {
            (Some(source), Some(offset)) => {
                found.at(source, offset + note.range.start..offset + note.range.end)
            }
            _ => found,
        }
    });
    diagnostics.collect()
}

fn misspelt_placeholders(module: &Module) -> Vec<Note> {
    let fields = input_fields(module);
    let mut seen = HashSet::new();
    let variables = variables(module.prompt.text()).into_iter().filter(|one| seen.insert(one.written));
    let notes = variables.filter_map(|variable| {
        let help = variable.help(&fields)?;
        let message = format!("`{}` is not a placeholder: the model reads it as written", variable.written);
        let range = variable.start..variable.start + variable.written.len();
        Some(Note { severity: Severity::Warning, range, rule: Rule::PromptPlaceholder, message, help })
    });
    notes.collect()
}

/// Returns a note for each `$n` that is probably an amount of money (ruling R66).
fn amounts(text: &str) -> Vec<Note> {
    let mut seen = HashSet::new();
    let words = text.match_indices('$').filter_map(|(start, _)| {
        let digits = digits(text.get(start + 1..)?).filter(|digits| !digits.is_empty())?;
        let written = text.get(start..=start + digits.len())?;
        let before = text.get(..start)?;
        let after = text.get(start + written.len()..)?;
        (is_amount(before, digits, after) && seen.insert(written)).then_some((start, written))
    });
    let notes = words.take(MAX_VARIABLES).map(|(start, written)| {
        let index = written.trim_start_matches('$');
        Note {
            severity: Severity::Warning,
            range: start..start + written.len(),
            rule: Rule::PromptPlaceholder,
            message: format!(
                "`{written}` is the placeholder of word {index}: an input with so many words replaces it"
            ),
            help: format!("Write `{index} dollars` or `USD {index}` if it is an amount of money."),
        }
    });
    notes.collect()
}

/// Returns the digits at the start of text.
fn digits(text: &str) -> Option<&str> {
    text.get(..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Returns whether the digits after a dollar sign are a large number, or are next to another number or a currency word.
fn is_amount(before: &str, digits: &str, after: &str) -> bool {
    let fraction = after.strip_prefix(['.', ',']).unwrap_or_default();
    let line_before = before.rsplit('\n').next().unwrap_or_default();
    let line_after = after.lines().next().unwrap_or_default();
    digits.len() > 1
        || fraction.starts_with(|c: char| c.is_ascii_digit())
        || after.starts_with(['k', 'K', 'm', 'M', 'b', 'B'])
        || line_before.split_whitespace().next_back().is_some_and(is_currency_word)
        || line_after.split_whitespace().next().is_some_and(is_currency_word)
}

fn is_currency_word(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    CURRENCY_WORDS.contains(&word.as_str())
}

/// Returns the names of the fields of the input, at its top level.
fn input_fields(module: &Module) -> Vec<&str> {
    let fields = module.contract.input_schema().and_then(|input| input.get("properties")?.as_object());
    fields.into_iter().flat_map(|fields| fields.keys()).map(String::as_str).collect()
}

/// Text in the form of a variable.
struct Variable<'a> {
    start: usize,
    written: &'a str,
    name: &'a str,
    /// Whether it is in code, which has variables of its own.
    is_code: bool,
}

impl Variable<'_> {
    /// Returns what the author probably meant, if it is not a variable of another language.
    fn help(&self, fields: &[&str]) -> Option<String> {
        let upper = self.name.to_uppercase();
        let exact = PLACEHOLDERS.into_iter().find(|name| *name == upper);
        let similar = nearest(self.name, PLACEHOLDERS).filter(|near| near.len().abs_diff(upper.len()) <= 3);
        let is_constant = upper == self.name;
        // In capitals it is meant as a placeholder even in code, where placeholders are replaced as well.
        if is_constant && let Some(near) = exact.or(similar) {
            return Some(format!("Did you mean `${near}`?"));
        }
        if self.is_code {
            return None;
        }
        let synonym = SYNONYMS.iter().find(|(name, _)| *name == upper).map(|(_, meant)| *meant);
        if let Some(near) = exact.or(synonym) {
            return Some(format!("Did you mean `${near}`?"));
        }
        let is_field = fields.contains(&self.name);
        is_field
            .then(|| "A field cannot be inserted; `$INPUT` inserts the complete input as JSON.".to_owned())
    }
}

/// Returns the variables of text: `$name`, `${name}`, `{{name}}`, `{name}` and `$INPUT.name`, except placeholders.
fn variables(text: &str) -> Vec<Variable<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut is_block = false;
    for line in text.split_inclusive('\n') {
        is_block ^= line.trim_start().starts_with("```");
        for (at, _) in line.match_indices(['$', '{']) {
            let (before, rest) = line.split_at(at);
            if rest.starts_with('{') && before.ends_with(['{', '$']) {
                continue;
            }
            if let Some((written, name)) = variable(rest) {
                let is_code = is_block || before.matches('`').count() % 2 == 1;
                found.push(Variable { start: start + at, written, name, is_code });
            }
            if found.len() == MAX_VARIABLES {
                return found;
            }
        }
        start += line.len();
    }
    found
}

/// Returns the variable at the start of text, as written, and its name.
fn variable(text: &str) -> Option<(&str, &str)> {
    for (opening, closing) in [("{{", "}}"), ("${", "}"), ("{", "}")] {
        if let Some(inner) = text.strip_prefix(opening) {
            let near = inner.get(..inner.floor_char_boundary(MAX_BRACES))?;
            let (inside, _) = near.split_once(closing)?;
            let name = inside.trim().trim_start_matches('$');
            let length = opening.len() + inside.len() + closing.len();
            return Some((text.get(..length)?, identifier(name).filter(|found| *found == name)?));
        }
    }
    let name = identifier(text.strip_prefix('$')?)?;
    if name == "INPUT" {
        let field = identifier(text.strip_prefix("$INPUT.")?)?;
        return Some((text.get(..field.len() + "$INPUT.".len())?, field));
    }
    (!PLACEHOLDERS.contains(&name)).then_some((text.get(..=name.len())?, name))
}

fn identifier(text: &str) -> Option<&str> {
    let length = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let name = text.get(..length)?;
    name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(name)
}

/// Returns a note for each code from E5000 on that neither the manifest nor the schema lists.
fn undeclared_codes(module: &Module) -> Vec<Note> {
    let text = module.prompt.text();
    let mut seen = HashSet::new();
    let codes = text.match_indices('E').filter_map(|(start, _)| {
        let (before, rest) = text.split_at(start);
        let code = rest.get(..5).filter(|code| ErrorCode::is_declarable(code))?;
        let is_alone = !before.ends_with(is_word) && !rest.get(5..)?.starts_with(is_word);
        (is_alone && seen.insert(code) && !is_declared(module, code)).then_some((start, code))
    });
    let notes = codes.take(MAX_VARIABLES).map(|(start, code)| Note {
        severity: Severity::Warning,
        range: start..start + code.len(),
        rule: Rule::ErrorCodeUndeclared,
        message: format!("the prompt names {code}, which the module does not declare"),
        help: format!("Describe it under `error_codes` in the manifest: `{code}: …`."),
    });
    notes.collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_declared(module: &Module, code: &str) -> bool {
    module.manifest.error_codes.iter().any(|(known, _)| known == code)
        || module.contract.error_schema().is_some_and(|error| error.to_string().contains(code))
}

// Calls whose options are invalid, and text that looks like a call.

/// Returns an error for each invalid option of a call, and a note for each text that looks like a call.
fn call_notes(prompt: &Prompt) -> Vec<Note> {
    let mut notes = invalid_options(prompt);
    notes.extend(look_alikes(prompt));
    notes
}

fn invalid_options(prompt: &Prompt) -> Vec<Note> {
    let mut notes = Vec::new();
    for (range, part) in prompt.located() {
        let PromptPart::Call(call) = part else { continue };
        notes.extend(call.errors.iter().map(|error| Note {
            severity: Severity::Error,
            range: range.start + error.range.start..range.start + error.range.end,
            rule: Rule::PromptCall,
            message: error.message.clone(),
            help: error.suggestion.clone(),
        }));
    }
    notes
}

/// Returns the texts that look like a call, except in code and in the arguments of another call.
fn look_alikes(prompt: &Prompt) -> Vec<Note> {
    let text = prompt.text();
    let calls = prompt.located().filter(|(_, part)| matches!(part, PromptPart::Call(_)));
    let ends: HashMap<usize, usize> = calls.map(|(range, _)| (range.start, range.end)).collect();
    let mut notes = Vec::new();
    let mut examined = 0;
    let mut end_of_call = 0;
    let mut start = 0;
    let mut is_block = false;
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

/// Text that looks like a call.
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

/// Returns the call at the start of text, if its options have no end: it would run without them.
fn unclosed_options(text: &str, length: usize) -> Option<LookAlike<'_>> {
    let (written, after) = text.split_at_checked(length)?;
    let help = "Close the options with `]`, or write a space before a bracket that is text.".to_owned();
    after.starts_with('[').then_some(LookAlike { severity: Severity::Error, written, help })
}

/// Returns the look-alike at the start of text that is not a call: `@call:Name`, `@call(name)`, `@Call:name`.
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
    let name = behind.get(..length)?.trim_end_matches(['.', '/']);
    let rest = behind.get(length..)?;
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

#[cfg(test)]
mod tests;
