//! The operations of a page or form (ISO 32000-1, 7.8.2).

use hayro_syntax::{content::UntypedIter, object::Object};

/// How often reading goes on after something that cannot be read.
const MAX_RESUMPTIONS: usize = 1000;

/// Passes each operator with its operands to a function. What cannot be read is skipped, as viewers do.
pub(super) fn for_each_operation(content: &[u8], mut apply: impl FnMut(&[u8], &[Object<'_>])) {
    let mut rest = content;
    for _ in 0..MAX_RESUMPTIONS {
        let read = read_operations(rest, &mut apply);
        let Some(after) = rest.get(read..).map(without_token).filter(|after| !after.is_empty()) else {
            return;
        };
        rest = after;
    }
}

/// Reads operations up to the first that cannot be read. Returns how many bytes were read.
fn read_operations(content: &[u8], apply: &mut impl FnMut(&[u8], &[Object<'_>])) -> usize {
    let mut operations = UntypedIter::new(content);
    let mut read = 0;
    while let Some(operation) = operations.next() {
        let operands: Vec<Object<'_>> = operation.operands().cloned().collect();
        apply(operation.operator, &operands);
        read = end_within(content, operation.operator).unwrap_or(read);
    }
    read
}

/// Returns where a part of the content ends; none for an operator that is stored elsewhere, since it has escapes.
fn end_within(content: &[u8], part: &[u8]) -> Option<usize> {
    let start = part.as_ptr().addr().checked_sub(content.as_ptr().addr())?;
    Some(start + part.len()).filter(|end| *end <= content.len())
}

/// Returns what follows the first token.
fn without_token(content: &[u8]) -> &[u8] {
    let content = content.trim_ascii_start();
    let length = content.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
    content.get(length..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operators(content: &str) -> String {
        let mut found = Vec::new();
        for_each_operation(content.as_bytes(), |operator, operands| {
            found.push(format!("{}{}", String::from_utf8_lossy(operator), operands.len()));
        });
        found.join(" ")
    }

    #[test]
    fn unreadable_tokens_are_skipped() {
        assert_eq!(operators("BT (a) Tj ET"), "BT0 Tj1 ET0");
        for token in [")", ">", "]", "}", "{ }", ") ) ]"] {
            assert_eq!(operators(&format!("BT {token} (a) Tj ET")), "BT0 Tj1 ET0", "{token}");
        }
        assert_eq!(operators("1 2 re (a) Tj"), "re2 Tj1", "too few operands");
        assert_eq!(operators("(a) T#6a (b) Tj ) (c) Tj"), "Tj1 Tj1 Tj1");
        assert_eq!(operators("q (unclosed"), "q0");
        assert_eq!(operators(""), "");
    }

    #[test]
    fn number_of_resumptions_is_bounded() {
        let content = ") ".repeat(100_000) + "BT";
        assert_eq!(operators(&content), "");
    }
}
