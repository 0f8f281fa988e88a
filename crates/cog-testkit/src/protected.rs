//! An MCP server that requires a token, and the authorization server that issues it.

use std::{
    collections::{HashMap, HashSet},
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64_simd::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

type Fields = HashMap<String, String>;

/// What the servers do that they should not.
#[derive(Debug, Clone, Default)]
pub struct OAuthProblems {
    /// The metadata of the authorization server has another issuer than its address.
    pub wrong_issuer: bool,
    /// The answer to the browser names another issuer.
    pub wrong_answer_issuer: bool,
    /// There is no metadata.
    pub no_metadata: bool,
    /// Each refresh token is rejected, as one that has expired.
    pub rejects_refresh: bool,
    /// The MCP server rejects each token.
    pub rejects_tokens: bool,
    /// A person refuses.
    pub denies: bool,
    /// Clients cannot register themselves.
    pub no_registration: bool,
    /// Tokens cannot be revoked.
    pub no_revocation: bool,
    /// The metadata names another server for revoking tokens.
    pub revocation_elsewhere: bool,
    /// A request to revoke a token fails.
    pub revocation_fails: bool,
    /// The calls after which the MCP server rejects the token once: it was revoked.
    pub revokes_after: Option<usize>,
    /// The lifetime of a token, in seconds; one hour by default.
    pub lifetime: Option<u64>,
}

/// An MCP server with the tool `whoami`, at a port of its own, and its authorization server.
///
/// Each runs in a thread. Dropping them stops both. A refresh token is valid once, as OAuth 2.1 requires for public clients.
pub struct ProtectedServer {
    shared: Arc<Mutex<Shared>>,
    _resource: Running,
    _issuer: Running,
}

/// A server in a thread, which ends when it is dropped.
struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    problems: OAuthProblems,
    resource: String,
    issuer: String,
    /// The challenge and the resource of each code.
    codes: HashMap<String, [String; 2]>,
    tokens: HashSet<String>,
    refresh_tokens: HashSet<String>,
    token_requests: Vec<Fields>,
    revocations: Vec<Fields>,
    presented: Vec<String>,
    calls: usize,
    count: usize,
}

impl Shared {
    fn next(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-canary-{}", self.count)
    }
}

type Site = State<Arc<Mutex<Shared>>>;

fn lock(shared: &Arc<Mutex<Shared>>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProtectedServer {
    /// Starts both servers.
    ///
    /// # Errors
    /// Fails if no port is available.
    pub fn start(problems: OAuthProblems) -> std::io::Result<Self> {
        let shared = Arc::new(Mutex::new(Shared { problems, ..Shared::default() }));
        let authorization = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke));
        let resource = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource_metadata))
            .route("/mcp", post(mcp));
        let issuer = Running::start(authorization.with_state(Arc::clone(&shared)))?;
        let resource = Running::start(resource.with_state(Arc::clone(&shared)))?;
        lock(&shared).issuer = format!("http://{}", issuer.address);
        lock(&shared).resource = format!("http://{}/mcp", resource.address);
        Ok(Self { shared, _resource: resource, _issuer: issuer })
    }

    /// Returns the URL of the MCP server.
    pub fn url(&self) -> String {
        lock(&self.shared).resource.clone()
    }

    /// Changes what the servers do.
    pub fn set_problems(&self, problems: OAuthProblems) {
        lock(&self.shared).problems = problems;
    }

    /// Makes all tokens invalid, as if they had expired early. Refresh tokens stay valid.
    pub fn expire_tokens(&self) {
        lock(&self.shared).tokens.clear();
    }

    /// Returns the fields of each request for a token.
    pub fn token_requests(&self) -> Vec<HashMap<String, String>> {
        lock(&self.shared).token_requests.clone()
    }
}

impl ProtectedServer {
    /// Returns the fields of each request to revoke a token.
    pub fn revocations(&self) -> Vec<HashMap<String, String>> {
        lock(&self.shared).revocations.clone()
    }

    /// Returns the token of each request to the MCP server; empty for a request without one.
    pub fn presented_tokens(&self) -> Vec<String> {
        lock(&self.shared).presented.clone()
    }
}

impl Running {
    fn start(router: Router) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = axum::serve(listener, router) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

// The authorization server.

async fn metadata(State(shared): Site) -> Response {
    let shared = lock(&shared);
    if shared.problems.no_metadata {
        return StatusCode::NOT_FOUND.into_response();
    }
    let issuer = &shared.issuer;
    let named = if shared.problems.wrong_issuer { "https://evil.example" } else { issuer };
    let mut metadata = json!({
        "issuer": named,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    if !shared.problems.no_registration {
        metadata["registration_endpoint"] = json!(format!("{issuer}/register"));
    }
    if !shared.problems.no_revocation {
        let server = if shared.problems.revocation_elsewhere { "https://evil.example" } else { issuer };
        metadata["revocation_endpoint"] = json!(format!("{server}/revoke"));
    }
    Json(metadata).into_response()
}

async fn register(Json(client): Json<Value>) -> Response {
    let registered = json!({ "client_id": "registered", "redirect_uris": client["redirect_uris"] });
    (StatusCode::CREATED, Json(registered)).into_response()
}

async fn authorize(State(shared): Site, Query(query): Query<Fields>) -> Response {
    let field = |name: &str| query.get(name).cloned().unwrap_or_default();
    let mut shared = lock(&shared);
    let is_complete = field("response_type") == "code"
        && field("code_challenge_method") == "S256"
        && field("redirect_uri").starts_with("http://127.0.0.1:")
        && field("resource") == shared.resource
        && !field("state").is_empty();
    if !is_complete {
        return (StatusCode::BAD_REQUEST, format!("{query:?}")).into_response();
    }
    let answer = if shared.problems.denies {
        "error=access_denied&error_description=not+now".to_owned()
    } else {
        let code = shared.next("code");
        let granted = [field("code_challenge"), field("resource")];
        shared.codes.insert(code.clone(), granted);
        format!("code={code}")
    };
    let issuer = if shared.problems.wrong_answer_issuer { "https://evil.example" } else { &shared.issuer };
    let address = format!("{}?{answer}&state={}&iss={issuer}", field("redirect_uri"), field("state"));
    (StatusCode::FOUND, [(header::LOCATION, address)]).into_response()
}

async fn token(State(shared): Site, headers: HeaderMap, body: Bytes) -> Response {
    let fields = form(&body);
    let field = |name: &str| fields.get(name).map_or("", String::as_str);
    let mut shared = lock(&shared);
    shared.token_requests.push(fields.clone());
    let is_valid = field("resource") == shared.resource
        && match field("grant_type") {
            "authorization_code" => {
                let hash = URL_SAFE_NO_PAD.encode_to_string(Sha256::digest(field("code_verifier")));
                let granted = shared.codes.remove(field("code"));
                granted
                    .is_some_and(|[challenge, resource]| challenge == hash && resource == field("resource"))
            }
            "refresh_token" => {
                !shared.problems.rejects_refresh && shared.refresh_tokens.remove(field("refresh_token"))
            }
            "client_credentials" => is_client(&headers, &fields),
            _ => false,
        };
    if !is_valid {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response();
    }
    let access_token = shared.next("access");
    shared.tokens.insert(access_token.clone());
    let lifetime = shared.problems.lifetime.unwrap_or(3600);
    let mut reply = json!({ "access_token": access_token, "token_type": "Bearer", "expires_in": lifetime });
    if field("grant_type") != "client_credentials" {
        let refresh_token = shared.next("refresh");
        reply["refresh_token"] = json!(refresh_token);
        shared.refresh_tokens.insert(refresh_token);
    }
    Json(reply).into_response()
}

/// RFC 7009: an unknown token is no error.
async fn revoke(State(shared): Site, body: Bytes) -> Response {
    let fields = form(&body);
    let mut shared = lock(&shared);
    shared.revocations.push(fields.clone());
    if shared.problems.revocation_fails {
        return (StatusCode::SERVICE_UNAVAILABLE, "later").into_response();
    }
    let token = fields.get("token").map_or("", String::as_str);
    shared.tokens.remove(token);
    shared.refresh_tokens.remove(token);
    StatusCode::OK.into_response()
}

/// Returns whether the client `robot` with the secret `s3cret` asks, in the header or in the body.
fn is_client(headers: &HeaderMap, fields: &Fields) -> bool {
    let basic = format!("Basic {}", STANDARD.encode_to_string("robot:s3cret"));
    let in_header = headers.get(header::AUTHORIZATION).is_some_and(|value| *value == basic);
    let field = |name: &str| fields.get(name).map(String::as_str);
    in_header || (field("client_id") == Some("robot") && field("client_secret") == Some("s3cret"))
}

/// Returns the fields of a form.
fn form(body: &[u8]) -> Fields {
    let text = String::from_utf8_lossy(body);
    let uri = format!("http://form/?{text}").parse().unwrap_or_default();
    Query::<Fields>::try_from_uri(&uri).map(|Query(fields)| fields).unwrap_or_default()
}

// The MCP server.

async fn resource_metadata(State(shared): Site) -> Response {
    let shared = lock(&shared);
    if shared.problems.no_metadata {
        return StatusCode::NOT_FOUND.into_response();
    }
    let resource = &shared.resource;
    Json(json!({ "resource": resource, "authorization_servers": [shared.issuer] })).into_response()
}

async fn mcp(State(shared): Site, headers: HeaderMap, Json(message): Json<Value>) -> Response {
    let mut shared = lock(&shared);
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let token = given.strip_prefix("Bearer ").unwrap_or_default().to_owned();
    shared.presented.push(token.clone());
    let is_call = message["method"] == "tools/call";
    if is_call && shared.problems.revokes_after == Some(shared.calls) {
        shared.problems.revokes_after = None;
        shared.tokens.clear();
    }
    if !shared.tokens.contains(&token) || shared.problems.rejects_tokens {
        let address = shared.resource.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer error=\"invalid_token\", resource_metadata=\"{address}\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    shared.calls += usize::from(is_call);
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "protected", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [
            { "name": "whoami", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } },
        ] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": token }] }),
        "ping" => json!({}),
        _ if message.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({ "code": -32601, "message": "unknown method" });
            return Json(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })).into_response();
        }
    };
    Json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).into_response()
}
