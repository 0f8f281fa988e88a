//! An empty directory, and `cog` in it with only the environment of a test.

#![expect(clippy::disallowed_methods, reason = "tests lay out files and look at what a command wrote")]

use std::{
    borrow::BorrowMut,
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

/// A directory that is the home and working directory of commands.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).unwrap()
    }

    /// Copies a module of `conformance/modules` to `path`.
    pub(crate) fn copy_module(&self, name: &str, path: &str) -> &Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/modules").join(name);
        copy(&from, &self.path().join(path));
        self
    }

    /// `cog` with these arguments.
    pub(crate) fn cog<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cog"));
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .env("COG_DETECT_OLLAMA", "off")
            .env("COLUMNS", "100");
        command
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs a command with a text on its stdin.
pub(crate) fn with_stdin(mut command: Command, text: &str) -> Output {
    use std::io::Write;
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Whether SIGHUP reaches the commands of the tests: under `nohup` it is ignored. Only Linux tells.
pub(crate) fn hears_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 0)
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// stdout as JSON.
pub(crate) fn json(output: &Output) -> serde_json::Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

/// Compares the command line, exit code, stdout and stderr with the snapshot. Paths, times and URLs, which differ from
/// run to run, are replaced.
macro_rules! snapshot {
    ($command:expr) => {
        $crate::support::settings().bind(|| insta::assert_snapshot!($crate::support::transcript($command)))
    };
    ($name:literal, $command:expr) => {
        $crate::support::settings()
            .bind(|| insta::assert_snapshot!($name, $crate::support::transcript($command)))
    };
}
pub(crate) use snapshot;

pub(crate) fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(true);
    settings.add_filter(r#""processing_time_ms": ?\d+"#, r#""processing_time_ms":[TIME]"#);
    settings.add_filter(r#""session_id": ?"[^"]+""#, r#""session_id":"[SESSION]""#);
    settings.add_filter(r"\b\d+ ms\b", "[TIME]");
    settings.add_filter(r"http://127\.0\.0\.1:\d+", "[SERVER]");
    settings.add_filter(r"/[\w/.-]*/\.tmp\w+", "[DIRECTORY]");
    settings.add_filter(r"cog \d+\.\d+\.\d+ \([^)]*\)", "cog [VERSION]");
    settings
}

/// Runs a command, and returns its command line, exit code and output.
pub(crate) fn transcript(mut command: impl BorrowMut<Command>) -> String {
    let command = command.borrow_mut();
    let output = command.output().unwrap();
    let words: Vec<_> = command.get_args().map(|word| quoted(&word.to_string_lossy())).collect();
    format!(
        "$ cog {}\nexit code {}\n---- stdout\n{}---- stderr\n{}",
        words.join(" "),
        output.status.code().unwrap(),
        stdout(&output),
        stderr(&output),
    )
}

fn quoted(word: &str) -> String {
    let is_plain = word.chars().all(|c| c.is_alphanumeric() || "-_./".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
