//! What a span is called, and its attributes: the conventions for generative AI.

mod call;
mod run;
mod tool;

use std::borrow::Cow;

use cog_run::spans::{Span, Work};

pub(crate) use self::call::{error_type as call_error, operation};
pub(crate) use self::run::{error_type as run_error, evaluation};
use crate::{attributes::Attributes, content::Recorded, names};

/// The kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Work within the program.
    Internal,
    /// A request to another one.
    Client,
}

/// Returns the name of a span.
pub(crate) fn name(work: &Work<'_>) -> Cow<'static, str> {
    Cow::Owned(match work {
        Work::Run(run) => format!("{} {}", names::INVOKE_WORKFLOW, run.manifest.name),
        Work::Call(call) if call.model.is_empty() => return Cow::Borrowed(operation(call)),
        Work::Call(call) => format!("{} {}", operation(call), call.model),
        Work::Tool(tool) => format!("{} {}", names::EXECUTE_TOOL, tool.name),
        _ => return Cow::Borrowed("cog"),
    })
}

/// Returns the kind of a span.
pub(crate) fn kind(work: &Work<'_>) -> Kind {
    match work {
        Work::Call(_) => Kind::Client,
        _ => Kind::Internal,
    }
}

/// Returns the type of the error of a span; none if it succeeded.
pub(crate) fn error_type<'a>(work: &Work<'a>) -> Option<&'a str> {
    match work {
        Work::Run(run) => run_error(run),
        Work::Call(call) => call_error(call),
        Work::Tool(tool) => tool::error_type(tool),
        _ => None,
    }
}

/// Writes the attributes of a span.
pub(crate) fn attributes(span: &Span<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    match &span.work {
        Work::Run(run) => run::attributes(run, recorded, out),
        Work::Call(call) => call::attributes(call, recorded, out),
        Work::Tool(tool) => tool::attributes(tool, recorded, out),
        _ => {}
    }
    out.optional(names::ERROR_TYPE, error_type(&span.work));
}

#[cfg(test)]
mod tests;
