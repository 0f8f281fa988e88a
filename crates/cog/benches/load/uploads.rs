//! Uploads: the memory that one needs.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    http::{Connection, post},
    report::Report,
    world::World,
};

/// How many bytes are sent at once.
const BLOCK: usize = 1 << 20;
/// How many of these: 100 MB.
const BLOCKS: usize = 100;

/// 100 MB arrive, as a part that more could follow, so that nothing but taking them is measured.
pub(crate) async fn large(world: &World, report: &mut Report) {
    let url = place(world).await;
    let before = world.server.resident();
    let length = BLOCKS * BLOCK;
    let head = format!(
        "PUT {url} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\
         content-range: bytes 0-{}/*\r\n\r\n",
        length - 1
    );
    let mut connection = TcpStream::connect(world.server.address).await.unwrap();
    connection.write_all(head.as_bytes()).await.unwrap();
    let block = vec![7; BLOCK];
    let mut most = before;
    for _ in 0..BLOCKS {
        connection.write_all(&block).await.unwrap();
        most = most.max(world.server.resident());
    }
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let received = format!("\"received_bytes\":{length}");
    assert!(answer.starts_with("HTTP/1.1 202") && answer.contains(&received), "{answer}");
    most = most.max(world.server.resident());
    report.at_most("memory grown at most meanwhile", (most - before) / 1024.0, "MiB", 16.0);
}

/// Where a new upload goes.
async fn place(world: &World) -> String {
    let mut connection = Connection::open(world.server.address).await.unwrap();
    let mut body = Vec::new();
    let request = post("/v1/media/upload-url", "application/json", "{}");
    assert_eq!(connection.ask(&request, &mut body).await.unwrap(), 201);
    let ticket: serde_json::Value = serde_json::from_slice(&body).unwrap();
    ticket.get("upload_url").and_then(serde_json::Value::as_str).unwrap().to_owned()
}
