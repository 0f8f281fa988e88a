//! The programs of the runtime that is checked, and `cog serve` as a process of its own.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use crate::model::Model;

/// The maximum time before the case fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// The paths of the programs that cases run.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// `cog`.
    pub cog: PathBuf,
    /// `cogn`, the same program under its other name.
    pub cogn: PathBuf,
    /// A program that runs a module with the library (SPEC 10.2). It gets `library MODULE INPUT [--stream]`, and prints the
    /// envelope or the chunks, one on each line.
    pub library: PathBuf,
}

/// Returns a command in the directory of a case. Its environment has only what the case and the model need.
pub(crate) fn command(program: &Path, directory: &Path, model: Option<&Model>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(directory)
        .env_clear()
        .env("COG_DETECT_OLLAMA", "off")
        // The runner wrote the modules.
        .env("COG_TRUST", "1")
        .env("HOME", directory.join("home"))
        .envs(model.map(Model::environment).into_iter().flatten());
    command
}

/// A server on a free port of this machine, until it is dropped.
pub(crate) struct Server {
    child: Child,
    /// Whether a signal was sent to it.
    is_ending: AtomicBool,
    /// `127.0.0.1:40123`.
    pub(crate) address: String,
}

impl Server {
    /// Starts the server in a directory, and waits until it reports its URL.
    ///
    /// # Errors
    /// What the server printed instead.
    pub(crate) fn start(
        program: &Path,
        directory: &Path,
        arguments: &[String],
        model: Option<&Model>,
    ) -> Result<Self, String> {
        let mut command = command(program, directory, model);
        command.arg("serve").args(["--port", "0"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (send, receive) = mpsc::channel();
        let lines = child.stderr.take().map(BufReader::new).into_iter().flat_map(BufReader::lines);
        // Read to the end, so that the server never blocks on stderr.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(send.send(line))));
        let mut server = Self { child, is_ending: AtomicBool::new(false), address: String::new() };
        let mut printed = Vec::new();
        while let Ok(line) = receive.recv_timeout(PATIENCE) {
            if let Some((_, address)) = line.split_once("http://") {
                let letters = address.chars();
                server.address =
                    letters.take_while(|letter| letter.is_ascii_digit() || ".:".contains(*letter)).collect();
                return Ok(server);
            }
            printed.push(line);
        }
        Err(format!("cog serve does not listen:\n{}", printed.join("\n")))
    }

    /// Sends it a signal, unless it has one: a second one would end the shutdown that the first has started.
    pub(crate) fn signal(&self, name: &str) -> Result<(), String> {
        if self.is_ending.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        match sent {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("kill -{name}: {other:?}")),
        }
    }

    /// Waits for the exit, and returns the exit code.
    pub(crate) fn wait(mut self) -> Result<Option<i32>, String> {
        wait_until(|| self.child.try_wait().ok().flatten())
            .map(|status| status.code())
            .ok_or_else(|| "the server does not end".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A deadline for all waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// Returns an error after the deadline.
    pub(crate) fn check(self) -> Result<(), String> {
        if self.0.elapsed() < PATIENCE { Ok(()) } else { Err("what is waited for does not come".to_owned()) }
    }
}

/// Polls until there is a value or the deadline passes.
pub(crate) fn wait_until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Deadline::begin();
    loop {
        match look() {
            Some(found) => return Some(found),
            None if deadline.check().is_err() => return None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
