//! Jobs that run, that cannot run, and that come twice.

use std::{process::Command, time::Duration};

use cog_testkit::{Mock, Reply};
use futures_util::StreamExt as _;

use super::{ANSWER, Client, Nats, Working, cog, eventually, place, server::python};

#[test]
fn job_runs_once_and_is_acknowledged_after_its_result_is_stored() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let client = Client::new(&nats);
    let reply = client.queue.clone();
    let mut replies = client.runtime.block_on(client.context.client().subscribe("cog.replies.test")).unwrap();
    client.add("a.1", "why?");
    client.add("a.1", "why?");
    client.publish(Some("a.2"), r#"{"module":"m","input":{"query":"how?"},"reply":"cog.replies.test"}"#);
    client.publish(Some("a.3"), r#"{"module":"m","input":{}}"#);
    client.publish(Some("a.4"), r#"{"module":"absent","input":{}}"#);
    let mut command = cog(place.path(), &mock, &["worker", "--nats", &nats.url()]);
    command.env("COG_NATS_MODULE_WAIT", "1ms"); // no other worker can have the module
    let worker = Working::start(command);
    assert_eq!(client.envelope("a.1")["data"]["result"], "fine");
    assert_eq!(client.envelope("a.3")["error"]["code"], "E1002", "an error is a result");
    assert_eq!(client.envelope("a.4")["error"]["code"], "E4006");
    let published = client.runtime.block_on(replies.next()).unwrap();
    let stored = client.runtime.block_on(reply.result(&super::id_of("a.2"))).unwrap().unwrap();
    assert_eq!(published.payload, stored.text);
    client.all_done();
    let messages = worker.stop();
    assert!(messages.contains("2 jobs succeeded, 1 failed, 1 dead-lettered, 0 had a result"), "{messages}");
    assert_eq!((mock.requests().len(), client.messages("cog-failed")), (2, Some(1)));
}

#[test]
fn job_whose_module_a_worker_lacks_is_run_by_another() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let client = Client::new(&nats);
    let mut command = cog(place.path(), &mock, &["worker", "--nats", &nats.url()]);
    let empty = tempfile::tempdir().unwrap();
    command.env("COGNITIVE_MODULES_PATH", empty.path()).current_dir(empty.path());
    let without = Working::start(command);
    client.add("f.1", "why?");
    eventually("the job is not delivered", || (client.deliveries() > 0).then_some(()));
    let with = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    drop(without.stop());
    assert_eq!(client.envelope("f.1")["data"]["result"], "fine");
    assert!(with.stop().contains("1 job succeeded"));
}

#[test]
fn deliveries_to_workers_without_the_module_are_no_attempts() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let client = Client::new(&nats);
    client.publish(Some("v.1"), r#"{"module":"m","version":"2.0.0","input":{"query":"why?"}}"#);
    let mut command = cog(place.path(), &mock, &["worker", "--nats", &nats.url()]);
    command.env("COG_NATS_MAX_DELIVERIES", "2");
    let old = Working::start(command);
    // More deliveries than a job may have.
    eventually("the job is not delivered again", || (client.deliveries() > 3).then_some(()));
    assert_eq!(client.messages("cog-failed"), Some(0));
    let new = super::place();
    let manifest = new.path().join("modules/m/module.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap().replace("1.0.0", "2.0.0");
    std::fs::write(&manifest, text).unwrap();
    let mut command = cog(new.path(), &mock, &["worker", "--nats", &nats.url()]);
    command.env("COG_NATS_MAX_DELIVERIES", "2");
    let right = Working::start(command);
    assert_eq!(client.envelope("v.1")["data"]["result"], "fine");
    drop(old.stop());
    assert!(right.stop().contains("1 job succeeded"));
}

#[test]
fn connection_that_is_cut_is_tried_again() {
    let (nats, place) = (Nats::start(), place());
    let mock = Mock::start([
        Reply::text(ANSWER).interrupt_after(40).when("always"),
        Reply::text(ANSWER).interrupt_after(40),
        Reply::text(ANSWER),
    ]);
    let client = Client::new(&nats);
    let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    client.add("x.1", "once");
    assert_eq!(client.envelope("x.1")["ok"], true);
    client.add("x.2", "always");
    assert_eq!(client.envelope("x.2")["error"]["code"], "E2010");
    client.all_done();
    assert!(worker.stop().contains("1 dead-lettered"));
    assert_eq!(mock.requests().len(), 2 + 3);
}

#[test]
fn worker_whose_key_is_rejected_leaves_the_jobs_to_others() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let rejecting = Mock::start([Reply::error(401, "wrong key")]);
    let client = Client::new(&nats);
    let args = ["worker", "--nats", &nats.url(), "--concurrency", "1"];
    let rejected = Working::start(cog(place.path(), &rejecting, &args));
    let jobs: Vec<_> = (0..60).map(|number| format!("g.{number}")).collect();
    jobs.iter().for_each(|id| client.add(id, "why?"));
    eventually("the key is not rejected", || (rejecting.requests().len() >= 20).then_some(()));
    let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    for id in &jobs {
        assert_eq!(client.envelope(id)["ok"], true, "{id}");
    }
    client.all_done();
    assert_eq!((mock.requests().len(), client.messages("cog-failed")), (60, Some(0)));
    let messages = rejected.stop();
    assert!(messages.contains("check its key and its account"), "{messages}");
    drop(worker.stop());
}

#[test]
fn jobs_that_are_delivered_again_are_not_paid_twice() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let client = Client::new(&nats);
    let ids = ["b.1", "b.2", "b.3", "b.4"];
    ids.iter().for_each(|id| client.add(id, id));
    let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    client.all_done();
    let before = ids.map(|id| client.envelope(id));
    assert!(worker.stop().contains("4 jobs succeeded"));
    client.runtime.block_on(client.context.delete_stream("cog-jobs")).unwrap();
    let client = Client::new(&nats);
    ids.iter().for_each(|id| client.add(id, id));
    client.publish(Some("b.1"), r#"{"module":"m","input":{"query":"another"}}"#);
    let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    client.all_done();
    assert_eq!(ids.map(|id| client.envelope(id)), before);
    let messages = worker.stop();
    assert!(
        messages.contains("0 jobs succeeded") && messages.contains("4 had a result already"),
        "{messages}"
    );
    assert_eq!(mock.requests().len(), 4);
}

#[test]
fn job_that_is_dead_lettered_is_logged_without_verbose() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let client = Client::new(&nats);
    client.publish(Some("w.1"), "no JSON");
    client.add("w.2", "why?");
    let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    client.envelope("w.2");
    client.all_done();
    let messages = worker.stop();
    assert!(messages.contains("WARN a job was dead-lettered"), "{messages}");
    assert!(!messages.contains("INFO"), "{messages}");
}

#[test]
fn worker_logs_no_contents() {
    let failed = r#"{"ok": false, "meta": {}, "error": {"code": "E1001", "message": "canary-out"}}"#;
    let logs: [&[&str]; 4] = [&[], &["-v"], &["-vvv"], &["-vvv", "--log-format", "json"]];
    for log in logs {
        let replies = [
            Reply::text(ANSWER.replace("rationale", "rationale\": \"canary-out\", \"note"))
                .reasoning("canary-thought"),
            Reply::text(failed),
            Reply::error(400, "invalid prompt: canary-in"),
            Reply::error(503, "cannot process canary-in"),
        ];
        let (nats, place, mock) = (Nats::start(), place(), Mock::start(replies));
        let client = Client::new(&nats);
        let ids = ["l.1", "l.2", "l.3", "l.4"];
        ids.iter().for_each(|id| client.add(id, "canary-in"));
        let mut command = cog(place.path(), &mock, &["worker", "--nats", &nats.url()]);
        command.env("COG_NATS_MAX_DELIVERIES", "1").args(log);
        let worker = Working::start(command);
        ids.iter().for_each(|id| drop(client.envelope(id)));
        let messages = worker.stop();
        assert!(!messages.contains("canary-"), "{log:?}: {messages}");
        assert!(messages.contains("a job was dead-lettered"), "{messages}");
    }
}

#[test]
fn job_that_cannot_be_run_is_dead_lettered() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let client = Client::new(&nats);
    client.publish(Some("c.1"), "not JSON \u{0}");
    client.publish(
        Some("c.2"),
        r#"{"module":"m","input":{"query":"x"},"reply":"$JS.API.STREAM.DELETE.cog-jobs"}"#,
    );
    client.publish(None, r#"{"module":"m","input":{"query":"x"}}"#);
    let mut replies = client.runtime.block_on(client.context.client().subscribe("cog.replies.>")).unwrap();
    client.publish(Some("c 4"), r#"{"module":"m","input":{"query":"x"},"reply":"cog.replies.4"}"#);
    client.publish(Some("c.5"), r#"{"module":"m","input":{"query":"x"},"inputs":1,"reply":"cog.replies.5"}"#);
    let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    client.all_done();
    assert_eq!(client.envelope("c.1")["error"]["code"], "E1000");
    assert_eq!(client.envelope("c.2")["error"]["code"], "E4007");
    let messages = worker.stop();
    assert!(messages.contains("5 dead-lettered"), "{messages}");
    assert_eq!((mock.requests().len(), client.messages("cog-failed")), (0, Some(5)));
    let replies = client.runtime.block_on(replies.by_ref().take(2).collect::<Vec<_>>());
    let reply = |number: usize| {
        let subject = format!("cog.replies.{number}");
        let reply = replies.iter().find(|reply| reply.subject.as_str() == subject).unwrap();
        serde_json::from_slice::<serde_json::Value>(&reply.payload).unwrap()
    };
    assert_eq!((&reply(4)["id"], &reply(4)["envelope"]["error"]["code"]), (&().into(), &"E1002".into()));
    assert_eq!((&reply(5)["id"], &reply(5)["envelope"]["error"]["code"]), (&"c.5".into(), &"E1001".into()));
    let dead_letters = client.runtime.block_on(async {
        let stream = client.context.get_stream("cog-failed").await.unwrap();
        futures_util::future::join_all([1, 2, 3, 4, 5].map(|number| stream.get_raw_message(number))).await
    });
    let of_first = |message: &async_nats::jetstream::message::StreamMessage| {
        let envelope = message.headers.get("Cog-Envelope").unwrap().as_str();
        envelope.contains("E1000") && message.payload == "not JSON \u{0}".as_bytes()
    };
    assert!(dead_letters.iter().flatten().any(of_first), "{dead_letters:?}");
}

#[test]
fn overloaded_provider_is_asked_again_later_until_the_job_is_dead_lettered() {
    let (nats, place) = (Nats::start(), place());
    let mock = Mock::start([
        Reply::error(429, "slow down").when("often"),
        Reply::error(429, "slow down"),
        Reply::text(ANSWER),
    ]);
    let client = Client::new(&nats);
    let mut command = cog(place.path(), &mock, &["worker", "--nats", &nats.url()]);
    command.env("COG_NATS_MAX_DELIVERIES", "2");
    let worker = Working::start(command);
    client.add("d.1", "once");
    assert_eq!(client.envelope("d.1")["ok"], true);
    client.add("d.2", "often");
    assert_eq!(client.envelope("d.2")["error"]["code"], "E4002");
    client.all_done();
    assert!(worker.stop().contains("1 dead-lettered"));
    assert_eq!((mock.requests().len(), client.messages("cog-failed")), (4, Some(1)));
}

#[test]
fn running_jobs_finish_after_a_signal_and_no_more_are_fetched() {
    let (nats, place) = (Nats::start(), place());
    let mock = Mock::start([Reply::text(ANSWER).delay(Duration::from_secs(3))]);
    let client = Client::new(&nats);
    client.add("e.1", "first");
    client.add("e.2", "second");
    let args = ["worker", "--nats", &nats.url(), "--concurrency", "1"];
    let worker = Working::start(cog(place.path(), &mock, &args));
    eventually("no request", || (!mock.requests().is_empty()).then_some(()));
    let messages = worker.stop();
    assert!(messages.contains("1 job succeeded"), "{messages}");
    assert_eq!(client.envelope("e.1")["ok"], true);
    assert_eq!((mock.requests().len(), client.messages("cog-jobs")), (1, Some(1)));
}

#[test]
fn client_of_the_page_receives_its_result() {
    let (nats, place) = (Nats::start(), place());
    let mock = Mock::start([Reply::text(
        r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
            "data": {"verdict": "approve", "issues": [], "rationale": "Nothing stands out."}}"#,
    )]);
    let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    let page = include_str!("../../../../../docs/nats.md");
    let script = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let script = script.replace("nats://localhost:4222", &nats.url());
    let output = Command::new(python()).args(["-c", &script]).output().unwrap();
    assert_eq!(output.stdout, b"True\n", "{}", String::from_utf8_lossy(&output.stderr));
    drop(worker.stop());
}

/// Runs `cog jobs`, and returns what it prints.
fn jobs(place: &std::path::Path, mock: &Mock, nats: &Nats, args: &str) -> (Option<i32>, String) {
    let args: Vec<&str> = ["jobs"].into_iter().chain(args.split(' ')).collect();
    let mut command = cog(place, mock, &args);
    let output = command.env("COG_NATS_URL", nats.url()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn failed_jobs_are_listed_retried_and_removed() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let client = Client::new(&nats);
    assert!(jobs(place.path(), &mock, &nats, "list").1.contains("there are no failed jobs"));
    client.publish(Some("j.1"), r#"{"module":"late","input":{"query":"why?"}}"#);
    client.publish(Some("j.2"), "no JSON");
    let mut command = cog(place.path(), &mock, &["worker", "--nats", &nats.url()]);
    command.env("COG_NATS_MODULE_WAIT", "1ms");
    let without = Working::start(command);
    client.all_done();
    drop(without.stop());
    let (_, listed) = jobs(place.path(), &mock, &nats, "list --format json");
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let of = |id: &str| listed.as_array().unwrap().iter().find(|job| job["id"] == id).unwrap();
    assert_eq!((&of("j.1")["code"], &of("j.1")["module"]), (&"E4006".into(), &"late".into()), "{listed}");
    assert_eq!((&of("j.2")["code"], &of("j.2")["module"]), (&"E1000".into(), &().into()), "{listed}");
    assert_eq!(jobs(place.path(), &mock, &nats, "retry 99").0, Some(2));
    // The module has arrived by now.
    let modules = place.path().join("modules");
    std::fs::create_dir(modules.join("late")).unwrap();
    for file in ["module.yaml", "prompt.md", "schema.json"] {
        let text = std::fs::read_to_string(modules.join("m").join(file)).unwrap();
        std::fs::write(modules.join("late").join(file), text.replace("name: m", "name: late")).unwrap();
    }
    let (code, id) = jobs(place.path(), &mock, &nats, &format!("retry {}", of("j.1")["number"]));
    assert_eq!(code, Some(0), "{id}");
    let with = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    assert_eq!(client.envelope(id.trim())["data"]["result"], "fine");
    drop(with.stop());
    assert_eq!(client.messages("cog-failed"), Some(1));
    assert!(jobs(place.path(), &mock, &nats, "purge --all").1.contains("removed 1 failed jobs"));
    assert_eq!(client.messages("cog-failed"), Some(0));
}
