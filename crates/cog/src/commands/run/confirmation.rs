//! The confirmation of a halted call: from the flags, or typed on a terminal.

use std::io::{BufRead as _, IsTerminal as _, stdin};

use cog_json::{ToJson as _, Value};
use cog_run::tools::{Approval, Decision};
use cog_spec::Envelope;

use crate::{args::ToolArgs, error::CliError, output::Console};

/// The maximum length of a line that is read, in bytes.
const MAX_LINE: u64 = 1024;

/// Returns the halted run that the flags continue; none if they continue an interrupted one. Without `--confirm` and `--deny` it stays halted.
pub(super) fn from_args(args: &ToolArgs) -> Option<Approval> {
    let id = args.continues.clone().filter(|id| !id.starts_with(super::stored::PREFIX))?;
    let decision = match args.deny {
        true => Decision::Deny,
        false => Decision::Approve(args.confirm.clone().unwrap_or_default()),
    };
    Some(Approval { id, decision })
}

/// Shows the call for which a run was halted, and reads the decision. None if the run was not halted, if there is no
/// terminal, and if the text is neither YES nor NO.
pub(super) fn prompt(envelope: &Envelope, console: &Console) -> Result<Option<Approval>, CliError> {
    let Some((id, tool, arguments)) = halted(envelope) else { return Ok(None) };
    if !console.err().is_terminal || !stdin().is_terminal() {
        return Ok(None);
    }
    console.note(&format!("`{tool}` needs a confirmation. Its arguments:\n{}", arguments.to_json_pretty()));
    console.note("Type YES to execute it, or NO to continue without it. Press Enter to decide later.");
    let mut line = String::new();
    std::io::Read::take(stdin().lock(), MAX_LINE).read_line(&mut line)?;
    let decision = match line.trim_end_matches(['\r', '\n']) {
        text @ Decision::YES => Decision::Approve(text.to_owned()),
        "NO" => Decision::Deny,
        _ => return Ok(None),
    };
    Ok(Some(Approval { id, decision }))
}

/// Returns the id of the halted run, the tool and its arguments.
fn halted(envelope: &Envelope) -> Option<(String, String, Value)> {
    let halted = envelope.error()?.details.as_ref()?.get("halted")?;
    let text = |key: &str| Some(halted.get(key)?.as_str()?.to_owned());
    Some((text("id")?, text("tool")?, halted.get("arguments")?.to_value()))
}
