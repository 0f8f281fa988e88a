//! The program alone: in a root directory that has no C library, no shell, and neither `/dev` nor `/proc`.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use self::servers::{Names, Provider};
use super::platform::Platform;
use crate::project::{Outcome, capture, execute, say, write_new};

mod servers;

/// The address of the name server. Only root may listen on its port.
const NAME_SERVER: &str = "127.0.0.77";

/// The host that only this name server knows.
const HOST: &str = "model.example";

/// The module that runs, and its input.
const RUN: [&str; 4] = ["run", "code-reviewer", "--args", "def f(u): return db.query(u)"];

/// Checks the program as root if it is one of Linux; otherwise only that it starts and runs a module.
pub(super) fn start(platform: &Platform, program: &Path) -> Outcome {
    if !platform.is_linux() {
        return runs_offline(&|| Command::new(program));
    }
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let is_root = capture(Command::new("id").arg("-u"))?.trim() == "0";
    let mut check = Command::new(if is_root { this.as_os_str() } else { OsStr::new("sudo") });
    if !is_root {
        check.arg("--non-interactive").arg(this);
    }
    execute(check.args(["dist", "bare"]).arg(program))
}

/// `cargo xtask dist bare PROGRAM`: checks a static program of Linux. Needs root, for `chroot` and the port of DNS.
pub(crate) fn run(program: &str) -> Outcome {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let root = directory.path();
    lay_out(root, Path::new(program))?;
    // The user of the image.
    let inside = || {
        let mut command = Command::new("chroot");
        command.arg("--userspec=+65532:+65532").arg(root).arg("/cog");
        command
    };
    runs_offline(&inside)?;
    finds_hosts(&inside)?;
    serves(&inside)?;
    say(format_args!("dist: the program runs, finds hosts and serves without a C library"));
    Ok(())
}

/// The program, and the files of every machine. `nsswitch.conf` names a library that is not there, and not DNS.
fn lay_out(root: &Path, program: &Path) -> Outcome {
    write_new(root.join("etc/resolv.conf"), &format!("nameserver {NAME_SERVER}\n"))?;
    write_new(root.join("etc/hosts"), "127.0.0.1 localhost\n")?;
    write_new(root.join("etc/nsswitch.conf"), "hosts: resolve\npasswd: systemd\n")?;
    std::fs::copy(program, root.join("cog")).map_err(|error| format!("{}: {error}", program.display()))?;
    capture(Command::new("chmod").arg("755").arg(root)).map(drop)
}

/// It says its version, and runs a module without a model.
fn runs_offline(program: &dyn Fn() -> Command) -> Outcome {
    let version = capture(alone(program()).arg("--version"))?;
    if version.trim() != format!("cog {}", super::VERSION) {
        return Err(format!("the program says it is {version:?}"));
    }
    is_answer(&capture(alone(program()).args(RUN))?)
}

/// It calls a model at a host that it has to look up.
fn finds_hosts(program: &dyn Fn() -> Command) -> Outcome {
    let names = Names::start((NAME_SERVER, 53))?;
    let provider = Provider::start()?;
    let mut run = program();
    let url = format!("http://{HOST}:{}/v1", provider.port);
    alone(&mut run).env("CUSTOM_BASE_URL", url).args(RUN);
    is_answer(&capture(run.args(["--provider", "custom", "--model", "none"]))?)?;
    if names.requested() == [HOST] && provider.calls() == 1 {
        Ok(())
    } else {
        Err(format!(
            "the name server received {:?}, and the provider {} calls",
            names.requested(),
            provider.calls()
        ))
    }
}

/// It serves HTTP.
fn serves(program: &dyn Fn() -> Command) -> Outcome {
    let mut serve = program();
    alone(&mut serve).args(["serve", "--port", "0"]).stderr(Stdio::piped());
    let mut child = serve.spawn().map_err(|error| error.to_string())?;
    let answer = address(&mut child).and_then(|address| servers::get(&address, "/health"));
    let _ = child.kill();
    let _ = child.wait();
    let answer = answer?;
    let is_healthy = answer.trim_end().ends_with(r#"{"status":"ok"}"#);
    if is_healthy { Ok(()) } else { Err(format!("/health returns {answer}")) }
}

/// The address that a server prints.
fn address(child: &mut Child) -> Outcome<String> {
    let output = child.stderr.take().ok_or("no output")?;
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let mut addresses = lines.filter_map(|line| {
        let (_, rest) = line.split_once("http://")?;
        rest.split_whitespace().next().map(str::to_owned)
    });
    addresses.next().ok_or_else(|| "the server did not start".to_owned())
}

fn is_answer(envelope: &str) -> Outcome {
    let value: Value = serde_json::from_str(envelope).map_err(|error| format!("{error}: {envelope}"))?;
    match value.pointer("/data/verdict") {
        Some(_) => Ok(()),
        None => Err(format!("the run failed: {envelope}")),
    }
}

/// No variable of this machine is set.
fn alone<C: std::borrow::BorrowMut<Command>>(mut command: C) -> C {
    command.borrow_mut().env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}
