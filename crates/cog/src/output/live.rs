//! The live view of a run on a terminal, until the card replaces it.

mod draft;
#[cfg(test)]
mod terminal;

use std::{
    fmt::Write as _,
    io,
    time::{Duration, Instant},
};

use cog_answer::DataAccumulator;
use cog_json::{Node, Path};
use cog_module::Module;
use cog_spec::{Chunk, PartProgress, PartStatus, Progress, ViolationNote};

use self::draft::{Draft, MAX_COLUMNS, MIN_COLUMNS};
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

// A frame of lines that is redrawn in place on a terminal.

/// A line of a frame: its text, which may be coloured, and its columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Line {
    text: String,
    width: usize,
}

/// The last frame on the terminal. The cursor is at the end of its last line.
#[derive(Debug, Default)]
struct Screen {
    shown: Vec<Line>,
    columns: usize,
}

/// Synchronized updates; terminals without support ignore these sequences.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

impl Screen {
    /// Returns the output that replaces the last frame by these lines; unchanged lines are not written. Lines must be
    /// narrower than the terminal, and fewer than its rows.
    fn show(&mut self, lines: Vec<Line>, columns: usize) -> String {
        // Keystrokes are echoed at the end of the frame, so each frame begins with a jump to its first line.
        let mut text = format!("{BEGIN}{}", self.to_top(columns));
        // A resized terminal may have wrapped lines again, so all lines have moved.
        let is_same_place = columns == self.columns;
        if !is_same_place {
            text += CLEAR_BELOW;
        }
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                text += "\r\n";
            }
            if !is_same_place || self.shown.get(index) != Some(line) {
                text += &line.text;
                text += CLEAR_LINE;
            }
        }
        // Move to the end of the last line, if it was not written.
        let end = lines.last().map_or(0, |line| line.width);
        let _ = write!(text, "\r{}{CLEAR_BELOW}{END}", right(end));
        (self.shown, self.columns) = (lines, columns);
        text
    }

    /// Returns the output that erases the frame.
    fn clear(&mut self, columns: usize) -> String {
        let text = if self.shown.is_empty() { String::new() } else { self.to_top(columns) + CLEAR_BELOW };
        self.shown.clear();
        text
    }

    /// Moves the cursor to the start of the frame, on a terminal of this width: one that became narrower has wrapped the lines.
    fn to_top(&self, columns: usize) -> String {
        let rows: usize = self.shown.iter().map(|line| line.width.max(1).div_ceil(columns.max(1))).sum();
        let above = rows.saturating_sub(1);
        if above == 0 { "\r".to_owned() } else { format!("\r\u{1b}[{above}A") }
    }
}

fn right(columns: usize) -> String {
    if columns == 0 { String::new() } else { format!("\u{1b}[{columns}C") }
}

// The parts of a composition: what each one does.

/// The maximum number of parts that are shown. Parts that run and that failed come first.
const MAX_SHOWN: usize = 12;

/// The parts of a composition, in the order in which they were reported.
#[derive(Debug, Default)]
struct PartList(Vec<Part>);

#[derive(Debug)]
struct Part {
    path: String,
    status: PartStatus,
    /// The field that grows.
    field: String,
    characters: usize,
    /// `confidence 0.93 · $0.01`, or the error.
    result: String,
}

impl PartList {
    /// Adds the progress of a part.
    fn push(&mut self, progress: &PartProgress) {
        let part = self.part(&progress.path);
        if let Some(status) = progress.status {
            part.status = status;
        }
        if let Some(field) = &progress.field {
            part.field = printable(field);
        }
        part.characters += progress.delta.as_ref().map_or(0, |delta| delta.chars().count());
        if let Some(report) = &progress.report {
            let confidence = report.confidence.map(|confidence| format!("confidence {confidence:.2}"));
            let cost = report.usage.as_ref().and_then(|usage| usage.cost).map(|cost| cost.to_string());
            let cached = report.cache.filter(|cache| cache.hit).map(|_| "from the cache".to_owned());
            let restored = report.restored.then(|| "restored".to_owned());
            let error =
                report.error.as_ref().map(|error| printable(&format!("{}: {}", error.code, error.message)));
            part.result = [error, confidence, cost, cached, restored]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" · ");
        }
    }

    /// Returns one line for each part: `✓ style-reviewer  confidence 0.93 · $0.01`.
    fn lines(&self, spinner: char) -> Vec<String> {
        let width = self.0.iter().map(|part| part.path.chars().count()).max().unwrap_or_default();
        let shown: Vec<&Part> = match self.0.len() > MAX_SHOWN {
            true => self.0.iter().filter(|part| part.is_urgent()).take(MAX_SHOWN).collect(),
            false => self.0.iter().collect(),
        };
        let mut lines: Vec<String> = shown.iter().map(|part| part.line(width, spinner)).collect();
        if self.0.len() > shown.len() {
            let done = self.count(PartStatus::Done);
            let waiting = self.count(PartStatus::Waiting);
            lines.push(format!("  {done} of {} parts done, {waiting} waiting", self.0.len()));
        }
        lines
    }

    fn count(&self, status: PartStatus) -> usize {
        self.0.iter().filter(|part| part.status == status).count()
    }

    fn part(&mut self, path: &str) -> &mut Part {
        let path = printable(path);
        let index = self.0.iter().position(|part| part.path == path).unwrap_or_else(|| {
            let index = self.place_of(&path);
            let part = Part {
                path,
                status: PartStatus::Waiting,
                field: String::new(),
                characters: 0,
                result: String::new(),
            };
            self.0.insert(index, part);
            index
        });
        #[expect(clippy::indexing_slicing, reason = "the part was found or added")]
        &mut self.0[index]
    }

    /// Returns the place of a new part: after the parts of the same part, otherwise at the end.
    fn place_of(&self, path: &str) -> usize {
        let Some((parent, _)) = path.rsplit_once('/') else { return self.0.len() };
        let last = self.0.iter().rposition(|part| part.is_in(parent));
        last.map_or(self.0.len(), |last| last + 1)
    }
}

impl Part {
    /// Whether it is this part, or a part below it.
    fn is_in(&self, parent: &str) -> bool {
        self.path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns whether the part is shown if there is no room for all.
    fn is_urgent(&self) -> bool {
        matches!(self.status, PartStatus::Running | PartStatus::Failed)
    }

    fn line(&self, width: usize, spinner: char) -> String {
        let sign = match self.status {
            PartStatus::Waiting => '·',
            PartStatus::Running => spinner,
            PartStatus::Done => '✓',
            PartStatus::Failed => '✗',
            PartStatus::Skipped | PartStatus::Cancelled => '–',
        };
        let doing = match self.status {
            PartStatus::Running if self.characters > 0 => {
                format!("{} · {} characters", self.field, self.characters)
            }
            PartStatus::Done | PartStatus::Failed => self.result.clone(),
            status => status.to_string(),
        };
        format!("{sign} {:width$}  {doing}", self.path)
    }
}

#[cfg(test)]
mod tests;
