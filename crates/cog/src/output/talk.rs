//! What is told to the person on stderr: text in one style, or with `--log-format json` a line of JSON.

use cog_module::{Diagnostic, Severity};
use cog_spec::{ErrorBody, Warning};
use tracing::{error, info, warn};

use super::{
    Console,
    text::{printable, printable_lines},
};
use crate::settings::Deprecated;

/// Why something could not be done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorReport<'a> {
    /// The code, where the specification has one.
    pub(crate) code: Option<&'a str>,
    /// What happened.
    pub(crate) message: &'a str,
    /// The file, with its line where that is known.
    pub(crate) place: Option<&'a str>,
    /// What to do about it.
    pub(crate) help: Option<&'a str>,
}

impl<'a> From<&'a ErrorBody> for ErrorReport<'a> {
    fn from(error: &'a ErrorBody) -> Self {
        let code = Some(error.code.as_str());
        Self { code, message: &error.message, place: None, help: error.suggestion.as_deref() }
    }
}

impl Console {
    /// Tells something that stands aside: `note: …`.
    pub(crate) fn note(&self, text: &str) {
        if self.logs_json() {
            return info!("{text}");
        }
        self.tell(&format!("{} {}", self.err().paint.dim("note:"), printable_lines(text)));
    }

    /// Warns about a deprecated name: `warning: --drain is deprecated; use --shutdown-timeout`.
    pub(crate) fn deprecated(&self, name: &Deprecated) {
        let Deprecated { old, new } = name;
        if self.logs_json() {
            return warn!(old, new, "deprecated");
        }
        let head = self.err().paint.odd("warning");
        self.tell(&format!("{head}: {} is deprecated; use {new}", printable(old)));
    }

    /// Tells a warning of a run: `warning[W4001]: …`.
    pub(crate) fn warn(&self, warning: &Warning) {
        let Warning { code, message, .. } = warning;
        if self.logs_json() {
            return warn!(code = code.as_str(), "{message}");
        }
        let head = self.err().paint.odd(format_args!("warning[{code}]"));
        self.tell(&format!("{head}: {}", printable_lines(message)));
    }

    /// Tells why something could not be done: `error[E4006]: …`, the place, `help: …`.
    pub(crate) fn complain(&self, complaint: &ErrorReport<'_>) {
        let ErrorReport { code, message, place, help } = *complaint;
        if self.logs_json() {
            return error!(code, place, help, "{message}");
        }
        let paint = self.err().paint;
        let head = code.map_or_else(|| "error".to_owned(), |code| format!("error[{code}]"));
        let mut text = format!("{}: {}", paint.bad(head), paint.bold(printable_lines(message)));
        if let Some(place) = place {
            text += &format!("\n  {} {}", paint.dim("-->"), printable_lines(place));
        }
        if let Some(help) = help {
            text += &format!("\n  {} {}", paint.name("help:"), printable_lines(help));
        }
        self.tell(&text);
    }

    /// Tells findings about a module, each with the text it is about.
    pub(crate) fn diagnose(&self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            if self.logs_json() {
                log(diagnostic);
            } else {
                self.tell(&format!("{}\n\n", diagnostic.render(self.err().paint.is_on())));
            }
        }
    }
}

fn log(diagnostic: &Diagnostic) {
    let Diagnostic { severity, rule, message, file, place, suggestion } = diagnostic;
    let (rule, file, help) = (rule.as_str(), file.to_string_lossy(), suggestion.as_deref());
    let line = place.as_ref().map(|place| place.line);
    match severity {
        Severity::Error => error!(rule, %file, line, help, "{message}"),
        Severity::Warning => warn!(rule, %file, line, help, "{message}"),
    }
}
