//! The commands of a page.

#![expect(clippy::disallowed_methods, reason = "the pages are files")]

use std::path::{Path, PathBuf};

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// The page and the line, `docs/logs.md:5`.
    pub(crate) location: String,
    language: String,
    pub(crate) text: String,
    /// The file that the line above the block names: it ends with "`PATH`:".
    pub(crate) file: Option<String>,
}

/// Returns the README and the pages of `docs/`, with their names.
pub(crate) fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md")];
    collect(&root.join("docs"), &mut files);
    let name = |file: &Path| file.strip_prefix(&root).unwrap().display().to_string();
    files.iter().map(|file| (name(file), std::fs::read_to_string(file).unwrap())).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

/// Returns the fenced blocks of a page.
pub(crate) fn blocks(page: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut above = "";
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            above = if line.is_empty() { above } else { line };
            continue;
        };
        let file = above.strip_suffix("`:").and_then(|rest| Some(rest.rsplit_once('`')?.1.to_owned()));
        above = "";
        let inside =
            lines.by_ref().map(|(_, line)| line).take_while(|line| !line.trim_start().starts_with("```"));
        let text = inside.fold(String::new(), |text, line| text + line + "\n");
        let location = format!("{page}:{}", number + 1);
        blocks.push(Block { location, language: language.to_owned(), text, file });
    }
    blocks
}

/// Returns the text of a page between backticks, without its blocks.
pub(crate) fn code_in_text(text: &str) -> Vec<&str> {
    let prose = text.split("\n```").step_by(2);
    prose.flat_map(|prose| prose.split('`').skip(1).step_by(2)).collect()
}

/// A command of a block.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) text: String,
    /// The comment after it.
    pub(crate) comment: String,
}

impl Block {
    /// Returns its commands: each line of a script, or in other blocks those after a `$`.
    pub(crate) fn commands(&self) -> Vec<Command> {
        let is_script = ["sh", "bash"].contains(&self.language.as_str());
        let mut lines = self.text.lines();
        let mut commands = Vec::new();
        while let Some(line) = lines.next() {
            let line = if is_script { Some(line) } else { line.strip_prefix("$ ") };
            let Some(line) = line.filter(|line| !line.trim().is_empty()) else { continue };
            let (text, comment) = line.split_once("  # ").unwrap_or((line, ""));
            let mut text = text.to_owned();
            while is_open(&text) {
                let next = lines.next().unwrap_or_else(|| panic!("{}: {text}", self.location));
                text = text + "\n" + next;
            }
            commands.push(Command { text, comment: comment.to_owned() });
        }
        assert!(
            self.language != "console" || !commands.is_empty(),
            "{}: no line starts with `$`",
            self.location
        );
        commands
    }
}

/// Returns whether a command continues on the next line.
fn is_open(command: &str) -> bool {
    command.ends_with('\\') || command.matches('\'').count() % 2 == 1
}
