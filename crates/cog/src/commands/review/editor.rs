//! The answer of a run in the editor of the user.

use std::{io::Write as _, process::Command};

use cog_host::{run_log::Entry, settings::Environment};
use cog_json::{ToJson as _, Value};
use cog_module::Module;
use cog_run::feedback::{Feedback, LabelKind};
use cog_spec::ErrorBody;

use crate::{commands::input, error::CliError};

/// The answer of a run as text, edited or not.
pub(super) struct Draft {
    /// The answer of the model.
    original: Option<Value>,
    text: String,
}

/// What became of a draft.
pub(super) enum Edited {
    /// It says what the model said.
    Unchanged,
    /// It fits the schema.
    Correct(Value),
    /// It does not fit the schema, or is not JSON.
    Unfit { reason: String, draft: Draft },
}

impl Draft {
    /// Returns the answer of a run; of a failed one, the part that is there.
    pub(super) fn new(run: &Entry) -> Self {
        let envelope = run.contents.as_ref().map(|contents| &contents.envelope);
        let member = |name: &str| {
            let value = envelope.and_then(|envelope| envelope.get(name)).filter(|value| !value.is_null());
            value.map(|value| value.to_value())
        };
        let original = member("data");
        let corrected = run.labels.last().and_then(|last| last.data.clone());
        let shown = corrected.or_else(|| original.clone()).or_else(|| member("partial_data"));
        let text = shown.map_or_else(|| "{}".to_owned(), |value| value.to_json_pretty());
        Self { original, text: text + "\n" }
    }

    /// Opens the draft in the editor, and checks what it became.
    ///
    /// # Errors
    /// The file cannot be written or read, or the editor cannot be started.
    pub(super) fn edit(self, environment: &Environment, module: &Module) -> Result<Edited, CliError> {
        let mut file = tempfile::Builder::new().prefix("answer-").suffix(".json").tempfile()?;
        file.write_all(self.text.as_bytes())?;
        file.flush()?;
        let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| environment.get(name));
        let editor = editor.unwrap_or_else(|| "vi".to_owned());
        // The variable can have arguments, `code --wait`, so the shell reads it.
        let status =
            Command::new("sh").args(["-c", &format!("{editor} \"$@\""), "cog"]).arg(file.path()).status()?;
        if !status.success() {
            return Ok(self.unfit(format!("the editor `{editor}` failed ({status})")));
        }
        // By its path: many editors replace the file.
        let text = match input::any_text(file.path())? {
            Ok(text) => text,
            Err(error) => return Ok(self.unfit(error.to_string())),
        };
        Ok(Self { text, ..self }.judge(module))
    }

    fn judge(self, module: &Module) -> Edited {
        let data = match Value::parse(&self.text) {
            Ok(data) => data,
            Err(error) => return self.unfit(format!("the answer is not JSON: {error}")),
        };
        if self.original.as_ref() == Some(&data) {
            return Edited::Unchanged;
        }
        match check(&data, module) {
            Ok(()) => Edited::Correct(data),
            Err(error) => self.unfit(error.message),
        }
    }

    fn unfit(self, reason: String) -> Edited {
        Edited::Unfit { reason, draft: self }
    }
}

fn check(data: &Value, module: &Module) -> Result<(), ErrorBody> {
    Feedback::new(LabelKind::Corrected, Some(data.clone()), None)?.check(module)
}
