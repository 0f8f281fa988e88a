//! `cog handoff check`.

use cog_harmony::{
    Finding,
    handoff::{ChainReport, Handoff, verify_chain},
};
use cog_host::settings::{Environment, Flags, MediaSettings, Settings};
use cog_json::{ToJson, Writer};

use super::{super::runtime, artifacts, packet};
use crate::{
    args::HandoffCheckArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Palette},
};

/// Checks a packet. The exit code is 0 if it is valid, otherwise 1.
pub(super) fn check(
    args: &HandoffCheckArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(report) = runtime::wait(report(args, &settings.media, console))? else {
        return Ok(Exit::Interrupted);
    };
    let report = Report(report?);
    if console.prints_json(args.format) {
        console.print_json(&report)?;
    } else {
        console.print(&report.describe(console.out().palette))?;
    }
    Ok(if report.0.findings.is_empty() { Exit::Ok } else { Exit::Failed })
}

async fn report(
    args: &HandoffCheckArgs,
    settings: &MediaSettings,
    console: &Console,
) -> Result<ChainReport, CliError> {
    let last = match packet::read(&args.packet, settings).await? {
        Ok(last) => last,
        Err(findings) => return Ok(ChainReport { packets: Vec::new(), findings }),
    };
    let mut others = Vec::new();
    for source in &args.chain {
        others.push(packet::read(source, settings).await?.map_err(|findings| packet::refused(&findings))?);
    }
    let mut report = match last.parent() {
        // Without the earlier packets, only this one can be checked.
        Some(_) if others.is_empty() => {
            console.note("the earlier packets were not checked; name them with --chain");
            ChainReport { packets: vec![last.hash().to_owned()], findings: last.check_seal() }
        }
        _ => verify_chain(&last, &others),
    };
    report.findings.extend(unsealed(&last).filter(|_| args.strict));
    report.findings.extend(artifacts::check(&last, args, settings, console).await);
    Ok(report)
}

fn unsealed(packet: &Handoff) -> Option<Finding> {
    let is_sealed = packet.declared_hash().is_some();
    (!is_sealed).then(|| Finding {
        path: "meta.hash".to_owned(),
        rule: "hash",
        message: "the packet has no hash".to_owned(),
        suggestion: Some("Create it with `cog handoff new`.".to_owned()),
    })
}

struct Report(ChainReport);

impl Report {
    fn describe(&self, palette: Palette) -> String {
        let line = |finding: &Finding| {
            let rule = palette.dim(format_args!("[{}]", finding.rule));
            format!("{}: {} {rule}\n", palette.name(&finding.path), finding.message)
        };
        let text: String = self.0.findings.iter().map(line).collect();
        let is_valid = self.0.findings.is_empty();
        let verdict = if is_valid { palette.success("valid") } else { palette.error("invalid") };
        text + &format!("{verdict} chain of {}\n", self.0.packets.len())
    }
}

/// Written by hand: the verdict is computed.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("valid", &self.0.findings.is_empty());
            w.field("packets", &self.0.packets);
            w.field("findings", &self.0.findings);
        });
    }
}
