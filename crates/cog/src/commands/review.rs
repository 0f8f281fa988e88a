//! `cog review`: shows one run at a time, and stores what a person says about its answer.

mod editor;
mod keys;
mod screen;

use std::collections::HashSet;

use cog_host::{
    run_log::{Entries, Entry, Labels},
    settings::{Environment, Flags, Settings},
};
use cog_run::feedback::{Feedback, LabelKind};

use self::{
    editor::{Draft, Edited},
    keys::{Key, Keyboard},
    screen::{Page, Position},
};
use super::logs::label;
use crate::{
    args::ReviewArgs,
    error::{CliError, Exit},
    output::Console,
};

/// Reviews the runs of the log.
pub(crate) fn review(
    args: &ReviewArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment.clone())?;
    let mut keyboard = Keyboard::open(console)?;
    let labels = Labels::new(&settings)?;
    let Chosen { runs, without_contents } = choose(args, &settings, &labels)?;
    if without_contents > 0 {
        let count = plural(without_contents, "run");
        console.note(&format!(
            "{count} left out: their contents are not stored; logs.contents stores them for later runs"
        ));
    }
    if runs.is_empty() {
        console.note("there is no run to review");
        return Ok(Exit::Ok);
    }
    let mut review = Review {
        settings: &settings,
        environment: &environment,
        console,
        labels,
        runs,
        position: Position::default(),
        message: String::new(),
        draft: None,
        labelled: HashSet::new(),
    };
    keyboard.enter()?;
    let ended = review.until_quit(&mut keyboard);
    keyboard.leave();
    let count = review.labelled.len();
    console.print(&format!("{} of {} labelled\n", count, plural(review.runs.len(), "run")))?;
    ended.map(|()| Exit::Ok)
}

fn plural(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// The runs to review.
struct Chosen {
    /// The newest first.
    runs: Vec<Entry>,
    /// The number of runs that cannot be reviewed.
    without_contents: usize,
}

fn choose(args: &ReviewArgs, settings: &Settings, labels: &Labels) -> Result<Chosen, CliError> {
    let origin = match &args.module {
        Some(name) => Some(settings.finder().find(name)?),
        None => None,
    };
    let last = labels.last()?;
    let entries = Entries::read(settings)?;
    let wanted = entries.newest_first().filter(|entry| {
        origin.as_ref().is_none_or(|origin| entry.is_of(origin))
            && (args.all || !last.contains_key(&entry.id))
            && args.below.is_none_or(|limit| entry.confidence.is_some_and(|confidence| confidence < limit))
            // The log has the result of the gate only in the contents, and says below which runs lack them.
            && args.gate.is_none_or(|gate| entry.contents.is_none() || gate.accepts(entry.passed_gate()))
    });
    let mut chosen = Chosen { runs: Vec::new(), without_contents: 0 };
    for entry in wanted {
        if entry.contents.is_none() {
            chosen.without_contents += 1;
        } else if chosen.runs.len() < args.limit as usize {
            chosen.runs.push(entry);
        }
    }
    chosen.runs = Entry::with_labels(chosen.runs, labels)?;
    Ok(chosen)
}

/// A review that has begun.
struct Review<'a> {
    settings: &'a Settings,
    environment: &'a Environment,
    console: &'a Console,
    labels: Labels,
    runs: Vec<Entry>,
    /// The run that is shown, and its first visible line.
    position: Position,
    /// What the last key did.
    message: String,
    /// The edited answer of the shown run, if it did not fit the schema.
    draft: Option<Draft>,
    /// The runs that got a label.
    labelled: HashSet<String>,
}

/// Whether the review goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Key,
    End,
}

impl Review<'_> {
    fn until_quit(&mut self, keyboard: &mut Keyboard) -> Result<(), CliError> {
        loop {
            let Some(run) = self.runs.get(self.position.run) else { return Ok(()) };
            let (columns, rows) = self.console.window();
            let page = Page::new(run, self.console.out().palette, columns);
            self.position.keep_within(&page, rows);
            self.console.draw(&page.screen(&self.position, self.runs.len(), &self.message, rows))?;
            let key = keyboard.key()?;
            if self.act(key, &page, rows, keyboard)? == Next::End {
                return Ok(());
            }
        }
    }

    /// Does what a key stands for.
    fn act(&mut self, key: Key, page: &Page, rows: usize, keyboard: &mut Keyboard) -> Result<Next, CliError> {
        let shown = page.visible(rows);
        match key {
            Key::Char('q') | Key::Interrupt => return Ok(Next::End),
            Key::Char('r') => self.label(LabelKind::Right, None)?,
            Key::Char('w') => self.label(LabelKind::Wrong, None)?,
            Key::Char('e') => self.edit(keyboard)?,
            Key::Char('s') => self.show_next("skipped"),
            Key::Char('b') => self.show_previous(),
            Key::Down | Key::Char('j') => self.position.top += 1,
            Key::Up | Key::Char('k') => self.position.top = self.position.top.saturating_sub(1),
            Key::PageDown | Key::Char(' ') => self.position.top += shown,
            Key::PageUp => self.position.top = self.position.top.saturating_sub(shown),
            Key::Char(_) | Key::Other => {}
        }
        Ok(match self.position.run >= self.runs.len() {
            true => Next::End,
            false => Next::Key,
        })
    }

    fn show_next(&mut self, message: &str) {
        let id = self.runs.get(self.position.run).map(|run| run.id.clone()).unwrap_or_default();
        self.message = format!("{id}: {message}");
        self.position = Position { run: self.position.run + 1, top: 0 };
        self.draft = None;
    }

    fn show_previous(&mut self) {
        match self.position.run.checked_sub(1) {
            Some(run) => {
                self.position = Position { run, top: 0 };
                self.message.clear();
                self.draft = None;
            }
            None => "this is the first run".clone_into(&mut self.message),
        }
    }

    /// Stores a label, and shows the next run.
    fn label(&mut self, label: LabelKind, data: Option<cog_json::Value>) -> Result<(), CliError> {
        let Some(run) = self.runs.get_mut(self.position.run) else { return Ok(()) };
        let feedback = Feedback::new(label, data, None)?;
        let added = self.labels.add(&run.id, run.labelled(), None, feedback)?;
        if added.is_new {
            run.labels.push(added.label);
        }
        self.labelled.insert(run.id.clone());
        self.show_next(label.as_str());
        Ok(())
    }

    /// Opens the answer in the editor, and stores the correction.
    fn edit(&mut self, keyboard: &mut Keyboard) -> Result<(), CliError> {
        let Some(run) = self.runs.get(self.position.run) else { return Ok(()) };
        let module = match label::module_of(&run.labelled(), self.settings) {
            Ok(module) => module,
            Err(error) => {
                self.message = format!("the answer cannot be checked: {error}");
                return Ok(());
            }
        };
        let draft = self.draft.take().unwrap_or_else(|| Draft::new(run));
        keyboard.leave();
        let edited = draft.edit(self.environment, &module);
        keyboard.enter()?;
        match edited? {
            Edited::Unchanged => "not changed, so not labelled".clone_into(&mut self.message),
            Edited::Correct(data) => self.label(LabelKind::Corrected, Some(data))?,
            Edited::Unfit { reason, draft } => {
                // First what to do: a reason can be longer than the line.
                self.message = format!("press e to edit it again: {reason}");
                self.draft = Some(draft);
            }
        }
        Ok(())
    }
}
