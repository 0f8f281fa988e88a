//! What the server keeps for one client, while other clients fill every store.

use std::{net::SocketAddr, time::Duration};

use super::hostile::{Crowd, on_state};
use crate::{
    client::count,
    http::{self, Connection, find},
    report::Report,
    world::{World, execute},
};

/// How often each attack is repeated: more often than any store has places.
const TIMES: usize = 1_200;
/// The time that the attacks get.
const LIMIT: Duration = Duration::from_secs(240);

/// Has one client leave a finished run, a run that waits for a confirmation, and a cached answer. All three must still be
/// there after the attacks of others.
pub(super) async fn keep(report: &mut Report) {
    let world = World::with_state(&[]);
    let mut tenant = Tenant::new(world.server.address).await;
    let crowd = Crowd::start(world.server.address, on_state());
    crowd.wait(TIMES, LIMIT).await;
    for (attack, times) in crowd.stop() {
        report.at_least(attack, times, "times", count(TIMES));
    }
    for (what, is_kept) in tenant.kept().await {
        report.at_least(what, f64::from(u8::from(is_kept)), "of 1 kept", 1.0);
    }
}

struct Tenant {
    connection: Connection,
    session: String,
    halted: String,
}

impl Tenant {
    async fn new(server: SocketAddr) -> Self {
        let mut connection = Connection::open(server).await.unwrap();
        let detached = http::post(
            "/v1/modules/load/execute",
            "application/json",
            r#"{"input":{"text":"mine"},"_options":{"detach":true}}"#,
        );
        let session = text_after(&ask(&mut connection, &detached).await, r#""session_id":""#);
        let halted =
            text_after(&ask(&mut connection, &execute("agent", "tool", "")).await, r#""halted":{"id":""#);
        ask(&mut connection, &mine()).await;
        Self { connection, session, halted }
    }

    /// What the server still has.
    async fn kept(&mut self) -> [(&'static str, bool); 3] {
        let session = format!("GET /v1/sessions/{} HTTP/1.1\r\nhost: localhost\r\n\r\n", self.session);
        let session = ask(&mut self.connection, session.as_bytes()).await;
        let confirmed = format!(r#"{{"_continue":{{"id":"{}","confirm":"YES"}}}}"#, self.halted);
        let confirmed = http::post("/v1/modules/agent/execute", "application/json", &confirmed);
        let confirmed = ask(&mut self.connection, &confirmed).await;
        let cached = ask(&mut self.connection, &mine()).await;
        [
            ("a finished run of another client", find(&session, br#""finished""#).is_some()),
            ("a halted run of another client", confirmed.starts_with(br#"{"ok":true"#)),
            ("a cached answer of another client", find(&cached, br#""hit":true"#).is_some()),
        ]
    }
}

/// A request whose answer is cached.
fn mine() -> Vec<u8> {
    execute("load", "whole", " of mine")
}

async fn ask(connection: &mut Connection, request: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    connection.ask(request, &mut body).await.unwrap();
    body
}

/// The text up to the next quotation mark after this one.
fn text_after(body: &[u8], key: &str) -> String {
    let body = String::from_utf8_lossy(body);
    let (_, after) = body.split_once(key).unwrap_or_default();
    let text = after.split('"').next().unwrap_or_default();
    assert!(!text.is_empty(), "no {key} in {body}");
    text.to_owned()
}
