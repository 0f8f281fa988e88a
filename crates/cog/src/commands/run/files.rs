//! The files that a run writes in addition to its answer: with `--trace`, every message with its metadata; with `--handoff-to`, the
//! packet for the next agent.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use cog_json::ToJson as _;
use cog_spec::Envelope;
use cog_store::private;

use super::Run;
use crate::{args::HandoffToArgs, commands::emit, error::CliError};

impl Run<'_> {
    /// Writes the messages of the run, with keys masked, so that only this user may read them.
    pub(super) fn write_trace(&self) -> Result<(), CliError> {
        let (Some(path), Some(trace)) = (&self.args.trace, &self.trace) else { return Ok(()) };
        let text = self.settings.redactor().redact(&trace.messages().to_json_pretty());
        write(path, &text).map_err(|error| emit::unwritable(path, error.into()))?;
        emit::written(path, self.console);
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = private::open_options().write(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

/// Returns the file of the packet: the value of --handoff-out, otherwise one named after the agent; none if the run hands
/// over to none.
pub(super) fn packet(args: &HandoffToArgs) -> Option<PathBuf> {
    Some(file_for(args.handoff_to.as_deref()?, args))
}

fn file_for(agent: &str, args: &HandoffToArgs) -> PathBuf {
    if let Some(path) = &args.handoff_out {
        return path.clone();
    }
    // The model may have chosen the name of the agent, which must not lead to another directory.
    let plain = agent.replace(|c: char| !c.is_alphanumeric() && !"-_.".contains(c), "-");
    PathBuf::from(format!("handoff-{plain}.json"))
}

impl Run<'_> {
    /// Writes the packet of a successful run, and reports a file that the caller did not name. A run that continues hands over
    /// to the agent of the halted run.
    pub(super) fn write_handoff(&self, envelope: &Envelope) -> Result<(), CliError> {
        let Some(packet) = &envelope.handoff else { return Ok(()) };
        let agent = packet.get("meta").and_then(|meta| meta.get("target_agent")?.as_str());
        let path = file_for(agent.unwrap_or_default(), &self.args.handoff);
        emit::file(&path, &packet.to_json_pretty(), self.console)?;
        if self.args.handoff.handoff_out.is_none() {
            self.console.note(&format!("the handoff packet is in {}", path.display()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_file_is_in_the_working_directory() {
        let file = |agent: &str| {
            let args = HandoffToArgs { handoff_to: Some(agent.to_owned()), handoff_out: None };
            packet(&args).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(file("coder"), "handoff-coder.json");
        assert_eq!(file("../a b"), "handoff-..-a-b.json");
    }
}
