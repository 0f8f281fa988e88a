//! `cargo xtask bench insights`: the memory of `cog insights` over a log of a million runs, compared with one of ten thousand. Linux
//! only: the peak is read from `/proc`.

use std::{
    fmt::Write as _,
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use crate::project::{Outcome, cargo, emptied, execute, read, say, target_directory, write_new};

/// The numbers of runs that are compared.
const FEW: u32 = 10_000;
const MANY: u32 = 1_000_000;

/// How much more memory many runs may take, in KiB.
const MOST: u64 = 64 << 10;

/// The pause between two looks at the memory.
const PAUSE: Duration = Duration::from_millis(10);

/// Prints the peak of each log, and fails if a long log takes much more than a short one.
pub(crate) fn run() -> Outcome {
    execute(cargo().args(["build", "--release", "--locked", "--package", "cogn"]))?;
    let cog = target_directory()?.join("release/cog");
    let home = emptied("insights")?;
    let few = peak(&cog, &home, FEW)?;
    let many = peak(&cog, &home, MANY)?;
    emptied("insights")?;
    match many.saturating_sub(few) <= MOST {
        true => Ok(()),
        false => Err(format!("{MANY} runs take {many} KiB, more than {MOST} KiB above {FEW} runs")),
    }
}

/// Counts a log of so many runs, and returns the peak of the memory in KiB.
fn peak(cog: &Path, home: &Path, runs: u32) -> Outcome<u64> {
    write_new(home.join("runs.ndjson"), &log(runs))?;
    let mut command = Command::new(cog);
    command.args(["insights", "sentiment-classifier", "--format", "json"]).stdout(Stdio::null());
    command.env("HOME", home).env("COG_LOGS_DIRECTORY", home);
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", cog.display()))?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        // The peak never falls, so that the last look is the one that counts.
        peak = read(&status).ok().and_then(|text| high_water(&text)).unwrap_or(peak);
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(ended) => break ended,
            None => sleep(PAUSE),
        }
    };
    say(format_args!("{runs} runs: {peak} KiB"));
    if ended.success() { Ok(peak) } else { Err(format!("`cog insights` failed: {ended}")) }
}

/// Returns `VmHWM` of a status file.
fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Returns a log in which each run has another input, and each third one a custom value.
fn log(runs: u32) -> String {
    let mut log = String::new();
    for run in 0..runs {
        let label = match run % 3 {
            0 => {
                format!(r#"{{"custom": "mixed {}", "reason": "It is praise and blame {run}."}}"#, run % 5_000)
            }
            _ => r#""positive""#.to_owned(),
        };
        let _ = writeln!(
            log,
            r#"{{"id":"r{run}","time":"2026-11-30T00:00:00Z","module":"sentiment-classifier","module_version":"1.0.0","model":null,"ok":true,"time_ms":1,"usage":null,"contents":{{"input":{{"text":"text {run}"}},"envelope":{{"ok":true,"meta":{{"confidence":0.9,"risk":"low","explain":"e"}},"data":{{"sentiment":{label},"rationale":"r {run}"}}}}}}}}"#
        );
    }
    log
}
