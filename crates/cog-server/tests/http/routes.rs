use cog_spec::Transport;

use crate::support::{BODY, Stage, envelope, failure};

#[tokio::test]
async fn index_and_capabilities_describe_the_server() {
    let stage = Stage::answering().await;
    for path in ["/health", "/ready", "/v1/capabilities", "/v1/modules", "/modules", "/"] {
        let response = stage.get(path).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["cache-control"]),
            (200, &"no-store".parse().unwrap()),
            "{path}"
        );
        envelope(response).await;
    }
    let page = stage.client.get(stage.url("/")).header("accept", "text/html,*/*;q=0.8").send().await.unwrap();
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    assert!(page.text().await.unwrap().starts_with("<!doctype html>"));
}

#[tokio::test]
async fn card_has_every_module_at_this_server() {
    let stage = Stage::answering().await;
    let response = stage.get("/.well-known/agent-card.json").await;
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-type"].as_bytes()),
        (200, &b"application/json"[..])
    );
    let card = envelope(response).await;
    let url = card.pointer("/supportedInterfaces/0/url").unwrap().as_str().unwrap();
    assert_eq!(url, stage.url("/v1/modules"));
    let skills = card.get("skills").unwrap();
    let ids: Vec<&str> = skills.elements().map(|it| it.get("id").unwrap().as_str().unwrap()).collect();
    assert!(ids.contains(&"live") && ids.contains(&"code-reviewer") && ids.is_sorted(), "{ids:?}");
    assert!(card.pointer("/capabilities/extensions/0/params/skills/live/data").is_some());
    assert!(card.get("securitySchemes").is_none());
}

#[tokio::test]
async fn capabilities_match_the_routes() {
    let stage = Stage::answering().await;
    let declared = envelope(stage.get("/v1/capabilities").await).await;
    let transports = declared.pointer("/capabilities/supported_transports").unwrap();
    let names: Vec<_> = transports.elements().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names, [Transport::Sse, Transport::WebSocket, Transport::Ndjson].map(|it| it.as_str()));
    assert_eq!(declared.pointer("/capabilities/streaming").unwrap().as_bool(), Some(true));
}

#[tokio::test]
async fn modules_are_shown_with_their_contract_and_without_their_path() {
    let stage = Stage::answering().await;
    let listed = envelope(stage.get("/v1/modules").await).await;
    let names: Vec<_> = listed
        .get("modules")
        .unwrap()
        .elements()
        .map(|it| it.get("name").unwrap().as_str().unwrap().to_owned())
        .collect();
    assert!(names.iter().any(|name| name == "live") && names.iter().any(|name| name == "code-reviewer"));
    for path in ["/v1/modules/live", "/modules/live"] {
        let text = stage.get(path).await.text().await.unwrap();
        assert!(text.contains(r#""response_mode":"streaming""#) && text.contains(r#""query""#), "{text}");
        assert!(!text.contains("cognitive/modules"), "{text}");
    }
}

#[tokio::test]
async fn run_returns_one_envelope() {
    let stage = Stage::answering().await;
    let response = stage.execute("once", BODY).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    let envelope = envelope(response).await;
    assert_eq!(envelope.pointer("/data/rationale").unwrap().as_str(), Some("because"));
    assert_eq!(stage.mock.requests().len(), 1);
}

#[tokio::test]
async fn routes_of_older_clients_work() {
    let stage = Stage::answering().await;
    for body in [
        r#"{"module": "live", "args": "why?"}"#,
        r#"{"module": "live", "input": {"query": "why?"}, "provider": null}"#,
    ] {
        let request = stage.client.post(stage.url("/run")).header("content-type", "application/json");
        let response = request.body(body).send().await.unwrap();
        assert_eq!(response.status(), 200, "{body}");
        assert_eq!(envelope(response).await.get("ok").unwrap().as_bool(), Some(true));
    }
    let request = |body: &'static str| {
        failure(stage.client.post(stage.url("/run")).header("content-type", "application/json").body(body))
    };
    assert_eq!(request("{}").await, (400, "E1002".to_owned()));
    assert_eq!(request(r#"{"module": "live"}"#).await, (400, "E1002".to_owned()));
    assert_eq!(request(r#"{"module": "live", "args": "a", "input": {}}"#).await, (400, "E1001".to_owned()));
    assert_eq!(request(r#"{"module": "../live", "args": "a"}"#).await, (403, "E4007".to_owned()));
}

#[tokio::test]
async fn unknown_route_or_method_returns_an_envelope() {
    let stage = Stage::answering().await;
    assert_eq!(failure(stage.client.get(stage.url("/v2"))).await, (404, "E1006".to_owned()));
    let response = stage.client.delete(stage.url("/v1/modules")).send().await.unwrap();
    assert_eq!(response.status(), 405);
    assert!(response.headers()["allow"].to_str().unwrap().contains("GET"));
    assert_eq!(envelope(response).await.get("ok").unwrap().as_bool(), Some(false));
}

#[tokio::test]
async fn modules_are_found_by_name_only() {
    let stage = Stage::answering().await;
    for (name, status) in [
        ("unknown", 404),
        ("..%2Flive", 403),
        ("%2Fetc%2Fpasswd", 404),
        ("LIVE", 404),
        ("live%00", 403),
        ("%ff", 400),
    ] {
        let (found, _) = failure(stage.execute(name, BODY)).await;
        assert_eq!(found, status, "{name}");
        let (found, _) = failure(stage.client.get(stage.url(&format!("/v1/modules/{name}")))).await;
        assert_eq!(found, status, "{name}");
    }
}

#[tokio::test]
async fn errors_before_the_model_call_have_their_status() {
    let stage = Stage::answering().await;
    let sse = |body: &str| stage.execute("live", body).header("accept", "text/event-stream");
    assert_eq!(failure(sse(r#"{"input": {}}"#)).await, (400, "E1002".to_owned()));
    assert_eq!(failure(sse(r#"{"input": {"query": 7}}"#)).await, (400, "E1003".to_owned()));
    let options = r#"{"input": {"query": "?"}, "_options": {"provider": "nobody"}}"#;
    assert_eq!(failure(sse(options)).await, (400, "E1004".to_owned()));
    assert!(stage.mock.requests().is_empty());
}
