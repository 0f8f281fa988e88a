use cog_json::{ToJson as _, Value};

use super::*;
use crate::{Conversation, FileReferencePart, FileSource, Finding, Message, Part, Role, ToolCall};

/// The example of the appendix, with whole texts.
const EXAMPLE: &str = r#"{
  "protocol": "harmony_handoff_v1",
  "meta": {"source_agent": "planner_v2", "target_agent": "coder_v1", "timestamp": "2024-03-20T10:00:00Z"},
  "context": {
    "primary_objective": "Build a snake game in Python", "status": "in_progress",
    "completed_steps": ["requirements", "choice of Pygame"], "next_immediate_step": "write the game loop",
    "constraints": ["detailed comments", "black background"],
    "artifacts": {"design_doc": "s3://bucket/spec.md", "assets_folder": "./assets/"}
  },
  "history_summary": "The user first wanted 3D; 2D was agreed."
}"#;

fn value(text: &str) -> Value {
    Value::parse(text).unwrap()
}

fn example() -> Handoff {
    Handoff::read(value(EXAMPLE)).unwrap()
}

fn draft() -> Draft {
    Draft {
        source_agent: "planner".to_owned(),
        target_agent: "coder".to_owned(),
        timestamp: "2024-03-20T10:00:00Z".to_owned(),
        primary_objective: "Build it".to_owned(),
        constraints: vec!["black background".to_owned()],
        ..Draft::default()
    }
}

fn next(parent: &Handoff) -> Draft {
    Draft {
        target_agent: "tester".to_owned(),
        timestamp: "2024-03-20T11:00:00Z".to_owned(),
        ..Draft::after(parent)
    }
}

/// The findings, each as `path rule`.
fn named(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{} {}", finding.path, finding.rule)).collect()
}

fn changed(packet: &Handoff, pointer: &str, new: &str) -> Handoff {
    let mut json = packet.value().to_serde();
    *json.pointer_mut(pointer).unwrap() = new.into();
    Handoff::read(Value::from(json)).unwrap()
}

#[test]
fn reads_the_example_of_the_appendix() {
    let packet = example();
    assert_eq!((packet.source_agent(), packet.target_agent()), ("planner_v2", "coder_v1"));
    assert_eq!(packet.timestamp(), "2024-03-20T10:00:00Z");
    assert_eq!(packet.completed_steps().collect::<Vec<_>>(), ["requirements", "choice of Pygame"]);
    let artifacts: Vec<_> = packet.artifacts().map(|artifact| (artifact.name, artifact.reference)).collect();
    let design = ("design_doc", Reference::Url("s3://bucket/spec.md"));
    assert_eq!(artifacts, [design, ("assets_folder", Reference::Path("./assets/"))]);
    assert_eq!((packet.parent(), packet.check_seal()), (None, vec![]));
}

#[test]
fn names_every_rule_of_the_form() {
    let text = r#"{"protocol": "harmony_handoff_v2",
        "meta": {"source_agent": " ", "timestamp": "yesterday", "parent": "abc"},
        "context": {"primary_objective": 1, "status": [], "completed_steps": "all", "constraints": ["", 1],
            "artifacts": {"a": 1, "b": {"url": ""}, "c": "data:text/plain,x", "d": {"path": "p", "sha256": "0"}}},
        "history_summary": 1}"#;
    assert_eq!(
        named(&Handoff::read(value(text)).unwrap_err()),
        [
            "protocol protocol",
            "meta.source_agent type",
            "meta.target_agent required",
            "meta.timestamp timestamp",
            "meta.parent hash",
            "context.primary_objective type",
            "context.status type",
            "context.completed_steps type",
            "context.constraints[0] type",
            "context.constraints[1] type",
            "context.artifacts.a artifact",
            "context.artifacts.b artifact",
            "context.artifacts.c artifact",
            "context.artifacts.d artifact",
            "history_summary type",
        ]
    );
    assert_eq!(named(&Handoff::read(value("{}")).unwrap_err()).len(), 3);
    assert_eq!(named(&Handoff::read(value("[]")).unwrap_err()), [" type"]);
}

#[test]
fn refuses_a_summary_of_a_megabyte() {
    let long = Draft { history_summary: Some("x".repeat(1 << 20)), ..draft() };
    assert_eq!(named(&Handoff::seal(&long, None).unwrap_err()), ["history_summary size"]);
    let many = Draft { constraints: vec!["x".to_owned(); 1001], ..draft() };
    assert_eq!(named(&Handoff::seal(&many, None).unwrap_err()), ["context.constraints size"]);
    let artifacts = (0..1001).map(|index| (index.to_string(), value(r#""a.md""#))).collect();
    let many = Draft { artifacts, ..draft() };
    assert_eq!(named(&Handoff::seal(&many, None).unwrap_err()), ["context.artifacts size"]);
    let largest = Draft {
        history_summary: Some("x".repeat(64 << 10)),
        constraints: vec!["x".to_owned(); 1000],
        ..draft()
    };
    assert!(Handoff::seal(&largest, None).is_ok());
}

#[test]
fn artifacts_of_a_model_are_a_list_or_an_object() {
    let context = |artifacts: &str| {
        let context = value(&format!(r#"{{"artifacts": {artifacts}}}"#));
        draft().with_context(context.node(), &"data".parse().unwrap()).map_err(|findings| named(&findings))
    };
    let listed =
        context(r#"[{"name": "a", "reference": "a.md"}, {"name": "b", "reference": {"url": "b:c"}}]"#);
    let names: Vec<_> = listed.unwrap().artifacts.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b"]);
    let wrong = r#"[1, {"reference": "a.md"}, {"name": "a"}, {"name": "a", "reference": "data:,x"}]"#;
    assert_eq!(
        context(wrong).unwrap_err(),
        [
            "data.artifacts[0] type",
            "data.artifacts[1].name required",
            "data.artifacts[2].reference artifact",
            "data.artifacts[3].reference artifact",
            "data.artifacts[3].name unique",
        ]
    );
    let many = vec![r#"{"name": "", "reference": 1}"#; 1001].join(",");
    assert_eq!(context(&format!("[{many}]")).unwrap_err(), ["data.artifacts size"]);
    assert_eq!(context("1").unwrap_err(), ["data.artifacts type"]);
    let packet =
        EXAMPLE.replace(r#"{"design_doc": "s3://bucket/spec.md", "assets_folder": "./assets/"}"#, "[]");
    assert_eq!(named(&Handoff::read(value(&packet)).unwrap_err()), ["context.artifacts type"]);
}

#[test]
fn receiver_sees_images_of_the_web() {
    for (artifact, expected) in [
        (r#""https://e.org/a.PNG?sig=1""#, true),
        (r#""http://e.org/a.webp""#, true),
        (r#""https://e.org/a.pdf""#, false),
        (r#""s3://bucket/a.png""#, false),
        (r#""a.png""#, false),
        (r#"{"url": "https://e.org/a", "media_type": "image/png"}"#, true),
        (r#"{"url": "https://e.org/a.png", "media_type": "text/html"}"#, false),
    ] {
        let artifact = value(artifact);
        assert_eq!(Artifact::read("a", artifact.node()).unwrap().is_image_url(), expected, "{artifact:?}");
    }
}

#[test]
fn sealed_packet_declares_its_hashes() {
    let packet = Handoff::seal(&draft(), None).unwrap();
    assert_eq!(packet.declared_hash(), Some(packet.hash()));
    assert_eq!(packet.check_seal(), []);
    let again = Handoff::read(value(&packet.to_json_pretty())).unwrap();
    assert_eq!(again.hash(), packet.hash());
}

#[test]
fn changed_packet_does_not_match_its_hashes() {
    let packet = Handoff::seal(&draft(), None).unwrap();
    let objective = changed(&packet, "/context/primary_objective", "Build another");
    assert_eq!(
        named(&objective.check_seal()),
        ["context.primary_objective objective_hash", "meta.hash hash"]
    );
    let agent = changed(&packet, "/meta/target_agent", "other");
    assert_eq!(named(&agent.check_seal()), ["meta.hash hash"]);
}

#[test]
fn next_packet_keeps_objective_and_constraints() {
    let first = Handoff::seal(&draft(), None).unwrap();
    let mut good = next(&first);
    good.constraints.push("no network".to_owned());
    let second = Handoff::seal(&good, Some(&first)).unwrap();
    assert_eq!((second.parent(), second.source_agent()), (Some(first.hash()), "coder"));
    let bad = Draft { primary_objective: "Other".to_owned(), constraints: Vec::new(), ..next(&first) };
    assert_eq!(
        named(&Handoff::seal(&bad, Some(&first)).unwrap_err()),
        ["context.primary_objective primary_objective", "context.constraints constraints"]
    );
}

#[test]
fn chain_is_verified_from_its_end() {
    let first = Handoff::seal(&draft(), None).unwrap();
    let second = Handoff::seal(&next(&first), Some(&first)).unwrap();
    let third = Handoff::seal(&next(&second), Some(&second)).unwrap();
    let report = verify_chain(&third, &[first.clone(), second.clone()]);
    assert_eq!((report.packets.len(), report.findings), (3, vec![]));
    let report = verify_chain(&third, &[second]);
    assert_eq!(named(&report.findings), ["[1].meta.parent missing_parent"]);
}

#[test]
fn chain_with_a_changed_objective_is_refused() {
    let first = Handoff::seal(&draft(), None).unwrap();
    let other = Draft { primary_objective: "Other".to_owned(), ..next(&first) };
    // A sender that seals a changed objective itself, with the right parent.
    let forged = Handoff::read(other.write(Some(first.hash()), None)).unwrap();
    let report = verify_chain(&forged, &[first]);
    assert_eq!(named(&report.findings), ["[0].context.primary_objective primary_objective"]);
}

#[test]
fn chain_names_every_constraint_that_was_dropped() {
    let constraints = ["a".to_owned(), "é".repeat(80), "é".repeat(81)];
    let first = Handoff::seal(&Draft { constraints: constraints.to_vec(), ..draft() }, None).unwrap();
    let dropping = Draft { constraints: Vec::new(), ..next(&first) };
    let second = Handoff::read(dropping.write(Some(first.hash()), None)).unwrap();
    let findings = verify_chain(&second, &[first]).findings;
    assert_eq!(named(&findings), ["[0].context.constraints constraints"; 3]);
    let messages: Vec<_> = findings.into_iter().map(|finding| finding.message).collect();
    let shown = ["a".to_owned(), "é".repeat(80), format!("{}…", "é".repeat(80))];
    assert_eq!(messages, shown.map(|shown| format!("the constraint `{shown}` was dropped")));
}

#[test]
fn chain_names_every_artifact_that_was_dropped() {
    let mut holding = draft();
    holding.set_artifact("doc", value(r#""a.md""#));
    let first = Handoff::seal(&holding, None).unwrap();
    let kept = Handoff::seal(&next(&first), Some(&first)).unwrap();
    assert_eq!(verify_chain(&kept, std::slice::from_ref(&first)).findings, []);
    let dropping = Draft { artifacts: Vec::new(), ..next(&first) };
    let second = Handoff::read(dropping.write(Some(first.hash()), None)).unwrap();
    let findings = verify_chain(&second, &[first]).findings;
    assert_eq!(named(&findings), ["[0].context.artifacts artifacts"]);
    assert_eq!(findings[0].message, "the artifact `doc` was dropped");
}

#[test]
fn replaced_summary_is_a_loss() {
    let before = Draft { history_summary: Some("2D was agreed.".to_owned()), ..draft() };
    let first = Handoff::seal(&before, None).unwrap();
    for (summary, is_lost) in [("Sprites are done.", true), ("2D was agreed. Sprites are done.", false)] {
        let draft = Draft { history_summary: Some(summary.to_owned()), ..next(&first) };
        let losses = losses(&draft, Some(&first), &Conversation::default());
        let paths: Vec<&str> = losses.iter().map(|loss| loss.path.as_str()).collect();
        assert_eq!(paths, if is_lost { &["history_summary"][..] } else { &[] }, "{summary}");
    }
    assert_eq!(losses(&next(&first), Some(&first), &Conversation::default()), []);
}

#[test]
fn chain_with_a_cycle_ends() {
    let one = format!("sha256:{}", "1".repeat(64));
    let two = format!("sha256:{}", "2".repeat(64));
    let packet = |own: &str, parent: &str| Handoff::read(draft().write(Some(parent), Some(own))).unwrap();
    let first = packet(&one, &two);
    let second = packet(&two, &one);
    let rules = named(&verify_chain(&second, &[first]).findings);
    assert!(rules.contains(&"[1].meta.parent cycle".to_owned()), "{rules:?}");
    assert!(rules.contains(&"[0].meta.hash hash".to_owned()), "{rules:?}");
}

#[test]
fn long_chain_is_verified() {
    let mut chain = vec![Handoff::seal(&draft(), None).unwrap()];
    for index in 0..500 {
        let packet = Handoff::seal(&next(&chain[index]), Some(&chain[index])).unwrap();
        chain.push(packet);
    }
    let report = verify_chain(&chain[500], &chain);
    assert_eq!((report.packets.len(), report.findings), (501, vec![]));
}

#[test]
fn model_context_becomes_a_draft() {
    let context = value(
        r#"{"status": "in_progress", "constraints": ["a"], "artifacts": {"doc": "a.md"},
        "history_summary": "short"}"#,
    );
    let draft = draft().with_context(context.node(), &"data.handoff".parse().unwrap()).unwrap();
    assert_eq!((draft.primary_objective.as_str(), draft.constraints), ("Build it", vec!["a".to_owned()]));
    assert_eq!((draft.artifacts.len(), draft.history_summary.as_deref()), (1, Some("short")));
    let wrong = value(r#"{"constraints": 1}"#);
    let findings =
        super::tests::draft().with_context(wrong.node(), &"data.handoff".parse().unwrap()).unwrap_err();
    assert_eq!(named(&findings), ["data.handoff.constraints type"]);
}

#[test]
fn receiver_gets_everything_in_two_messages() {
    let mut draft = Draft::after(&example());
    draft.set_artifact("mockup", Value::parse(r#""https://e.org/m.png?sig=1""#).unwrap());
    (draft.target_agent, draft.timestamp) = ("coder_v1".to_owned(), "2024-03-20T10:00:00Z".to_owned());
    draft.source_agent = "planner_v2".to_owned();
    draft.next_immediate_step = Some("write the game loop".to_owned());
    let messages = Handoff::seal(&draft, None).unwrap().messages();
    let [system, user] = messages.messages() else { panic!("{messages:?}") };
    let system = system.text();
    let text = user.text();
    for part in [
        "Build a snake game",
        "in_progress",
        "choice of Pygame",
        "write the game loop",
        "black background",
        "s3://bucket/spec.md",
        "2D was agreed",
    ] {
        assert!(text.contains(part) && !system.contains(part), "{part}");
    }
    assert!(system.contains("coder_v1") && user.name.as_deref() == Some("planner_v2"));
    assert_eq!(user.content.get(1), Some(&Part::image_at("https://e.org/m.png?sig=1")));
}

#[test]
fn lists_what_a_handoff_loses() {
    let mut call = Message::assistant("");
    let tool = |id: &str| ToolCall::new(id, "search", "{}");
    (call.content, call.tool_calls) = (vec![], vec![tool("c1"), tool("c2")]);
    let mut result = Message::new(Role::Tool, vec![Part::text("{}")]);
    result.tool_call_id = Some("c1".to_owned());
    let mut look = Message::user("Look at this");
    look.content.push(Part::image_at("https://e.org/a.png?sig=secret"));
    look.content.push(Part::media("audio/wav", "AAAA".to_owned()));
    let history = Conversation::new([look, call, result]);
    let listed = |draft: &Draft, parent: Option<&Handoff>| -> Vec<(String, LossKind)> {
        losses(draft, parent, &history).into_iter().map(|loss| (loss.path, loss.kind)).collect()
    };
    let at = |path: &str, kind| (path.to_owned(), kind);
    assert_eq!(
        listed(&draft(), None),
        [
            at("messages[0]", LossKind::History),
            at("messages[0].content[1]", LossKind::Media),
            at("messages[0].content[2]", LossKind::Media),
            at("messages[1].tool_calls[1]", LossKind::OpenToolCall),
            at("messages[2]", LossKind::History),
        ]
    );
    assert!(!losses(&draft(), None, &history)[1].message.contains("secret"));
    let mut held = Draft { history_summary: Some("They looked.".to_owned()), ..draft() };
    held.set_artifact("a", Value::parse(r#"{"url": "https://e.org/a.png?sig=secret"}"#).unwrap());
    assert_eq!(listed(&held, None)[0], at("messages[0].content[2]", LossKind::Media));
    let parent = example();
    let lost = losses(&draft(), Some(&parent), &Conversation::default());
    let kinds: Vec<_> = lost.iter().map(|loss| loss.kind).collect();
    assert_eq!(kinds, [LossKind::Constraint, LossKind::Artifact, LossKind::Artifact, LossKind::History]);
    assert_eq!(losses(&Draft::after(&parent), Some(&parent), &Conversation::default()), []);
}

#[test]
fn lost_media_are_named_without_their_bytes_and_signatures() {
    let file = |url: &str| {
        let source = FileSource::Url(url.to_owned());
        Part::FileReference(FileReferencePart { source, media_type: None, filename: None, other: None })
    };
    let parts = vec![
        Part::image_at("data:image/png;base64,SECRET"),
        Part::image_at("https://e.org/a.png?sig=SECRET#x"),
        file("https://e.org/a.pdf?sig=SECRET"),
        file("https://e.org/kept.pdf"),
    ];
    let history = Conversation::new([Message::new(Role::User, parts)]);
    let mut draft = draft();
    draft.set_artifact("kept", value(r#"{"url": "https://e.org/kept.pdf"}"#));
    let messages: Vec<_> = losses(&draft, None, &history).into_iter().map(|loss| loss.message).collect();
    let what = ["an image with its bytes", "the image https://e.org/a.png", "the file https://e.org/a.pdf"];
    assert_eq!(messages, what.map(|what| format!("{what} is not among the artifacts")));
}
