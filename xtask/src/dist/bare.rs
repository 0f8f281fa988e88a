//! The program alone: in a root directory that has no C library, no shell, and neither `/dev` nor `/proc`.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream, UdpSocket},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use serde_json::Value;

use super::Platform;
use crate::project::{Outcome, capture, execute, say, write_new};

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
    let answer = address(&mut child).and_then(|address| get(&address, "/health"));
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

// A name server, a provider that gives one answer, and a client, as small as the check of the program needs them.

/// The reply of the provider.
const REPLY: &str =
    r#"{"choices": [{"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}]}"#;

/// What the servers note, shared with their threads. These end with the program.
type Notes = Arc<Mutex<Vec<String>>>;

/// A name server that knows every host: each is this machine.
struct Names(Notes);

impl Names {
    fn start(address: (&str, u16)) -> Outcome<Self> {
        let socket = UdpSocket::bind(address).map_err(|error| format!("{address:?}: {error}"))?;
        let notes = Notes::default();
        let requested = Arc::clone(&notes);
        thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut question) {
                if let Some((name, answer)) = question.get(..length).and_then(answer) {
                    note(&requested, name);
                    let _ = socket.send_to(&answer, client);
                }
            }
        });
        Ok(Self(notes))
    }

    /// The hosts that were requested, each once.
    fn requested(&self) -> Vec<String> {
        let mut requested = notes(&self.0);
        requested.sort();
        requested.dedup();
        requested
    }
}

/// The name in a question of DNS, and the answer: 127.0.0.1 for IPv4, nothing for the rest.
fn answer(question: &[u8]) -> Option<(String, Vec<u8>)> {
    const HEADER: usize = 12;
    let id = question.get(..2)?;
    let body = question.get(HEADER..)?;
    let end = body.iter().position(|byte| *byte == 0)?;
    let record = body.get(..end + 5)?;
    let is_ipv4 = record.get(end + 1..end + 3)? == [0, 1];
    let mut answer = id.to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_ipv4), 0, 0, 0, 0]);
    answer.extend(record);
    if is_ipv4 {
        answer.extend([0xc0, HEADER as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    Some((name(body.get(..end)?)?, answer))
}

/// The labels of a name, joined by dots.
fn name(mut labels: &[u8]) -> Option<String> {
    let mut name = Vec::new();
    while let Some((length, rest)) = labels.split_first() {
        let (label, rest) = rest.split_at_checked(usize::from(*length))?;
        name.push(String::from_utf8_lossy(label));
        labels = rest;
    }
    Some(name.join("."))
}

/// A provider on a free port that gives the same answer to each request.
struct Provider {
    port: u16,
    calls: Notes,
}

impl Provider {
    fn start() -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let calls = Notes::default();
        let notes = Arc::clone(&calls);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if let Some(request) = reply(stream) {
                    note(&notes, request);
                }
            }
        });
        Ok(Self { port, calls })
    }

    fn calls(&self) -> usize {
        notes(&self.calls).len()
    }
}

/// Reads a request, and gives the golden answer of the module.
fn reply(mut stream: TcpStream) -> Option<String> {
    let request = request(&mut stream)?;
    let test = include_str!("../../../modules/code-reviewer/tests/case5.expected.json");
    let test: Value = serde_json::from_str(test).ok()?;
    let answer = test.get("$example")?.to_string();
    let body = REPLY.replace("ANSWER", &Value::from(answer).to_string());
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    write!(stream, "{head}Connection: close\r\n\r\n{body}").ok()?;
    Some(request)
}

/// A request with its body.
fn request(stream: &mut TcpStream) -> Option<String> {
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut part).ok().filter(|length| *length > 0)?;
        request.extend(part.get(..length)?);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let expected = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= expected.unwrap_or(0) {
            return Some(text.into_owned());
        }
    }
}

/// What a server answers to a request.
fn get(address: &str, path: &str) -> Outcome<String> {
    let received = TcpStream::connect(address).and_then(|mut stream| {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    received.map_err(|error| format!("{address}: {error}"))
}

fn note(notes: &Notes, what: String) {
    notes.lock().unwrap_or_else(PoisonError::into_inner).push(what);
}

fn notes(notes: &Notes) -> Vec<String> {
    notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs as _;

    use super::*;

    #[test]
    fn questions_for_ipv4_are_answered_and_others_are_empty() {
        let question = |kind| {
            [b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x05model\x07example\0\0".as_slice(), &[kind, 0, 1]].concat()
        };
        let (name, ipv4) = answer(&question(1)).unwrap();
        assert_eq!(name, "model.example");
        assert_eq!(ipv4.get(..8).unwrap(), b"\x12\x34\x81\x80\0\x01\0\x01");
        assert!(ipv4.ends_with(&[0, 4, 127, 0, 0, 1]));
        assert_eq!(answer(&question(28)).unwrap().1.get(6..8).unwrap(), [0, 0]);
        assert_eq!(answer(&question(1)[..20]), None);
    }

    #[test]
    fn a_provider_reads_a_request_of_two_parts_and_answers() {
        let provider = Provider::start().unwrap();
        let address = ("127.0.0.1", provider.port).to_socket_addrs().unwrap().next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab").unwrap();
        stream.flush().unwrap();
        write!(stream, "cd").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("verdict"), "{answer}");
    }
}
