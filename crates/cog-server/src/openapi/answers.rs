//! The failure responses of an operation: an envelope for every status, with its codes.

use std::collections::BTreeMap;

use cog_spec::Code;
use utoipa::{
    IntoResponses,
    openapi::{ArrayBuilder, ContentBuilder, Header, HeaderBuilder, Ref, RefOr, Response, ResponseBuilder},
};

/// The failures of every operation: access checks and limits.
pub(crate) struct Refused;

/// The failures of an operation that runs a module: those, and every code of a run.
pub(crate) struct RunFailed;

/// The response of a run: one envelope, or its chunks.
pub(crate) struct Executed;

/// The chunks of a session.
pub(crate) struct Chunks;

type Responses = BTreeMap<String, RefOr<Response>>;

/// The statuses of access checks and limits.
const GUARDS: [(u16, &str); 7] = [
    (400, "The request is malformed, or the Host header is missing"),
    (401, "The token is missing or wrong"),
    (403, "The Host or the Origin is not allowed"),
    (408, "The body did not arrive in time"),
    (429, "Too many requests, or too many streams"),
    (500, "Internal server error"),
    (503, "The server is shutting down"),
];

/// The status of an unknown name or id.
const NOT_FOUND: (u16, &str) = (404, "Not found");

impl IntoResponses for Refused {
    fn responses() -> Responses {
        let all = GUARDS.into_iter().chain([NOT_FOUND]);
        all.map(|(status, why)| (status.to_string(), envelope(status, why.to_owned()).into())).collect()
    }
}

impl IntoResponses for RunFailed {
    fn responses() -> Responses {
        let mut statuses: BTreeMap<u16, Vec<String>> =
            GUARDS.into_iter().map(|(status, why)| (status, vec![why.to_owned()])).collect();
        for code in Code::ALL {
            statuses.entry(code.http_status()).or_default().push(format!(
                "{} {}",
                code.as_str(),
                code.name()
            ));
        }
        let response = |(status, reasons): (u16, Vec<String>)| {
            (status.to_string(), envelope(status, reasons.join("; ")).into())
        };
        statuses.into_iter().map(response).collect()
    }
}

impl IntoResponses for Executed {
    fn responses() -> Responses {
        let envelope = ContentBuilder::new().schema(Some(Ref::from_schema_name("Envelope"))).build();
        let response = chunks("The envelope, or a stream of chunks").content("application/json", envelope);
        let warning =
            header("A fallback: one envelope instead of a stream, or a new run instead of a resumed one");
        BTreeMap::from([("200".to_owned(), response.header("X-Cognitive-Warning", warning).build().into())])
    }
}

impl IntoResponses for Chunks {
    fn responses() -> Responses {
        BTreeMap::from([(
            "200".to_owned(),
            chunks("A stream: one Event per chunk, or one Chunk per line. Empty lines are keep-alives")
                .build()
                .into(),
        )])
    }
}

/// A stream as server-sent events or NDJSON.
fn chunks(description: &str) -> ResponseBuilder {
    let events = ContentBuilder::new().schema(Some(Ref::from_schema_name("Event"))).build();
    let lines = ArrayBuilder::new().items(Ref::from_schema_name("Chunk"));
    ResponseBuilder::new()
        .description(description)
        .header("X-Session-Id", header("The session of the stream"))
        .content("text/event-stream", events)
        .content("application/x-ndjson", ContentBuilder::new().schema(Some(lines)).build())
}

/// A response with an envelope.
fn envelope(status: u16, description: String) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Envelope"))).build();
    let response = ResponseBuilder::new().description(description).content("application/json", content);
    match status {
        429 | 503 => response.header("Retry-After", header("Seconds to wait")),
        401 => response.header("WWW-Authenticate", header("`Bearer`")),
        _ => response,
    }
    .build()
}

fn header(description: &str) -> Header {
    HeaderBuilder::new().description(Some(description)).build()
}
