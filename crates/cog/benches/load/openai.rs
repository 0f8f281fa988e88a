//! The interfaces of OpenAI's clients, beside the plain route of the same server: the same module, input and answer.

use std::{sync::Arc, time::Duration};

use crate::{
    client::{Load, Pace, count, hammer},
    http::{self, find},
    mock::{DATA, data_of_events},
    report::Report,
    world::{World, sse_request, whole_request},
};

const ROUND: Duration = Duration::from_secs(1);
/// How many rounds each route has; the routes alternate.
const ROUNDS: u32 = 4;
const CLIENTS: u32 = 32;
/// How many times the processor time of the plain route a request may take at most.
const BOUND: f64 = 1.2;

/// A route, and the processor time of its requests.
struct Route {
    name: &'static str,
    load: Load,
    ticks: f64,
    requests: usize,
}

/// Complete answers of one event.
pub(crate) async fn complete(world: &World, report: &mut Report) {
    let plain = route(world, "the plain route", whole_request(), |body| has(body, DATA));
    let chat = route(world, "chat completions", chat_request(false), |body| has(body, &quoted(DATA)));
    let responses = route(world, "responses", responses_request(false), |body| has(body, &quoted(DATA)));
    compare(world, [plain, chat, responses], report).await;
}

/// Streams of 134 events.
pub(crate) async fn streams(_: &World, report: &mut Report) {
    let world = World::with_model("events");
    let plain = route(&world, "the plain route", sse_request("events"), |body| has(body, &data_of_events()));
    let chat =
        route(&world, "chat completions", chat_request(true), |body| body.ends_with(b"data: [DONE]\n\n"));
    let responses = route(&world, "responses", responses_request(true), |body| {
        has(body, "event: response.completed\n") && has(body, &quoted(&data_of_events()))
    });
    compare(&world, [plain, chat, responses], report).await;
}

/// Puts the routes under the same load in turn. The first one is the plain route.
async fn compare(world: &World, mut routes: [Route; 3], report: &mut Report) {
    for route in &routes {
        hammer(&route.load, CLIENTS, Pace::AtOnce, ROUND).await;
    }
    let calls = world.mock.calls();
    for _ in 0..ROUNDS {
        for route in &mut routes {
            let before = world.server.ticks();
            let measured = hammer(&route.load, CLIENTS, Pace::AtOnce, ROUND).await;
            route.ticks += world.server.ticks() - before;
            route.requests += measured.latencies.len();
        }
    }
    let requests: usize = routes.iter().map(|route| route.requests).sum();
    assert_eq!(world.mock.calls() - calls, requests as u64, "each request calls the model once");
    let [plain, others @ ..] = &routes;
    report.note(&format!("{}, processor", plain.name), plain.processor(), "µs");
    for route in others {
        report.note(&format!("{}, processor", route.name), route.processor(), "µs");
        let ratio = route.processor() / plain.processor();
        report.at_most(&format!("{}, beside the plain route", route.name), ratio, "times", BOUND);
    }
}

impl Route {
    /// Returns the processor time of a request, in microseconds.
    fn processor(&self) -> f64 {
        self.ticks * 10_000.0 / count(self.requests)
    }
}

fn route(world: &World, name: &'static str, request: Vec<u8>, is_right: fn(&[u8]) -> bool) -> Route {
    let load = Load { address: world.server.address, request: Arc::from(request), is_right };
    Route { name, load, ticks: 0.0, requests: 0 }
}

fn chat_request(stream: bool) -> Vec<u8> {
    let messages = r#"[{"role":"user","content":"two words"}]"#;
    openai_request("/v1/chat/completions", &format!(r#""messages":{messages},"stream":{stream}"#))
}

fn responses_request(stream: bool) -> Vec<u8> {
    openai_request("/v1/responses", &format!(r#""input":"two words","stream":{stream}"#))
}

fn openai_request(path: &str, members: &str) -> Vec<u8> {
    http::post(path, "*/*", &format!(r#"{{"model":"module:load",{members}}}"#))
}

fn has(body: &[u8], text: &str) -> bool {
    find(body, text.as_bytes()).is_some()
}

/// Returns JSON as the content of a JSON string.
fn quoted(json: &str) -> String {
    json.replace('\\', r"\\").replace('"', r#"\""#)
}
