//! Checks the data of a stream: the checkpoints, and the sum of all chunks.

use std::collections::{BTreeMap, BTreeSet};

use cog_json::{Node, Value};
use cog_schema::Violation;
use cog_spec::Checkpoint;

use super::{Item, chunk::Part, sorted};
use crate::{emit::CheckpointHasher, error::violation, fold::DataAccumulator};

/// Checks that each checkpoint matches the text of its field so far (docs/spec/streaming.md), and that the chunks of
/// each field add up to its final value (ruling R45). What came before a resumed stream is unknown.
pub(super) fn check(items: &[Item<'_>], found: &mut Vec<Violation>) {
    if items.iter().any(|item| item.node.get("resumed").is_some()) {
        return;
    }
    let mut content = Content::default();
    for (item, _) in sorted(items) {
        if let Some(chunk) = item.node.get("chunk") {
            content.apply(item, chunk, found);
        }
    }
    let end = items.iter().find(|item| item.part == Some(Part::Final));
    if let Some((end, data)) = end.and_then(|end| Some((end, end.node.get("data")?))) {
        content.check_final(end, data, found);
    }
}

/// The content of the chunks so far.
#[derive(Default)]
struct Content {
    data: DataAccumulator,
    /// The fields of all chunks.
    fields: BTreeSet<String>,
    /// The text of each field that deltas extend.
    texts: BTreeMap<String, CheckpointHasher>,
}

impl Content {
    fn apply(&mut self, item: &Item<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
        let field = chunk.get_str("field").unwrap_or("data");
        if let Some(delta) = chunk.get_str("delta") {
            self.check_checkpoint(item, field, delta, chunk, found);
            self.data.append(field, delta);
        } else if let Some(value) = chunk.get("data") {
            self.forget_texts(field);
            self.data.replace(field, value.to_serde());
        }
        if field.starts_with("data") {
            self.fields.insert(field.to_owned());
        }
    }

    /// Compares the checkpoint of a delta with the text of its field, to which the delta is not yet appended.
    fn check_checkpoint(
        &mut self,
        item: &Item<'_>,
        field: &str,
        delta: &str,
        chunk: Node<'_>,
        found: &mut Vec<Violation>,
    ) {
        let text = self.texts.entry(field.to_owned()).or_insert_with(|| {
            let mut text = CheckpointHasher::default();
            text.push(self.data.at(field).and_then(serde_json::Value::as_str).unwrap_or_default());
            text
        });
        text.push(delta);
        let message = chunk.get("checkpoint").and_then(|stated| mismatch(stated, &text.checkpoint()));
        if let Some(message) = message {
            found.push(violation(&item.path("chunk.checkpoint"), "checkpoint", message));
        }
    }

    /// Forgets the texts that a snapshot of `field` replaces.
    fn forget_texts(&mut self, field: &str) {
        let after = self.texts.range(field.to_owned()..).map(|(key, _)| key.clone());
        for key in after.take_while(|key| key.starts_with(field)).collect::<Vec<_>>() {
            self.texts.remove(&key);
        }
    }

    fn check_final(&self, end: &Item<'_>, data: Node<'_>, found: &mut Vec<Violation>) {
        let mut last = DataAccumulator::default();
        last.replace("data", data.to_serde());
        for field in &self.fields {
            let Some(value) = self.data.at(field) else { continue };
            if last.at(field).map(Value::from) != Some(Value::from(value)) {
                let message = format!("the chunks of `{field}` do not add up to its final value");
                found.push(violation(&end.path(field), "content", message));
            }
        }
    }
}

/// Returns how a checkpoint differs from the checkpoint of the text so far.
fn mismatch(stated: Node<'_>, text: &Checkpoint) -> Option<String> {
    let offset = stated.get("offset")?.as_u64()?;
    let hash = stated.get("hash")?.as_str()?;
    (offset != text.offset || hash != text.hash).then(|| {
        let Checkpoint { offset: bytes, hash: right } = text;
        format!(
            "found offset {offset} and hash `{hash}`; the field so far has {bytes} bytes and hash `{right}`"
        )
    })
}
