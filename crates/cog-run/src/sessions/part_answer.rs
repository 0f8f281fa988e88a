//! The answer of a part of a composition as a line of a log.

use cog_json::{Value, Writer};
use cog_spec::{PartAnswer, PartProgress};
use serde::Deserialize as _;

use super::log::{Event, Log};
use crate::parts_state::FinishedParts;

/// Writes the answer that the progress of a part contains, as a line without its line break. Returns whether it has one.
pub(crate) fn write(part: &PartProgress, text: &mut String) -> bool {
    let Some(answer) = &part.answer else { return false };
    Writer::compact(text).object(|w| {
        w.field("part", &part.path);
        w.field("part_answer", answer);
    });
    true
}

/// Reads the path of a part and its answer from a line; none if the line has another form.
pub(crate) fn read(line: &str) -> Option<(String, PartAnswer)> {
    let value = Value::parse(line).ok()?;
    let answer = PartAnswer::deserialize(value.get("part_answer")?).ok()?;
    Some((value.get("part")?.as_str()?.to_owned(), answer))
}

// The answers of the parts of an interrupted composition, as its log has them.

/// Returns the answers of the parts that were done. An answer that was dropped from the log is absent.
pub(crate) fn from_log(log: &Log) -> FinishedParts {
    let answers = log.entries().filter(|(mark, _)| mark.event == Event::PartAnswer);
    answers.filter_map(|(_, line)| part_answer::read(line)).collect()
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::{Chunk, PartAnswer, PartProgress, Progress};

    use super::*;

    #[test]
    fn finds_the_answers_of_parts() {
        let part = |path: &str, envelope: Option<&str>| {
            let answer = envelope.map(|envelope| PartAnswer {
                key: "k".to_owned(),
                envelope: Value::parse(envelope).unwrap(),
            });
            let part = PartProgress { path: path.to_owned(), answer, ..PartProgress::default() };
            Chunk::Progress(Progress { part: Some(Box::new(part)), ..Progress::default() })
        };
        let mut log = Log::default();
        log.push(&part("a", None));
        log.push(&part("a", Some(r#"{"ok":true,"data":{"n":1.50}}"#)));
        let found = from_log(&log);
        assert_eq!(found.get("a", "k").unwrap().to_string(), r#"{"ok":true,"data":{"n":1.50}}"#);
        assert!(found.get("b", "k").is_none());
    }
}
