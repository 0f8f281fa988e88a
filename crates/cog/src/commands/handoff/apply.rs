//! `cog handoff apply` and `cog handoff show`.

use cog_harmony::handoff::Handoff;
use cog_host::settings::{Environment, Flags, Settings};
use cog_spec::{Code, ErrorBody};

use super::{
    super::{emit, runtime},
    packet,
};
use crate::{
    args::{HandoffApplyArgs, HandoffShowArgs},
    error::CliError,
    exit::Exit,
    output::{Console, Palette},
};

/// Prints the messages for the agent that receives the packet.
pub(super) fn apply(
    args: &HandoffApplyArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(packet) = runtime::wait(packet::read_valid(&args.packet, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let packet = packet?;
    let other = args.agent.as_deref().filter(|agent| *agent != packet.target_agent());
    if let Some(agent) = other {
        let message = format!("the packet is for `{}`, not for `{agent}`", packet.target_agent());
        return Err(ErrorBody::new(Code::InvalidInput, message).into());
    }
    emit::json(&packet.messages(), &args.output, console)?;
    Ok(Exit::Ok)
}

/// Prints the packet as text.
pub(super) fn show(
    args: &HandoffShowArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(packet) = runtime::wait(packet::read(&args.packet, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let packet = packet?.map_err(|findings| packet::refused(&findings))?;
    console.print(&describe(&packet, console.out().palette))?;
    for finding in packet.check_seal() {
        console.note(&format!("{}: {}", finding.path, finding.message));
    }
    Ok(Exit::Ok)
}

fn describe(packet: &Handoff, palette: Palette) -> String {
    let mut text = format!(
        "{} {} → {}, {}\n",
        palette.dim("handoff"),
        palette.name(packet.source_agent()),
        palette.name(packet.target_agent()),
        packet.timestamp(),
    );
    let mut line = |name: &str, content: &str| text += &format!("{}: {content}\n", palette.dim(name));
    line("hash", packet.hash());
    line("parent", packet.parent().unwrap_or("none"));
    line("objective", packet.primary_objective());
    line("status", packet.status().unwrap_or("unknown"));
    packet.completed_steps().for_each(|step| line("completed", step));
    line("next", packet.next_immediate_step().unwrap_or("unknown"));
    packet.constraints().for_each(|constraint| line("constraint", constraint));
    packet.artifacts().for_each(|one| line("artifact", &format!("{} {}", one.name, one.reference.as_str())));
    line("history", packet.history_summary().unwrap_or("none"));
    text
}
