//! The program `cog-mock`, as programs in other languages use it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
};

#[test]
fn prints_its_url_and_serves() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_cog-mock"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(br#"{"text": {"ok": true}}"#).unwrap();
    let mut url = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let address = url.trim().strip_prefix("http://").unwrap().to_owned();

    let mut connection = TcpStream::connect(&address).unwrap();
    let body = r#"{"model": "m", "messages": []}"#;
    let length = body.len();
    write!(
        connection,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut reply = String::new();
    connection.read_to_string(&mut reply).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(reply.starts_with("HTTP/1.1 200") && reply.contains(r#"{\"ok\":true}"#), "{reply}");
}

#[test]
fn refuses_input_that_is_no_reply() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_cog-mock"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(b"[1]").unwrap();
    let output = program.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("cog-mock: "));
}
