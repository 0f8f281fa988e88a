//! `cog messages convert`: converts to and from the formats of vendors.

use std::path::Path;

use cog_harmony::{Loss, Problem};
use cog_json::{ToJson, Writer};
use cog_spec::{Code, ErrorBody};

use super::history;
use crate::{args::ConvertArgs, commands::emit, error::CliError, exit::Exit, output::Console};

/// Writes the converted history. The exit code is 1 if it cannot be read, and with `--strict` if anything is lost.
pub(crate) fn convert(args: &ConvertArgs, console: &Console) -> Result<Exit, CliError> {
    [&args.output, &args.report].into_iter().try_for_each(|file| emit::check(file.as_deref()))?;
    let document = history::read(&args.file)?;
    let converted = match cog_harmony::convert(&document, args.from, args.to) {
        Ok(converted) => converted,
        Err(problems) => {
            report_problems(&problems, console);
            return Err(unreadable(&args.file).into());
        }
    };
    match &args.report {
        Some(file) => emit::file(file, &Report(&converted.losses).to_json(), console)?,
        None => report_losses(&converted.losses, console),
    }
    if args.strict && !converted.losses.is_empty() {
        return Ok(Exit::Failed);
    }
    history::write(&converted.text, args.output.as_deref(), console)?;
    Ok(Exit::Ok)
}

fn unreadable(file: &Path) -> ErrorBody {
    ErrorBody::new(Code::ParseError, format!("cannot convert the messages of {}", file.display()))
        .suggest("Fix what is listed above, or name the format with --from.")
}

fn report_problems(problems: &[Problem], console: &Console) {
    let palette = console.err().palette;
    for Problem { path, rule, message } in problems {
        console.note(&format!("error: {}", history::line(path, message, rule.name, palette)));
    }
}

fn report_losses(losses: &[Loss], console: &Console) {
    let palette = console.err().palette;
    for Loss { path, what, why } in losses {
        console.note(&format!("lost: {}: {what}: {why}", palette.name(path)));
    }
}

struct Report<'a>(&'a [Loss]);

/// Written by hand: the list is the only member.
impl ToJson for Report<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("losses", self.0);
        });
    }
}
