//! The tool calls of a reply, assembled from their parts.

use cog_spec::ToolCallDelta;

use crate::ToolCall;

/// Assembles the tool calls of one reply, which arrive in parts.
///
/// ```
/// use cog_harmony::ToolCalls;
/// use cog_spec::ToolCallDelta;
///
/// let mut calls = ToolCalls::default();
/// let part = |name: Option<&str>, arguments: &str| ToolCallDelta {
///     index: 0,
///     id: None,
///     name: name.map(str::to_owned),
///     arguments: arguments.to_owned(),
///     signature: None,
/// };
/// calls.push(part(Some("search"), "{\"q\":"));
/// calls.push(part(None, "1}"));
/// let calls = calls.finish(2);
/// assert_eq!((calls[0].id.as_str(), calls[0].arguments.as_str()), ("call_2", "{\"q\":1}"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolCalls {
    /// The calls so far, each with its index in the reply, in the order in which they began.
    calls: Vec<(u32, ToolCall)>,
}

impl ToolCalls {
    /// Adds a part of a call. A part with another identifier than the call at its index begins a new call: some vendors
    /// send every call with the index 0.
    pub fn push(&mut self, part: ToolCallDelta) {
        let ToolCallDelta { index, id, name, arguments, signature } = part;
        let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
        let is_same =
            |call: &ToolCall| id.is_empty() || call.id.is_empty() || call.id == id || name.is_empty();
        let found = self.calls.iter_mut().rev().find(|(known, _)| *known == index);
        match found.filter(|(_, call)| is_same(call)) {
            Some((_, call)) => {
                if call.id.is_empty() {
                    call.id = id;
                }
                if call.name.is_empty() {
                    call.name = name;
                }
                call.arguments.push_str(&arguments);
                call.signature = signature.or(call.signature.take());
            }
            None => self.calls.push((index, ToolCall { id, name, arguments, signature, other: None })),
        }
    }

    /// Returns whether the reply contains no call.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the number of bytes of the arguments so far.
    pub fn argument_bytes(&self) -> usize {
        self.calls.iter().map(|(_, call)| call.arguments.len()).sum()
    }

    /// Returns the calls, in the order of the reply. Calls without an identifier get `call_N`, where N counts the calls of
    /// the conversation, of which `before` precede the reply. Calls without arguments get `{}`.
    pub fn finish(mut self, before: usize) -> Vec<ToolCall> {
        self.calls.sort_by_key(|(index, _)| *index);
        let calls = self.calls.into_iter().map(|(_, call)| call);
        (before..)
            .zip(calls)
            .map(|(number, mut call)| {
                if call.id.is_empty() {
                    call.id = format!("call_{number}");
                }
                if call.arguments.trim().is_empty() {
                    call.arguments = "{}".to_owned();
                }
                call
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(index: u32, id: Option<&str>, name: Option<&str>, arguments: &str) -> ToolCallDelta {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        ToolCallDelta {
            index,
            id: owned(id),
            name: owned(name),
            arguments: arguments.to_owned(),
            signature: None,
        }
    }

    fn assembled(parts: impl IntoIterator<Item = ToolCallDelta>) -> Vec<(String, String, String)> {
        let mut calls = ToolCalls::default();
        parts.into_iter().for_each(|part| calls.push(part));
        calls.finish(0).into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn interleaved_parts_are_assembled_by_index() {
        let parts = [
            part(3, Some("b"), Some("look"), ""),
            part(1, Some("a"), Some("search"), "{\"q\""),
            part(3, None, None, "{}"),
            part(1, None, None, ":1}"),
        ];
        assert_eq!(assembled(parts), [call("a", "search", "{\"q\":1}"), call("b", "look", "{}")]);
    }

    #[test]
    fn identifier_separates_calls_with_the_same_index() {
        let parts = [part(0, Some("a"), Some("search"), "{}"), part(0, Some("b"), Some("search"), "{}")];
        assert_eq!(assembled(parts), [call("a", "search", "{}"), call("b", "search", "{}")]);
        let repeated =
            [part(0, Some("a"), Some("search"), "{\"q\""), part(0, Some("a"), Some("search"), ":1}")];
        assert_eq!(assembled(repeated), [call("a", "search", "{\"q\":1}")]);
    }

    #[test]
    fn call_without_arguments_gets_an_object() {
        assert_eq!(assembled([part(0, None, Some("now"), "")]), [call("call_0", "now", "{}")]);
    }
}
