//! Messages on stderr: text, or one line of JSON with `--log-format json`.

use cog_module::{Diagnostic, Severity};
use cog_spec::{ErrorBody, Warning};
use tracing::{error, info, warn};

use super::{Console, text::printable_lines};

/// An error, as it is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorReport<'a> {
    /// The code, if the specification has one.
    pub(crate) code: Option<&'a str>,
    /// What happened.
    pub(crate) message: &'a str,
    /// The file, with the line if it is known.
    pub(crate) location: Option<&'a str>,
    /// What to do about it.
    pub(crate) help: Option<&'a str>,
}

impl<'a> From<&'a ErrorBody> for ErrorReport<'a> {
    fn from(error: &'a ErrorBody) -> Self {
        let code = Some(error.code.as_str());
        Self { code, message: &error.message, location: None, help: error.suggestion.as_deref() }
    }
}

impl Console {
    /// Prints a note: `note: …`.
    pub(crate) fn note(&self, text: &str) {
        if self.logs_json() {
            return info!("{text}");
        }
        self.write_stderr(&format!("{} {}", self.err().palette.dim("note:"), printable_lines(text)));
    }

    /// Prints lines of a name and its value.
    pub(crate) fn table(&self, lines: &[(&str, String)]) {
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, value) in lines {
            if self.logs_json() {
                info!(name, "{value}");
            } else {
                let name = self.err().palette.dim(format_args!("{name:width$}"));
                self.write_stderr(&format!("{name}  {}", printable_lines(value)));
            }
        }
    }

    /// Prints a warning of a run: `warning[W4001]: …`.
    pub(crate) fn warn(&self, warning: &Warning) {
        let Warning { code, message, .. } = warning;
        if self.logs_json() {
            return warn!(code = code.as_str(), "{message}");
        }
        let head = self.err().palette.warning(format_args!("warning[{code}]"));
        self.write_stderr(&format!("{head}: {}", printable_lines(message)));
    }

    /// Prints an error: `error[E4006]: …`, the location, `help: …`.
    pub(crate) fn error(&self, report: &ErrorReport<'_>) {
        let ErrorReport { code, message, location, help } = *report;
        if self.logs_json() {
            return error!(code, location, help, "{message}");
        }
        let palette = self.err().palette;
        let head = code.map_or_else(|| "error".to_owned(), |code| format!("error[{code}]"));
        let mut text = format!("{}: {}", palette.error(head), palette.bold(printable_lines(message)));
        if let Some(location) = location {
            text += &format!("\n  {} {}", palette.dim("-->"), printable_lines(location));
        }
        if let Some(help) = help {
            text += &format!("\n  {} {}", palette.name("help:"), printable_lines(help));
        }
        self.write_stderr(&text);
    }

    /// Prints the findings about a module, each with its source text.
    pub(crate) fn diagnose(&self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            if self.logs_json() {
                log(diagnostic);
            } else {
                self.write_stderr(&format!("{}\n\n", diagnostic.render(self.err().palette.is_on())));
            }
        }
    }
}

fn log(diagnostic: &Diagnostic) {
    let Diagnostic { severity, rule, message, file, location, suggestion } = diagnostic;
    let rule = rule.as_str();
    let file = file.to_string_lossy();
    let help = suggestion.as_deref();
    let line = location.as_ref().map(|location| location.line);
    match severity {
        Severity::Error => error!(rule, %file, line, help, "{message}"),
        Severity::Warning => warn!(rule, %file, line, help, "{message}"),
    }
}
