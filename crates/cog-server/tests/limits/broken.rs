//! Modules whose files cannot be loaded, while the server runs.

use std::time::Duration;

use cog_server::ServerSettings;
use serde_json::Value;
use tokio::time::timeout;

use crate::support::{LONG, Site, answer, code};

/// Returns a module in the list of modules.
async fn listed(site: &Site, name: &str) -> Option<Value> {
    let list: Value = serde_json::from_str(&site.get("/v1/modules").await.text().await.unwrap()).unwrap();
    list["modules"].as_array().unwrap().iter().find(|module| module["name"] == name).cloned()
}

/// Waits until `/ready` names these broken modules.
async fn broken(site: &Site, names: &[&str]) {
    let named = async {
        loop {
            let ready = site.get("/ready").await;
            assert_eq!(ready.status(), 200);
            let ready: Value = serde_json::from_str(&ready.text().await.unwrap()).unwrap();
            if ready["broken_modules"] == serde_json::json!(names) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, named).await.unwrap_or_else(|_| panic!("never broken: {names:?}"));
}

#[tokio::test]
async fn broken_module_is_named_and_the_others_are_served() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    broken(&site, &[]).await;
    site.write("late/module.yaml", "name: late\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\n");
    site.write("late/prompt.md", "Answer.");
    site.write("late/schema.json", "{ half a sch");
    broken(&site, &["late"]).await;
    let entry = listed(&site, "late").await.unwrap();
    assert_eq!((entry["error"].as_str(), entry["outdated"].as_bool()), (Some("E4008"), Some(false)));
    assert_eq!(listed(&site, "m").await.unwrap().get("error"), None);
    assert_eq!(code(site.get("/v1/modules/late").await).await, (422, "E4008".to_owned()));
    assert_eq!(site.run().await.status(), 200);
    // The copy is complete.
    site.write("late/schema.json", r#"{"input": {"type": "object"}, "data": {"type": "object"}}"#);
    broken(&site, &[]).await;
    assert_eq!(site.get("/v1/modules/late").await.status(), 200);
}

#[tokio::test]
async fn last_good_version_of_a_module_stays_in_use() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    assert_eq!(site.run().await.status(), 200);
    site.write("m/schema.json", "{");
    broken(&site, &["m"]).await;
    let entry = listed(&site, "m").await.unwrap();
    assert_eq!((entry["error"].as_str(), entry["outdated"].as_bool()), (Some("E4008"), Some(true)));
    assert_eq!(entry["version"], "1.0.0");
    assert_eq!(site.run().await.status(), 200);
}
