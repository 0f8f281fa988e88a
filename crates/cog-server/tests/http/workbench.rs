//! The routes of the workbench that need no log and no tests: files, checks, rendering.

use cog_json::Value;
use reqwest::Method;

use crate::support::{BODY, Stage, envelope, failure};

async fn call(stage: &Stage, method: Method, path: &str, body: &str) -> (u16, Value) {
    let request = stage.client.request(method, stage.url(path)).header("content-type", "application/json");
    let response = request.body(body.to_owned()).send().await.unwrap();
    (response.status().as_u16(), envelope(response).await)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(|found| found.as_str()).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

const LIVE: &str = "/v1/workbench/modules/live";

#[tokio::test]
async fn saved_file_is_used_by_the_next_run() {
    let stage = Stage::answering().await;
    let shown = envelope(stage.get(LIVE).await).await;
    assert_eq!(text(&shown, "/files/prompt/path"), "prompt.md");
    assert_eq!(text(&shown, "/files/prompt/text"), "Answer.");
    assert_eq!(shown.get("editable").unwrap().as_bool(), Some(true));
    let hash = text(&shown, "/files/prompt/hash");
    let body = |text: &str, hash: &str| format!(r#"{{"text": "{text}", "hash": "{hash}"}}"#);
    assert!(stage.execute("live", BODY).send().await.unwrap().text().await.unwrap().contains("because"));

    let prompt = format!("{LIVE}/files/prompt");
    let (status, saved) = call(&stage, Method::PUT, &prompt, &body("Answer in one line.", hash)).await;
    assert_eq!(status, 200, "{saved}");
    stage.execute("live", BODY).send().await.unwrap().text().await.unwrap();
    let requests = stage.mock.requests();
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains("Answer in one line."), "{last}");

    // Another tab has saved meanwhile.
    let (status, refused) = call(&stage, Method::PUT, &prompt, &body("Mine.", hash)).await;
    assert_eq!((status, text(&refused, "/error/code")), (409, "E1006"));
    assert_eq!(text(&refused, "/error/details/hash"), text(&saved, "/hash"));
    let shown = envelope(stage.get(LIVE).await).await;
    assert_eq!(text(&shown, "/files/prompt/text"), "Answer in one line.");
}

#[tokio::test]
async fn broken_module_is_shown_so_that_it_can_be_corrected() {
    let stage = Stage::answering().await;
    let shown = envelope(stage.get(LIVE).await).await;
    let (schema, path) = (text(&shown, "/files/schema/text"), format!("{LIVE}/files/schema"));
    let body = |text: &str, hash: &str| serde_json::json!({ "text": text, "hash": hash }).to_string();
    let broken = body("{", text(&shown, "/files/schema/hash"));
    let (status, saved) = call(&stage, Method::PUT, &path, &broken).await;
    assert_eq!(status, 200, "{saved}");
    let shown = envelope(stage.get(LIVE).await).await;
    assert_eq!(text(&shown, "/files/schema/text"), "{");
    let (status, refused) = call(&stage, Method::POST, &format!("{LIVE}/render"), BODY).await;
    assert_eq!((status, text(&refused, "/error/code")), (422, "E4008"));
    let (status, _) = call(&stage, Method::PUT, &path, &body(schema, text(&saved, "/hash"))).await;
    assert_eq!(status, 200);
    assert_eq!(call(&stage, Method::POST, &format!("{LIVE}/render"), BODY).await.0, 200);
}

#[tokio::test]
async fn texts_and_inputs_are_checked_without_saving() {
    let stage = Stage::answering().await;
    let check = format!("{LIVE}/check");
    let found = |(status, found): (u16, Value)| {
        assert_eq!(status, 200, "{found}");
        found.get("diagnostics").unwrap().elements().map(|one| one.to_value()).collect::<Vec<_>>()
    };
    let body = serde_json::json!({ "files": { "manifest": "name: live\ntier: wrong\n" } }).to_string();
    let diagnostics = found(call(&stage, Method::POST, &check, &body).await);
    let tier = diagnostics.iter().find(|one| text(one, "/message").contains("tier")).unwrap();
    assert_eq!((text(tier, "/file"), text(tier, "/severity")), ("module.yaml", "error"));
    assert_eq!(tier.get("line").unwrap().as_u64(), Some(2));
    let unchanged = envelope(stage.get(LIVE).await).await;
    assert!(text(&unchanged, "/files/manifest/text").contains("tier: decision"));

    assert_eq!(found(call(&stage, Method::POST, &check, BODY).await).len(), 0);
    let diagnostics = found(call(&stage, Method::POST, &check, r#"{"input": {"query": 7}}"#).await);
    assert_eq!(text(&diagnostics[0], "/path"), "input.query");

    for (body, code) in [
        ("{}", "E1002"),
        (r#"{"files": {}, "input": {}}"#, "E1001"),
        (r#"{"files": {"README": ""}}"#, "E1001"),
        (r#"{"files": {"prompt": 7}}"#, "E1003"),
        (r#"{"files": []}"#, "E1003"),
    ] {
        let (status, refused) = call(&stage, Method::POST, &check, body).await;
        assert_eq!((status, text(&refused, "/error/code")), (400, code), "{body}");
    }
}

#[tokio::test]
async fn rendered_request_has_no_key_and_no_address() {
    let stage = Stage::answering().await;
    let (status, rendered) = call(&stage, Method::POST, &format!("{LIVE}/render"), BODY).await;
    assert_eq!(status, 200, "{rendered}");
    assert!(rendered.get("messages").unwrap().to_value().to_string().contains("Answer."), "{rendered}");
    assert!(
        rendered.get("schema").unwrap().is_object() && rendered.get("lost").unwrap().is_array(),
        "{rendered}"
    );
    let whole = rendered.to_string();
    assert!(!whole.contains("sk-test") && !whole.contains("127.0.0.1"), "{whole}");
    assert!(stage.mock.requests().is_empty());
}

#[tokio::test]
async fn unknown_names_are_answered_with_the_nearest() {
    let stage = Stage::answering().await;
    let put = |part: &str| {
        let url = stage.url(&format!("{LIVE}/files/{part}"));
        let request = stage.client.put(url).header("content-type", "application/json");
        failure(request.body(r#"{"text": "", "hash": ""}"#))
    };
    for part in ["README.md", "..%2f..%2fsecret", "prompt.md"] {
        assert_eq!(put(part).await, (404, "E1006".to_owned()), "{part}");
    }
    let post = |path: &str, body: &'static str| {
        let url = stage.url(path);
        failure(stage.client.post(url).header("content-type", "application/json").body(body))
    };
    assert_eq!(post("/v1/workbench/modules/lvie/check", "{\"input\": 1}").await, (404, "E4006".to_owned()));
    assert_eq!(post(&format!("{LIVE}/tests"), r#"{"cases": ["case9"]}"#).await, (404, "E1006".to_owned()));
    assert_eq!(post(&format!("{LIVE}/tests"), r#"{"cases": "all"}"#).await, (400, "E1003".to_owned()));
    assert_eq!(
        post("/v1/workbench/runs/none/label", r#"{"label": "right"}"#).await,
        (404, "E1006".to_owned())
    );
    assert_eq!(
        post("/v1/workbench/runs/none/label", r#"{"label": "good"}"#).await,
        (400, "E1004".to_owned())
    );
    let get = |path: &str| failure(stage.client.get(stage.url(path)));
    assert_eq!(get("/v1/workbench/runs/none").await, (404, "E1006".to_owned()));
    for query in ["limit=0", "limit=201", "limit=many", "sort=time"] {
        assert_eq!(get(&format!("/v1/workbench/runs?{query}")).await, (400, "E1001".to_owned()), "{query}");
    }
    let runs = envelope(stage.get("/v1/workbench/runs?module=live&limit=200").await).await;
    assert!(runs.get("runs").unwrap().is_array());
}

#[tokio::test]
async fn built_in_module_is_not_edited() {
    let stage = Stage::answering().await;
    let path = "/v1/workbench/modules/code-reviewer";
    let shown = envelope(stage.get(path).await).await;
    assert_eq!(shown.get("editable").unwrap().as_bool(), Some(false));
    assert!(shown.get("cases").unwrap().elements().count() > 2, "{shown}");
    assert!(shown.pointer("/cases/0/expected").is_some() && shown.pointer("/cases/0/input").is_some());
    let (status, checked) = call(&stage, Method::POST, &format!("{path}/check"), r#"{"files": {}}"#).await;
    assert_eq!((status, checked.get("diagnostics").unwrap().elements().count()), (200, 0), "{checked}");
    let body = serde_json::json!({ "text": "Mine.", "hash": text(&shown, "/files/prompt/hash") }).to_string();
    let (status, refused) = call(&stage, Method::PUT, &format!("{path}/files/prompt"), &body).await;
    assert_eq!((status, text(&refused, "/error/code")), (403, "E4007"));
}

#[tokio::test]
async fn page_of_another_origin_runs_modules_and_nothing_else() {
    let stage = Stage::with([cog_testkit::Reply::text(crate::support::ANSWER)], |settings| {
        settings.access.origins = vec!["https://app.example".to_owned()];
    })
    .await;
    let allowed = stage.execute("live", BODY).header("origin", "https://app.example").send().await.unwrap();
    assert_eq!(allowed.status(), 200);
    for origin in ["https://app.example", "https://evil.example"] {
        let request = stage.client.get(stage.url(LIVE)).header("origin", origin);
        assert_eq!(failure(request).await, (403, "E4007".to_owned()), "{origin}");
    }
    let own = stage.client.get(stage.url(LIVE)).header("origin", stage.url(""));
    assert_eq!(own.send().await.unwrap().status(), 200);
}
