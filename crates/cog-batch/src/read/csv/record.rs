//! The fields of a record, and its quotes.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

/// Where a record is, of which some bytes were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteState {
    /// At the start of a field.
    Start,
    /// In a field without quotes.
    Plain,
    /// In a quoted field.
    Quoted,
    /// After a quote in a quoted field, which ends the field or begins a quote of its text.
    AfterQuote,
    /// Text follows a closing quote.
    Torn,
}

impl QuoteState {
    /// Returns the state after a line.
    pub(super) fn after(line: &[u8], before: Self) -> Self {
        line.iter().fold(before, |state, byte| match (state, byte) {
            (Self::Torn, _) => Self::Torn,
            (Self::Start, b'"') => Self::Quoted,
            (Self::Start | Self::Plain | Self::AfterQuote, b',') => Self::Start,
            (Self::Start | Self::Plain, _) => Self::Plain,
            (Self::Quoted, b'"') => Self::AfterQuote,
            (Self::Quoted, _) => Self::Quoted,
            (Self::AfterQuote, b'"') => Self::Quoted,
            (Self::AfterQuote, _) => Self::Torn,
        })
    }
}

/// Splits a record into its fields.
pub(super) struct Fields {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Fields {
    pub(super) fn new() -> Self {
        // Only the end of the record ends it, not a carriage return in it.
        let reader = ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build();
        Self { reader, text: Vec::new(), ends: Vec::new() }
    }

    /// Returns the fields of a record, which is UTF-8 and has no quote that is open.
    pub(super) fn split(&mut self, record: &[u8]) -> impl Iterator<Item = &str> + Clone {
        self.reader.reset();
        self.text.resize(record.len(), 0);
        self.ends.resize(self.ends.len().max(16), 0);
        let (mut input, mut written, mut fields) = (record, 0, 0);
        loop {
            let (text, ends) = (self.text.get_mut(written..), self.ends.get_mut(fields..));
            let (Some(text), Some(ends)) = (text, ends) else { break };
            let (result, read, wrote, ended) = self.reader.read_record(input, text, ends);
            (input, written, fields) =
                (input.get(read..).unwrap_or_default(), written + wrote, fields + ended);
            match result {
                ReadRecordResult::Record | ReadRecordResult::End => break,
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                // The text of the fields is never longer than the record.
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() + 16, 0),
                ReadRecordResult::InputEmpty => {} // the empty rest ends the record
            }
        }
        let ends = self.ends.get(..fields).unwrap_or_default();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let text = self.text.as_slice();
        let field = move |(start, end): (usize, &usize)| {
            text.get(start..*end).and_then(|field| std::str::from_utf8(field).ok()).unwrap_or_default()
        };
        starts.zip(ends).map(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_split_and_quotes_removed() {
        let mut fields = Fields::new();
        for (record, expected) in [
            ("a,b", vec!["a", "b"]),
            (r#""x, ""y""",,"#, vec![r#"x, "y""#, "", ""]),
            ("\"two\nlines\",é", vec!["two\nlines", "é"]),
            ("5\" pipe,1", vec!["5\" pipe", "1"]),
            ("one", vec!["one"]),
            ("a\rb,\r,c\r", vec!["a\rb", "\r", "c\r"]),
            ("\r\r", vec!["\r\r"]),
        ] {
            assert_eq!(fields.split(record.as_bytes()).collect::<Vec<_>>(), expected, "{record}");
        }
        let wide = ["a"; 100].join(",");
        assert_eq!(fields.split(wide.as_bytes()).count(), 100);
    }

    #[test]
    fn quotes_decide_whether_a_record_ends() {
        for (line, state) in [
            ("a,b", QuoteState::Plain),
            ("\"a\",", QuoteState::Start),
            ("\"a\"", QuoteState::AfterQuote),
            ("\"a\"\"", QuoteState::Quoted),
            ("x,\"a", QuoteState::Quoted),
            ("\"a\" b", QuoteState::Torn),
            ("5\" pipe", QuoteState::Plain),
        ] {
            assert_eq!(QuoteState::after(line.as_bytes(), QuoteState::Start), state, "{line}");
        }
    }
}
