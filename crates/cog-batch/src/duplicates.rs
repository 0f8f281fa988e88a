//! Rows whose inputs are equal: the first one runs, and the others get its result.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt::Write as _,
};

use cog_json::{Node, ToJson as _, Value, Writer};
use cog_spec::ErrorBody;

use crate::{
    FinishedRow, Row, RowHash, RowResult,
    row::{Digest, Position},
    sink::RowHead,
};

/// The duplicates that may wait for rows that run.
const MAX_WAITING: usize = 65_536;

/// A row whose input equals the input of an earlier row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Duplicate {
    pub(crate) row: u64,
    pub(crate) hash: RowHash,
    /// The members that its result gets from the row.
    pub(crate) carried: Box<str>,
}

/// The first row with each input: 24 bytes each, and the room of the table.
#[derive(Debug, Default)]
pub(crate) struct FirstRows {
    rows: HashMap<Digest, First>,
    /// The duplicates of rows that run.
    waiting: HashMap<u64, Vec<Duplicate>>,
    waiting_count: usize,
    /// Duplicates of rows that have ended.
    ready: VecDeque<(Duplicate, Position)>,
}

/// What the batch knows about the first row with an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstRow {
    /// It runs.
    Running(u64),
    /// Its result is stored.
    Stored(Position),
}

/// A [`FirstRow`] in 8 bytes. The lowest bit says which.
#[derive(Debug, Clone, Copy)]
struct First(u64);

/// The inputs that were seen.
#[derive(Debug, Default)]
pub(crate) struct SeenInputs(HashSet<Digest>);

/// Returns the digest of an input: of its JSON with the members in their order, without white space.
pub(crate) fn digest_of_input(input: &Value) -> Digest {
    Digest::from_parts([input.to_json().as_bytes()])
}

impl FirstRows {
    /// Returns the first row with this input.
    pub(crate) fn get(&self, input: Digest) -> Option<FirstRow> {
        self.rows.get(&input).map(|first| first.unpack())
    }

    /// Records that the first row with this input runs.
    pub(crate) fn run(&mut self, input: Digest, row: u64) {
        self.rows.insert(input, First::pack(FirstRow::Running(row)));
    }

    /// Records a result that an earlier start of the batch has stored.
    pub(crate) fn store_earlier(&mut self, input: Digest, position: Position) {
        self.rows.entry(input).or_insert(First::pack(FirstRow::Stored(position)));
    }

    /// Records that the first row with this input has ended. Its duplicates are ready.
    pub(crate) fn store(&mut self, input: Digest, row: u64, position: Position) {
        self.rows.insert(input, First::pack(FirstRow::Stored(position)));
        let waiting = self.waiting.remove(&row).unwrap_or_default();
        self.waiting_count -= waiting.len();
        self.ready.extend(waiting.into_iter().map(|duplicate| (duplicate, position)));
    }

    /// Lets a duplicate wait for a row that runs.
    pub(crate) fn wait(&mut self, row: u64, duplicate: Duplicate) {
        self.waiting.entry(row).or_default().push(duplicate);
        self.waiting_count += 1;
    }

    /// Whether no further duplicate may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting_count >= MAX_WAITING
    }

    /// Returns a duplicate whose result is stored.
    pub(crate) fn next_ready(&mut self) -> Option<(Duplicate, Position)> {
        self.ready.pop_front()
    }
}

impl First {
    fn pack(first: FirstRow) -> Self {
        match first {
            FirstRow::Running(row) => Self(row << 1),
            FirstRow::Stored(position) => Self(position.0 << 1 | 1),
        }
    }

    fn unpack(self) -> FirstRow {
        match self.0 & 1 {
            0 => FirstRow::Running(self.0 >> 1),
            _ => FirstRow::Stored(Position(self.0 >> 1)),
        }
    }
}

impl SeenInputs {
    /// Adds the input of a row. Returns false if there was an equal one. The stored result can be of another input, if the
    /// input has changed.
    pub(crate) fn is_first(&mut self, row: &Row, done: Option<FinishedRow>) -> bool {
        match row.input.get() {
            Ok(input) if done.is_none_or(|done| done.hash == row.hash) => self.add(input),
            _ => true,
        }
    }

    fn add(&mut self, input: &Value) -> bool {
        self.0.insert(digest_of_input(input))
    }
}

/// The members of a line that say which row it is of.
const OF_ROW: [&str; 4] = ["row", "id", "kept", "duplicate_of"];

/// Returns the line of a row that was at another position, or was stored without what it carries: it no longer says which row it is
/// a duplicate of. None if the line is damaged.
pub(crate) fn renumbered(line: &[u8], head: RowHead<'_>, dedupes: bool) -> Option<String> {
    let stored = Value::parse_bytes(line).ok()?;
    stored.get("row")?.as_u64()?;
    let mut renumbered = String::with_capacity(line.len());
    head.write(&mut renumbered);
    if dedupes {
        renumbered.push_str("\"duplicate_of\":null,");
    }
    write_rest(&stored, &mut renumbered, |w, name, member| {
        w.field(name, &member);
    });
    Some(renumbered)
}

/// Whether a line begins as it would be written for this row.
pub(crate) fn has_head(line: &[u8], head: RowHead<'_>) -> bool {
    let mut expected = String::new();
    head.write(&mut expected);
    let rest = line.strip_prefix(expected.as_bytes());
    rest.is_some_and(|rest| !rest.starts_with(b"\"id\":") && !rest.starts_with(b"\"kept\":"))
}

/// Writes the members of a line that do not say which row it is of, and its end.
fn write_rest(line: &Value, out: &mut String, mut write: impl FnMut(&mut Writer<'_>, &str, Node<'_>)) {
    let start = out.len();
    Writer::compact(out).object(|w| {
        let members = line.members().filter(|(name, _)| !OF_ROW.contains(name));
        members.for_each(|(name, member)| write(w, name, member));
    });
    out.replace_range(start..=start, ""); // the brace
}

impl Duplicate {
    /// Returns the result of the duplicate from the line of the first row: `duplicate_of` names that row, and the usage
    /// counts no tokens. None if the line is damaged. `is_unanswered` says what an error means for a row.
    pub(crate) fn copy<'a>(
        &self,
        line: &[u8],
        is_unanswered: impl FnOnce(&ErrorBody) -> bool,
        copy: &'a mut String,
    ) -> Option<RowResult<'a>> {
        let first = Value::parse_bytes(line).ok()?;
        let number = first.get("row")?.as_u64()?;
        let ok = first.get("ok")?.as_bool()?;
        copy.clear();
        RowHead { row: self.row, hash: self.hash, carried: &self.carried }.write(copy);
        let _ = write!(copy, "\"duplicate_of\":{number},"); // writing to a string cannot fail
        write_rest(&first, copy, |w, name, member| match name {
            "meta" => w.key(name).object(|w| write_meta(w, member)),
            _ => drop(w.field(name, &member)),
        });
        let is_unanswered =
            first.get("error").and_then(ErrorBody::read).is_some_and(|error| is_unanswered(&error));
        Some(RowResult { is_unanswered, ..RowResult::from_line(self.row, self.hash, ok, copy.as_bytes()) })
    }
}

fn write_meta(w: &mut Writer<'_>, meta: Node<'_>) {
    for (name, member) in meta.members() {
        match name {
            "usage" => w.key(name).object(|w| {
                w.field("input_tokens", &0_u64).field("output_tokens", &0_u64);
            }),
            _ => {
                w.field(name, &member);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duplicate() -> Duplicate {
        Duplicate { row: 9, hash: RowHash::from_u64(1), carried: "".into() }
    }

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap()
    }

    fn copy(line: &str) -> Option<(bool, String)> {
        let mut buffer = String::new();
        let ok = duplicate().copy(line.as_bytes(), |_| false, &mut buffer)?.ok;
        Some((ok, buffer))
    }

    #[test]
    fn copy_names_the_first_row_and_counts_no_tokens() {
        let line = r#"{"row":5,"ok":true,"meta":{"risk":"low","usage":{"input_tokens":7,"cost":{"amount":1}}},"data":{"n":1.50,"t":"é\n"}}"#;
        let expected = r#"{"row":9,"duplicate_of":5,"ok":true,"meta":{"risk":"low","usage":{"input_tokens":0,"output_tokens":0}},"data":{"n":1.50,"t":"é\n"}}"#;
        assert_eq!(copy(line), Some((true, expected.to_owned())));
        let failed = r#"{"row":5,"duplicate_of":2,"ok":false,"error":{"code":"E1000"}}"#;
        let expected = r#"{"row":9,"duplicate_of":5,"ok":false,"error":{"code":"E1000"}}"#;
        assert_eq!(copy(failed), Some((false, expected.to_owned())));
        for damaged in ["", "{\"row\":5,\"ok\":tr", "[]", "{\"row\":5}"] {
            assert_eq!(copy(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn line_of_a_row_that_moved_has_its_new_number() {
        let head = RowHead { row: 12, hash: RowHash::from_u64(1), carried: "" };
        let carries = RowHead { carried: r#""id":"a""#, ..head };
        for (line, head, dedupes, expected) in [
            (r#"{"row":5,"ok":true}"#, head, false, r#"{"row":12,"ok":true}"#),
            (r#"{"row":5,"duplicate_of":2,"ok":true}"#, head, false, r#"{"row":12,"ok":true}"#),
            (r#"{"row":5,"ok":true}"#, carries, true, r#"{"row":12,"id":"a","duplicate_of":null,"ok":true}"#),
            (r#"{"row":5,"id":"b","kept":{},"ok":true}"#, carries, false, r#"{"row":12,"id":"a","ok":true}"#),
        ] {
            assert_eq!(renumbered(line.as_bytes(), head, dedupes).as_deref(), Some(expected));
        }
        for damaged in ["", r#"{"row":,"ok":true}"#, r#"{"ok":true}"#] {
            assert_eq!(renumbered(damaged.as_bytes(), head, false), None, "{damaged}");
        }
        assert!(has_head(br#"{"row":12,"ok":true}"#, head) && !has_head(br#"{"row":12,"ok":true}"#, carries));
        assert!(!has_head(br#"{"row":12,"id":"a","ok":true}"#, head), "the options carried more before");
        assert!(has_head(br#"{"row":12,"id":"a","ok":true}"#, carries));
        assert!(!has_head(br#"{"row":12,"id":"a","kept":{},"ok":true}"#, carries));
    }

    #[test]
    fn inputs_are_equal_if_their_members_and_order_are() {
        let mut seen = SeenInputs::default();
        assert!(seen.add(&value(r#"{"a": 1, "b": [true]}"#)));
        assert!(!seen.add(&value(r#" {"a":1,"b":[ true ]} "#)));
        for other in [r#"{"b":[true],"a":1}"#, r#"{"a":1.0,"b":[true]}"#, r#"{"a":1}"#, r#""a""#] {
            assert!(seen.add(&value(other)), "{other}");
        }
    }

    #[test]
    fn duplicates_wait_until_the_first_row_has_ended() {
        let input = digest_of_input(&value("\"a\""));
        let mut rows = FirstRows::default();
        assert_eq!((rows.get(input), size_of::<(Digest, First)>()), (None, 24));
        rows.run(input, 3);
        assert_eq!(rows.get(input), Some(FirstRow::Running(3)));
        rows.wait(3, duplicate());
        assert_eq!(rows.next_ready(), None);
        rows.store(input, 3, Position(1 << 40));
        rows.store_earlier(input, Position(0));
        assert_eq!(rows.get(input), Some(FirstRow::Stored(Position(1 << 40))));
        assert_eq!((rows.next_ready(), rows.next_ready()), (Some((duplicate(), Position(1 << 40))), None));
    }

    #[test]
    fn duplicates_that_wait_are_limited() {
        let mut rows = FirstRows::default();
        (0..MAX_WAITING).for_each(|_| rows.wait(1, duplicate()));
        assert!(rows.is_full());
        rows.store(digest_of_input(&value("1")), 1, Position(0));
        assert!(!rows.is_full());
    }
}
