//! Colour.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use cog_spec::Risk;

/// Colours text, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// With colour, or without.
    pub(crate) const fn new(on: bool) -> Self {
        Self { on }
    }

    /// Whether anything is coloured.
    pub(crate) const fn is_on(self) -> bool {
        self.on
    }

    /// What a reader looks for.
    pub(crate) fn bold(self, text: impl Display) -> String {
        self.with(Style::new().bold(), text)
    }

    /// What stands aside.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// The name of something: a module, a field.
    pub(crate) fn name(self, text: impl Display) -> String {
        self.with(AnsiColor::Cyan.on_default(), text)
    }

    /// What is as it should be.
    pub(crate) fn good(self, text: impl Display) -> String {
        self.with(AnsiColor::Green.on_default().bold(), text)
    }

    /// What should be looked at.
    pub(crate) fn odd(self, text: impl Display) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// What is wrong.
    pub(crate) fn bad(self, text: impl Display) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    /// A text in the colour of a risk.
    pub(crate) fn risk(self, level: Risk, text: impl Display) -> String {
        match level {
            Risk::None | Risk::Low => self.good(text),
            Risk::Medium => self.odd(text),
            Risk::High => self.bad(text),
        }
    }

    fn with(self, style: Style, text: impl Display) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}
