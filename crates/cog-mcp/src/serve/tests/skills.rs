//! Modules as skills.
#![expect(clippy::disallowed_methods, reason = "modules that are written here")]

use std::{fmt::Write as _, path::Path, time::Duration};

use cog_run::{Finder, Providers, Runtime};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{CallSettings, Client, ModuleServer, request};

const EXTENSION: &str = "io.modelcontextprotocol/skills";

fn write(root: &Path, name: &str, manifest: &str) {
    let place = root.join(name);
    std::fs::create_dir_all(&place).unwrap();
    let manifest =
        format!("name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\n{manifest}");
    std::fs::write(place.join("module.yaml"), manifest).unwrap();
    std::fs::write(place.join("prompt.md"), "Answer this: $ARGUMENTS\n").unwrap();
    let schema = json!({ "input": { "type": "object", "properties": { "query": { "type": "string" } } },
        "data": { "type": "object", "properties": { "rationale": { "type": "string" } } } });
    std::fs::write(place.join("schema.json"), schema.to_string()).unwrap();
}

fn server(root: &Path) -> ModuleServer {
    let finder = Finder::new("", vec![root.to_owned()], None);
    let runtime = Runtime::builder()
        .providers(Providers::offline())
        .finder(finder)
        .reload_interval(Duration::ZERO)
        .build()
        .unwrap();
    ModuleServer::new(runtime, |_| Ok(CallSettings::default()))
}

fn client(root: &Path) -> Client {
    Client::start(server(root).with_skills())
}

fn digest(text: &str) -> String {
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(text) {
        write!(digest, "{byte:02x}").unwrap();
    }
    digest
}

async fn listed(client: &mut Client) -> Vec<Value> {
    let listed = client.ask(1, "skills/list", json!({})).await;
    assert!(listed["result"]["ttlMs"].is_number() && listed["result"]["cacheScope"].is_string(), "{listed}");
    listed["result"]["skills"].as_array().unwrap().clone()
}

#[tokio::test]
async fn each_tool_is_a_skill_and_its_files_have_their_digests() {
    let mut client = Client::new();
    let discovered = client.ask(1, "server/discover", json!({})).await;
    let can = &discovered["result"]["capabilities"];
    assert!(can["resources"].is_object(), "{discovered}");
    assert_eq!(can["extensions"][EXTENSION], json!({}), "{discovered}");
    let skills = listed(&mut client).await;
    let tools = client.ask(2, "tools/list", json!({})).await;
    let tools: Vec<_> =
        tools["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    let names: Vec<_> = skills.iter().map(|skill| &skill["frontmatter"]["name"]).collect();
    assert_eq!(names, tools);
    assert!(names.contains(&&json!("code-reviewer")));
    for skill in &skills {
        let name = skill["frontmatter"]["name"].as_str().unwrap();
        assert_eq!(skill["uri"], format!("skill://{name}/SKILL.md"));
        let one = client.ask(3, "skills/get", json!({ "uri": skill["uri"] })).await;
        assert_eq!((&one["result"]["skill"], &one["result"]["resultType"]), (skill, &json!("complete")));
        let files = skill["resources"].as_array().unwrap();
        assert_eq!(files[0]["uri"], skill["uri"]);
        for file in files {
            let read = client.ask(4, "resources/read", json!({ "uri": file["uri"] })).await;
            let contents = &read["result"]["contents"][0];
            let text = contents["text"].as_str().unwrap();
            assert_eq!((&contents["uri"], &file["size"]), (&file["uri"], &json!(text.len())), "{file}");
            assert_eq!(file["digest"], digest(text), "{file}");
        }
        let own = |path: &str| json!(format!("skill://{name}/{path}"));
        let uris: Vec<_> = files.iter().map(|file| &file["uri"]).collect();
        assert!(uris.contains(&&own("references/schema.json")) && uris.contains(&&own("scripts/run.sh")));
    }
}

#[tokio::test]
async fn skill_is_what_its_file_says() {
    let mut client = Client::new();
    let read = client.ask(1, "resources/read", json!({ "uri": "skill://code-reviewer/SKILL.md" })).await;
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "text/markdown", "{read}");
    let text = contents["text"].as_str().unwrap();
    let skill = client.ask(2, "skills/get", json!({ "uri": "skill://code-reviewer/SKILL.md" })).await;
    let front_matter = &skill["result"]["skill"]["frontmatter"];
    assert!(text.starts_with("---\nname: code-reviewer\n"), "{text}");
    assert!(text.contains(front_matter["description"].as_str().unwrap()), "{text}");
    for member in ["license", "compatibility"] {
        assert!(text.contains(front_matter[member].as_str().unwrap()), "{member}: {front_matter}");
    }
    assert_eq!(front_matter["metadata"]["tier"], "decision", "{front_matter}");
}

#[tokio::test]
async fn prompts_stay_private_without_skills() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "mine", "");
    let mut client = Client::start(server(root.path()));
    let discovered = client.ask(1, "server/discover", json!({})).await;
    let can = &discovered["result"]["capabilities"];
    assert!(can["tools"].is_object() && can["resources"].is_null() && can["extensions"].is_null(), "{can}");
    let tools = client.ask(2, "tools/list", json!({})).await;
    assert!(tools.to_string().contains("\"mine\""), "{tools}");
    let uri = json!({ "uri": "skill://mine/SKILL.md" });
    for (method, params) in [("skills/list", json!({})), ("skills/get", uri.clone()), ("resources/read", uri)]
    {
        let answer = client.ask(3, method, params).await;
        assert!(answer["error"].is_object() && answer["result"].is_null(), "{method}: {answer}");
    }
}

#[tokio::test]
async fn modules_that_cannot_be_skills_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "mine", "");
    write(root.path(), "two--hyphens", "");
    write(root.path(), "for-people", "invocation: { agent_invocable: false }\n");
    let mut client = client(root.path());
    let tools = client.ask(1, "tools/list", json!({})).await["result"]["tools"].to_string();
    assert!(tools.contains("\"two--hyphens\"") && !tools.contains("\"for-people\""), "{tools}");
    let uris: Vec<_> = listed(&mut client).await.iter().map(|skill| skill["uri"].clone()).collect();
    assert!(uris.contains(&json!("skill://mine/SKILL.md")), "{uris:?}");
    for name in ["two--hyphens", "for-people"] {
        let uri = json!({ "uri": format!("skill://{name}/SKILL.md") });
        assert!(!uris.contains(&uri["uri"]), "{uris:?}");
        let error = client.ask(2, "skills/get", uri.clone()).await;
        assert_eq!(
            (&error["error"]["code"], &error["error"]["data"]["code"]),
            (&json!(-32602), &json!("E4006"))
        );
        assert_eq!(client.ask(3, "resources/read", uri).await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn changed_module_is_a_changed_skill() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "mine", "");
    let mut client = client(root.path());
    let uri = json!({ "uri": "skill://mine/SKILL.md" });
    let before = client.ask(1, "skills/get", uri.clone()).await;
    write(root.path(), "mine", "excludes: [guessing without a reason]\n");
    let after = listed(&mut client).await.into_iter().find(|skill| skill["uri"] == uri["uri"]).unwrap();
    let before = &before["result"]["skill"]["resources"][0];
    let after = &after["resources"][0];
    assert!(before["digest"].is_string() && before["digest"] != after["digest"], "{before} {after}");
    let read = client.ask(2, "resources/read", uri).await;
    assert_eq!(after["digest"], digest(read["result"]["contents"][0]["text"].as_str().unwrap()));
}

#[tokio::test]
async fn uris_of_nothing_are_errors() {
    let mut client = Client::new();
    for uri in [
        "",
        "skill://",
        "skill://nothing/SKILL.md",
        "skill://../SKILL.md",
        "skill:///SKILL.md",
        "skill://code-reviewer",
        "skill://code-reviewer/",
        "skill://code-reviewer/../code-reviewer/SKILL.md",
        "skill://code-reviewer/assets/../SKILL.md",
        "skill://code-reviewer/SKILL.md#x",
        "skill://code-reviewer/%53KILL.md",
        "file:///etc/passwd",
        "/etc/passwd",
    ] {
        for method in ["skills/get", "resources/read"] {
            let error = client.ask(1, method, json!({ "uri": uri })).await;
            assert_eq!(error["error"]["code"], -32602, "{method} {uri}: {error}");
        }
    }
    for method in ["skills/list", "resources/list"] {
        let error = client.ask(2, method, json!({ "cursor": "x" })).await;
        assert_eq!(error["error"]["code"], -32602, "{method}: {error}");
    }
    let error = client.ask(3, "resources/directory/read", json!({ "uri": "skill://code-reviewer" })).await;
    assert_eq!(error["error"]["code"], -32601, "{error}");
}

#[tokio::test]
async fn resources_are_listed_for_clients_with_skills_only() {
    let mut client = Client::new();
    let without = client.ask(1, "resources/list", json!({})).await;
    assert_eq!(without["result"]["resources"], json!([]), "{without}");
    let mut with = request(2, "resources/list", json!({}));
    with["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { EXTENSION: {} } });
    client.send(with).await;
    let with = client.read().await;
    let listed = with["result"]["resources"].as_array().unwrap();
    assert!(listed.len() > 5, "{with}");
    assert!(listed.iter().all(|file| file["uri"].as_str().unwrap().ends_with("/SKILL.md")), "{with}");
}

#[tokio::test]
async fn older_revision_has_skills() {
    let mut client = Client::new();
    client.initialize().await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "skills/list" })).await;
    let listed = client.read().await;
    assert!(listed["result"]["skills"].as_array().unwrap().len() > 5, "{listed}");
    assert!(listed["result"].get("ttlMs").is_none() && listed["result"].get("resultType").is_none());
    let params = json!({ "uri": "skill://nothing/SKILL.md" });
    client.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": params })).await;
    let error = client.read().await;
    assert_eq!((&error["error"]["code"], &error["error"]["data"]), (&json!(-32002), &params), "{error}");
}
