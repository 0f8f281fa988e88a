//! What an operation answers where it does not succeed: an envelope under every status, with the codes that it can hold.

use std::collections::BTreeMap;

use cog_spec::Code;
use utoipa::{
    IntoResponses,
    openapi::{ArrayBuilder, ContentBuilder, Header, HeaderBuilder, Ref, RefOr, Response, ResponseBuilder},
};

/// What every operation may answer: that this client may not ask, or not now.
pub(crate) struct Refused;

/// What an operation may answer that runs a module: that, and every way in which a run can fail.
pub(crate) struct RunFailed;

/// A run's answer: one envelope, or its chunks.
pub(crate) struct Executed;

/// A session's chunks.
pub(crate) struct Chunks;

type Responses = BTreeMap<String, RefOr<Response>>;

/// Why a guard refuses.
const GUARDS: [(u16, &str); 7] = [
    (400, "The request is malformed: a part of it cannot be read, or the Host is missing"),
    (401, "The token is missing, or wrong"),
    (403, "The Host or the Origin is not served"),
    (408, "The body did not arrive in time"),
    (429, "Too many requests, or too many streams"),
    (500, "A fault of the server"),
    (503, "The server is shutting down"),
];

/// The status under which a thing that is not there is told.
const NOT_FOUND: (u16, &str) = (404, "There is no such thing");

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
        let told = |(status, whys): (u16, Vec<String>)| {
            (status.to_string(), envelope(status, whys.join("; ")).into())
        };
        statuses.into_iter().map(told).collect()
    }
}

impl IntoResponses for Executed {
    fn responses() -> Responses {
        let envelope = ContentBuilder::new().schema(Some(Ref::from_schema_name("Envelope"))).build();
        let response = chunks("The envelope, or a stream of chunks").content("application/json", envelope);
        let warning = header("A fallback: one envelope instead of a stream, or a stream begun afresh");
        BTreeMap::from([("200".to_owned(), response.header("X-Cognitive-Warning", warning).build().into())])
    }
}

impl IntoResponses for Chunks {
    fn responses() -> Responses {
        BTreeMap::from([(
            "200".to_owned(),
            chunks(
                "A stream: an Event each chunk, or a Chunk each line, where an empty line is a sign of life",
            )
            .build()
            .into(),
        )])
    }
}

/// A stream, each event of one schema, or all lines together of another.
fn chunks(description: &str) -> ResponseBuilder {
    let events = ContentBuilder::new().schema(Some(Ref::from_schema_name("Event"))).build();
    let lines = ArrayBuilder::new().items(Ref::from_schema_name("Chunk"));
    ResponseBuilder::new()
        .description(description)
        .header("X-Session-Id", header("The session of the stream"))
        .content("text/event-stream", events)
        .content("application/x-ndjson", ContentBuilder::new().schema(Some(lines)).build())
}

/// A response that holds an envelope.
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
