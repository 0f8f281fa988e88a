use cog_json::Value;
use cog_testkit::Reply;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{
        Message, Utf8Bytes,
        protocol::frame::{
            Frame,
            coding::{Data, OpCode},
        },
    },
};

use crate::support::{ANSWER, BODY, Stage, begun, code, failure};

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(crate) async fn open(stage: &Stage, module: &str) -> Socket {
    let url = format!("ws://{}/v1/modules/{module}/ws", stage.address);
    tokio_tungstenite::connect_async(url).await.unwrap().0
}

/// Returns the next text frame.
async fn next(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            return Value::parse(&text).unwrap();
        }
    }
}

/// Returns the chunks up to the final one.
async fn until_end(socket: &mut Socket) -> Vec<Value> {
    let mut chunks = Vec::new();
    loop {
        let chunk = next(socket).await;
        let is_end = chunk.get("final").is_some()
            || chunk.get("error").is_some()
            || chunk.get("chunk").is_none() && chunk.get("streaming").is_none();
        chunks.push(chunk);
        if is_end {
            return chunks;
        }
    }
}

/// Runs the module and returns its chunks.
pub(crate) async fn frames(socket: &mut Socket, body: &str) -> Vec<Value> {
    socket.send(Message::text(body)).await.unwrap();
    until_end(socket).await
}

/// Returns the code with which the server closes.
async fn closed(socket: &mut Socket) -> u16 {
    loop {
        if let Message::Close(frame) = socket.next().await.unwrap().unwrap() {
            return frame.unwrap().code.into();
        }
    }
}

#[tokio::test]
async fn runs_follow_each_other_on_one_connection() {
    let stage = Stage::answering().await;
    let mut socket = open(&stage, "live").await;
    let first = frames(&mut socket, BODY).await;
    let second = frames(&mut socket, BODY).await;
    assert_ne!(first[0].get("session_id").unwrap().as_str(), second[0].get("session_id").unwrap().as_str());
    socket.send(Message::text(r#"{"type": "close"}"#)).await.unwrap();
    assert_eq!(closed(&mut socket).await, 1000);
}

#[tokio::test]
async fn cancel_stops_the_run_and_keeps_the_connection() {
    let stage = Stage::start([begun(), Reply::text(ANSWER)]).await;
    let mut socket = open(&stage, "live").await;
    socket.send(Message::text(BODY)).await.unwrap();
    while next(&mut socket).await.get("chunk").is_none() {}
    socket.send(Message::text(r#"{"type": "cancel"}"#)).await.unwrap();
    let end = until_end(&mut socket).await.pop().unwrap();
    assert_eq!(code(&end), "E2010");
    assert_eq!(end.pointer("/error/details/reason").unwrap().as_str(), Some("cancelled"));
    // A late one refers to the finished run.
    socket.send(Message::text(r#"{"type": "cancel"}"#)).await.unwrap();
    assert!(frames(&mut socket, BODY).await.last().unwrap().get("final").is_some());
}

#[tokio::test]
async fn error_before_a_run_is_one_frame_and_keeps_the_connection() {
    let stage = Stage::answering().await;
    let mut socket = open(&stage, "live").await;
    for (body, expected) in [
        ("{", "E1000"),
        ("[]", "E1003"),
        ("{}", "E1002"),
        (r#"{"input": {}}"#, "E1002"),
        (r#"{"input": {"query": "?"}, "_options": {"fast": true}}"#, "E1001"),
        (r#"{"type": "pause"}"#, "E1004"),
        (r#"{"type": "cancel"}"#, "E1001"),
    ] {
        let answered = frames(&mut socket, body).await;
        assert_eq!((answered.len(), code(&answered[0])), (1, expected), "{body}");
    }
    socket.send(Message::binary(BODY.as_bytes())).await.unwrap();
    assert_eq!(code(&next(&mut socket).await), "E1001");
    assert!(frames(&mut socket, BODY).await.last().unwrap().get("final").is_some());
}

#[tokio::test]
async fn second_body_during_a_run_is_refused() {
    let stage = Stage::hanging().await;
    let mut socket = open(&stage, "live").await;
    socket.send(Message::text(BODY)).await.unwrap();
    while next(&mut socket).await.get("chunk").is_none() {}
    socket.send(Message::text(BODY)).await.unwrap();
    let answered = until_end(&mut socket).await.pop().unwrap();
    assert_eq!((code(&answered), answered.get("streaming").is_none()), ("E1001", true));
    assert_eq!(stage.mock.interrupted(), 0);
    socket.send(Message::text(r#"{"type": "cancel"}"#)).await.unwrap();
    assert_eq!(code(&until_end(&mut socket).await.pop().unwrap()), "E2010");
}

#[tokio::test]
async fn fragmented_message_is_one_body() {
    let stage = Stage::answering().await;
    let mut socket = open(&stage, "live").await;
    let (head, tail) = BODY.split_at(9);
    let frame = |text: &str, opcode, last| {
        Message::Frame(Frame::message(text.to_owned(), OpCode::Data(opcode), last))
    };
    socket.send(frame(head, Data::Text, false)).await.unwrap();
    socket.send(frame(tail, Data::Continue, true)).await.unwrap();
    assert!(until_end(&mut socket).await.last().unwrap().get("final").is_some());
}

#[tokio::test]
async fn message_over_limit_closes_with_1009() {
    let stage = Stage::with([Reply::text(ANSWER)], |settings| settings.max_message_bytes = 1000).await;
    let mut socket = open(&stage, "live").await;
    socket.send(Message::Text(Utf8Bytes::from("x".repeat(1001)))).await.unwrap();
    assert_eq!(code(&next(&mut socket).await), "E1005");
    assert_eq!(closed(&mut socket).await, 1009);
}

#[tokio::test]
async fn protocol_error_closes_with_its_code() {
    let stage = Stage::answering().await;
    for (data, text, expected) in [(Data::Continue, &b"{}"[..], 1002), (Data::Text, b"{\xff}", 1007)] {
        let mut socket = open(&stage, "live").await;
        let frame = Frame::message(text.to_owned(), OpCode::Data(data), true);
        socket.send(Message::Frame(frame)).await.unwrap();
        assert_eq!(closed(&mut socket).await, expected);
    }
}

#[tokio::test]
async fn idle_connection_closes_with_1000() {
    let idle = std::time::Duration::from_millis(30);
    let stage = Stage::with([Reply::text(ANSWER)], |settings| settings.websocket_idle_timeout = idle).await;
    let mut socket = open(&stage, "live").await;
    assert_eq!(closed(&mut socket).await, 1000);
}

#[tokio::test]
async fn sync_module_answers_in_one_frame() {
    let stage = Stage::answering().await;
    let mut socket = open(&stage, "once").await;
    let answered = frames(&mut socket, BODY).await;
    assert_eq!(answered.len(), 1);
    assert_eq!(answered[0].pointer("/_warnings/0/code").unwrap().as_str(), Some("W4010"));
    let required = r#"{"input": {"query": "?"}, "_options": {"require_streaming": true}}"#;
    assert_eq!(code(&frames(&mut socket, required).await[0]), "E4010");
    let sync = r#"{"input": {"query": "?"}, "_options": {"response_mode": "sync"}}"#;
    assert!(frames(&mut socket, sync).await[0].get("_warnings").is_none());
}

#[tokio::test]
async fn interrupted_connection_cancels_its_run() {
    let stage = Stage::hanging().await;
    let mut socket = open(&stage, "live").await;
    socket.send(Message::text(BODY)).await.unwrap();
    while next(&mut socket).await.get("chunk").is_none() {}
    drop(socket);
    while stage.mock.interrupted() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn request_without_upgrade_returns_426() {
    let stage = Stage::answering().await;
    let request = stage.client.get(stage.url("/v1/modules/live/ws"));
    let response = request.try_clone().unwrap().send().await.unwrap();
    assert_eq!(response.headers()["sec-websocket-version"], "13");
    assert_eq!(failure(request).await, (426, "E1001".to_owned()));
    let url = format!("ws://{}/v1/modules/unknown/ws", stage.address);
    let refused = tokio_tungstenite::connect_async(url).await.unwrap_err();
    assert!(refused.to_string().contains("404"), "{refused}");
}

/// Opens a connection for frames as bytes, after the handshake.
pub(crate) async fn raw(stage: &Stage) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(stage.address.parse().unwrap()).await.unwrap();
    let request = format!(
        "GET /v1/modules/live/ws HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        stage.address
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut headers = Vec::new();
    while !headers.ends_with(b"\r\n\r\n") {
        headers.push(stream.read_u8().await.unwrap());
    }
    assert!(headers.starts_with(b"HTTP/1.1 101"));
    stream
}

/// Builds a masked frame. The mask is zero, so the payload is unchanged.
fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0x80 | opcode, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

/// The bytes of pings after which the server must have closed the connection: more than the client's send buffer.
const MAX_FLOOD: usize = 4 << 20;

/// Starts a stage without a limit for the rate of messages.
fn unlimited(replies: [Reply; 1]) -> Stage {
    Stage::with_small_buffers(replies, |settings| settings.requests_per_second = 0)
}

/// Sends pings until the server closes the connection. Reads `drip` bytes after each 64 KiB. Returns the bytes that
/// were sent, or `None` if the server accepts more than [`MAX_FLOOD`].
async fn flood(stage: &Stage, drip: usize) -> Option<usize> {
    let pings = masked(0x9, &[b'x'; 125]).repeat(500);
    let mut stream = raw(stage).await;
    let mut sent = 0;
    while sent < MAX_FLOOD {
        if stream.write_all(&pings).await.is_err() {
            return Some(sent);
        }
        sent += pings.len();
        let mut dripped = vec![0; drip];
        if drip > 0 && stream.read_exact(&mut dripped).await.is_err() {
            return Some(sent);
        }
    }
    None
}

#[tokio::test]
async fn messages_over_the_rate_close_with_1008() {
    let set = |settings: &mut cog_server::ServerSettings| {
        (settings.requests_per_second, settings.request_burst) = (1, 5);
    };
    let pings = masked(0x9, b"").repeat(20);
    for message in [pings, masked(0xa, b"").repeat(20), masked(0x1, b"{").repeat(20)] {
        let stage = Stage::with([Reply::text(ANSWER)], set).await;
        let mut stream = raw(&stage).await;
        stream.write_all(&message).await.unwrap();
        let mut received = Vec::new();
        while stream.read_buf(&mut received).await.is_ok_and(|read| read > 0) {}
        let close = [&[0x88, 19][..], &1008_u16.to_be_bytes(), b"too many messages"].concat();
        assert!(received.ends_with(&close), "{}", String::from_utf8_lossy(&received));
    }
}

#[tokio::test]
async fn pings_without_reading_close_the_connection() {
    let stage = unlimited([Reply::text(ANSWER)]);
    assert!(flood(&stage, 0).await.is_some());
    let metrics = stage.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("cog_write_timeouts_total 1"), "{metrics}");
}

#[tokio::test]
async fn pings_while_reading_a_little_close_the_connection() {
    let stage = unlimited([Reply::text(ANSWER)]);
    assert!(flood(&stage, 1024).await.is_some());
}

#[tokio::test]
async fn pings_during_a_run_close_the_connection() {
    let stage = unlimited([begun()]);
    let mut stream = raw(&stage).await;
    stream.write_all(&masked(0x1, BODY.as_bytes())).await.unwrap();
    let pings = masked(0x9, &[b'x'; 125]).repeat(500);
    let mut sent = 0;
    while stream.write_all(&pings).await.is_ok() {
        sent += pings.len();
        assert!(sent < MAX_FLOOD, "the server takes pings that it cannot answer");
    }
    while stage.mock.interrupted() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn every_ping_of_a_client_that_reads_is_answered() {
    let stage = Stage::answering().await;
    let (mut reader, mut writer) = raw(&stage).await.into_split();
    let sending = tokio::spawn(async move {
        for number in 0..2_000_u32 {
            writer.write_all(&masked(0x9, &number.to_be_bytes())).await.unwrap();
        }
        writer
    });
    let mut last = 0;
    while last != 1_999 {
        let mut frame = [0; 6];
        reader.read_exact(&mut frame).await.unwrap();
        assert_eq!(frame[..2], [0x8a, 4]);
        last = u32::from_be_bytes(frame[2..].try_into().unwrap());
    }
    sending.await.unwrap();
}

/// Sends this Close frame and returns everything that the server sends until the connection closes.
async fn after_close(stage: &Stage, payload: &[u8]) -> Vec<u8> {
    let mut stream = raw(stage).await;
    stream.write_all(&masked(0x8, payload)).await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    rest
}

#[tokio::test]
async fn a_close_frame_is_answered() {
    let stage = Stage::answering().await;
    assert_eq!(after_close(&stage, b"").await, [0x88, 0]);
    for code in [1000_u16, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 3000, 4999] {
        let payload = [&code.to_be_bytes()[..], b"bye"].concat();
        assert_eq!(after_close(&stage, &payload).await, [&[0x88, 5], &payload[..]].concat(), "{code}");
    }
}

#[tokio::test]
async fn an_invalid_close_frame_is_answered_with_1002() {
    let stage = Stage::answering().await;
    for code in [0_u16, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2999, 5000, 65_535] {
        let answer = after_close(&stage, &code.to_be_bytes()).await;
        assert_eq!((answer[0], &answer[2..4]), (0x88, &1002_u16.to_be_bytes()[..]), "{code}");
    }
    // One byte is half a code, and a reason is UTF-8.
    for (payload, expected) in [(&b"\x03"[..], 1002_u16), (b"\x03\xe8\xff", 1007)] {
        let answer = after_close(&stage, payload).await;
        assert_eq!((answer[0], &answer[2..4]), (0x88, &expected.to_be_bytes()[..]), "{payload:?}");
    }
}

#[tokio::test]
async fn a_close_frame_during_a_run_is_answered_and_stops_it() {
    let stage = Stage::hanging().await;
    let mut socket = open(&stage, "live").await;
    socket.send(Message::text(BODY)).await.unwrap();
    while next(&mut socket).await.get("chunk").is_none() {}
    socket.close(None).await.unwrap();
    let closing = async {
        loop {
            match socket.next().await {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(_)) => {}
            }
        }
    };
    assert!(closing.await, "the connection ended without a closing handshake");
    while stage.mock.interrupted() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
