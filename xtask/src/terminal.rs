//! What a person sees: the program on a terminal, by way of `script`, which gives it one.

use std::process::Command;

use crate::project::{Outcome, programs, say, target_directory};
use crate::record;

/// The command, as a person types it behind `cog`.
pub(crate) const COMMAND: &str =
    "run code-reviewer --args \"def f(u): return db.query('select * from t where u=' + u)\"";

/// The width of the terminal.
pub(crate) const COLUMNS: usize = 92;

/// On a terminal a run is a card, in colour unless `NO_COLOR` is set; it is never JSON.
pub(crate) fn check() -> Outcome {
    programs()?;
    let coloured = on_terminal(COMMAND, &[])?;
    let plain = on_terminal(COMMAND, &[("NO_COLOR", "1")])?;
    let streamed = on_terminal(&format!("{COMMAND} --stream"), &[])?;
    let typed = on_terminal(&format!("{COMMAND} --stream"), &[("TERM", "dumb")])?;
    let cards = [("coloured", &coloured), ("plain", &plain), ("streamed", &streamed), ("typed", &typed)];
    for (what, seen) in cards {
        let missing: Vec<_> = ["code-reviewer", "0.96", "high", "verdict", "W4001"]
            .into_iter()
            .filter(|word| !seen.contains(*word))
            .collect();
        if !missing.is_empty() || seen.contains("{\"ok\"") {
            return Err(format!("the {what} card is not what it should be (missing: {missing:?}):\n{seen}"));
        }
    }
    let escape = "\u{1b}[";
    let colour = "\u{1b}[36m";
    if !coloured.contains(escape) || plain.contains(colour) {
        return Err("the card is coloured on a terminal, and not where NO_COLOR is set".to_owned());
    }
    if typed.contains('\u{1b}') || !typed.contains("data.verdict: ") {
        return Err(format!("on a dumb terminal a stream is printed line by line:\n{typed}"));
    }
    record::check(&coloured)?;
    say(format_args!(
        "terminal: a card, coloured, as recorded, plain, after a stream, and on a dumb terminal"
    ));
    Ok(())
}

/// What a terminal receives from the command, which has no settings but these.
pub(crate) fn on_terminal(line: &str, environment: &[(&str, &str)]) -> Outcome<String> {
    let cog = target_directory()?.join("debug/cog");
    let mut command = Command::new("script");
    command.args([
        "-q",
        "-e",
        "-c",
        &format!("stty cols {COLUMNS} rows 60; exec {} {line}", cog.display()),
        "/dev/null",
    ]);
    command
        .env_clear()
        .env("COG_DETECT_OLLAMA", "off")
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "xterm-256color")
        .env("HOME", "/nonexistent");
    command.envs(environment.iter().copied());
    let output =
        command.output().map_err(|error| format!("script (Debian: apt-get install bsdutils): {error}"))?;
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(seen)
    } else {
        Err(format!("{line} on a terminal: {}\n{seen}", output.status))
    }
}
