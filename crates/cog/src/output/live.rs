//! The live view of a run on a terminal: the answer as it fills, in place, until its card takes over.

mod draft;
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
    draft::{Draft, NARROWEST, WIDEST},
    screen::{Line, Screen},
};
use super::{
    Console, Paint,
    progress::frame,
    text::{cut, printable, width},
};

/// How often the view is drawn at most.
pub(crate) const FRAME: Duration = Duration::from_millis(50);
/// A view that takes long to lay out is drawn more seldom: so many times its own time apart.
const REST: u32 = 8;

/// The answer as it fills.
pub(crate) struct Live<'a> {
    console: &'a Console,
    view: View,
    screen: Screen,
    begun: Instant,
    /// Not drawn before this.
    rests_until: Instant,
}

/// A violation, told while the answer arrives.
#[derive(Debug, Clone)]
struct Note {
    /// Where, from the envelope, for a person.
    place: String,
    /// The same; none where it is no path.
    path: Option<Path>,
    message: String,
}

impl Note {
    fn new(place: &str, message: impl Into<String>) -> Self {
        Self { place: printable(place), path: place.parse().ok(), message: message.into() }
    }
}

impl<'a> Live<'a> {
    /// Begins the view of a run of this module.
    pub(crate) fn begin(console: &'a Console, module: &Module) -> Self {
        let now = Instant::now();
        let view = View::new(console.out().paint, module);
        Self { console, view, screen: Screen::default(), begun: now, rests_until: now }
    }

    /// MediaCapabilities a chunk in; it is seen when the view is drawn next.
    pub(crate) fn see(&mut self, chunk: &Chunk) {
        self.view.see(chunk);
    }

    /// Draws what there is, unless the view rests.
    pub(crate) fn draw(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        if begun < self.rests_until {
            return Ok(());
        }
        let (columns, rows) = self.console.window();
        let lines = self.view.lines(columns, rows, self.begun.elapsed());
        let text = self.screen.show(lines, columns);
        self.console.draw(&text)?;
        self.rests_until = Instant::now() + begun.elapsed() * REST;
        Ok(())
    }
}

/// The view goes when the work does; what was seen last is told by the card.
impl Drop for Live<'_> {
    fn drop(&mut self) {
        let text = self.screen.clear(self.console.window().0);
        let _ = self.console.draw(&text);
    }
}

/// What is seen, apart from where.
struct View {
    paint: Paint,
    /// `code-reviewer 1.0.0 · decision`.
    title: String,
    image: DataAccumulator,
    growing: Option<Path>,
    characters: usize,
    percent: u8,
    stage: String,
    /// ` · confidence 0.93 · risk low`, once the model has told them.
    judgement: String,
    notes: Vec<Note>,
    /// How often the answer was taken back.
    resets: u32,
}

impl View {
    fn new(paint: Paint, module: &Module) -> Self {
        let manifest = &module.manifest;
        let tier = manifest.tier.map(|tier| format!(" · {tier}")).unwrap_or_default();
        Self {
            paint,
            title: printable(&format!("{} {}{tier}", manifest.name, manifest.version)),
            image: DataAccumulator::default(),
            growing: None,
            characters: 0,
            percent: 0,
            stage: "waiting for the first token".to_owned(),
            judgement: String::new(),
            notes: Vec::new(),
            resets: 0,
        }
    }

    fn see(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Delta { field, delta, .. } => {
                self.characters += delta.chars().count();
                self.grow(field);
            }
            Chunk::Snapshot { field: Some(field), data, .. } if field == "meta" => self.judge(data.node()),
            Chunk::Snapshot { field: Some(field), .. } => self.grow(field),
            Chunk::Snapshot { field: None, data, .. } if data.node().is_empty() => self.reset(),
            Chunk::Progress(progress) => self.progress(progress),
            _ => {}
        }
        self.image.apply(chunk);
    }

    fn grow(&mut self, field: &str) {
        self.stage = printable(field);
        self.growing = field.parse().ok();
    }

    fn judge(&mut self, meta: Node<'_>) {
        let confidence = meta.get("confidence").and_then(Node::as_f64);
        let risk = meta.get("risk").and_then(Node::as_str);
        let Some(confidence) = confidence else { return };
        let risk = risk.map(|word| format!(" · risk {}", printable(word))).unwrap_or_default();
        self.judgement = format!(" · confidence {confidence:.2}{risk}");
    }

    fn progress(&mut self, progress: &Progress) {
        if let Some(ViolationNote { path, message, .. }) = &progress.violation {
            return self.notes.push(Note::new(path, message.clone()));
        }
        self.percent = progress.percent;
        if let Some(doing) = progress.message.as_ref().or(progress.stage.as_ref()) {
            self.stage = printable(doing);
        }
    }

    /// What there was counts no more: the model is asked again, or what it said first was no answer yet.
    fn reset(&mut self) {
        let had = self.image.data().is_some();
        self.resets += u32::from(had);
        (self.growing, self.characters) = (None, 0);
        self.judgement.clear();
        let why = self.notes.drain(..).next_back();
        self.stage = match why {
            Some(note) => printable(&format!("retrying after {}: {}", note.place, note.message)),
            None => "starting again".to_owned(),
        };
    }

    /// A frame for a window of this size: the title, the end of the draft, what is being done.
    fn lines(&self, columns: usize, rows: usize, elapsed: Duration) -> Vec<Line> {
        // A line as wide as the window would leave the cursor nowhere.
        let columns = columns.saturating_sub(1).clamp(1, WIDEST);
        let draft = Draft { paint: self.paint, columns, growing: self.growing.as_ref(), notes: &self.notes };
        let mut tree = if columns < NARROWEST { Vec::new() } else { draft.lines(self.image.data()) };
        let room = rows.saturating_sub(3).max(1);
        if tree.len() > room {
            let hidden = tree.len() - room + 1;
            tree.drain(..hidden);
            tree.insert(0, self.line(columns, &format!("⋮ {hidden} lines above"), Paint::dim));
        }
        let mut lines = vec![self.line(columns, &format!("{}{}", self.title, self.judgement), Paint::bold)];
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
        // The path gives way, not the facts.
        let room = columns.saturating_sub(width(&facts) + 5).max(columns / 3);
        let text = format!("{} {} · {facts}", frame(elapsed), cut(&self.stage, room));
        self.line(columns, &text, Paint::dim)
    }

    fn line(&self, columns: usize, text: &str, paint: fn(Paint, String) -> String) -> Line {
        let text = cut(text, columns);
        Line { width: width(&text), text: paint(self.paint, text) }
    }
}

#[cfg(test)]
mod tests;
