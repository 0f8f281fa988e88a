//! `cog serve`: what it tells, and how it ends.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStderr, Command, Stdio},
};

use crate::support::{Place, snapshot};

/// A server at a port of its own, and where it says to be.
struct Serving {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Serving {
    fn start(place: &Place) -> Self {
        let mut command = place.cog(["serve", "--port", "0", "--provider", "offline"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        while !told.contains("http://") {
            told.clear();
            assert!(stderr.read_line(&mut told).unwrap() > 0, "the server ended");
        }
        let address = told.split("http://").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        Self { child, stderr, address }
    }

    /// What the server answers to a request without a body.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends a signal; the exit code, and what was told until the end.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let mut told = String::new();
        self.stderr.read_to_string(&mut told).unwrap();
        (self.child.wait().unwrap().code(), told)
    }
}

#[test]
fn a_server_says_where_it_is_answers_and_ends_when_it_is_told() {
    for signal in ["-TERM", "-INT"] {
        let serving = Serving::start(&Place::new());
        assert!(serving.get("/ready").starts_with("HTTP/1.1 200"));
        assert!(serving.get("/v1/modules").contains("code-reviewer"));
        let (code, told) = serving.end(signal);
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains("ending"), "{told}");
    }
}

#[test]
fn a_setting_that_cannot_be_understood() {
    snapshot!(Place::new().cog(["serve", "--max-body-bytes", "many"]));
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    snapshot!(Place::new().cog(["serve", "--listen", "0.0.0.0"]));
}

#[test]
fn a_projects_file_may_set_limits_and_no_address() {
    let place = Place::new();
    place.write("cog.toml", "[server]\ndrain = \"3s\"\nlisten = \"0.0.0.0\"\n");
    snapshot!(place.cog(["serve"]));
}

#[test]
fn a_misspelt_limit_is_told() {
    let place = Place::new();
    place.write("cog.toml", "[server]\ndrian = \"3s\"\n");
    snapshot!(place.cog(["serve"]));
}
