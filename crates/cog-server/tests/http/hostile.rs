//! Hostile bodies for every route that the server lists: none brings it down, or keeps it from answering others.

use std::time::Duration;

use cog_testkit::Reply;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::support::{ANSWER, Stage, envelope};

/// The timeout of a hanging test.
const LONG: Duration = Duration::from_secs(120);
/// The size of the large body.
const LARGE: usize = 20 << 20;

/// A route of the server with its parameters filled in.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) template: String,
    pub(crate) path: String,
}

impl Route {
    /// Whether its body is a file, of any content type, and not JSON.
    pub(crate) fn takes_a_file(&self) -> bool {
        self.template == "/v1/media/uploads/{id}"
    }
}

/// Returns the routes in the list that the server gives.
pub(crate) async fn routes(stage: &Stage) -> Vec<Route> {
    let index = envelope(stage.get("/").await).await;
    let templates = index.get("routes").unwrap().elements().map(|route| route.as_str().unwrap().to_owned());
    let mut routes = Vec::new();
    for template in templates.collect::<Vec<_>>() {
        let path = template.replace("{name}", "live").replace("{file}", "run.js").replace("{part}", "prompt");
        let id = if template.contains("uploads") { upload(stage).await } else { "none".to_owned() };
        routes.push(Route { path: path.replace("{id}", &id), template });
    }
    assert!(routes.len() > 15, "{routes:?}");
    routes
}

/// Creates an upload and returns its id.
async fn upload(stage: &Stage) -> String {
    let request = stage.client.post(stage.url("/v1/media/upload-url"));
    let created = request.header("content-type", "application/json").body("{}").send().await.unwrap();
    envelope(created).await.get("upload_id").unwrap().as_str().unwrap().to_owned()
}

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// A body, and the status that a route for JSON returns for it.
struct Hostile {
    name: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
    status: u16,
}

fn bodies() -> Vec<Hostile> {
    let json = "application/json";
    let large = format!(r#"{{"unknown": "{}"}}"#, "x".repeat(LARGE));
    [
        ("wrong type", json, b"[1, 2]".to_vec(), 400),
        ("number", json, b"7".to_vec(), 400),
        ("deep nesting", json, [br#"{"input": "#.as_slice(), "[".repeat(100_000).as_bytes()].concat(), 400),
        ("20 MB", json, large.into_bytes(), 400),
        ("truncated", json, br#"{"input": {"query": "wh"#.to_vec(), 400),
        ("NUL", json, b"{\"input\"\0: {}}".to_vec(), 400),
        ("duplicate keys", json, br#"{"unknown": 1, "unknown": {}}"#.to_vec(), 400),
        ("not UTF-8", json, b"{\"input\": \"\xff\xfe\"}".to_vec(), 400),
        ("empty", json, Vec::new(), 400),
        ("wrong content type", "text/plain", b"{}".to_vec(), 415),
    ]
    .map(|(name, content_type, body, status)| Hostile { name, content_type, body, status })
    .into()
}

/// Sends a request on a connection of its own, and returns the status. The server may answer before it has the whole body.
/// `length` is the announced length of the body.
async fn status(
    stage: &Stage,
    method: &str,
    path: &str,
    content_type: &str,
    body: &[u8],
    length: usize,
) -> u16 {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n\r\n",
        stage.address
    );
    let (mut reading, mut writing) = TcpStream::connect(&stage.address).await.unwrap().into_split();
    let sending = async {
        if writing.write_all(head.as_bytes()).await.is_ok() {
            // It fails where the server has refused the request and closed the connection.
            let _ = writing.write_all(body).await;
        }
        std::future::pending::<()>().await;
    };
    let receiving = async {
        let mut head = [0; 12];
        reading.read_exact(&mut head).await.map(|_| head)
    };
    let received = timeout(LONG, async {
        tokio::select! {
            () = sending => unreachable!("sending never ends"),
            received = receiving => received,
        }
    });
    let head = received.await.unwrap_or_else(|_| panic!("{method} {path} hangs"));
    let head = head.unwrap_or_else(|error| panic!("{method} {path} has no response: {error}"));
    std::str::from_utf8(&head).unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

/// Runs a request while `/health` is asked again and again on another connection. Each answer must be 200.
async fn while_healthy(stage: &Stage, request: impl Future<Output = u16>) -> u16 {
    let asking = async {
        while stage.get("/health").await.status() == 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        status = request => status,
        () = asking => panic!("the server is not healthy"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_answers_hostile_bodies_with_its_status() {
    let stage = Stage::with([Reply::text(ANSWER)], |settings| settings.body_timeout = LONG).await;
    let bodies = bodies();
    let mut checked = 0;
    for route in routes(&stage).await {
        for method in METHODS {
            let plain = status(&stage, method, &route.path, "application/json", b"", 0).await;
            let reads_body = matches!(method, "POST" | "PUT" | "PATCH") && plain != 405;
            for hostile in &bodies {
                // A route without the method has read nothing of the small bodies either.
                if plain == 405 && hostile.body.len() > 1 << 20 {
                    continue;
                }
                let Hostile { name, content_type, body, status: expected } = hostile;
                let request = status(&stage, method, &route.path, content_type, body, body.len());
                let found = while_healthy(&stage, request).await;
                match (reads_body, route.takes_a_file()) {
                    (true, false) => assert_eq!(found, *expected, "{method} {}: {name}", route.path),
                    (true, true) => {
                        assert!([413, 415, 422].contains(&found), "{method} {}: {name}: {found}", route.path);
                    }
                    // It ignores the body.
                    (false, _) => assert_eq!(found, plain, "{method} {}: {name}", route.path),
                }
                checked += usize::from(reads_body);
            }
        }
    }
    assert!(checked >= 6 * bodies.len(), "the routes with bodies are missing: {checked}");
    assert!(stage.mock.requests().is_empty(), "no model was called");
}

#[tokio::test]
async fn every_route_ends_a_body_that_does_not_arrive() {
    let stage =
        Stage::with([Reply::text(ANSWER)], |settings| settings.body_timeout = Duration::from_millis(100))
            .await;
    for route in routes(&stage).await {
        for method in METHODS {
            let plain = status(&stage, method, &route.path, "application/json", b"", 0).await;
            let reads_body = matches!(method, "POST" | "PUT" | "PATCH") && plain != 405;
            let request = status(&stage, method, &route.path, "application/json", br#"{"input""#, 1_000);
            let expected = if reads_body { 408 } else { plain };
            assert_eq!(while_healthy(&stage, request).await, expected, "{method} {}", route.path);
        }
    }
}

#[tokio::test]
async fn every_route_refuses_a_compressed_body() {
    let stage = Stage::answering().await;
    for route in routes(&stage).await {
        for method in METHODS {
            let url = stage.url(&route.path);
            let request =
                stage.client.request(method.parse().unwrap(), url).header("content-encoding", "gzip");
            let status = request.body("x").send().await.unwrap().status();
            assert_eq!(status, 415, "{method} {}", route.path);
        }
    }
}
