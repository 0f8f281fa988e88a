//! Calls of a tool over MCP, beside the plain route of the same server.

use std::sync::Arc;

use crate::{
    client::{Cost, Load, cost},
    http::{find, post_with},
    report::Report,
    world::{World, whole_request},
};

const CLIENTS: u32 = 8;

/// A call of a tool, which is one request of streamable HTTP.
pub(crate) async fn calls(world: &World, report: &mut Report) {
    let request = post_with(
        "/mcp",
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: load\r\n",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"load","arguments":{"text":"two words"},"_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},
            "io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"}}}}"#,
    );
    let plain = plain(world).await;
    let called = measure(world, request, is_result).await;
    note(report, "the plain route", &plain);
    note(report, "tools/call", &called);
    report.at_most("tools/call, processor", called.processor, "µs", 500.0);
    report.at_least("tools/call, on one core", called.measured.per_second(), "a second", 1_000.0);
}

async fn plain(world: &World) -> Cost {
    measure(world, whole_request(), |body| body.starts_with(br#"{"ok":true,"#)).await
}

/// Sends requests to the server, each of which has to call the model once.
async fn measure(world: &World, request: Vec<u8>, is_right: fn(&[u8]) -> bool) -> Cost {
    let load = Load { address: world.server.address, request: Arc::from(request), is_right };
    let calls = world.mock.calls();
    let cost = cost(&world.server, &load, CLIENTS).await;
    assert!(
        world.mock.calls() - calls >= cost.measured.latencies.len() as u64,
        "each request calls the model"
    );
    cost
}

fn note(report: &mut Report, name: &str, cost: &Cost) {
    report.note(&format!("{name}, {CLIENTS} clients"), cost.measured.per_second(), "a second");
    report.note(&format!("{name}, processor"), cost.processor, "µs");
}

/// The answer of a tool without an error, with the envelope.
fn is_result(body: &[u8]) -> bool {
    find(body, br#""structuredContent":{"ok":true,"#).is_some() && find(body, br#""isError":false"#).is_some()
}
