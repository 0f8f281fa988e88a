//! What RFC 6455 requires of a server, as bytes on the real route. Each case names its section.
//!
//! `{"type": "…"}` is answered with one text frame that repeats the value, like an echo.

use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{sockets::raw, support::Stage};

const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
/// The bit of the last frame of a message.
const FIN: u8 = 0x80;
/// A text that is repeated, with characters of two to four bytes.
const WORD: &str = "κόσμε-€-😀";

/// What the server must do with the bytes of a case.
enum Expected {
    /// Send these frames, and then answer the Close frame that follows.
    Replies(Vec<Reply>),
    /// Fail the connection: a Close frame with one of these codes.
    Fails(&'static [u16]),
}

enum Reply {
    Echo(&'static str),
    Pong(Vec<u8>),
}

struct Case {
    section: &'static str,
    name: &'static str,
    bytes: Vec<u8>,
    expected: Expected,
}

/// Builds a frame with a mask. `first` is the first byte: the opcode with its flags.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
    let masked = payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
    [head(first, payload.len(), 0x80), MASK.to_vec(), masked.collect()].concat()
}

/// Builds the start of a frame up to its length.
fn head(first: u8, length: usize, mask: u8) -> Vec<u8> {
    match (u16::try_from(length), length) {
        (_, 0..126) => vec![first, mask | u8::try_from(length).unwrap()],
        (Ok(short), _) => [&[first, mask | 126][..], &short.to_be_bytes()].concat(),
        _ => [&[first, mask | 127][..], &(length as u64).to_be_bytes()].concat(),
    }
}

fn echo() -> Vec<u8> {
    format!(r#"{{"type":"{WORD}"}}"#).into_bytes()
}

fn case(section: &'static str, name: &'static str, frames: &[Vec<u8>], expected: Expected) -> Case {
    Case { section, name, bytes: frames.concat(), expected }
}

fn echoes(section: &'static str, name: &'static str, frames: &[Vec<u8>]) -> Case {
    case(section, name, frames, Expected::Replies(vec![Reply::Echo(WORD)]))
}

fn fails(section: &'static str, name: &'static str, frames: &[Vec<u8>]) -> Case {
    case(section, name, frames, Expected::Fails(&[1002]))
}

fn framing() -> Vec<Case> {
    let text = echo();
    let padded = [&text[..], &[b' '; 200]].concat();
    let long = [&text[..], &[b' '; 70_000]].concat();
    let unmasked = [head(FIN | TEXT, text.len(), 0), text.clone()].concat();
    vec![
        echoes("5.6", "a text frame", &[frame(FIN | TEXT, &text)]),
        echoes("5.2", "a length of 16 bits", &[frame(FIN | TEXT, &padded)]),
        echoes("5.2", "a length of 64 bits", &[frame(FIN | TEXT, &long)]),
        case(
            "5.2",
            "a length with its highest bit set",
            &[vec![FIN | TEXT, 0xff], u64::MAX.to_be_bytes().to_vec(), vec![0; 4]],
            Expected::Fails(&[1002, 1009]),
        ),
        fails("5.1", "a frame without mask", &[unmasked]),
        fails("5.1", "a ping without mask", &[vec![FIN | PING, 0]]),
        fails("5.2", "RSV1", &[frame(FIN | TEXT | 0x40, &text)]),
        fails("5.2", "RSV2", &[frame(FIN | TEXT | 0x20, &text)]),
        fails("5.2", "RSV3", &[frame(FIN | TEXT | 0x10, &text)]),
        fails("5.2", "all reserved bits, in a ping", &[frame(FIN | PING | 0x70, b"")]),
        fails("5.2", "RSV1 in a continuation", &[frame(TEXT, b"{"), frame(FIN | 0x40, b"}")]),
    ]
}

fn opcodes() -> Vec<Case> {
    let reserved = [0x3, 0x4, 0x5, 0x6, 0x7, 0xb, 0xc, 0xd, 0xe, 0xf];
    let frames = reserved.map(|opcode| [frame(FIN | opcode, b""), frame(FIN | opcode, b"x")]);
    frames
        .iter()
        .flatten()
        .map(|frame| fails("5.2", "a reserved opcode", std::slice::from_ref(frame)))
        .collect()
}

fn fragments() -> Vec<Case> {
    let text = echo();
    let bytes: Vec<_> = text
        .iter()
        .enumerate()
        .map(|(at, byte)| match at {
            0 => frame(TEXT, &[*byte]),
            at if at + 1 == text.len() => frame(FIN, &[*byte]),
            _ => frame(0, &[*byte]),
        })
        .collect();
    let (start, end) = text.split_at(12);
    let (start, end) = (frame(TEXT, start), frame(FIN, end));
    vec![
        echoes("5.4", "each byte a fragment", &bytes),
        echoes(
            "5.4",
            "empty fragments",
            &[frame(TEXT, b""), frame(0, &text), frame(0, b""), frame(FIN, b"")],
        ),
        case(
            "5.4",
            "a ping between two fragments",
            &[start.clone(), frame(FIN | PING, b"now"), end.clone()],
            Expected::Replies(vec![Reply::Pong(b"now".to_vec()), Reply::Echo(WORD)]),
        ),
        echoes("5.4", "a pong between two fragments", &[start.clone(), frame(FIN | PONG, b""), end]),
        fails("5.4", "a continuation without a start", &[frame(FIN, &text)]),
        fails("5.4", "a continuation that does not end, without a start", &[frame(0, &text)]),
        fails("5.4", "a continuation after a message", &[frame(FIN | PONG, b""), frame(FIN, b"x")]),
        fails("5.4", "a text frame inside a message", &[start.clone(), frame(FIN | TEXT, &text)]),
        fails("5.4", "a binary frame inside a message", &[start, frame(FIN | BINARY, b"")]),
    ]
}

fn control() -> Vec<Case> {
    let pong = |payload: &[u8]| Expected::Replies(vec![Reply::Pong(payload.to_vec())]);
    let bytes: Vec<u8> = (0..125).map(|byte| byte ^ 0xa5).collect();
    vec![
        case("5.5.2", "an empty ping", &[frame(FIN | PING, b"")], pong(b"")),
        case("5.5.2", "a ping with any bytes", &[frame(FIN | PING, &bytes)], pong(&bytes)),
        case("5.5.3", "a pong without a ping", &[frame(FIN | PONG, b"x")], Expected::Replies(Vec::new())),
        fails("5.5", "a ping of 126 bytes", &[frame(FIN | PING, &[0; 126])]),
        fails("5.5", "a pong of 126 bytes", &[frame(FIN | PONG, &[0; 126])]),
        fails("5.5", "a Close frame of 126 bytes", &[frame(FIN | CLOSE, &[3; 126])]),
        fails("5.5", "a ping of 66,000 bytes", &[frame(FIN | PING, &[0; 66_000])]),
        fails("5.4", "a fragmented ping", &[frame(PING, b"a"), frame(FIN, b"b")]),
        fails("5.4", "a fragmented pong", &[frame(PONG, b"a"), frame(FIN, b"b")]),
        fails("5.4", "a fragmented Close frame", &[frame(CLOSE, b"\x03\xe8")]),
    ]
}

fn utf8() -> Vec<Case> {
    let invalid: [&[u8]; 9] = [
        b"\xff",
        b"\x80",
        b"\xc0\xaf",             // overlong
        b"\xc3",                 // ends early
        b"\xe2\x82",             // ends early
        b"\xed\xa0\x80",         // a surrogate
        b"\xf4\x90\x80\x80",     // over U+10FFFF
        b"\xf8\x88\x80\x80\x80", // five bytes
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xed\xa0\x80edited",
    ];
    let fails = |name, frames: &[Vec<u8>]| case("8.1", name, frames, Expected::Fails(&[1007]));
    let mut cases: Vec<_> = invalid.map(|text| fails("not UTF-8", &[frame(FIN | TEXT, text)])).into();
    cases.extend([
        fails("not UTF-8 in a continuation", &[frame(TEXT, b"{}"), frame(FIN, b"\xff")]),
        fails("half a character before another", &[frame(TEXT, b"\xce"), frame(FIN, b"\xce\xba")]),
        fails("half a character at the end", &[frame(TEXT, b"\xe2\x82"), frame(FIN, b"")]),
        echoes("5.6", "a character of four bytes", &[frame(FIN | TEXT, &echo())]),
    ]);
    cases
}

/// The frames that the server sends, without their heads. A Close frame is answered.
async fn conversation(mut stream: TcpStream, bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    stream.write_all(bytes).await.unwrap();
    let mut frames = Vec::new();
    while let Ok(first) = stream.read_u8().await {
        let length = match stream.read_u8().await.unwrap() {
            126 => usize::from(stream.read_u16().await.unwrap()),
            length => usize::from(length),
        };
        assert!(first & 0xf0 == FIN && length < 1 << 16, "5.1: a frame without mask, extension or fragments");
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.unwrap();
        frames.push((first & 0xf, payload));
        if first == FIN | CLOSE {
            // The server may have closed the connection.
            let _ = stream.write_all(&frame(FIN | CLOSE, b"\x03\xe8")).await;
        }
    }
    frames
}

impl Case {
    async fn check(self, stage: &Stage) {
        let Self { section, name, mut bytes, expected } = self;
        if let Expected::Replies(_) = expected {
            bytes.extend(frame(FIN | CLOSE, b"\x03\xe8bye"));
        }
        let mut frames = conversation(raw(stage).await, &bytes).await;
        let (opcode, payload) = frames.pop().unwrap_or_else(|| panic!("{section} {name}: no Close frame"));
        assert_eq!(opcode, CLOSE, "{section} {name}: a frame after, or instead of, the Close frame");
        match expected {
            Expected::Replies(replies) => {
                assert_eq!(payload, b"\x03\xe8bye", "5.5.1 {name}: the code is repeated");
                assert_eq!(frames.len(), replies.len(), "{section} {name}: {frames:?}");
                let are_right = frames.iter().zip(&replies).all(|(frame, reply)| reply.matches(frame));
                assert!(are_right, "{section} {name}: {frames:?}");
            }
            Expected::Fails(codes) => {
                let code = payload.first_chunk().map_or(0, |code| u16::from_be_bytes(*code));
                assert!(codes.contains(&code), "{section} {name}: closed with {code}, not {codes:?}");
                // A message over the limit of the server is reported before 1009.
                assert!(frames.is_empty() || code == 1009, "{section} {name}: {frames:?}");
            }
        }
    }
}

impl Reply {
    fn matches(&self, (opcode, payload): &(u8, Vec<u8>)) -> bool {
        match self {
            Self::Echo(text) => *opcode == TEXT && String::from_utf8_lossy(payload).contains(text),
            Self::Pong(expected) => *opcode == PONG && payload == expected,
        }
    }
}

#[tokio::test]
async fn frames_are_handled_as_rfc_6455_requires() {
    let stage = Stage::answering().await;
    let cases = [framing(), opcodes(), fragments(), control(), utf8()];
    join_all(cases.into_iter().flatten().map(|case| case.check(&stage))).await;
}

#[tokio::test]
async fn nothing_follows_a_close_frame() {
    let stage = Stage::answering().await;
    let after = [frame(FIN | TEXT, &echo()), frame(FIN | PING, b"x"), frame(FIN | CLOSE, b"\x03\xe9")];
    for (section, after) in ["5.5.1", "5.5.2", "7.1.2"].into_iter().zip(after) {
        let bytes = [frame(FIN | CLOSE, b"\x03\xe8"), after].concat();
        let frames = conversation(raw(&stage).await, &bytes).await;
        assert_eq!(frames, [(CLOSE, b"\x03\xe8".to_vec())], "{section}");
    }
}

/// Headers by name.
type Headers<'a> = [(&'a str, &'a str)];

/// The headers of a valid handshake.
const HANDSHAKE: [(&str, &str); 5] = [
    ("Host", "localhost"),
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// Sends a handshake with other headers in place of those of the same name. Returns the headers of the response.
async fn handshake(stage: &Stage, line: &str, others: &[(&str, &str)]) -> String {
    let is_other = |name: &str| others.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let own = HANDSHAKE.iter().filter(|(name, _)| !is_other(name));
    let headers = own.chain(others).filter(|(_, value)| !value.is_empty());
    let headers: String = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut stream = TcpStream::connect(&stage.address).await.unwrap();
    stream.write_all(format!("{line}\r\n{headers}\r\n").as_bytes()).await.unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(response).unwrap().to_ascii_lowercase()
}

const LINE: &str = "GET /v1/modules/live/ws HTTP/1.1";

#[tokio::test]
async fn valid_handshakes_are_accepted() {
    let stage = Stage::answering().await;
    let absent: [&str; 2] = ["sec-websocket-extensions", "sec-websocket-protocol"];
    let extension = ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits");
    let cases: [(&str, &Headers<'_>); 7] = [
        ("4.2.2", &[]),
        ("4.2.1 3", &[("Upgrade", "WebSocket")]),
        ("4.2.1 4", &[("Connection", "keep-alive, Upgrade")]),
        ("4.2.1 4", &[("connection", "upgrade")]),
        ("4.2.1 10", &[("X-Unknown", "1"), ("Cookie", "a=b")]),
        ("9.1", &[extension]),
        ("4.2.2 5", &[("Sec-WebSocket-Protocol", "chat, superchat")]),
    ];
    for (section, others) in cases {
        let response = handshake(&stage, LINE, others).await;
        assert!(response.starts_with("http/1.1 101 "), "{section}: {response}");
        for header in ["upgrade: websocket", "connection: upgrade"] {
            assert!(response.contains(header), "{section}: {response}");
        }
        let accept = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_ascii_lowercase();
        assert!(response.contains(&accept), "4.2.2 5: {response}");
        assert!(absent.iter().all(|header| !response.contains(header)), "{section}: {response}");
    }
    let response = handshake(&stage, LINE, &[("Sec-WebSocket-Protocol", "chat, cog")]).await;
    assert!(response.contains("sec-websocket-protocol: cog\r\n"), "4.2.2 5: {response}");
}

#[tokio::test]
async fn invalid_handshakes_are_refused() {
    let stage = Stage::answering().await;
    let key = |value| [("Sec-WebSocket-Key", value)];
    let twice = [
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let version = |value| [("Sec-WebSocket-Version", value)];
    let cases: [(&str, &Headers<'_>, u16); 17] = [
        ("4.2.1 2", &[("Host", "")], 400),
        ("4.2.1 3", &[("Upgrade", "")], 426),
        ("4.2.1 3", &[("Upgrade", "h2c")], 426),
        ("4.2.1 4", &[("Connection", "")], 426),
        ("4.2.1 4", &[("Connection", "keep-alive")], 426),
        ("4.2.1 5", &key(""), 400),
        ("4.2.1 5", &key("c2hvcnQ="), 400),
        ("4.2.1 5", &key("MTUgYnl0ZXMgYXJlIGZldw"), 400),
        ("4.2.1 5", &key("MTcgYnl0ZXMgYXJlIG1hbnk="), 400),
        ("4.2.1 5", &key("dGhlIHNhbXBsZSBub25jZ!=="), 400),
        ("4.2.1 5", &key("dGhlIHNhbXBsZSBub25jZQ"), 400),
        ("11.3.1", &twice, 400),
        ("4.2.1 6", &version(""), 400),
        ("4.2.1 6", &version("12"), 400),
        ("4.2.1 6", &version("14"), 400),
        ("4.2.1 6", &version("13, 8"), 400),
        ("4.2.1 6", &version("thirteen"), 400),
    ];
    for (section, others, status) in cases {
        let response = handshake(&stage, LINE, others).await;
        assert!(response.starts_with(&format!("http/1.1 {status} ")), "{section} {others:?}: {response}");
        if section == "4.2.1 6" {
            assert!(response.contains("sec-websocket-version: 13\r\n"), "4.4: {response}");
        }
    }
    for (section, line) in [("4.2.1 1", LINE.replace("1.1", "1.0")), ("4.2.1 1", LINE.replace("GET", "POST"))]
    {
        let response = handshake(&stage, &line, &[]).await;
        assert!(response.contains(" 4"), "{section}: {response}");
    }
}
