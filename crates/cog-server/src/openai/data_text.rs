//! The JSON text of the data while they arrive: what is certain, and nothing that is later contradicted.

use cog_json::{Path, Segment, ToJson, Writer};
use cog_spec::Chunk;

use super::live::Live;

/// Converts the chunks of a run to the text of its data. What it has returned is always a prefix of the text of the final data.
pub(super) struct DataText {
    live: Live,
    /// The text that was returned.
    sent: String,
    /// The length of the text of the current attempt. An attempt after the first repeats what was returned.
    written: usize,
    /// The path of the last value that was written; its containers are open.
    last: Option<Path>,
    /// The value that is not certain yet.
    pending: Option<Pending>,
    /// Nothing is certain until the end of the run, or the next attempt.
    is_waiting: bool,
}

/// A value that may still change. It is certain when the next one arrives without a violation in between.
struct Pending {
    field: String,
    path: Path,
    value: PendingValue,
}

enum PendingValue {
    /// A value that has arrived at once, as JSON.
    Json(String),
    /// A string of which parts have arrived.
    Text { unsent: String, is_live: bool, has_begun: bool },
}

/// The model has corrected data of which a part was returned.
#[derive(Debug, PartialEq)]
pub(super) struct Corrected;

/// The name of the member whose content is checked and shortened at the end (ruling R30).
const EXTENSIONS: Segment<'_> = Segment::Key("extensions");

impl DataText {
    pub(super) fn new(live: Live) -> Self {
        Self { live, sent: String::new(), written: 0, last: None, pending: None, is_waiting: false }
    }

    /// Processes a chunk. Adds the text that is certain because of it.
    ///
    /// # Errors
    /// The chunk contradicts what was returned before.
    pub(super) fn add(&mut self, chunk: &Chunk, new: &mut String) -> Result<(), Corrected> {
        match chunk {
            Chunk::Snapshot { field: None, .. } => {
                self.restart();
                Ok(())
            }
            Chunk::Progress(progress) => {
                self.is_waiting |= progress.violation.is_some();
                Ok(())
            }
            _ if self.is_waiting => Ok(()),
            Chunk::Delta { field, delta, .. } => self.delta(field, delta, new),
            Chunk::Snapshot { field: Some(field), data, .. } => {
                self.settle(new)?;
                self.expect(field, PendingValue::Json(data.to_json()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds the rest of the text of the final data.
    ///
    /// # Errors
    /// It does not begin with what was returned before.
    pub(super) fn finish(&mut self, text: &str, new: &mut String) -> Result<(), Corrected> {
        self.restart();
        self.write(text, new)?;
        if self.written == self.sent.len() { Ok(()) } else { Err(Corrected) }
    }

    /// Starts another attempt.
    fn restart(&mut self) {
        self.written = 0;
        self.last = None;
        self.pending = None;
        self.is_waiting = false;
    }

    fn delta(&mut self, field: &str, delta: &str, new: &mut String) -> Result<(), Corrected> {
        if self.pending.as_ref().is_none_or(|pending| pending.field != field) {
            self.settle(new)?;
            self.expect(
                field,
                PendingValue::Text { unsent: String::new(), is_live: false, has_begun: false },
            );
        }
        let Some(Pending { value: PendingValue::Text { unsent, is_live, .. }, .. }) = &mut self.pending
        else {
            self.is_waiting = true; // its string was skipped, or another value replaced it
            return Ok(());
        };
        unsent.push_str(delta);
        // A rationale of white space alone is a violation.
        if *is_live && !unsent.trim().is_empty() { self.write_part(new) } else { Ok(()) }
    }

    /// Sets the next value.
    fn expect(&mut self, field: &str, mut value: PendingValue) {
        let Ok(path) = field.parse::<Path>() else { return };
        if path.first() != Some(Segment::Key("data")) {
            return; // a part of meta
        }
        if path.segments().nth(1).is_none_or(|step| step == EXTENSIONS) {
            self.is_waiting = true;
            return;
        }
        if let PendingValue::Text { is_live, .. } = &mut value {
            *is_live = self.live.accepts_any_text(&path);
        }
        self.pending = Some(Pending { field: field.to_owned(), path, value });
    }

    /// Writes the value that is certain now.
    fn settle(&mut self, new: &mut String) -> Result<(), Corrected> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        match pending.value {
            PendingValue::Json(json) => self.write_at(pending.path, &json, new),
            PendingValue::Text { unsent, has_begun: false, .. } => {
                self.write_at(pending.path, &unsent.to_json(), new)
            }
            PendingValue::Text { unsent, has_begun: true, .. } => {
                let rest = unsent.to_json();
                self.write(rest.strip_prefix('"').unwrap_or_default(), new)
            }
        }
    }

    /// Writes the part of a string that has arrived.
    fn write_part(&mut self, new: &mut String) -> Result<(), Corrected> {
        let Some(pending) = &mut self.pending else { return Ok(()) };
        let PendingValue::Text { unsent, has_begun, .. } = &mut pending.value else { return Ok(()) };
        let json = std::mem::take(unsent).to_json();
        let open = json.strip_suffix('"').unwrap_or_default();
        if std::mem::replace(has_begun, true) {
            return self.write(open.strip_prefix('"').unwrap_or_default(), new);
        }
        let path = pending.path.clone();
        self.write_at(path, open, new)
    }

    /// Writes a value at its path. Waits for the end if it does not follow the last one.
    fn write_at(&mut self, path: Path, json: &str, new: &mut String) -> Result<(), Corrected> {
        let Some(mut text) = between(self.last.as_ref(), &path) else {
            self.is_waiting = true;
            return Ok(());
        };
        self.last = Some(path);
        text.push_str(json);
        self.write(&text, new)
    }

    /// Adds what was not returned before.
    fn write(&mut self, text: &str, new: &mut String) -> Result<(), Corrected> {
        let known = self.sent.get(self.written..).ok_or(Corrected)?;
        self.written += text.len();
        if known.starts_with(text) {
            return Ok(());
        }
        let rest = text.strip_prefix(known).ok_or(Corrected)?;
        new.push_str(rest);
        self.sent.push_str(rest);
        Ok(())
    }
}

/// Returns the text between two values: what closes the containers of the last one, and opens those of the next one. None if the
/// next one does not follow.
fn between(last: Option<&Path>, next: &Path) -> Option<String> {
    let mut text = String::new();
    let steps: Vec<Segment<'_>> = next.segments().skip(1).collect();
    let Some(last) = last else {
        let first = steps.iter().all(|step| !matches!(step, Segment::Index(1..)));
        return first.then(|| {
            open(&mut text, &steps);
            text
        });
    };
    let before: Vec<Segment<'_>> = last.segments().skip(1).collect();
    let common = before.iter().zip(&steps).take_while(|(one, other)| one == other).count();
    for step in before.get(common + 1..)?.iter().rev() {
        text.push(if matches!(step, Segment::Key(_)) { '}' } else { ']' });
    }
    text.push(',');
    match (before.get(common)?, steps.get(common)?) {
        (Segment::Key(_), Segment::Key(key)) => write_key(&mut text, key),
        (Segment::Index(index), Segment::Index(next)) if *next == index + 1 => {}
        _ => return None,
    }
    let inner = steps.get(common + 1..)?;
    let is_first = inner.iter().all(|step| !matches!(step, Segment::Index(1..)));
    is_first.then(|| {
        open(&mut text, inner);
        text
    })
}

/// Opens the containers of these steps.
fn open(text: &mut String, steps: &[Segment<'_>]) {
    for step in steps {
        match step {
            Segment::Key(key) => {
                text.push('{');
                write_key(text, key);
            }
            Segment::Index(_) => text.push('['),
        }
    }
}

fn write_key(text: &mut String, key: &str) {
    Writer::compact(text).string(key);
    text.push(':');
}

#[cfg(test)]
mod tests;
