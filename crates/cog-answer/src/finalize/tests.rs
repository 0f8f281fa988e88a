use cog_json::Value as Tree;
use cog_spec::{FinishReason, Format, Manifest, Overflow, RiskRule, Strictness, Tier};
use serde_json::{Value, json};

use crate::{AnswerRules, fold, testing::*, verify::ModuleRules};

mod confidence;
mod context;
mod details;

fn tier(tier: Tier) -> AnswerRules {
    rules(manifest(tier), &schema(json!({})))
}

/// The plain module with another manifest.
fn with(change: impl FnOnce(&mut Manifest)) -> AnswerRules {
    let mut manifest = manifest(Tier::Decision);
    change(&mut manifest);
    let changes = json!({ "type": "array", "items": { "type": "object" } });
    rules(manifest, &schema(json!({ "changes": changes, "issues": changes, "behavior_equivalence": {} })))
}

fn code_of(rules: &AnswerRules, more: Value) -> Value {
    answer(rules, &reply(more))["error"]["code"].clone()
}

fn repairs(envelope: &Value) -> Vec<String> {
    let entries = envelope["meta"]["repairs"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|one| format!("{} {}", one["rule"].as_str().unwrap(), one["path"].as_str().unwrap()))
        .collect()
}

fn warnings(envelope: &Value) -> Vec<&str> {
    let warnings = envelope["_warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
    warnings.iter().map(|one| one["code"].as_str().unwrap()).collect()
}

mod tiers {
    use super::*;

    #[test]
    fn exec_demands_confidence_and_low_risk() {
        let exec = tier(Tier::Exec);
        assert_eq!(code_of(&exec, json!({ "meta": { "confidence": 0.9, "risk": "none" } })), Value::Null);
        let unsure = answer(&exec, &reply(json!({ "meta": { "confidence": 0.8999 } })));
        assert_eq!(unsure["error"]["code"], "E2001");
        assert_eq!(unsure["error"]["recoverable"], true);
        assert_eq!(unsure["error"]["details"]["meta"]["confidence"], 0.8999);
        assert_eq!(unsure["partial_data"], reply(json!({}))["data"]);
        assert_eq!(unsure["meta"]["confidence"], 0.0);
        let risky = answer(&exec, &reply(json!({ "meta": { "risk": "medium" } })));
        assert_eq!(
            (&risky["error"]["code"], &risky["error"]["recoverable"]),
            (&json!("E3006"), &json!(false))
        );
        assert_eq!(risky["partial_data"], reply(json!({}))["data"]);
    }

    #[test]
    fn decision_warns_below_one_half_and_exploration_does_not() {
        let unsure = |confidence: f64| reply(json!({ "meta": { "confidence": confidence } }));
        assert_eq!(warnings(&answer(&tier(Tier::Decision), &unsure(0.49))), ["W2001"]);
        assert_eq!(warnings(&answer(&tier(Tier::Decision), &unsure(0.5))), [] as [&str; 0]);
        assert_eq!(warnings(&answer(&tier(Tier::Exploration), &unsure(0.01))), [] as [&str; 0]);
    }

    #[test]
    fn a_changed_behaviour_limits_confidence() {
        let rules =
            with(|manifest| manifest.constraints.behavior_equivalence_false_max_confidence = Some(0.7));
        let changed = |same: bool, confidence: f64| json!({ "data": { "behavior_equivalence": same }, "meta": { "confidence": confidence } });
        assert_eq!(code_of(&rules, changed(false, 0.7)), Value::Null);
        assert_eq!(code_of(&rules, changed(false, 0.71)), "E3006");
        assert_eq!(code_of(&rules, changed(true, 0.71)), Value::Null);
    }
}

mod risk {
    use super::*;

    fn risks(rule: RiskRule, own: &str, list: &str, risks: Value) -> Value {
        let rules = with(|manifest| manifest.risk_rule = rule);
        let entries: Vec<Value> =
            risks.as_array().unwrap().iter().map(|risk| json!({ "risk": risk })).collect();
        answer(&rules, &reply(json!({ "meta": { "risk": own }, "data": { list: entries } })))
    }

    #[test]
    fn the_greatest_of_the_list_takes_the_place_of_the_models_own() {
        let changes = RiskRule::MaxChangesRisk;
        let raised = risks(changes, "low", "changes", json!(["none", "high", "medium"]));
        assert_eq!((&raised["meta"]["risk"], raised.get("_warnings")), (&json!("high"), None));
        let lowered = risks(changes, "high", "changes", json!(["none", "low"]));
        assert_eq!((&lowered["meta"]["risk"], warnings(&lowered)), (&json!("low"), vec!["W3008"]));
        let strange = risks(changes, "low", "changes", json!(["low", "catastrophic"]));
        assert_eq!(strange["meta"]["risk"], "high");
        let issues =
            risks(RiskRule::MaxIssuesRisk, "low", "issues", json!([{ "custom": "x", "reason": "y" }]));
        assert_eq!(issues["meta"]["risk"], "high");
    }

    #[test]
    fn without_a_risk_in_the_list_the_models_own_stays() {
        for (rule, list, entries) in [
            (RiskRule::MaxChangesRisk, "changes", json!([])),
            (RiskRule::MaxChangesRisk, "changes", json!([7])),
            (RiskRule::MaxChangesRisk, "issues", json!(["high"])),
            (RiskRule::MaxIssuesRisk, "changes", json!(["high"])),
            (RiskRule::Explicit, "changes", json!(["high"])),
        ] {
            assert_eq!(risks(rule, "low", list, entries)["meta"]["risk"], "low");
        }
    }

    /// A module whose meta schema allows only these levels.
    fn limited(levels: Value) -> AnswerRules {
        let mut schema = schema(json!({ "changes": { "type": "array" } }));
        schema["meta"] = json!({ "properties": { "risk": { "enum": levels } } });
        rules(manifest(Tier::Decision), &schema)
    }

    #[test]
    fn schema_of_meta_decides_about_the_aggregated_risk() {
        let changes = |own: &str, risk: &str| {
            let more = json!({ "meta": { "risk": own }, "data": { "changes": [{ "risk": risk }] } });
            answer(&limited(json!(["none", "low"])), &reply(more))
        };
        let excluded = changes("low", "high");
        assert_eq!(excluded["error"]["code"], "E3001", "{excluded}");
        let violation = &excluded["error"]["details"]["violations"][0];
        assert_eq!(violation["path"], "meta.risk");
        assert!(violation["message"].as_str().unwrap().contains("max_changes_risk"), "{violation}");
        // What the rule replaces is not held against the schema.
        let replaced = changes("high", "low");
        assert_eq!((&replaced["ok"], &replaced["meta"]["risk"]), (&json!(true), &json!("low")));
        let without_list =
            answer(&limited(json!(["none", "low"])), &reply(json!({ "meta": { "risk": "high" } })));
        assert_eq!(without_list["error"]["code"], "E3005");
    }

    #[test]
    fn schema_of_meta_decides_about_the_risk_of_the_parts() {
        let mut composed = limited(json!(["low"]));
        composed.parts_risk = Some(cog_spec::Risk::Medium);
        let raised = answer(&composed, &reply(json!({})));
        assert_eq!(raised["error"]["details"]["violations"][0]["path"], "meta.risk");
        assert_eq!(raised["error"]["code"], "E3001");
    }

    #[test]
    fn verify_agrees_with_a_run_about_the_aggregated_risk() {
        for (levels, valid) in [(json!(["none", "low"]), false), (json!(["none", "low", "high"]), true)] {
            let rules = limited(levels);
            let more = json!({ "meta": { "risk": "high" }, "data": { "changes": [{ "risk": "high" }] } });
            let reply = reply(more);
            let verdict = crate::verify::verify(
                &reply.to_string(),
                None,
                Some(ModuleRules::new(&rules.manifest, &rules.contract)),
            );
            assert_eq!(verdict.valid, valid, "{:?}", verdict.violations);
            assert_eq!(answer(&rules, &reply)["ok"], valid);
        }
    }

    #[test]
    fn object_is_a_risk_only_if_the_schema_of_meta_allows_one() {
        let custom = json!({ "meta": { "risk": { "custom": "legal", "reason": "Faces are visible." } } });
        let object = json!({ "type": "object" });
        for (risk, code) in [
            (None, Value::Null),
            (Some(json!({})), Value::Null),
            (Some(json!({ "description": "How risky it is." })), Value::Null),
            (Some(json!({ "oneOf": [{ "enum": ["low"] }, object] })), Value::Null),
            (Some(json!({ "enum": ["none", "low", "medium", "high"] })), json!("E3005")),
            (Some(json!({ "type": "string" })), json!("E3005")),
        ] {
            let mut schema = schema(json!({}));
            if let Some(risk) = &risk {
                schema["meta"] = json!({ "properties": { "risk": risk } });
            }
            let rules = rules(manifest(Tier::Decision), &schema);
            assert_eq!(code_of(&rules, custom.clone()), code, "{risk:?}");
        }
    }

    #[test]
    fn a_risk_that_was_never_stated_is_not_lowered() {
        let text = r#"{"ok": true, "meta": {"confidence": 0.9, "explain": "x"}, "data": {"result": "r", "rationale": "y", "changes": [{"risk": "low"}]}}"#;
        let envelope = answer_text(&with(|_| {}), text);
        assert_eq!((&envelope["meta"]["risk"], warnings(&envelope).len()), (&json!("low"), 0));
    }
}

mod repair {
    use super::*;

    #[test]
    fn absent_meta_is_filled() {
        let envelope =
            answer_text(&plain(), r#"{"ok": true, "data": {"result": "r", "rationale": " Because. "}}"#);
        assert_eq!(envelope["meta"]["confidence"], 0.5);
        assert_eq!(envelope["meta"]["risk"], "medium");
        assert_eq!(envelope["meta"]["explain"], "Because.");
        assert_eq!(
            repairs(&envelope),
            ["fill_confidence meta.confidence", "fill_risk meta.risk", "fill_explain meta.explain"]
        );
        assert_eq!(
            envelope["meta"]["repairs"][0],
            json!({ "rule": "fill_confidence", "path": "meta.confidence", "after": 0.5 })
        );
    }

    #[test]
    fn a_demanded_confidence_is_not_filled() {
        let rules = with(|manifest| manifest.constraints.require_confidence = true);
        let envelope =
            answer_text(&rules, r#"{"ok": true, "meta": {}, "data": {"result": "r", "rationale": "y"}}"#);
        assert_eq!(envelope["error"]["details"]["violations"][0]["path"], "meta.confidence");
    }

    #[test]
    fn a_long_explain_is_cut_and_a_long_rationale_is_not() {
        let long = "é".repeat(300);
        let envelope = answer(
            &plain(),
            &reply(json!({ "meta": { "explain": format!(" {long}") }, "data": { "rationale": long } })),
        );
        assert_eq!(envelope["meta"]["explain"], "é".repeat(280));
        assert_eq!(envelope["data"]["rationale"], long);
        assert_eq!(repairs(&envelope), ["trim_explain meta.explain", "truncate_explain meta.explain"]);
        assert_eq!(envelope["meta"]["repairs"][1]["before"], long);
    }

    #[test]
    fn near_json_is_read_and_recorded_with_sizes_alone() {
        let text = "Sure!\n```json\n{'ok': True, // yes\n \"data\": {\"result\": \"a\nb\", \"rationale\": \"y\",}}\n```\nBye";
        let envelope = answer_text(&plain(), text);
        assert_eq!(envelope["data"], json!({ "result": "a\nb", "rationale": "y" }));
        let rules: Vec<String> = repairs(&envelope);
        for expected in [
            "surrounding_text ",
            "code_fence ",
            "single_quotes ok",
            "python_literal ok",
            "comment ",
            "trailing_comma data",
            "raw_newline data.result",
        ] {
            assert!(rules.iter().any(|rule| rule == expected), "{expected} in {rules:?}");
        }
        let sizes = envelope["meta"]["repairs"].as_array().unwrap().iter();
        assert!(
            sizes
                .filter(|one| !one["path"].as_str().unwrap().starts_with("meta"))
                .all(|one| one["before"].is_u64())
        );
    }

    #[test]
    fn a_strict_run_refuses_every_repair_and_nothing_else() {
        let mut strict = plain();
        strict.strict = true;
        assert_eq!(answer(&strict, &reply(json!({ "error": null })))["ok"], true);
        let fenced = format!("```json\n{}\n```", reply(json!({})));
        let envelope = answer_text(&strict, &fenced);
        assert_eq!(envelope["error"]["code"], "E3001");
        assert_eq!(envelope["error"]["details"]["repairs"][0]["rule"], "code_fence");
        assert_eq!(envelope["partial_data"], reply(json!({}))["data"]);
    }

    #[test]
    fn types_and_enums_are_never_repaired() {
        for (more, code) in [
            (json!({ "meta": { "confidence": "0.9" } }), "E3001"),
            (json!({ "meta": { "risk": "severe" } }), "E3005"),
            (json!({ "meta": "fine" }), "E3001"),
            (json!({ "data": { "result": 7 } }), "E3001"),
            (json!({ "ok": "true" }), "E3001"),
        ] {
            assert_eq!(code_of(&plain(), more.clone()), code, "{more}");
        }
    }

    #[test]
    fn a_reply_that_is_no_envelope_is_wrapped() {
        let bare = r#"{"result": "r", "rationale": "y", "confidence": 0.9, "risk": "low"}"#;
        let envelope = answer_text(&plain(), bare);
        assert_eq!(envelope["data"], serde_json::from_str::<Value>(bare).unwrap());
        assert_eq!(
            (&envelope["meta"]["confidence"], &envelope["meta"]["risk"]),
            (&json!(0.9), &json!("low"))
        );
        assert_eq!(repairs(&envelope), ["wrap ", "fill_explain meta.explain"]);
        assert_eq!(envelope.get("_warnings"), None);
        let unwrapping = with(|manifest| manifest.compat.runtime_auto_wrap = false);
        assert_eq!(answer_text(&unwrapping, bare)["error"]["details"]["violations"][0]["path"], "ok");
    }

    #[test]
    fn an_envelope_without_ok_is_not_data() {
        let meta = json!({ "confidence": 0.31, "risk": "high", "explain": "Faces are visible." });
        let data = reply(json!({}))["data"].clone();
        let open = json!({ "input": {}, "output": { "type": "object" } });
        let old = rules(Manifest::with_defaults("old", Format::V21, None), &open);
        for (ok, rule) in [(None, "required"), (Some(json!("true")), "type"), (Some(json!(null)), "required")]
        {
            let mut lacking = json!({ "meta": meta, "data": data });
            if let Some(ok) = ok {
                lacking["ok"] = ok;
            }
            for rules in [&plain(), &old] {
                let envelope = answer(rules, &lacking);
                assert_eq!(envelope["error"]["code"], "E3001", "{lacking}");
                let violation = &envelope["error"]["details"]["violations"][0];
                assert_eq!((&violation["path"], &violation["rule"]), (&json!("ok"), &json!(rule)));
                assert_eq!(envelope["error"]["details"]["meta"], meta);
                assert_eq!(envelope["partial_data"], data);
            }
        }
        let failed = json!({ "meta": meta, "error": { "code": "E2004", "message": "No." } });
        assert_eq!(answer(&plain(), &failed)["error"]["details"]["violations"][0]["path"], "ok");
    }

    #[test]
    fn every_violation_of_an_envelope_without_ok_is_reported() {
        let lacking = json!({ "meta": { "confidence": 2 }, "data": { "result": 7, "rationale": "r" } });
        let envelope = answer(&plain(), &lacking);
        let violations = envelope["error"]["details"]["violations"].as_array().unwrap();
        let paths: Vec<&str> = violations.iter().map(|one| one["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["ok", "meta.confidence", "data.result"]);
    }

    #[test]
    fn an_older_format_takes_data_and_envelopes() {
        let schema = json!({ "input": {}, "output": { "type": "object", "required": ["n"] } });
        let old = rules(Manifest::with_defaults("old", Format::V21, None), &schema);
        let bare = answer_text(&old, r#"{"n": [1, 2], "risk": {"score": 3}}"#);
        assert_eq!(bare["data"], json!({ "n": [1, 2], "risk": { "score": 3 } }));
        assert_eq!(bare["meta"]["risk"], "medium");
        let meta = r#"{"confidence": 0.9, "risk": "low", "explain": "x"}"#;
        let enveloped = answer_text(&old, &format!(r#"{{"meta": {meta}, "ok": true, "data": {{"n": 1}}}}"#));
        assert_eq!(enveloped["data"], json!({ "n": 1 }));
        assert_eq!(repairs(&enveloped), [] as [String; 0]);
    }
}

mod citations {
    use super::*;

    fn cited(anchor: &str) -> Value {
        let map = json!({ "a": { "source_type": "pdf_document", "source_id": "doc" } });
        json!({ "data": { "result": format!("Yes. <cite id=\"{anchor}\"/>"), "citation_map": map } })
    }

    #[test]
    fn invalid_citations_are_warnings_below_tier_exec() {
        for one in [Tier::Decision, Tier::Exploration] {
            let envelope = answer(&tier(one), &reply(cited("b")));
            let codes = warnings(&envelope).into_iter().filter(|code| *code == "W3006").count();
            assert_eq!((&envelope["ok"], codes), (&json!(true), 2), "{envelope}");
            assert!(!warnings(&answer(&tier(one), &reply(cited("a")))).contains(&"W3006"));
        }
    }

    #[test]
    fn invalid_citations_fail_in_tier_exec() {
        let rules = rules(manifest(Tier::Exec), &schema(json!({ "citation_map": {} })));
        let envelope = answer(&rules, &reply(cited("b")));
        assert_eq!(envelope["error"]["code"], "E3006", "{envelope}");
        assert_eq!(envelope["error"]["details"]["citations"][0]["rule"], "unresolved");
        assert_eq!(answer(&rules, &reply(cited("a")))["ok"], true);
    }

    #[test]
    fn anchor_without_a_map_is_text() {
        let anchor = json!({ "data": { "result": "Yes. <cite id=\"a\"/>" } });
        assert_eq!(answer(&tier(Tier::Exec), &reply(anchor))["ok"], true);
    }
}

mod overflow {
    use super::*;

    fn insights(count: usize) -> Value {
        let one = json!({ "text": "Also.", "suggested_mapping": "result" });
        json!({ "data": { "extensions": { "insights": vec![one; count] } } })
    }

    #[test]
    fn insights_over_the_limit_are_cut_with_a_warning() {
        let envelope = answer(&tier(Tier::Decision), &reply(insights(7)));
        assert_eq!(envelope["data"]["extensions"]["insights"].as_array().unwrap().len(), 5);
        assert_eq!(warnings(&envelope), ["W3004"]);
        assert_eq!(repairs(&envelope), ["cut_insights data.extensions.insights"]);
        assert_eq!(answer(&tier(Tier::Decision), &reply(insights(5))).get("_warnings"), None);
    }

    #[test]
    fn insights_where_there_may_be_none_are_refused() {
        let exec = tier(Tier::Exec);
        let envelope = answer(&exec, &reply(insights(1)));
        assert_eq!(envelope["error"]["code"], "E3004");
        assert_eq!(envelope["partial_data"]["result"], "fine");
        let open = with(|manifest| {
            manifest.tier = Some(Tier::Exec);
            manifest.overflow = Overflow { enabled: true, max_items: 2, ..Overflow::for_tier(Tier::Exec) };
        });
        assert_eq!(code_of(&open, insights(2)), Value::Null);
        assert_eq!(code_of(&open, insights(3)), "E3004");
    }

    #[test]
    fn an_insight_that_would_be_cut_may_be_wrong() {
        let mut more = insights(6);
        more["data"]["extensions"]["insights"][5] = json!({ "text": "unmapped" });
        assert_eq!(code_of(&tier(Tier::Decision), more.clone()), Value::Null);
        let mut aborting = tier(Tier::Decision);
        aborting.response.on_violation = Some(cog_spec::OnViolation::Abort);
        assert_eq!(code_of(&aborting, more.clone()), Value::Null, "not even while it arrives");
        more["data"]["extensions"]["insights"][4] = json!({ "text": "unmapped" });
        assert_eq!(code_of(&tier(Tier::Decision), more), "E3001");
    }
}

mod violations {
    use super::*;

    #[test]
    fn lists_every_violation_without_their_values() {
        let text = r#"{"ok": true, "meta": {"confidence": 2, "risk": "low", "explain": "x"}, "data": {"result": 7, "rationale": "", "more": [1]}}"#;
        let envelope = answer_text(&plain(), text);
        assert_eq!(envelope["error"]["code"], "E3001");
        let paths: Vec<&Value> = envelope["error"]["details"]["violations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["path"])
            .collect();
        assert_eq!(paths, ["meta.confidence", "data.result", "data.rationale"]);
        assert_eq!(envelope["partial_data"], json!({ "more": [1] }));
        let silent = with(|manifest| manifest.failure.partial_allowed = false);
        assert_eq!(answer(&silent, &reply(json!({ "data": { "result": 7 } }))).get("partial_data"), None);
    }

    #[test]
    fn a_null_in_meta_counts_as_absent_and_is_filled() {
        let filled = ["fill_confidence meta.confidence", "fill_risk meta.risk", "fill_explain meta.explain"];
        for meta in [json!(null), json!({ "confidence": null, "risk": null, "explain": null })] {
            let mut text = reply(json!({}));
            text["meta"] = meta;
            let envelope = answer(&plain(), &text);
            assert_eq!(envelope["meta"]["confidence"], 0.5);
            assert_eq!(repairs(&envelope), filled);
            let mut failed = text.clone();
            failed["ok"] = json!(false);
            failed["data"] = json!(null);
            failed["error"] = json!({ "code": "E2006", "message": "Which one?" });
            let failed = answer(&plain(), &failed);
            assert_eq!((&failed["error"]["code"], repairs(&failed).len()), (&json!("E2006"), 3));
            let mut strict = plain();
            strict.strict = true;
            assert_eq!(answer(&strict, &text)["error"]["code"], "E3001");
        }
    }

    #[test]
    fn ignores_the_keys_of_the_runtime_in_a_reply() {
        let meta = json!({ "usage": "all of it", "model": 7, "attempts": 0, "cost": 1, "own": 2 });
        let envelope = answer(&plain(), &reply(json!({ "meta": meta })));
        let meta = envelope["meta"].as_object().unwrap();
        assert_eq!(meta.keys().collect::<Vec<_>>(), ["confidence", "risk", "explain", "own"]);
    }

    #[test]
    fn unknown_fields_follow_the_strictness() {
        let strict = |strictness| with(|manifest| manifest.strictness = strictness);
        let more = reply(json!({ "data": { "extra": 1 } }));
        assert_eq!(answer(&strict(Strictness::High), &more)["error"]["code"], "E3001");
        let medium = answer(&strict(Strictness::Medium), &more);
        assert_eq!((&medium["data"]["extra"], warnings(&medium)), (&json!(1), vec!["W3007"]));
        assert_eq!(warnings(&answer(&strict(Strictness::Low), &more)), [] as [&str; 0]);
        let failed =
            answer(&strict(Strictness::Medium), &reply(json!({ "data": { "extra": 1, "result": 7 } })));
        assert_eq!((&failed["ok"], warnings(&failed)), (&json!(false), vec!["W3007"]));
    }

    #[test]
    fn no_message_repeats_the_key_and_no_value_is_changed() {
        const KEY: &str = "sk-canary-0123456789";
        let mut rules = plain();
        rules.keys = vec![cog_spec::Secret::new(KEY)];
        let good = answer(&rules, &reply(json!({ "data": { "result": KEY, KEY: 1 } })));
        assert_eq!((&good["data"]["result"], &good["data"][KEY]), (&json!(KEY), &json!(1)));
        assert_eq!(good["_warnings"][0]["message"], "`data.***` is not in the schema; it was kept.");
        let reply = reply(json!({ "meta": { "risk": KEY }, "data": { "result": 7, "more": KEY } }));
        let mut bad = answer(&rules, &reply);
        assert_eq!(bad["partial_data"]["more"], KEY);
        bad["partial_data"] = json!(null);
        assert!(bad["error"]["message"].as_str().unwrap().contains("found `***`"), "{bad}");
        assert!(!bad.to_string().contains("canary"), "{bad}");
    }

    #[test]
    fn what_is_no_answer_has_its_code() {
        for (text, code, reason) in [
            ("I would rather not.", "E1000", Value::Null),
            ("", "E1000", json!("empty")),
            (r#"{"ok": true, "data": {"result": "r" "#, "E1000", json!("truncated")),
            (r#"{"ok": true, "data": {"result" "#, "E1000", json!("truncated")),
            (r#"{"ok": true, "data": {"result": 1e999}}"#, "E3001", Value::Null),
            (r#"{"ok": true, "data": {}} {"ok": true, "data": {}}"#, "E1000", json!("several_objects")),
            ("[1, 2]", "E3001", Value::Null),
            (r#"{"ok": true}"#, "E3001", Value::Null),
            (r#"{"ok": true, "data": [1]}"#, "E3001", Value::Null),
            (r#"{"ok": false, "meta": {}}"#, "E3001", Value::Null),
        ] {
            let envelope = answer_text(&plain(), text);
            assert_eq!(envelope["error"]["code"], code, "{text}");
            assert_eq!(envelope["error"]["details"]["reason"], reason, "{text}");
            assert_eq!(envelope["meta"]["confidence"], 0.0);
        }
    }

    #[test]
    fn text_without_json_is_named_so() {
        let error = &answer_text(&plain(), "I would rather not.")["error"];
        assert_eq!(error["message"], "The reply contains no JSON object");
    }

    #[test]
    fn other_members_of_an_envelope_are_dropped_unless_they_are_null() {
        let reply = reply(json!({ "note": 1, "error": null, "partial_data": null, "_own": 1 }));
        assert_eq!(repairs(&answer(&plain(), &reply)), ["drop_member note"]);
        let null = serde_json::from_str(r#"{"note": null}"#).unwrap();
        assert_eq!(repairs(&answer(&plain(), &super::reply(null))), ["drop_member note"]);
    }

    #[test]
    fn truncated_reply_is_never_an_answer() {
        let complete = reply(json!({})).to_string();
        let cases = [
            (complete.as_str(), Some(FinishReason::Length), "E2003"),
            (&complete[..complete.len() - 3], Some(FinishReason::Length), "E2003"),
            (&complete[..complete.len() - 1], Some(FinishReason::Stop), "E1000"),
            (&complete, None, "E2010"),
            (&complete, Some(FinishReason::ContentFilter), "E2004"),
            ("No.", Some(FinishReason::Refusal(Some("No.".to_owned()))), "E2004"),
        ];
        for (text, reason, code) in cases {
            let envelope = envelope(fold(chunks(&plain(), text, 9, reason)));
            assert_eq!(envelope["error"]["code"], code, "{text}");
            assert_eq!(envelope.get("partial_data").is_some(), text.len() > 9, "{text}");
        }
    }

    #[test]
    fn partial_data_are_the_emitted_data() {
        let text = r#"{"ok": true, "data": {"result": "r", "list": [{"a": "x"}, {"b": {"c": ["#;
        let envelope = answer_text(&plain(), text);
        assert_eq!(envelope["partial_data"], json!({ "result": "r", "list": [{ "a": "x" }] }));
        assert_eq!(answer_text(&plain(), r#"{"ok": true, "data": {"result": "#).get("partial_data"), None);
        assert_eq!(answer_text(&plain(), r#"{"data": {"result": "r", "#).get("partial_data"), None);
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        let text = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "x"}, "data": {"result": "r", "rationale": "y", "n": 123456789012345678901234567890}}"#;
        let chunks = chunks(&plain(), text, text.len(), Some(FinishReason::Stop));
        let data = fold(chunks).data().map(Tree::to_string);
        assert!(data.unwrap().contains("123456789012345678901234567890"));
    }
}

mod errors_of_the_model {
    use super::*;

    fn error(rules: &AnswerRules, error: Value) -> Value {
        let meta = json!({ "confidence": 0.6, "risk": "medium", "explain": "No." });
        answer(rules, &json!({ "ok": false, "meta": meta, "data": null, "error": error }))
    }

    #[test]
    fn an_error_keeps_its_own_meta() {
        let envelope =
            error(&plain(), json!({ "code": "E2006", "message": "Which?", "suggestion": "Say which." }));
        assert_eq!(envelope["meta"], json!({ "confidence": 0.6, "risk": "medium", "explain": "No." }));
        let expected = json!({
            "code": "E2006",
            "message": "Which?",
            "recoverable": true,
            "suggestion": "Say which.",
            "details": { "origin": "model" },
        });
        assert_eq!(envelope["error"], expected);
    }

    #[test]
    fn empty_message_is_the_meaning_of_the_code() {
        for message in ["", " \n"] {
            let envelope = error(&plain(), json!({ "code": "E2006", "message": message }));
            assert_eq!(envelope["error"]["message"], cog_spec::Code::AmbiguousInput.meaning());
        }
        let declaring = with(|manifest| manifest.error_codes = vec![("E5001".to_owned(), "None".to_owned())]);
        let declared = error(&declaring, json!({ "code": "E5001", "message": "" }));
        assert_eq!(declared["error"]["message"], "None");
    }

    #[test]
    fn codes_are_normalised() {
        let declaring = with(|manifest| manifest.error_codes = vec![("E5001".to_owned(), "None".to_owned())]);
        for (said, code, legacy) in [
            ("E2005", "E2005", Value::Null),
            ("BEHAVIOR_CHANGE_REQUIRED", "E2005", json!("BEHAVIOR_CHANGE_REQUIRED")),
            ("NO_SIMPLIFICATION_POSSIBLE", "E2004", json!("NO_SIMPLIFICATION_POSSIBLE")),
            ("E5001", "E5001", Value::Null),
        ] {
            let envelope = error(&declaring, json!({ "code": said, "message": "x" }));
            assert_eq!(envelope["error"]["code"], code);
            assert_eq!(envelope["error"]["details"]["legacy_code"], legacy);
        }
        for said in ["E5002", "E4099", "SOMETHING", ""] {
            let envelope = error(&declaring, json!({ "code": said, "message": "x" }));
            assert_eq!(envelope["error"]["code"], "E3001", "{said}");
            assert_eq!(envelope["error"]["details"]["model_error"]["code"], said);
        }
    }

    #[test]
    fn a_code_that_the_modules_error_schema_allows_is_kept() {
        let with_code = |code: Value| {
            let mut schema = schema(json!({}));
            schema["error"] = json!({ "required": ["code"], "properties": { "code": code } });
            rules(manifest(Tier::Decision), &schema)
        };
        let numbers = with_code(json!({ "type": "string", "pattern": "^E[1-4][0-9]{3}$" }));
        let any = with_code(json!({ "type": "string" }));
        for (rules, said, code, recoverable) in [
            (&numbers, "E2042", "E2042", json!(true)),
            (&numbers, "E3042", "E3042", json!(false)),
            (&any, "E1099", "E1099", json!(true)),
            (&any, "FILE_TOO_COMPLEX", "E2004", json!(false)),
        ] {
            let envelope = error(rules, json!({ "code": said, "message": "Split it." }));
            assert_eq!(envelope["error"]["code"], code, "{said}: {envelope}");
            assert_eq!(
                envelope["error"].get("recoverable").cloned().unwrap_or_default(),
                recoverable,
                "{said}"
            );
            assert_eq!(envelope["meta"]["confidence"], 0.6, "{said}");
            let legacy = if said == code { Value::Null } else { json!(said) };
            assert_eq!(envelope["error"]["details"]["legacy_code"], legacy, "{said}");
        }
        assert_eq!(error(&any, json!({ "code": "E7001", "message": "x" }))["error"]["code"], "E3001");
        let own = json!({ "code": "E2042", "message": "Split it.", "recoverable": false });
        assert_eq!(error(&numbers, own)["error"]["recoverable"], false);
        let excluded = error(&numbers, json!({ "code": "FILE_TOO_COMPLEX", "message": "Split it." }));
        assert_eq!(excluded["error"]["code"], "E3001");
        assert_eq!(excluded["error"]["details"]["model_error"]["code"], "FILE_TOO_COMPLEX");
    }

    #[test]
    fn the_modules_error_schema_sees_the_normalised_code() {
        let mut schema = schema(json!({}));
        schema["error"] = json!({ "properties": { "code": { "pattern": "^E[1-4][0-9]{3}$" }, "message": { "minLength": 5 } } });
        let rules = rules(manifest(Tier::Decision), &schema);
        let normalised =
            error(&rules, json!({ "code": "BEHAVIOR_CHANGE_REQUIRED", "message": "It would change." }));
        assert_eq!(normalised["error"]["code"], "E2005");
        let short = error(&rules, json!({ "code": "E2005", "message": "No" }));
        assert_eq!(short["error"]["details"]["violations"][0]["path"], "error.message");
    }

    #[test]
    fn partial_data_of_the_model_is_returned() {
        let failure = json!({
            "ok": false, "error": { "code": "E2007", "message": "x" },
            "partial_data": { "result": 7, "rationale": "Half of it." },
        });
        let envelope = answer(&plain(), &failure);
        assert_eq!(envelope["partial_data"], json!({ "rationale": "Half of it." }));
        assert_eq!(envelope["meta"]["explain"], "Half of it.");
    }
}

mod adversarial {
    use super::*;

    /// An answer whose list is this element, more often than violations are listed.
    fn list_of(element: &str) -> String {
        let meta = r#"{"confidence": 1, "risk": "low", "explain": "x"}"#;
        let list = vec![element; 300].join(",");
        format!(
            r#"{{"ok": true, "meta": {meta}, "data": {{"result": "r", "rationale": "y", "list": [{list}]}}}}"#
        )
    }

    fn answer_once(rules: &AnswerRules, text: &str) -> Value {
        envelope(fold(chunks(rules, text, text.len(), Some(FinishReason::Stop))))
    }

    #[test]
    fn number_of_listed_violations_is_bounded() {
        let list = json!({ "list": { "type": "array", "items": { "type": "string" } } });
        let rules = rules(manifest(Tier::Decision), &schema(list));
        let envelope = answer_once(&rules, &list_of("1"));
        assert_eq!(envelope["error"]["details"]["violations"].as_array().map(Vec::len), Some(256));
        assert_eq!(envelope.get("partial_data"), None);
    }

    #[test]
    fn number_of_warnings_is_bounded() {
        let item = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let list = json!({ "list": { "type": "array", "items": item } });
        let rules = rules(manifest(Tier::Decision), &schema(list));
        assert_eq!(warnings(&answer_once(&rules, &list_of(r#"{"b": 1}"#))).len(), 32);
    }
}
