//! The live view of a run on a terminal, until the card replaces it.

mod draft;
mod parts;
mod screen;
#[cfg(test)]
mod terminal;

use std::{
    io,
    time::{Duration, Instant},
};

use cog_answer::DataAccumulator;
use cog_json::{Node, Path};
use cog_module::Module;
use cog_spec::{Chunk, Progress, ViolationNote};

use self::{
    draft::{Draft, MAX_COLUMNS, MIN_COLUMNS},
    parts::PartList,
    screen::{Line, Screen},
};
use super::{
    Console, Palette,
    progress::frame,
    text::{printable, truncate, width},
};

/// The minimum time between two frames.
pub(crate) const FRAME: Duration = Duration::from_millis(50);
/// The minimum pause between two frames, as a multiple of the layout time.
const PAUSE_FACTOR: u32 = 8;

/// The live view of a run.
pub(crate) struct LiveView<'a> {
    console: &'a Console,
    content: Content,
    screen: Screen,
    started: Instant,
    /// The time of the next frame at the earliest.
    next_frame: Instant,
}

/// A violation that was reported while the answer arrives.
#[derive(Debug, Clone)]
struct Note {
    /// The path for display.
    location: String,
    /// The parsed path, if it is valid.
    path: Option<Path>,
    message: String,
}

impl Note {
    fn new(location: &str, message: impl Into<String>) -> Self {
        Self { location: printable(location), path: location.parse().ok(), message: message.into() }
    }
}

impl<'a> LiveView<'a> {
    /// Creates the view of a run of this module.
    pub(crate) fn begin(console: &'a Console, module: &Module) -> Self {
        let now = Instant::now();
        let content = Content::new(console.out().palette, module);
        Self { console, content, screen: Screen::default(), started: now, next_frame: now }
    }

    /// Adds a chunk, which the next frame shows.
    pub(crate) fn push(&mut self, chunk: &Chunk) {
        self.content.push(chunk);
    }

    /// Draws a frame, unless the last one is too recent.
    pub(crate) fn draw(&mut self) -> io::Result<()> {
        let start = Instant::now();
        if start < self.next_frame {
            return Ok(());
        }
        let (columns, rows) = self.console.window();
        let lines = self.content.lines(columns, rows, self.started.elapsed());
        let text = self.screen.show(lines, columns);
        self.console.draw(&text)?;
        // A long answer takes long to lay out. The pause grows with it, so that drawing takes at most a ninth of the time.
        self.next_frame = Instant::now() + start.elapsed() * PAUSE_FACTOR;
        Ok(())
    }
}

/// Erases the view; the card shows the final answer.
impl Drop for LiveView<'_> {
    fn drop(&mut self) {
        let text = self.screen.clear(self.console.window().0);
        let _ = self.console.draw(&text);
    }
}

/// The content of the view.
struct Content {
    palette: Palette,
    /// `code-reviewer 1.0.0 · decision`.
    title: String,
    data: DataAccumulator,
    growing: Option<Path>,
    characters: usize,
    percent: u8,
    stage: String,
    /// ` · confidence 0.93 · risk low`, once they are known.
    rating: String,
    notes: Vec<Note>,
    /// The parts of a composition.
    parts: PartList,
    /// The number of retractions.
    resets: u32,
}

impl Content {
    fn new(palette: Palette, module: &Module) -> Self {
        let manifest = &module.manifest;
        let tier = manifest.tier.map(|tier| format!(" · {tier}")).unwrap_or_default();
        Self {
            palette,
            title: printable(&format!("{} {}{tier}", manifest.name, manifest.version)),
            data: DataAccumulator::default(),
            growing: None,
            characters: 0,
            percent: 0,
            stage: "waiting for the first token".to_owned(),
            rating: String::new(),
            notes: Vec::new(),
            parts: PartList::default(),
            resets: 0,
        }
    }

    fn push(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Delta { field, delta, .. } => {
                self.characters += delta.chars().count();
                self.grow(field);
            }
            Chunk::Snapshot { field: Some(field), data, .. } if field == "meta" => {
                self.show_meta(data.node());
            }
            Chunk::Snapshot { field: Some(field), .. } => self.grow(field),
            Chunk::Snapshot { field: None, data, .. } if data.node().is_empty() => self.reset(),
            Chunk::Progress(progress) => self.progress(progress),
            Chunk::Meta { .. } | Chunk::Snapshot { .. } | Chunk::Final { .. } | Chunk::Error { .. } => {}
        }
        self.data.apply(chunk);
    }

    fn grow(&mut self, field: &str) {
        self.stage = printable(field);
        self.growing = field.parse().ok();
    }

    fn show_meta(&mut self, meta: Node<'_>) {
        let confidence = meta.get("confidence").and_then(Node::as_f64);
        let risk = meta.get("risk").and_then(Node::as_str);
        let Some(confidence) = confidence else { return };
        let risk = risk.map(|word| format!(" · risk {}", printable(word))).unwrap_or_default();
        self.rating = format!(" · confidence {confidence:.2}{risk}");
    }

    fn progress(&mut self, progress: &Progress) {
        if let Some(ViolationNote { path, message, .. }) = &progress.violation {
            return self.notes.push(Note::new(path, message.clone()));
        }
        self.percent = progress.percent;
        if let Some(part) = &progress.part {
            self.parts.push(part);
        }
        if let Some(doing) = progress.description() {
            self.stage = printable(&doing);
        }
    }

    /// Discards the draft: the model is called again, or its first output was not the answer.
    fn reset(&mut self) {
        let had_data = self.data.data().is_some();
        self.resets += u32::from(had_data);
        (self.growing, self.characters) = (None, 0);
        self.rating.clear();
        let violation = self.notes.drain(..).next_back();
        self.stage = match violation {
            Some(note) => printable(&format!("retrying after {}: {}", note.location, note.message)),
            None => "starting again".to_owned(),
        };
    }

    /// Returns a frame for a window of this size: the title, the end of the draft, and the status.
    fn lines(&self, columns: usize, rows: usize, elapsed: Duration) -> Vec<Line> {
        // A line as wide as the window would wrap the cursor.
        let columns = columns.saturating_sub(1).clamp(1, MAX_COLUMNS);
        let draft =
            Draft { palette: self.palette, columns, growing: self.growing.as_ref(), notes: &self.notes };
        let mut tree = if columns < MIN_COLUMNS { Vec::new() } else { draft.lines(self.data.data()) };
        let parts = self.parts.lines(frame(elapsed));
        let room = rows.saturating_sub(3 + parts.len()).max(1);
        if tree.len() > room {
            let hidden = tree.len() - room + 1;
            tree.drain(..hidden);
            tree.insert(0, self.line(columns, &format!("⋮ {hidden} lines above"), Palette::dim));
        }
        let mut lines = vec![self.line(columns, &format!("{}{}", self.title, self.rating), Palette::bold)];
        lines.extend(parts.iter().map(|part| self.line(columns, part, Palette::name)));
        lines.extend(tree);
        lines.push(self.status(columns, elapsed));
        lines
    }

    /// `⠙ data.issues[0].title · 210 characters · attempt 2 · 3 s`.
    fn status(&self, columns: usize, elapsed: Duration) -> Line {
        let mut parts = Vec::new();
        if self.characters > 0 {
            parts.push(format!("{} characters", self.characters));
        }
        if self.percent > 0 {
            parts.push(format!("{} %", self.percent));
        }
        if self.resets > 0 {
            parts.push(format!("attempt {}", self.resets + 1));
        }
        parts.push(format!("{} s", elapsed.as_secs()));
        let facts = parts.join(" · ");
        // The path is truncated, not the facts.
        let available = columns.saturating_sub(width(&facts) + 5).max(columns / 3);
        let text = format!("{} {} · {facts}", frame(elapsed), truncate(&self.stage, available));
        self.line(columns, &text, Palette::dim)
    }

    fn line(&self, columns: usize, text: &str, palette: fn(Palette, String) -> String) -> Line {
        let text = truncate(text, columns);
        Line { width: width(&text), text: palette(self.palette, text) }
    }
}

#[cfg(test)]
mod tests;
