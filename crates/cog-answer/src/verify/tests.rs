use cog_json::ToJson;
use cog_spec::Tier;
use serde_json::json;

use super::*;
use crate::testing::{chunks, manifest, plain, reply, rules, schema};

/// Returns `path rule` of each violation.
fn broken(verdict: &Verdict) -> Vec<String> {
    verdict.violations.iter().map(|one| format!("{} {}", one.path, one.rule)).collect()
}

fn judge(document: &serde_json::Value) -> Verdict {
    verify(&document.to_string(), None, None)
}

mod rules;

mod detection {
    use super::*;

    #[test]
    fn each_kind_is_read_by_its_name() {
        assert!(Kind::ALL.iter().map(Kind::to_string).eq(Kind::NAMES.iter().copied()));
        assert!(Kind::ALL.iter().all(|kind| kind.as_str().parse() == Ok(*kind)));
        assert_eq!("page".parse::<Kind>().unwrap_err().allowed, Kind::NAMES);
    }

    #[test]
    fn detects_the_kind() {
        let cases = [
            (r#"[{"role": "user"}]"#, Some(Kind::Messages)),
            (r#"{"messages": [{"role": "user"}]}"#, Some(Kind::Messages)),
            ("{\n  \"role\": \"user\",\n  \"content\": []\n}", Some(Kind::Messages)),
            ("{\"role\": \"user\"}\n{\"role\": \"user\"}\n", Some(Kind::Messages)),
            (r#"{"protocol": "harmony_handoff_v1"}"#, Some(Kind::Handoff)),
            ("{\"chunk\": {}}\n{\"final\": true}\n", Some(Kind::Stream)),
            (r#"[{"streaming": true}, {}]"#, Some(Kind::Stream)),
            (r#"{"ok": true, "streaming": true}"#, Some(Kind::Chunk)),
            (r#"{"final": true}"#, Some(Kind::Chunk)),
            (r#"{"ok": false}"#, Some(Kind::Envelope)),
            (r#"{"type": "url", "url": "https://example.com/a.png"}"#, Some(Kind::Media)),
            (r#"{"result": 1}"#, None),
            ("[]", None),
        ];
        for (text, kind) in cases {
            assert_eq!(verify(text, None, None).kind, kind, "{text}");
        }
        let module = plain();
        let verdict =
            verify(r#"{"result": 1}"#, None, Some(ModuleRules::new(&module.manifest, &module.contract)));
        assert_eq!(verdict.kind, Some(Kind::Answer));
    }

    #[test]
    fn invalid_json_is_one_violation() {
        for text in ["", "so what", "{\"ok\": true,}", "{\"chunk\": 1}\nnot json\n"] {
            let verdict = verify(text, None, None);
            assert_eq!(broken(&verdict), [" json"], "{text}");
        }
        let verdict = verify("{\n  \"ok\": tru\n}", None, None);
        assert_eq!(verdict.violations[0].message, "not JSON: expected a value, at line 2, column 9");
    }

    #[test]
    fn verdict_has_a_json_form() {
        let verdict = verify(r#"{"type": "ftp", "url": "x"}"#, None, None);
        let expected = concat!(
            r#"{"valid":false,"kind":"media","violations":[{"path":"type","rule":"type","#,
            r#""message":"found a string; allowed: `url`, `base64`, `file` or `upload_ref`"}]}"#
        );
        assert_eq!(verdict.to_json(), expected);
    }

    #[test]
    fn messages_have_errors_and_warnings() {
        let verdict = verify(r#"[{"role": "user"}, {"role": "developer", "content": "a"}]"#, None, None);
        assert_eq!(broken(&verdict), ["messages[0].content required"]);
        assert_eq!(verdict.warnings[0].rule, "role");
        assert!(verify(r#"[{"role": "developer", "content": "a"}]"#, None, None).valid);
    }
}

mod handoffs {
    use super::*;

    #[test]
    fn checks_form_and_hashes() {
        let hash = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let packet = json!({
            "protocol": "harmony_handoff_v1",
            "meta": { "source_agent": "a", "target_agent": "b", "timestamp": "2024-03-20T10:00:00Z" },
            "context": { "primary_objective": "x", "constraints": [], "artifacts": {} },
        });
        assert_eq!(broken(&verify(&packet.to_string(), None, None)), [] as [&str; 0]);
        let mut sealed = packet.clone();
        sealed["meta"]["objective_hash"] = hash("0").into();
        let paths = broken(&verify(&sealed.to_string(), None, None));
        assert_eq!(paths, ["context.primary_objective objective_hash"]);
        let mut silent = packet.clone();
        silent["context"] = json!({ "primary_objective": "x", "artifacts": null });
        let paths = broken(&verify(&silent.to_string(), None, None));
        assert_eq!(paths, ["context.constraints required", "context.artifacts required"]);
        let mut other = packet;
        other["protocol"] = "harmony_handoff_v9".into();
        assert_eq!(broken(&verify(&other.to_string(), None, None)), ["protocol protocol"]);
    }
}

mod envelopes {
    use super::*;

    #[test]
    fn success_and_failure_are_valid() {
        assert_eq!(broken(&judge(&reply(json!({})))), [] as [&str; 0]);
        assert_eq!(broken(&judge(&reply(json!({ "error": null })))), [] as [&str; 0]);
        let meta = json!({ "confidence": 0.2, "risk": "high", "explain": "No." });
        for code in ["E2006", "BEHAVIOR_CHANGE_REQUIRED", "E5001"] {
            let error = json!({ "code": code, "message": "x" });
            let failure = json!({ "ok": false, "meta": meta, "error": error, "partial_data": { "a": 1 } });
            assert_eq!(broken(&judge(&failure)), [] as [&str; 0], "{code}");
        }
    }

    #[test]
    fn each_violation_is_listed_with_its_place() {
        let cases = [
            (json!({ "meta": { "confidence": 1.5 } }), "meta.confidence maximum"),
            (json!({ "meta": { "explain": "é".repeat(281) } }), "meta.explain maxLength"),
            (json!({ "meta": "fine" }), "meta type"),
            (json!({ "data": null }), "data type"),
            (json!({ "error": { "code": "E2006", "message": "x" } }), "error envelope"),
            (json!({ "result": 1 }), "result additionalProperties"),
            (
                json!({ "usage": {}, "provider": "x", "version": "2.2", "module": "m" }),
                "usage additionalProperties",
            ),
            (json!({ "_warnings": [{ "code": "W2001" }] }), "_warnings[0].message required"),
        ];
        for (change, expected) in cases {
            assert_eq!(broken(&judge(&reply(change))), [expected]);
        }
        let failure = json!({
            "ok": false, "meta": { "confidence": 0, "risk": "high", "explain": "No." }, "data": {},
            "error": { "code": "E4099", "message": "x", "recoverable": "yes" }, "partial_data": [],
        });
        assert_eq!(
            broken(&judge(&failure)),
            ["data envelope", "error.recoverable type", "error.code error_code", "partial_data type"]
        );
    }

    #[test]
    fn checks_the_keys_of_the_runtime() {
        let usage = |input, output: u64, total: u64| {
            let usage: serde_json::Value =
                json!({ "input_tokens": input, "output_tokens": output, "total_tokens": total });
            json!({ "usage": usage })
        };
        let inside = json!({ "rule": "trim_explain", "path": "meta.explain", "before": " x", "after": "x" });
        let outside = json!({ "rule": "trailing_comma", "path": "data.a", "before": 1, "after": 0 });
        let good = json!({
            "model": "openai/gpt", "processing_time_ms": 0, "latency_ms": 3, "usage": usage(json!(3), 4, 7)["usage"], "attempts": 2,
            "repairs": [inside, outside], "trace_id": "t", "media_processed": [{}], "media_validation": {},
            "cost": { "amount": 0.1 },
        });
        assert_eq!(broken(&judge(&reply(json!({ "meta": good })))), [] as [&str; 0]);
        let cases = [
            (json!({ "model": 7 }), "model type"),
            (json!({ "processing_time_ms": 1.5 }), "processing_time_ms type"),
            (json!({ "latency_ms": -1 }), "latency_ms type"),
            (json!({ "usage": 5 }), "usage type"),
            (usage(json!(-1), 4, 3), "usage.input_tokens type"),
            (usage(json!(3), 4, 8), "usage.total_tokens sum"),
            (json!({ "attempts": "no" }), "attempts type"),
            (json!({ "attempts": 0 }), "attempts type"),
            (json!({ "repairs": 5 }), "repairs type"),
            (json!({ "repairs": [{ "path": "" }] }), "repairs[0].rule required"),
            (
                json!({ "repairs": [{ "rule": "x", "path": "data.a", "before": "y" }] }),
                "repairs[0].before type",
            ),
            (json!({ "trace_id": 3 }), "trace_id type"),
            (json!({ "media_processed": ["a.png"] }), "media_processed[0] type"),
            (json!({ "media_validation": true }), "media_validation type"),
            (json!({ "cost": 3 }), "cost type"),
        ];
        for (bad, expected) in cases {
            let envelope = reply(json!({ "meta": bad }));
            assert_eq!(broken(&judge(&envelope)), [format!("meta.{expected}")], "{bad}");
            let meta = &envelope["meta"];
            let first = json!({ "ok": true, "streaming": true, "session_id": "s", "meta": meta });
            assert_eq!(broken(&judge(&first)), [format!("meta.{expected}")], "{bad}");
            let end = json!({ "final": true, "meta": meta, "data": {} });
            assert_eq!(broken(&judge(&end)), [format!("meta.{expected}")], "{bad}");
            let update = json!({ "chunk": { "seq": 1, "type": "snapshot", "field": "meta", "data": meta } });
            assert_eq!(broken(&judge(&update)), [format!("chunk.data.{expected}")], "{bad}");
        }
    }

    #[test]
    fn module_adds_its_schema_and_tier() {
        let with_module = |rules: &crate::AnswerRules, more| {
            broken(&verify(
                &reply(more).to_string(),
                None,
                Some(ModuleRules::new(&rules.manifest, &rules.contract)),
            ))
        };
        assert_eq!(with_module(&plain(), json!({})), [] as [&str; 0]);
        assert_eq!(with_module(&plain(), json!({ "data": { "result": 7 } })), ["data.result type"]);
        let exec = rules(manifest(Tier::Exec), &schema(json!({})));
        let unsure = json!({ "meta": { "confidence": 0.8999, "risk": "medium" } });
        assert_eq!(with_module(&exec, unsure.clone()), ["meta.confidence tier", "meta.risk tier"]);
        assert_eq!(with_module(&plain(), unsure), [] as [&str; 0]);
        let changes = json!({ "changes": { "type": "array", "items": { "type": "object" } } });
        let aggregating = rules(manifest(Tier::Decision), &schema(changes));
        let risky = json!({ "data": { "changes": [{ "risk": "high" }] } });
        assert_eq!(with_module(&aggregating, risky), ["meta.risk risk_rule"]);
    }

    #[test]
    fn missing_rationale_that_the_module_does_not_name_is_a_warning() {
        let silent = json!({ "data": { "properties": { "result": { "type": "string" } } } });
        let required = json!({ "data": { "required": ["rationale"] } });
        let bare = manifest(Tier::Decision);
        let mut strict = manifest(Tier::Decision);
        strict.constraints.require_rationale = true;
        let cases = [(&bare, &silent, true), (&bare, &required, false), (&strict, &silent, false)];
        for (manifest, schema, is_warning) in cases {
            let rules = rules(manifest.clone(), schema);
            let answer = reply(json!({ "data": { "rationale": "" } })).to_string();
            let verdict = verify(&answer, None, Some(ModuleRules::new(&rules.manifest, &rules.contract)));
            assert_eq!(
                (verdict.valid, verdict.warnings.len()),
                (is_warning, usize::from(is_warning)),
                "{schema}"
            );
        }
    }

    #[test]
    fn code_that_the_runtime_replaced_is_checked_as_the_model_wrote_it() {
        let mut schema = schema(json!({}));
        schema["error"] = json!({ "properties": { "code": { "enum": ["UNSUPPORTED_LANGUAGE", "ODD"] } } });
        let rules = rules(manifest(Tier::Decision), &schema);
        let meta = json!({ "confidence": 0.9, "risk": "none", "explain": "e" });
        for (code, legacy, expected) in [
            ("E1004", "UNSUPPORTED_LANGUAGE", &[][..]),
            ("E2004", "ODD", &[]),
            ("E1004", "ODD", &["error.code enum"]),
            ("E1004", "OTHER", &["error.code enum"]),
        ] {
            let error = json!({ "code": code, "message": "no", "details": { "legacy_code": legacy } });
            let failure = json!({ "ok": false, "meta": meta, "error": error }).to_string();
            let module = Some(ModuleRules::new(&rules.manifest, &rules.contract));
            assert_eq!(broken(&verify(&failure, None, module)), expected, "{code} {legacy}");
        }
    }

    #[test]
    fn checks_data_without_an_envelope() {
        let rules = plain();
        let module = Some(ModuleRules::new(&rules.manifest, &rules.contract));
        assert_eq!(broken(&verify(r#"{"result": "x"}"#, None, module)), ["data.rationale rationale"]);
        assert!(verify(r#"{"result": "x", "rationale": "y"}"#, None, module).valid);
    }
}

mod streams {
    use super::*;

    const META: &str = r#"{"ok": true, "streaming": true, "session_id": "s", "meta": {"confidence": null, "risk": "low", "explain": "…"}}"#;
    const END: &str =
        r#"{"final": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "x"}, "data": {"a": "xy"}}"#;

    fn delta(seq: u64, text: &str) -> String {
        json!({ "chunk": { "seq": seq, "type": "delta", "field": "data.a", "delta": text } }).to_string()
    }

    /// Returns the name of the server-sent event of a chunk.
    fn name(line: &str) -> &'static str {
        let keys = ["chunk", "progress", "final", "error", "meta"];
        keys.into_iter()
            .find(|key| line.contains(&format!("{{\"{key}\":")))
            .unwrap_or_else(|| if line.contains("\"error\":") { "error" } else { "meta" })
    }

    #[test]
    fn names_of_events_are_those_of_their_chunks() {
        let chunk = delta(1, "xy");
        let stream = |meta: &str, second: &str, end: &str| {
            verify(
                &format!("{meta}data: {META}\n\n{second}data: {chunk}\n\n{end}data: {END}\n\n"),
                None,
                None,
            )
        };
        let verdict = stream("event: meta\n", "event: delta\n", "event: done\n");
        assert_eq!(broken(&verdict), ["[1] event", "[2] event"]);
        assert_eq!(verdict.violations[0].message, "found `event: delta`; allowed: `event: chunk`");
        let verdict = stream("event: meta\n", "id: s:1\n", "event: final\n");
        assert_eq!((verdict.valid, verdict.warnings.len()), (true, 1));
        assert_eq!(verdict.warnings[0].rule, "beyond_specification");
    }

    #[test]
    fn requirements_of_rulings_are_warnings() {
        let bare = r#"{"chunk": {"seq": 1, "delta": "xy"}}"#;
        let state = r#"{"chunk": {"seq": 2, "data": {"a": "xy"}}}"#;
        let error = r#"{"ok": false, "error": {"code": "E2002", "message": "Late.", "recoverable": true}}"#;
        let open = META.replace(r#""ok": true, "#, "");
        for (lines, warnings) in [
            (vec![META, bare, END], 2),
            (vec![META, &delta(1, "x"), "{\"chunk\": {}}", &delta(2, "y"), END], 1),
            (vec![META, &delta(1, "x"), &delta(7, "y"), END], 1),
            (vec![META, &delta(1, "x"), state, END], 1),
            (vec![META, error], 2),
            (vec![&open, END], 1),
        ] {
            let verdict = verify(&lines.join("\n"), None, None);
            assert_eq!(broken(&verdict), [] as [&str; 0], "{lines:?}");
            let rules: Vec<&str> = verdict.warnings.iter().map(|one| one.rule.as_str()).collect();
            assert_eq!(rules, vec!["beyond_specification"; warnings], "{lines:?}");
        }
        // The specification itself requires a number, an error, and a session.
        let no_session = META.replace(r#""session_id": "s", "#, "");
        for (lines, expected) in [
            (vec![META, r#"{"chunk": {"delta": "xy"}}"#, END], "[1].chunk.seq required"),
            (vec![META, r#"{"ok": false}"#], "[1].error required"),
            (vec![&no_session, END], "[0].session_id required"),
        ] {
            assert_eq!(rules_of(&lines), [expected]);
        }
    }

    fn rules_of(lines: &[&str]) -> Vec<String> {
        broken(&verify(&lines.join("\n"), Some(Kind::Stream), None))
    }

    #[test]
    fn accepts_streams_as_lines_array_and_events() {
        let text = reply(json!({ "data": { "n": 12, "odd key": [true, {}], "big": 1e300 } })).to_string();
        let stop = Some(cog_spec::FinishReason::Stop);
        for (text, reason) in [(text.as_str(), stop), (&text[..90], None)] {
            let lines: Vec<String> = chunks(&plain(), text, 5, reason).iter().map(ToJson::to_json).collect();
            assert_eq!(broken(&verify(&lines.join("\n"), None, None)), [] as [&str; 0]);
            assert_eq!(broken(&verify(&format!("[{}]", lines.join(",")), None, None)), [] as [&str; 0]);
            let named: Vec<String> = lines
                .iter()
                .map(|line| format!("event: {}\nid: s:1\ndata: {line}\n\n", name(line)))
                .collect();
            let late: Vec<String> =
                lines.iter().map(|line| format!("data: {line}\nevent:{}\n\n", name(line))).collect();
            for events in [named.concat(), late.concat(), named.concat().replace("\n\n", "\n")] {
                let verdict = verify(&format!("retry: 1000\n: alive\n\n{events}"), None, None);
                assert_eq!((broken(&verdict), verdict.warnings), (vec![], vec![]));
            }
        }
    }

    #[test]
    fn accepts_keep_alives_and_any_order() {
        assert_eq!(rules_of(&[META, "{}", &delta(2, "y"), "", &delta(1, "x"), END]), [] as [&str; 0]);
    }

    #[test]
    fn rejects_numbers_that_repeat_or_start_late() {
        assert_eq!(rules_of(&[META, &delta(2, "xy"), END]), ["[1].chunk.seq seq"]);
        assert_eq!(rules_of(&[META, &delta(1, "x"), &delta(1, "y"), END]), ["[2].chunk.seq seq"]);
        assert_eq!(rules_of(&[META, &delta(0, "xy"), END]), ["[1].chunk.seq type", "[1].chunk.seq seq"]);
    }

    #[test]
    fn rejects_second_start_and_end() {
        assert_eq!(rules_of(&[&delta(1, "xy"), END]), ["[0] order"]);
        assert_eq!(rules_of(&[META, META, END]), ["[1] order"]);
        assert_eq!(rules_of(&[META, &delta(1, "x")]), ["[1] order"]);
        assert_eq!(rules_of(&[META, END, END]), ["[2] order"]);
        assert_eq!(broken(&verify("[]", Some(Kind::Stream), None)), [" empty"]);
    }

    #[test]
    fn chunks_must_add_up_to_the_final_value() {
        assert_eq!(rules_of(&[META, &delta(1, "x"), END]), ["[2].data.a content"]);
        let corrected = r#"{"chunk": {"seq": 2, "type": "snapshot", "field": "data.a", "data": "xy"}}"#;
        assert_eq!(rules_of(&[META, &delta(1, "x"), corrected, END]), [] as [&str; 0]);
    }

    #[test]
    fn checkpoints_must_match_the_text_so_far() {
        let marked = |seq: u64, text: &str, offset: u64, hash: &str| {
            let checkpoint = json!({ "offset": offset, "hash": hash });
            let chunk = json!({ "seq": seq, "type": "delta", "field": "data.a", "delta": text, "checkpoint": checkpoint });
            json!({ "chunk": chunk }).to_string()
        };
        // The SHA-256 of `x` starts with 2d7116, that of `xy` with 769a4e.
        let one = marked(1, "x", 1, "2d7116");
        let two = marked(2, "y", 2, "769a4e");
        assert_eq!(rules_of(&[META, &one, &two, END]), [] as [&str; 0]);
        assert_eq!(
            rules_of(&[META, &one, &marked(2, "y", 3, "769a4e"), END]),
            ["[2].chunk.checkpoint checkpoint"]
        );
        let wrong = rules_of(&[META, &marked(1, "x", 1, "000000"), &two]);
        assert_eq!(wrong, ["[2] order", "[1].chunk.checkpoint checkpoint"]);
        let start = r#"{"chunk": {"seq": 1, "type": "snapshot", "field": "data", "data": {"a": "x"}}}"#;
        assert_eq!(rules_of(&[META, start, &two, END]), [] as [&str; 0]);
        let again = r#"{"chunk": {"seq": 2, "type": "snapshot", "data": {}}}"#;
        assert_eq!(rules_of(&[META, &one, again, &marked(3, "xy", 2, "769a4e"), END]), [] as [&str; 0]);
    }

    #[test]
    fn error_must_have_the_session_of_its_stream() {
        let error = |session: &str| {
            let error = json!({ "code": "E2002", "message": "Stream interrupted: timeout exceeded", "recoverable": true });
            json!({ "ok": false, "streaming": true, "session_id": session, "error": error }).to_string()
        };
        assert_eq!(rules_of(&[META, &error("s")]), [] as [&str; 0]);
        assert_eq!(rules_of(&[META, &error("other")]), ["[1].session_id session"]);
    }

    #[test]
    fn rejects_chunks_with_invalid_fields() {
        let cases = [
            (json!({ "ok": true, "streaming": true, "session_id": "s" }), "meta required"),
            (json!({ "chunk": { "seq": 1, "type": "delta", "field": "data.a" } }), "chunk.delta required"),
            (
                json!({ "chunk": { "seq": 1, "type": "delta", "field": "a..b", "delta": "" } }),
                "chunk.field type",
            ),
            (json!({ "chunk": { "seq": 1, "type": "snapshot" } }), "chunk.data required"),
            (json!({ "chunk": { "seq": 1, "type": "patch" } }), "chunk.type type"),
            (json!({ "progress": { "stage": "x" } }), "progress.percent required"),
            (json!({ "progress": { "percent": 101 } }), "progress.percent type"),
            (
                json!({ "progress": { "percent": 1, "violation": {"path": "", "rule": ""} } }),
                "progress.violation.message required",
            ),
            (json!({ "final": true, "meta": reply(json!({}))["meta"] }), "data required"),
        ];
        for (chunk, expected) in cases {
            assert_eq!(broken(&judge(&chunk)), [expected], "{chunk}");
        }
        let usage = json!({ "input_tokens": 1250, "output_tokens": 340, "total_tokens": 1591 });
        let end = json!({ "final": true, "meta": reply(json!({}))["meta"], "data": {}, "usage": usage });
        assert_eq!(broken(&judge(&end)), ["usage.total_tokens sum"]);
    }
}

mod media {
    use super::*;

    fn rules_of(item: serde_json::Value) -> Vec<String> {
        broken(&verify(&item.to_string(), Some(Kind::Media), None))
    }

    #[test]
    fn accepts_the_forms_of_the_specification() {
        let params = json!({ "model": "dall-e-3", "quality": "hd" });
        for item in [
            json!({ "type": "url", "url": "https://example.com/image.jpg", "media_type": "image/jpeg" }),
            json!({ "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=", "generation_params": params }),
            json!({ "type": "file", "path": "a.png" }),
            json!({ "type": "upload_ref", "upload_id": "upl_1" }),
            json!({ "type": "url", "url": "http://h/a", "expires_at": "2026-02-04T12:00:00.5+01:00", "width": 1 }),
            json!({ "type": "base64", "media_type": "application/pdf", "data": "AA==" }),
        ] {
            assert_eq!(rules_of(item), [] as [&str; 0]);
        }
    }

    #[test]
    fn each_violation_is_listed() {
        let cases = [
            (json!({ "url": "https://example.com" }), "type required"),
            (json!({ "type": "url", "url": "not a url" }), "url type"),
            (json!({ "type": "url", "url": "https:///a" }), "url type"),
            (json!({ "type": "base64", "data": "AAAA" }), "media_type required"),
            (json!({ "type": "base64", "media_type": "text/html", "data": "AAAA" }), "media_type type"),
            (json!({ "type": "base64", "media_type": "image/png", "data": "AA\nA" }), "data type"),
            (json!({ "type": "base64", "media_type": "image/png", "data": "AAA" }), "data type"),
            (json!({ "type": "file" }), "path required"),
            (json!({ "type": "file", "path": "a", "width": 1.5 }), "width type"),
            (json!({ "type": "file", "path": "a", "expires_at": "tomorrow" }), "expires_at type"),
            (
                json!({ "type": "file", "path": "a", "checksum": { "algorithm": "sha1", "value": "x" } }),
                "checksum.algorithm type",
            ),
        ];
        for (item, expected) in cases {
            assert_eq!(rules_of(item.clone()), [expected], "{item}");
        }
        assert_eq!(rules_of(json!("x")), [" type"]);
    }
}
