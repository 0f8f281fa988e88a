//! The result of the check, as text and as JSON.

use serde::Serialize;

use crate::output::{Console, Palette, wrap};

/// The result of the check.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The URL of the runtime; null for this program.
    pub(super) url: Option<String>,
    /// The level that the runtime reaches; 0 if it reaches none.
    pub(super) level: u8,
    /// The level that it must reach.
    pub(super) required_level: u8,
    pub(super) levels: Vec<LevelReport>,
    /// What is probably wrong with the setup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

/// The result of one level.
#[derive(Debug, Serialize)]
pub(super) struct LevelReport {
    pub(super) level: u8,
    pub(super) title: String,
    /// Whether each case passed that is not optional.
    pub(super) passed: bool,
    pub(super) cases: Vec<CaseReport>,
}

/// The result of one case.
#[derive(Debug, Serialize)]
pub(super) struct CaseReport {
    pub(super) name: String,
    /// The entries of the checklist.
    pub(super) codes: Vec<String>,
    pub(super) optional: bool,
    pub(super) passed: bool,
    /// What differs from the specification.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) differences: Vec<String>,
}

/// The maximum characters of a difference in text.
const MAX_CHARS: usize = 400;
/// The maximum differences of a case in text.
const MAX_DIFFERENCES: usize = 3;

impl Report {
    /// Creates the report. A level is reached if it and all below it passed.
    pub(super) fn new(url: Option<String>, required_level: u8, levels: Vec<LevelReport>) -> Self {
        let passed = levels.iter().take_while(|level| level.passed);
        let level = passed.last().map_or(0, |level| level.level);
        Self { url, level, required_level, levels, hint: None }
    }

    /// Whether the required level is reached.
    pub(super) fn is_reached(&self) -> bool {
        self.level >= self.required_level
    }

    /// Formats the report as text.
    pub(super) fn text(&self, console: &Console) -> String {
        let (palette, columns) = (console.out().palette, console.width());
        let mut text: String = self.levels.iter().map(|level| level.text(palette, columns)).collect();
        if let Some(hint) = &self.hint {
            text += &format!("\n{}\n", wrap(hint, columns).join("\n"));
        }
        let subject = self.url.as_deref().unwrap_or("this runtime");
        let verdict = match self.level {
            0 => format!("{subject} reaches no level"),
            level => format!("{subject} reaches level {level}"),
        };
        let verdict = match self.is_reached() {
            true => palette.success(verdict),
            false => palette.error(format!("{verdict}; level {} is required", self.required_level)),
        };
        format!("{text}\n{verdict}\n")
    }
}

impl LevelReport {
    fn text(&self, palette: Palette, columns: usize) -> String {
        let passed = self.cases.iter().filter(|case| case.passed).count();
        let state = match self.passed {
            true => palette.success("passed"),
            false => palette.error("failed"),
        };
        let head = palette.bold(format_args!("level {}", self.level));
        let mut text = format!("{head}  {state}  {passed} of {} cases: {}\n", self.cases.len(), self.title);
        for case in self.cases.iter().filter(|case| !case.passed) {
            text += &case.text(palette, columns);
        }
        text
    }
}

impl CaseReport {
    fn text(&self, palette: Palette, columns: usize) -> String {
        let optional = if self.optional { " (optional)" } else { "" };
        let mut text = format!("  {} {}{optional}\n", palette.name(self.codes.join(" ")), self.name);
        for difference in self.differences.iter().take(MAX_DIFFERENCES) {
            let shown: String = difference.chars().take(MAX_CHARS).collect();
            let shown = if shown.len() < difference.len() { shown + "…" } else { shown };
            for line in wrap(&shown, columns.saturating_sub(4)) {
                text += &format!("    {line}\n");
            }
        }
        let more = self.differences.len().saturating_sub(MAX_DIFFERENCES);
        if more > 0 {
            text += &format!("    {}\n", palette.dim(format_args!("… {more} more")));
        }
        text
    }
}
