//! The documents of the responses.

use axum::body::Body;
use bytes::Bytes;
use cog_json::{Array, ToJson, Value, Writer};
use cog_module::{
    Diagnostic, Location, Module, Origin,
    golden::{self, GoldenCase},
    parts::PartFile,
};
use cog_run::Rendered;
use cog_schema::Violation;
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use tokio::time::timeout;

use crate::ListedProvider;

/// The maximum size of the inputs and expected answers in the description of a module, in bytes. Further cases have only a name.
const MAX_CASES: usize = 8 << 20;

pub(super) struct About {
    pub(super) can_edit: bool,
    pub(super) has_logs: bool,
    pub(super) providers: Vec<ListedProvider>,
}

/// Written by hand: the keys are those of docs/workbench.md.
impl ToJson for About {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("edit", &self.can_edit);
            w.field("logs", &self.has_logs);
            w.field("providers", &Array(&self.providers));
        });
    }
}

pub(super) struct ModuleFiles {
    pub(super) name: String,
    pub(super) files: Vec<PartFile>,
    pub(super) cases: Vec<DescribedCase>,
    pub(super) is_editable: bool,
}

/// Written by hand: the files are members.
impl ToJson for ModuleFiles {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            w.key("files").object(|w| {
                for PartFile { part, path, text } in &self.files {
                    w.key(part.as_str()).object(|w| {
                        w.field("path", *path);
                        match text {
                            Ok(text) => w.field("text", &text.text).field("hash", &text.hash),
                            Err(error) => w.field("error", &error.to_string()),
                        };
                    });
                }
            });
            w.field("cases", &Array(&self.cases));
            w.field("editable", &self.is_editable);
        });
    }
}

/// A golden test; without its contents if there are too many.
pub(super) struct DescribedCase {
    name: String,
    contents: Option<(Value, Value)>,
}

pub(super) fn described_cases(module: &Module) -> Vec<DescribedCase> {
    let mut left = MAX_CASES;
    let described = |case: GoldenCase| {
        let expected = (left > 0).then(|| case.expected_document(module)).flatten();
        let contents = expected.and_then(|expected| {
            let size = case.input.to_json().len() + expected.to_json().len();
            left = left.saturating_sub(size);
            (left > 0).then_some((case.input, expected))
        });
        DescribedCase { name: case.name, contents }
    };
    golden::discover(module).cases.into_iter().map(described).collect()
}

/// Written by hand: the contents are two members.
impl ToJson for DescribedCase {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            if let Some((input, expected)) = &self.contents {
                w.field("input", input);
                w.field("expected", expected);
            }
        });
    }
}

/// What is wrong, in a file or in an input.
pub(super) struct Finding {
    file: Option<String>,
    path: Option<String>,
    location: Option<Box<Location>>,
    severity: &'static str,
    code: String,
    message: String,
    suggestion: Option<String>,
}

impl Finding {
    pub(super) fn of_file(found: Diagnostic, origin: &Origin) -> Self {
        let directory = origin.path_of("");
        let file = found.file.strip_prefix(&directory).unwrap_or(&found.file);
        Self {
            file: Some(file.display().to_string()),
            path: None,
            location: found.location,
            severity: found.severity.as_str(),
            code: found.rule.as_str().to_owned(),
            message: found.message,
            suggestion: found.suggestion,
        }
    }

    pub(super) fn of_input(found: Violation) -> Self {
        Self {
            file: None,
            path: Some(found.path),
            location: None,
            severity: "error",
            code: found.rule,
            message: found.message,
            suggestion: found.suggestion,
        }
    }
}

impl ToJson for Finding {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.optional("file", &self.file);
            w.optional("path", &self.path);
            if let Some(location) = &self.location {
                w.field("line", &location.line);
                w.field("column", &location.column);
            }
            w.field("severity", self.severity);
            w.field("code", &self.code);
            w.field("message", &self.message);
            w.optional("suggestion", &self.suggestion);
        });
    }
}

pub(super) struct Findings<'a>(pub(super) &'a [Finding]);

impl ToJson for Findings<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("diagnostics", &Array(self.0));
        });
    }
}

pub(super) struct Hash<'a>(pub(super) &'a str);

impl ToJson for Hash<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("hash", self.0);
        });
    }
}

pub(super) struct Added<'a>(pub(super) &'a str);

impl ToJson for Added<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("path", self.0);
        });
    }
}

/// What a run would send. The key and the address of the provider are not shown.
pub(super) struct Shown<'a>(pub(super) &'a Rendered);

/// Written by hand: the request has the operator's address.
impl ToJson for Shown<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let rendered = self.0;
        w.object(|w| {
            w.field("provider", &rendered.provider);
            w.field("model", &rendered.prefix.model);
            w.field("dialect", rendered.dialect.as_str());
            w.field("form", rendered.form.name);
            w.field("messages", &rendered.messages);
            w.field("schema", &rendered.prefix.schema);
            w.field("lost", &rendered.lost);
            w.field("warnings", &rendered.warnings);
        });
    }
}

/// The lines of a response, with empty lines while there is nothing to say, so that a client that is gone is noticed.
pub(super) struct Lines {
    pub(super) lines: BoxStream<'static, String>,
    pub(super) keepalive: std::time::Duration,
    pub(super) _slot: Box<dyn std::any::Any + Send>,
}

impl Lines {
    pub(super) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut lines| async move {
            let line = match timeout(lines.keepalive, lines.lines.next()).await {
                Ok(line) => line? + "\n",
                Err(_) => "\n".to_owned(),
            };
            Some((Ok::<_, std::convert::Infallible>(Bytes::from(line)), lines))
        }))
    }
}
