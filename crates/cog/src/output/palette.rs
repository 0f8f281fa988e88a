//! Colours.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use cog_spec::Risk;

/// Colours text, if colours are on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    on: bool,
}

impl Palette {
    /// Creates a palette with or without colours.
    pub(crate) const fn new(on: bool) -> Self {
        Self { on }
    }

    /// Whether colours are on.
    pub(crate) const fn is_on(self) -> bool {
        self.on
    }

    /// Formats a title or an important value.
    pub(crate) fn bold(self, text: impl Display) -> String {
        self.with(Style::new().bold(), text)
    }

    /// Formats secondary text.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// Formats a name: a module, a field.
    pub(crate) fn name(self, text: impl Display) -> String {
        self.with(AnsiColor::Cyan.on_default(), text)
    }

    /// Formats success.
    pub(crate) fn success(self, text: impl Display) -> String {
        self.with(AnsiColor::Green.on_default().bold(), text)
    }

    /// Formats a warning.
    pub(crate) fn warning(self, text: impl Display) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// Formats an error.
    pub(crate) fn error(self, text: impl Display) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    /// Formats text in the colour of a risk.
    pub(crate) fn risk(self, level: Risk, text: impl Display) -> String {
        match level {
            Risk::None | Risk::Low => self.success(text),
            Risk::Medium => self.warning(text),
            Risk::High => self.error(text),
        }
    }

    fn with(self, style: Style, text: impl Display) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}
