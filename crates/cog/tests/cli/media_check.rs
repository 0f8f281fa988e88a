//! `cog media check`: which sources are allowed, and that refused ones are not fetched.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::Value;

use crate::support::{Place, snapshot, stdout, with_stdin};

/// A GIF of one pixel.
const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// A server on loopback that returns an image and counts its requests.
pub(super) fn listen() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let came = Arc::clone(&count);
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            came.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]);
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", PIXEL.len());
            let _ = stream.write_all(&[head.as_bytes(), PIXEL].concat());
        }
    });
    (port, count)
}

/// Returns the decisions on these lines.
fn answers(place: &Place, args: &[&str], lines: &[String]) -> Vec<Value> {
    let args = ["media", "check"].into_iter().chain(args.iter().copied());
    let output =
        with_stdin(place.cog(args), &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let answers: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sources: Vec<_> = answers.iter().map(|answer| answer["source"].as_str().unwrap()).collect();
    assert_eq!(sources, lines);
    answers
}

fn lists() -> (Vec<String>, Vec<String>) {
    let lists: Value = serde_json::from_str(include_str!("../../../../conformance/urls.json")).unwrap();
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    (lists["refused"].as_object().unwrap().values().flat_map(texts).collect(), texts(&lists["allowed"]))
}

#[test]
fn checks_every_line_without_fetching() {
    let (refused, allowed) = lists();
    assert!(refused.len() >= 150 && allowed.len() >= 20);
    let place = Place::new();
    for answer in answers(&place, &["--no-fetch", "-"], &refused) {
        assert_eq!(answer["allowed"], false, "{answer}");
        assert!(answer["code"].is_string() && answer["reason"].is_string(), "{answer}");
    }
    for answer in answers(&place, &["--no-fetch", "-"], &allowed) {
        assert_eq!((&answer["allowed"], &answer["code"]), (&Value::Bool(true), &Value::Null), "{answer}");
    }
}

#[test]
fn refused_urls_are_not_fetched() {
    let (port, count) = listen();
    let place = Place::new();
    let lines: Vec<String> = [
        "http://127.0.0.1:PORT/",
        "http://localhost:PORT/",
        "http://2130706433:PORT/",
        "http://0x7f.1:PORT/",
        "http://[::ffff:127.0.0.1]:PORT/",
        "http://0:PORT/",
        "http://127.1:PORT/",
        "http://a@127.0.0.1:PORT/",
    ]
    .iter()
    .map(|line| line.replace("PORT", &port.to_string()))
    .collect();
    let allow = format!("127.0.0.2:{port}");
    assert!(answers(&place, &["-"], &lines).iter().all(|answer| answer["code"] == "E1012"));
    let mut command = place.cog(["media", "check", "-"]);
    command.env("COG_MEDIA_ALLOW", allow);
    with_stdin(command, &lines.join("\n"));
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[test]
fn allowed_hosts_bypass_the_proxy() {
    let (port, count) = listen();
    let (proxy, asked) = listen();
    let url = format!("http://127.0.0.1:{port}/a.gif");
    let place = Place::new();
    let mut command = place.cog(["media", "check", &url]);
    command.env("COG_MEDIA_ALLOW", format!("127.0.0.1:{port}"));
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, format!("http://127.0.0.1:{proxy}"));
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert_eq!((count.load(Ordering::SeqCst), asked.load(Ordering::SeqCst)), (1, 0));
}

#[test]
fn one_decision_per_line() {
    let place = Place::new();
    place.write("a.gif", PIXEL);
    place.write("notes.txt", "Hello").write("in/x", "");
    snapshot!(place.cog([
        "media",
        "check",
        "a.gif",
        "notes.txt",
        "in",
        "no.png",
        "/etc/passwd",
        "in/../../../etc/passwd",
        "http://169.254.169.254/latest/meta-data/?token=s3cret",
        "gopher://localhost/",
    ]));
}

#[test]
fn decisions_as_text() {
    let place = Place::new();
    snapshot!(place.cog([
        "media",
        "check",
        "--no-fetch",
        "--format",
        "human",
        "https://example.com/a.png",
        "http://metadata.google.internal/",
        "http://0x7f.1/",
    ]));
}

#[test]
fn operator_can_disable_fetching() {
    let place = Place::new();
    let mut command = place.cog(["media", "check", "https://example.com/a.png"]);
    snapshot!(command.env("COG_MEDIA_FETCH", "off"));
}
