//! Arguments of tool calls that a model writes as text (ruling R82): `find({…})`, `Action Input: {…}`, `TOOL_CALL: find {…}`.
//!
//! Unlike marks ([`markup`](super::markup)), these have no end of their own: the object is the draft, and what follows may be
//! the answer. Only the text directly before an object decides, and a bounded part of it, so that searching stays linear.
//!
//! A call by the name of the module is no exception. A module is a tool by its name too, so a model that calls itself writes its
//! input there, which a module whose input and data look alike would take for its answer. One that has wrapped its answer like
//! this is asked again.

/// The maximum number of bytes before an object that are examined.
const WINDOW: usize = 256;

/// Functions that only print or wrap their argument, such as `print({…})` and `JSON.stringify({…})`.
const PRINTERS: [&str; 17] = [
    "answer",
    "dict",
    "dumps",
    "echo",
    "final",
    "final_answer",
    "format",
    "json",
    "log",
    "object",
    "output",
    "parse",
    "print",
    "println",
    "response",
    "result",
    "stringify",
];

/// Returns whether the text before an object makes it the arguments of a call. `has_called` says that a call came before, so
/// that an observation follows it, which the model has made up.
pub(super) fn precedes(before: &str, has_called: bool) -> bool {
    let start = before.floor_char_boundary(before.len().saturating_sub(WINDOW));
    let window = before.get(start..).unwrap_or_default();
    match window.trim_end().strip_suffix('(') {
        Some(before) => is_function(before),
        None => is_recipient(window) || is_label(window, has_called),
    }
}

/// Returns whether text ends with the recipient of a call whose marks were not decoded, glued to the object: `functions.find:0`,
/// `call:find`.
fn is_recipient(window: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let rest = window.trim_end_matches(is_part);
    let recipient = window.get(rest.len()..).unwrap_or_default();
    let name = ["functions.", "call:"].iter().find_map(|prefix| recipient.strip_prefix(prefix));
    let starts = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    name.is_some_and(|name| starts(name) && !name.ends_with([':', '.']))
}

/// Returns whether text ends with the name of a function. A word of a sentence has a space before the parenthesis.
fn is_function(before: &str) -> bool {
    let rest = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let path = before.get(rest.len()..).unwrap_or_default();
    let name = path.rsplit('.').next().unwrap_or_default();
    // Letters with accents belong to the word. A script without spaces does not.
    let is_word = rest.ends_with(|c: char| c.is_alphabetic() && c < '\u{2e80}');
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    is_name && !is_word && !PRINTERS.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns whether the last line, before a fence, is the label of a call. The name of the function may follow it, if the object is
/// on the same line: on a line of its own, `Tool call: none` says something else.
fn is_label(window: &str, has_called: bool) -> bool {
    let text = window.trim_end();
    let is_same_line = !window.get(text.len()..).unwrap_or_default().contains('\n');
    let is_passed = |line: &&str| line.trim_start().starts_with("```") || line.trim().is_empty();
    let Some(line) = text.rsplit('\n').find(|line| !is_passed(line)) else { return false };
    let line = line.trim_end_matches(['`', '*', ' ', '\t', '\r']);
    let Some((label, function)) = line.rsplit_once([':', '：', '=']) else { return false };
    let function = function.trim_matches(['`', '*', ' ', '\t', '"']);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    // A tag or a marker may be before the label.
    let label = label.rsplit(['>', ']']).next().unwrap_or_default();
    (function.is_empty() || is_same_line && function.chars().all(is_name))
        && is_name_of_call(label, has_called)
}

fn is_name_of_call(label: &str, has_called: bool) -> bool {
    let words: Vec<String> = label
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    // `Next tool call 2` has one more word; a sentence has many.
    let last = words.len().saturating_sub(2);
    let name = words.get(last..).unwrap_or_default().concat();
    let is_call = matches!(
        name.as_str(),
        "actioninput"
            | "actionarguments"
            | "actionargs"
            | "toolcall"
            | "toolcalls"
            | "tooluse"
            | "toolinput"
            | "toolarguments"
            | "toolargs"
            | "toolparameters"
            | "functioncall"
            | "functioncalls"
    );
    words.len() <= 3 && is_call || has_called && words.len() == 1 && name == "observation"
}

/// What is left of the arguments of a call: the brackets that are open, and the string in it.
#[derive(Default)]
pub(super) struct Arguments {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
}

impl Arguments {
    /// Returns the end of the object or array that begins at the first byte that is given, or none if the text ends before.
    pub(super) fn end(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate().skip(from) {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_string = !self.is_string,
                _ if self.is_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_functions_and_labels() {
        for before in [
            "find(",
            "I call functions.find_it(\n",
            "调用find(",
            "x = find(",
            "find-it( ",
            "print(find(",
            "Bash(",
            "Action Input:",
            "action_input = ",
            "**Action Input:** ",
            "- `Tool call:` ",
            "TOOL_CALL: find ",
            "Function call: \"find\" ",
            "<response id=\"1\">TOOL_CALL: find ",
            "functions.find:0",
            "call:find",
            "toolCall：\n",
            "Next tool call 2:\n\n```json\n",
            "Thought: a\nTool_Input:",
        ] {
            assert!(precedes(before, false), "{before}");
        }
        for before in [
            "",
            "(",
            "Here (",
            "such as f (",
            "réponse(",
            "结果(",
            "print(json.dumps(",
            "JSON.stringify(",
            "ANSWER(",
            "Action:",
            "Input:",
            "The tool call was right. Answer:",
            "These are my tool calls:",
            "Action Input: x\nAnswer:",
            "Function arguments:",
            "Parameters:",
            "Tools used:",
            "Observation:",
            "1(",
            "Action Input: the words of a sentence ",
            "Tool call: none\n",
            "Please call: ",
            "call: ",
            "my functions. ",
            "It is from functions.look_up: ",
            "It is from functions.look_up:\n",
            "json",
            "Tool call: none.\n```json\n",
        ] {
            assert!(!precedes(before, false), "{before}");
        }
        assert!(precedes("Observation: ", true));
        assert!(!precedes("My observation: ", true));
    }
}
