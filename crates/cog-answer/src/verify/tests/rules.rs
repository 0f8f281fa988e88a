//! The rules that no published schema expresses, and their messages.

use cog_json::Value;
use cog_rules::Checks;
use cog_schema::Rules;
use cog_spec::{CheckRule, CheckSeverity, media_type};

use super::*;

const META: &str = r#"{"ok": true, "streaming": true, "session_id": "s", "meta": {"confidence": null, "risk": "low", "explain": "…"}}"#;

fn messages(verdict: &Verdict) -> Vec<String> {
    verdict.violations.iter().map(|one| one.message.clone()).collect()
}

#[test]
fn list_or_object_without_the_members_of_a_kind_has_none() {
    for text in [
        r#"[{"a": 1}]"#,
        r#"[{"final": true}, []]"#,
        r#"{"type": "url"}"#,
        r#"{"url": "https://a.test/b.png"}"#,
    ] {
        assert_eq!(verify(text, None, None).kind, None, "{text}");
    }
}

#[test]
fn lines_of_a_stream_are_read_on_their_own() {
    let json = |text: &str, kind: Option<Kind>| messages(&verify(text, kind, None)).concat();
    for text in ["nope\n{}", "nope\n{}\n{}"] {
        assert!(json(text, Some(Kind::Stream)).starts_with("line 1 is not JSON"), "{text}");
        assert!(json(text, None).starts_with("not JSON"), "{text}");
    }
    assert!(json("nope\n", Some(Kind::Stream)).starts_with("not JSON"));
}

#[test]
fn one_object_is_a_stream_of_one_chunk() {
    assert_eq!(broken(&verify(META, Some(Kind::Stream), None)), ["[0] order"]);
}

#[test]
fn wrong_number_is_a_duplicate_or_a_gap() {
    let chunk = |seq: u64| {
        format!(r#"{{"chunk": {{"seq": {seq}, "type": "delta", "field": "data.a", "delta": ""}}}}"#)
    };
    let end =
        r#"{"final": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "x"}, "data": {"a": ""}}"#;
    let found = |numbers: &[u64]| {
        let chunks: Vec<String> = numbers.iter().map(|seq| chunk(*seq)).collect();
        messages(&verify(&format!("{META}\n{}\n{end}", chunks.join("\n")), None, None))
    };
    assert_eq!(found(&[1, 2]), [] as [&str; 0]);
    assert_eq!(found(&[1, 1]), ["duplicate sequence number 1"]);
    assert_eq!(found(&[2, 3]), ["found 2; expected 1"]);
    assert_eq!(found(&[1, 3]), [] as [&str; 0]);
}

#[test]
fn risk_of_the_first_chunk_may_be_the_modules_own() {
    let risk = |risk: serde_json::Value| {
        let mut chunk: serde_json::Value = serde_json::from_str(META).unwrap();
        chunk["meta"]["risk"] = risk;
        broken(&judge(&chunk))
    };
    assert_eq!(risk(json!("severe")), [] as [&str; 0]);
    assert_eq!(risk(json!({ "custom": "x", "reason": "y" })), [] as [&str; 0]);
    assert_eq!(risk(json!(7)), ["meta.risk type"]);
}

#[test]
fn chunk_of_an_error_has_an_error() {
    let chunk = |text: &str| broken(&verify(text, Some(Kind::Chunk), None));
    let start = r#""ok": false, "streaming": true, "session_id": "s""#;
    let error = r#""error": {"code": "E2002", "message": "No.", "recoverable": true}"#;
    assert_eq!(chunk(&format!("{{{start}, {error}}}")), [] as [&str; 0]);
    assert_eq!(chunk(&format!("{{{start}}}")), ["error required"]);
    assert_eq!(chunk(&format!(r#"{{"streaming": true, "session_id": "s", {error}}}"#)), ["ok required"]);
    let unknown = error.replace("E2002", "NOPE");
    assert_eq!(chunk(&format!("{{{start}, {unknown}}}")), ["error.code error_code"]);
    let own = error.replace("E2002", "E2042");
    assert_eq!(chunk(&format!("{{{start}, {own}}}")), ["error.code error_code"], "no module allows it");
}

#[test]
fn numbered_chunk_is_an_object() {
    assert_eq!(broken(&judge(&json!({ "chunk": 7 }))), ["chunk type"]);
    assert_eq!(broken(&judge(&json!({ "chunk": { "seq": 1 } }))), ["chunk required"]);
    assert_eq!(broken(&judge(&json!({ "chunk": { "seq": 1, "type": "delta" } }))), ["chunk.delta required"]);
}

#[test]
fn unknown_members_of_chunks_and_errors_are_beyond_the_specification() {
    let error = json!({ "code": "E2002", "message": "No.", "trace": "x" });
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "x", "area": 1 });
    let failed = json!({ "ok": false, "meta": meta, "error": error });
    for (document, expected) in [
        (
            json!({ "streaming": true, "session_id": "s", "ok": true, "meta": meta, "id": 1, "version": "2" }),
            vec!["id"],
        ),
        (
            json!({ "chunk": { "seq": 1, "type": "delta", "field": "data.a", "delta": "", "index": 0 }, "ts": 1 }),
            vec!["chunk.index", "ts"],
        ),
        (
            json!({ "chunk": { "seq": 1, "type": "snapshot", "data": {}, "delta_of": 3, "_x": 1 } }),
            vec!["chunk.delta_of"],
        ),
        (json!({ "progress": { "percent": 1, "eta": 2 }, "at": 1 }), vec!["progress.eta", "at"]),
        (
            json!({ "final": true, "meta": meta, "data": { "rationale": "r", "more": 1 }, "took": 1 }),
            vec!["took"],
        ),
        (
            json!({ "ok": false, "streaming": true, "session_id": "s", "error": error, "data": {} }),
            vec!["error.trace", "data"],
        ),
        (failed.clone(), vec!["error.trace"]),
    ] {
        let verdict = judge(&document);
        assert_eq!(broken(&verdict), [] as [&str; 0], "{document}");
        let warnings: Vec<&str> = verdict.warnings.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(warnings, expected, "{document}");
        assert!(verdict.warnings.iter().all(|one| one.rule == "beyond_specification"));
    }
    // The module's own schema of an error decides.
    for (more, expected) in [
        (json!({ "properties": { "trace": { "type": "string" } } }), (vec![], 0)),
        (
            json!({ "properties": { "code": {}, "message": {} }, "additionalProperties": false }),
            (vec!["error.trace"], 0),
        ),
        (json!({}), (vec![], 1)),
    ] {
        let mut document = schema(json!({}));
        document["error"] = more.clone();
        let own = rules(manifest(Tier::Decision), &document);
        let verdict = verify(&failed.to_string(), None, Some(ModuleRules::new(&own.manifest, &own.contract)));
        let paths: Vec<&str> = verdict.violations.iter().map(|one| one.path.as_str()).collect();
        assert_eq!((paths, verdict.warnings.len()), expected, "{more}");
    }
}

#[test]
fn empty_string_is_named_so() {
    let verdict = verify(r#"{"type": "", "url": "https://a.test/b.png"}"#, None, None);
    assert_eq!(
        messages(&verdict),
        ["found an empty string; allowed: `url`, `base64`, `file` or `upload_ref`"]
    );
}

#[test]
fn envelope_without_a_module_has_a_rationale() {
    let mut answer = reply(json!({}));
    answer["data"].as_object_mut().unwrap().remove("rationale");
    assert_eq!(broken(&judge(&answer)), ["data.rationale rationale"]);
    assert_eq!(broken(&judge(&reply(json!({ "data": { "rationale": "" } })))), ["data.rationale rationale"]);
}

#[test]
fn least_confidence_and_greatest_risk_of_a_tier_are_valid() {
    let exec = rules(manifest(Tier::Exec), &schema(json!({})));
    let module = Some(ModuleRules::new(&exec.manifest, &exec.contract));
    for (confidence, risk, expected) in [
        (0.9, "low", &[][..]),
        (0.9, "none", &[]),
        (0.89, "low", &["meta.confidence tier"]),
        (0.9, "medium", &["meta.risk tier"]),
    ] {
        let answer = reply(json!({ "meta": { "confidence": confidence, "risk": risk } }));
        assert_eq!(broken(&verify(&answer.to_string(), None, module)), expected, "{confidence} {risk}");
    }
}

/// Names of media types, and whether they mean an image, audio, video or a document.
const NAMES: [(&str, bool); 41] = [
    ("image/png", true),
    ("image/jpg", true),
    ("IMAGE/JPEG", true),
    ("Image/Png", true),
    ("iMaGe/x-PNG", true),
    (" image/png ", true),
    ("image/png;", true),
    ("image/png; charset=binary", true),
    ("image/svg+xml", true),
    ("image/vnd.adobe.photoshop", true),
    ("audio/webm;codecs=opus", true),
    ("audio/webm ; codecs=\"opus\"", true),
    ("audio/x-wav", true),
    ("audio/vnd.wave;codec=1", true),
    ("audio/mp4a-latm", true),
    ("video/x_matroska", true),
    ("video/mp4; codecs=\"avc1.42E01E, mp4a.40.2\"", true),
    ("application/ogg", true),
    ("application/mp4", true),
    ("Application/OGG", true),
    ("application/pdf", true),
    ("application/x-pdf", true),
    ("application/X-PDF;version=1.7", true),
    ("application/acrobat", true),
    ("text/pdf", true),
    ("", true),
    ("  ", true),
    ("; charset=binary", true),
    ("application/octet-stream", true),
    ("Application/Octet-Stream; x=y", true),
    ("binary/octet-stream", true),
    ("application/octet", false),
    ("octet-stream", false),
    ("image", false),
    ("image/", false),
    ("image/png/x", false),
    ("image/p ng", false),
    ("text/plain", false),
    ("application/json", false),
    ("font/woff2", false),
    ("x-image/png", false),
];

#[test]
fn names_of_media_types_are_the_same_for_the_rule_the_schema_and_the_contract() {
    let input = json!({ "properties": { "file": { "$ref": "#/$defs/MediaInput" } } });
    let mut manifest = manifest(Tier::Decision);
    manifest.modalities.input = cog_spec::Modality::ALL.to_vec();
    let contract =
        cog_schema::Contract::compile(&json!({ "input": input, "data": {} }), &Rules::from(&manifest));
    let contract = contract.unwrap();
    for (name, is_media) in NAMES {
        assert_eq!(media_type::is_media(name), is_media, "{name}: the rule");
        let item = json!({ "type": "base64", "media_type": name, "data": "iVBORw==" });
        let verdict = verify(&item.to_string(), Some(Kind::Media), None);
        assert_eq!(verdict.valid, is_media, "{name}: the published schema {:?}", broken(&verdict));
        let input = cog_json::Value::from(json!({ "file": item }));
        assert_eq!(
            contract.check_input(input.node()).is_empty(),
            is_media,
            "{name}: the contract of a module"
        );
        if is_media && !media_type::says_nothing(name) {
            let canonical = media_type::canonical(name);
            assert!(media_type::is_media(&canonical), "{name} {canonical}");
        }
    }
}

#[test]
fn checks_of_the_module_are_run() {
    let more = json!({ "total": { "type": "number" } });
    let own = rules(manifest(Tier::Decision), &schema(more));
    let check = |name: &str, that: &str, severity| CheckRule {
        name: name.to_owned(),
        that: Some(that.to_owned()),
        severity,
        ..CheckRule::default()
    };
    let (checks, findings) = Checks::compile(
        &[
            check("positive", "$.data.total > 0", CheckSeverity::Error),
            check("small", "$.data.total < 9", CheckSeverity::Warning),
            check("as_asked", "$.data.total <= $.input.max", CheckSeverity::Error),
            check("sure", "$.meta.confidence > 0.5", CheckSeverity::Error),
        ],
        Some(&own.contract),
    );
    assert_eq!(findings, []);
    let module = ModuleRules { checks: Some(&checks), ..ModuleRules::new(&own.manifest, &own.contract) };
    let found = |total: f64, kind, module| {
        let answer = reply(json!({ "data": { "total": total } }));
        let document = if kind == Kind::Answer { &answer["data"] } else { &answer };
        let verdict = verify(&document.to_string(), Some(kind), Some(module));
        let warnings: Vec<String> =
            verdict.warnings.iter().map(|one| format!("{} {}", one.path, one.rule)).collect();
        (broken(&verdict), warnings)
    };
    let not_run = || " check_not_run".to_owned();
    let (violations, warnings) = found(0.0, Kind::Envelope, module);
    assert_eq!((violations, warnings), (vec!["data.total check:positive".to_owned()], vec![not_run()]));
    let (violations, warnings) = found(9.0, Kind::Answer, module);
    let expected = vec!["data.total check:small".to_owned(), not_run(), not_run()];
    assert_eq!((violations, warnings), (vec![], expected));
    let input = Value::parse(r#"{"max": 3}"#).unwrap();
    let with_input = ModuleRules { input: Some(input.node()), ..module };
    let (violations, warnings) = found(4.0, Kind::Envelope, with_input);
    assert_eq!((violations, warnings), (vec!["data.total check:as_asked".to_owned()], vec![]));
}
