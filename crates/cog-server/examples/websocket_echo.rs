//! Sends back each message of a WebSocket, through the same connection type as the server. `cargo xtask autobahn` tests it
//! with the fuzzing client of Autobahn.
//!
//! Prints its URL, and serves until it is stopped.

use axum::{
    Router,
    extract::ws::{Message, WebSocketUpgrade, close_code},
    response::Response,
    routing::any,
};

#[path = "../src/websocket/connection.rs"]
mod connection;

use connection::{Connection, Received, Unreadable};

/// The maximum size of a message. Autobahn sends 16 MiB.
const MAX_MESSAGE: usize = 32 << 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    print(&format!("ws://{}", listener.local_addr()?))?;
    axum::serve(listener, Router::new().route("/", any(upgrade))).await
}

fn print(line: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{line}")
}

async fn upgrade(upgrade: WebSocketUpgrade) -> Response {
    connection::bounded(upgrade, MAX_MESSAGE).on_upgrade(|socket| echo(Connection::new(socket)))
}

async fn echo(mut socket: Connection) {
    loop {
        let Received::Message(Some(message)) = socket.receive().await else { return };
        let sent = match message {
            Ok(message @ Message::Text(_)) => socket.send_all([message].into_iter()).await,
            Ok(message @ Message::Binary(_)) => socket.send(message).await,
            Ok(Message::Ping(_) | Message::Pong(_)) => Ok(()),
            Ok(Message::Close(_)) => return socket.answer_close().await,
            Err(error) => return fail(socket, &Unreadable::from(&error)).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn fail(mut socket: Connection, reason: &Unreadable) {
    match reason {
        Unreadable::TooLarge => socket.close(close_code::SIZE, "message too large").await,
        Unreadable::Broken(code) => socket.close(*code, "").await,
        Unreadable::Interrupted => {}
    }
}
