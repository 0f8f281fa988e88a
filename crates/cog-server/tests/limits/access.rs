//! Access: tokens, hosts, origins.

use cog_server::{Server, ServerSettings, Tokens};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{self, Message, client::IntoClientRequest as _},
};

use crate::support::{LONG, Site, answer, code, question};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

const TOKEN: &str = "abcdefghij0123456789/+==";

fn guarded() -> ServerSettings {
    let mut settings = ServerSettings::default();
    settings.access.tokens = Some(Tokens::parse(&format!("ci:{TOKEN}")).unwrap());
    settings.access.origins = vec!["https://app.example".to_owned()];
    settings
}

#[tokio::test]
async fn valid_token_is_accepted() {
    let site = Site::start(guarded(), [answer()]).await;
    let response = site.get("/v1/modules").await;
    assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"cog\"");
    assert_eq!(code(response).await, (401, "E4007".to_owned()));
    let request = site.http.get(site.url("/v1/modules"));
    assert_eq!(request.bearer_auth(TOKEN).send().await.unwrap().status(), 200);
    let in_query = site.get(&format!("/v1/modules?token={TOKEN}")).await;
    assert_eq!(in_query.status(), 401);
    assert_eq!(site.get("/health").await.status(), 200);
    assert_eq!(site.get("/metrics").await.status(), 401);
}

/// Opens a WebSocket with these headers.
async fn open(site: &Site, headers: &[(&'static str, &str)]) -> Result<String, u16> {
    let mut request = format!("ws://{}/v1/modules/m/ws", site.address).into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match connect_async(request).await {
        Ok((mut socket, response)) => {
            socket.send(Message::text(question().to_string())).await.unwrap();
            let first = socket.next().await.unwrap().unwrap().into_text().unwrap();
            assert!(first.contains("session_id"), "{first}");
            let chosen = response.headers().get("sec-websocket-protocol");
            Ok(chosen.map(|chosen| chosen.to_str().unwrap().to_owned()).unwrap_or_default())
        }
        Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn browser_websocket_token_is_accepted() {
    let site = Site::start(guarded(), [answer()]).await;
    let protocols = "cog, cog.token.abcdefghij0123456789%2F%2B%3D%3D";
    assert_eq!(open(&site, &[("sec-websocket-protocol", protocols)]).await, Ok("cog".to_owned()));
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(open(&site, &[("authorization", &bearer)]).await, Ok(String::new()));
    assert_eq!(open(&site, &[]).await, Err(401));
    assert_eq!(open(&site, &[("sec-websocket-protocol", "cog, cog.token.wrong")]).await, Err(401));
}

/// Sends a body, and returns the error code of its last frame, and the code with which the server then closes.
async fn refused(socket: &mut Socket) -> (String, Option<u16>) {
    socket.send(Message::text(question().to_string())).await.unwrap();
    let (mut error, mut closed) = (String::new(), None);
    while let Some(Ok(message)) = timeout(LONG, socket.next()).await.expect("the connection stays open") {
        match message {
            Message::Text(text) => {
                let frame: serde_json::Value = serde_json::from_str(&text).unwrap();
                frame["error"]["code"].as_str().unwrap_or("none").clone_into(&mut error);
            }
            Message::Close(frame) => closed = frame.map(|frame| u16::from(frame.code)),
            _ => {}
        }
    }
    (error, closed)
}

/// Reads frames until the run has ended.
async fn until_final(socket: &mut Socket) {
    while !socket.next().await.unwrap().unwrap().into_text().unwrap().contains("\"final\"") {}
}

#[tokio::test]
async fn revoked_token_starts_no_further_run_on_its_websocket() {
    let settings = guarded();
    let tokens = settings.access.tokens.clone().unwrap();
    let site = Site::start(settings, [answer()]).await;
    let mut sockets = Vec::new();
    for header in [
        ("authorization", format!("Bearer {TOKEN}")),
        ("sec-websocket-protocol", "cog, cog.token.abcdefghij0123456789%2F%2B%3D%3D".to_owned()),
    ] {
        let mut request = format!("ws://{}/v1/modules/m/ws", site.address).into_client_request().unwrap();
        request.headers_mut().insert(header.0, header.1.parse().unwrap());
        let (mut socket, _) = connect_async(request).await.unwrap();
        socket.send(Message::text(question().to_string())).await.unwrap();
        until_final(&mut socket).await;
        sockets.push(socket);
    }
    assert_eq!(site.mock.requests().len(), 2);
    // The name stays, its token changes: the old one is revoked all the same.
    tokens.replace(&Tokens::parse("ci:another-token-0123456789").unwrap());
    for socket in &mut sockets {
        assert_eq!(refused(socket).await, ("E4007".to_owned(), Some(1008)));
    }
    assert_eq!(site.mock.requests().len(), 2, "no model was called");
}

#[tokio::test]
async fn running_run_of_a_revoked_token_continues() {
    let settings = guarded();
    let tokens = settings.access.tokens.clone().unwrap();
    let site = Site::start(settings, [answer().pause(std::time::Duration::from_millis(1))]).await;
    let mut request = format!("ws://{}/v1/modules/m/ws", site.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
    let (mut socket, _) = connect_async(request).await.unwrap();
    socket.send(Message::text(question().to_string())).await.unwrap();
    socket.next().await.unwrap().unwrap();
    tokens.replace(&Tokens::parse("other:another-token-0123456789").unwrap());
    until_final(&mut socket).await;
    assert_eq!(refused(&mut socket).await.1, Some(1008));
}

#[tokio::test]
async fn cross_site_websocket_is_refused() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    assert_eq!(open(&site, &[("origin", "https://evil.example")]).await, Err(403));
    let own = format!("http://{}", site.address);
    assert_eq!(open(&site, &[("origin", &own)]).await, Ok(String::new()));
    assert_eq!(open(&site, &[("host", "evil.example")]).await, Err(403));
}

#[tokio::test]
async fn preflight_needs_no_token() {
    let site = Site::start(guarded(), [answer()]).await;
    let preflight = |origin: &'static str| {
        let request = site.http.request(reqwest::Method::OPTIONS, site.url("/v1/modules/m/execute"));
        let request = request.header("access-control-request-method", "POST").header("origin", origin);
        request.header("access-control-request-headers", "authorization,content-type").send()
    };
    let allowed = preflight("https://app.example").await.unwrap();
    assert_eq!(allowed.status(), 204);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://app.example");
    let refused = preflight("https://evil.example").await.unwrap();
    assert_eq!(refused.status(), 403);
    assert!(!refused.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn public_address_without_token_does_not_start() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let runtime = cog_run::Runtime::offline();
    let sessions = cog_run::sessions::Sessions::open(Default::default()).unwrap();
    let server = Server::new(ServerSettings::default(), runtime, sessions);
    let error = server.serve(listener, std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("authentication is not configured"), "{error}");
    assert!(error.suggestion().contains("--token-file"));
}
