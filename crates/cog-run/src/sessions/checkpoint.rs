//! Checks that a client and a log refer to the same stream (ruling R52, docs/spec/streaming.md).

use cog_json::{Node, Path, ToJson as _, Value};
use cog_spec::Checkpoint;
use sha2::{Digest as _, Sha256};

use super::log::{Event, Log, Mark};

/// The maximum bytes of a text whose checkpoint is computed again.
const MAX_TEXT: u64 = 64 * 1024;

/// Returns whether a checkpoint is valid for a client whose last chunk is this one.
///
/// It must be the last checkpoint sent up to that chunk, or match the text of the chunk's string up to there.
pub(crate) fn agrees(log: &Log, last_seq: u64, checkpoint: &Checkpoint) -> bool {
    newest(log, last_seq).as_ref() == Some(checkpoint)
        || from_text(log, last_seq, checkpoint.offset).as_ref() == Some(checkpoint)
}

/// Returns the last checkpoint that was sent up to this chunk.
pub(crate) fn newest(log: &Log, last_seq: u64) -> Option<Checkpoint> {
    let (_, line) = up_to(log, last_seq).find(|(mark, _)| mark.has_checkpoint)?;
    let value = Value::parse(line).ok()?;
    let checkpoint = value.get("chunk")?.get("checkpoint")?;
    let hash = checkpoint.get("hash")?.as_str()?.to_owned();
    Some(Checkpoint { offset: checkpoint.get("offset")?.as_u64()?, hash })
}

/// Computes the checkpoint of the string that this chunk extends.
///
/// None when the string is longer than `max_bytes` bytes, or the chunk is not a delta. The stream of a longer text
/// contains enough checkpoints.
fn from_text(log: &Log, last_seq: u64, max_bytes: u64) -> Option<Checkpoint> {
    let max_bytes = max_bytes.min(MAX_TEXT);
    let last = Value::parse(chunks(log, last_seq).next()?).ok()?;
    let field = last.get("chunk").filter(|chunk| chunk.get("delta").is_some())?.get("field")?.as_str()?;
    let path: Path = field.parse().ok()?;
    let key = format!(r#""field":{}"#, field.to_json());
    let mut parts = Vec::new();
    let mut offset = 0;
    for line in chunks(log, last_seq) {
        if line.contains(r#""type":"snapshot""#) {
            let value = Value::parse(line).ok()?;
            if value.get("chunk").is_some_and(|chunk| replaces(chunk, &path)) {
                break;
            }
        } else if line.contains(&key) {
            let value = Value::parse(line).ok()?;
            let part = value.get("chunk")?.get("delta")?.as_str()?.to_owned();
            offset += part.len() as u64;
            parts.push(part);
        }
        if offset > max_bytes {
            return None;
        }
    }
    Some(Checkpoint { offset, hash: hash(parts.iter().rev()) })
}

/// Returns the numbered chunks up to this one, newest first.
fn chunks(log: &Log, last_seq: u64) -> impl Iterator<Item = &str> {
    up_to(log, last_seq).filter(|(mark, _)| mark.event == Event::Chunk).map(|(_, line)| line)
}

/// Returns the entries up to this number, newest first.
fn up_to(log: &Log, last_seq: u64) -> impl Iterator<Item = (Mark, &str)> {
    log.entries().rev().skip_while(move |(mark, _)| mark.seq > last_seq)
}

/// Returns whether a snapshot replaces the value at this path.
fn replaces(snapshot: Node<'_>, path: &Path) -> bool {
    match snapshot.get("field").and_then(|field| field.as_str()) {
        None => true,
        Some(field) => field.parse().is_ok_and(|field: Path| path.starts_with(&field)),
    }
}

/// Returns the first six hexadecimal digits of the SHA-256 of a text.
fn hash<'a>(parts: impl Iterator<Item = &'a String>) -> String {
    let digest = parts.fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize();
    digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use cog_spec::Chunk;

    use super::*;

    fn delta(seq: u64, field: &str, delta: &str) -> Chunk {
        Chunk::Delta { seq, field: field.to_owned(), delta: delta.to_owned(), checkpoint: None }
    }

    fn snapshot(seq: u64, field: Option<&str>) -> Chunk {
        Chunk::Snapshot { seq, field: field.map(str::to_owned), data: Value::parse("{}").unwrap() }
    }

    fn log(chunks: &[Chunk]) -> Log {
        let mut log = Log::default();
        chunks.iter().for_each(|chunk| log.push(chunk));
        log
    }

    fn checkpoint(text: &str) -> Checkpoint {
        Checkpoint { offset: text.len() as u64, hash: hash([text.to_owned()].iter()) }
    }

    #[test]
    fn checkpoint_matches_the_deltas_of_its_field() {
        let log = log(&[
            delta(1, "data.a", "one"),
            delta(2, "data.b", "\"field\":\"data.a\""),
            delta(3, "data.a", " two"),
            delta(4, "data.a", " three"),
        ]);
        assert!(agrees(&log, 1, &checkpoint("one")));
        assert!(agrees(&log, 3, &checkpoint("one two")));
        assert!(agrees(&log, 4, &checkpoint("one two three")));
        assert!(!agrees(&log, 4, &checkpoint("one two")));
        assert!(!agrees(&log, 3, &checkpoint("one-two")));
        assert!(!agrees(&log, 2, &checkpoint("one")));
    }

    #[test]
    fn replaced_text_is_not_counted() {
        for field in [None, Some("data"), Some("data.a")] {
            let log = log(&[delta(1, "data.a", "gone"), snapshot(2, field), delta(3, "data.a", "new")]);
            assert!(agrees(&log, 3, &checkpoint("new")), "{field:?}");
        }
        let log = log(&[delta(1, "data.a", "one"), snapshot(2, Some("data.b")), delta(3, "data.a", "two")]);
        assert!(agrees(&log, 3, &checkpoint("onetwo")));
        assert!(!agrees(&log, 2, &checkpoint("one")));
    }

    #[test]
    fn last_sent_checkpoint_is_valid() {
        let sent = Checkpoint { offset: 5, hash: "abc123".to_owned() };
        let first = Chunk::Delta {
            seq: 1,
            field: "data.a".to_owned(),
            delta: "12345".to_owned(),
            checkpoint: Some(sent.clone()),
        };
        let log = log(&[first, snapshot(2, Some("data.n")), delta(3, "data.b", "x")]);
        assert_eq!(newest(&log, 3), Some(sent.clone()));
        assert!(agrees(&log, 2, &sent) && agrees(&log, 3, &sent));
        assert!(!agrees(&log, 0, &sent));
    }
}
