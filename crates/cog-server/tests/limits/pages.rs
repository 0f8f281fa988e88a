//! The pages of the server and its OpenAPI document.

use cog_server::{ServerSettings, Tokens};
use reqwest::Method;
use serde_json::Value;

use crate::support::{Site, answer};

/// The routes of docs/spec/http.md.
const ROUTES: [&str; 17] = [
    "GET /",
    "GET /docs",
    "GET /openapi.json",
    "GET /health",
    "GET /ready",
    "GET /metrics",
    "GET /v1/capabilities",
    "GET /v1/modules",
    "GET /v1/modules/{name}",
    "POST /v1/modules/{name}/execute",
    "GET /v1/modules/{name}/ws",
    "GET /v1/sessions/{id}",
    "GET /v1/sessions/{id}/events",
    "DELETE /v1/sessions/{id}",
    "POST /v1/sessions/{id}/feedback",
    "POST /run",
    "GET /modules/{name}",
];

async fn document(site: &Site) -> Value {
    json(site, "/openapi.json").await
}

async fn json(site: &Site, path: &str) -> Value {
    serde_json::from_str(&site.get(path).await.text().await.unwrap()).unwrap()
}

#[tokio::test]
async fn document_and_router_agree() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    let document = document(&site).await;
    for route in ROUTES {
        let (method, path) = route.split_once(' ').unwrap();
        assert!(document["paths"][path][method.to_lowercase()].is_object(), "{route}");
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let is_named = methods.get(method.as_str().to_lowercase()).is_some();
            let request = site.http.request(method.clone(), site.url(&path.replace(['{', '}'], "")));
            let response = request.send().await.unwrap();
            assert_eq!(response.status() != 405, is_named, "{method} {path}");
            assert!(!response.text().await.unwrap().contains("route not found"), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_response_status_is_documented() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    let document = document(&site).await;
    for (path, method, status) in [
        ("/v1/modules/nothing", "get", "404"),
        ("/v1/modules/m/ws", "get", "426"),
        ("/v1/sessions/sess_x", "get", "410"),
        ("/v1/sessions/sess_x/events", "get", "410"),
        ("/v1/modules/m/execute", "post", "415"),
        ("/assets/{file}", "get", "404"),
    ] {
        let request = site.http.request(method.to_uppercase().parse().unwrap(), site.url(path));
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_str(), status, "{path}");
        let named = path.replace("/nothing", "/{name}").replace("/m/", "/{name}/").replace("sess_x", "{id}");
        assert!(document["paths"][named][method]["responses"][status].is_object(), "{path} {status}");
    }
}

#[tokio::test]
async fn pages_need_no_token_and_load_no_other_host() {
    let mut settings = ServerSettings::default();
    settings.access.tokens = Some(Tokens::parse("ci:0123456789abcdef0123").unwrap());
    let site = Site::start(settings, [answer()]).await;
    for path in ["/", "/docs"] {
        let page = site.http.get(site.url(path)).header("accept", "text/html").send().await.unwrap();
        assert_eq!(page.status(), 200, "{path}");
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        let text = page.text().await.unwrap();
        assert!(
            !text.contains("http://") && !text.contains("https://") && !text.contains("style="),
            "{text}"
        );
        for asset in text.split('"').filter(|part| part.starts_with("/assets/")) {
            assert_eq!(site.get(asset).await.status(), 200, "{asset}");
        }
    }
    assert_eq!(site.get("/openapi.json").await.status(), 200);
    assert_eq!(site.get("/v1/modules").await.status(), 401);
}

/// Returns the workbench as a browser receives it.
async fn workbench(site: &Site, path: &str) -> String {
    let request = site.http.get(site.url(path)).header("accept", "text/html");
    request.send().await.unwrap().text().await.unwrap()
}

const HOSTILE: &str = "</noscript><script>window.hacked=1</script>\u{202e}";

#[tokio::test]
async fn modules_can_be_read_without_scripts() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    let text = serde_json::json!(HOSTILE);
    let manifest =
        format!("name: evil\nversion: 1.0.0\nresponsibility: {text}\ntier: decision\nexcludes: [{text}]\n");
    let schema = serde_json::json!({ "input": { "description": HOSTILE }, "data": { "type": "object" } });
    site.write("evil/module.yaml", &manifest);
    site.write("evil/prompt.md", "Answer.");
    site.write("evil/schema.json", &schema.to_string());
    let list = workbench(&site, "/").await;
    assert!(list.contains("<a href=\"/?module=m\">m</a>"), "{list}");
    let module = workbench(&site, "/?module=evil").await;
    for page in [&list, &module] {
        assert!(
            page.contains("&lt;/noscript&gt;&lt;script&gt;window.hacked=1&lt;/script&gt;\u{fffd}"),
            "{page}"
        );
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert_eq!(page.matches("</noscript>").count(), 1, "{page}");
    }
    assert!(module.contains("<h3>Input</h3>\n<pre>{"), "{module}");
    let unknown = workbench(&site, "/?module=%3Cb%3E").await;
    assert!(unknown.contains("E4006") && !unknown.contains("<b>"), "{unknown}");
}

#[tokio::test]
async fn modules_are_not_read_without_the_token() {
    let mut settings = ServerSettings::default();
    settings.access.tokens = Some(Tokens::parse("ci:0123456789abcdef0123").unwrap());
    let site = Site::start(settings, [answer()]).await;
    for path in ["/", "/?module=m"] {
        let page = workbench(&site, path).await;
        assert!(
            page.contains("requires a token") && !page.contains("guessing") && !page.contains("?module=m"),
            "{page}"
        );
    }
}

#[tokio::test]
async fn scripts_are_small_and_load_only_each_other() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    let mut files = vec!["page.css".to_owned(), "main.js".to_owned(), "docs.js".to_owned()];
    let mut bytes = 0;
    let mut place = 0;
    while let Some(file) = files.get(place).cloned() {
        let response = site.get(&format!("/assets/{file}")).await;
        assert_eq!(response.status(), 200, "{file}");
        let text = response.text().await.unwrap();
        for unsafe_call in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
        {
            assert!(!text.contains(unsafe_call), "{file}: {unsafe_call}");
        }
        let imports = text.lines().filter(|line| line.starts_with("import "));
        for found in imports.filter_map(|line| line.split('"').nth(1)) {
            let name =
                found.strip_prefix("./").unwrap_or_else(|| panic!("{file} imports {found}")).to_owned();
            if !files.contains(&name) {
                files.push(name);
            }
        }
        bytes += text.len();
        place += 1;
    }
    assert!(files.len() > 15, "{files:?}");
    // 250 KB compressed are allowed; they have less without compression.
    assert!(bytes < 250_000, "{bytes}");
}

#[tokio::test]
async fn programs_get_the_list_of_routes() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    let information: Value = json(&site, "/").await;
    assert_eq!(information["openapi"], "/openapi.json");
    assert!(information["routes"].as_array().unwrap().contains(&"/v1/modules".into()));
}
