use serde_json::{Value, json};

use crate::{
    Rule,
    testing::{Directory, MANIFEST, SCHEMA},
};

/// Returns `rule: message` of each warning, with its marked text.
fn warnings(directory: &Directory) -> Vec<String> {
    let found = directory.load().unwrap().warnings;
    let line = |found: &crate::Diagnostic| {
        let text = found.location.as_ref().and_then(|at| at.excerpt.get(at.marked.clone()));
        format!("{}: {} [{}]", found.rule, found.message, text.unwrap_or_default())
    };
    found.iter().map(line).collect()
}

fn of_prompt(prompt: &str) -> Vec<String> {
    warnings(&Directory::v22().with("prompt.md", prompt))
}

#[test]
fn misspelt_placeholder_suggests_the_right_one() {
    for (written, meant) in [
        ("$ARGUMENT", "$ARGUMENTS"),
        ("$ARGS", "$ARGUMENTS"),
        ("$arguments", "$ARGUMENTS"),
        ("$INPUTS", "$INPUT"),
        ("$input", "$INPUT"),
        ("$MEDIA_INPUT", "$MEDIA_INPUTS"),
        ("$MEDIA", "$MEDIA_INPUTS"),
        ("{{input}}", "$INPUT"),
        ("{{ ARGUMENTS }}", "$ARGUMENTS"),
        ("{{$ARGUMENTS}}", "$ARGUMENTS"),
        ("${INPUT}", "$INPUT"),
        ("{input}", "$INPUT"),
    ] {
        let module = Directory::v22().with("prompt.md", format!("Sort {written} now.\n")).load().unwrap();
        let [found] = module.warnings.as_slice() else { panic!("{written}: {:?}", module.warnings) };
        assert_eq!(
            found.suggestion.as_deref(),
            Some(format!("Did you mean `{meant}`?").as_str()),
            "{written}"
        );
        assert_eq!((found.rule, found.location.as_ref().unwrap().column), (Rule::PromptPlaceholder, 6));
    }
}

#[test]
fn placeholder_beside_a_number_or_a_currency_word_is_probably_money() {
    for (prompt, amount) in [
        ("Shipping costs $5.", "$5"),
        ("It is free above $50 for all.", "$50"),
        ("Round $3.99 up.", "$3"),
        ("Say $2 million.", "$2"),
        ("Say $7k, or more.", "$7"),
        ("Spend $1,000 at most.", "$1"),
    ] {
        let message = format!(
            "`{amount}` is the placeholder of word {}: an input with so many words replaces it",
            &amount[1..]
        );
        assert_eq!(of_prompt(prompt), [format!("prompt-placeholder: {message} [{amount}]")], "{prompt}");
    }
    for prompt in ["Compare $0 with $1.", "Translate $ARGUMENTS[12] now.", "The costs are: $0", "$"] {
        assert_eq!(of_prompt(prompt), Vec::<String>::new(), "{prompt}");
    }
}

#[test]
fn field_of_the_input_is_not_a_placeholder() {
    for written in ["$text", "{{text}}", "${text}", "{text}", "$INPUT.text"] {
        let found = of_prompt(&format!("Sort {written}. Then {written} again."));
        assert_eq!(
            found,
            [format!(
                "prompt-placeholder: `{written}` is not a placeholder: the model reads it as written [{written}]"
            )]
        );
    }
}

#[test]
fn other_text_with_signs_is_not_a_placeholder() {
    let prompt = "Sort $ARGUMENTS, $0 and $ARGUMENTS[1] or $INPUT. It is in $USD.\n\
        Keep `$input` and `{{text}}` as they are; so is $HOME, {name}, {{name}} and ${PATH}.\n\
        ```sh\necho $text $input {{input}}\n```\n";
    assert_eq!(of_prompt(prompt), [""; 0]);
}

#[test]
fn text_that_looks_like_a_call() {
    for (written, help) in [
        ("@call:Reader", "Write `@call:reader`. In backticks it is text."),
        ("@call:my_module", "Write `@call:my-module`. In backticks it is text."),
        ("@call: reader", "Write `@call:reader`. In backticks it is text."),
        ("@call :reader", "Write `@call:reader`. In backticks it is text."),
        ("@Call:reader", "Write `@call:reader`. In backticks it is text."),
        ("@call(reader", "Write `@call:reader`. In backticks it is text."),
        ("@call:../parts/reader", "Write `@call:reader`. In backticks it is text."),
        ("@call:", "Write the name of a module: `@call:reader`. In backticks it is text."),
    ] {
        let module =
            Directory::v22().with("prompt.md", format!("Sort\nit {written}, now.\n")).load().unwrap();
        let [found] = module.warnings.as_slice() else { panic!("{written}: {:?}", module.warnings) };
        let location = found.location.as_ref().unwrap();
        assert_eq!(
            (found.rule, location.line, location.column, found.suggestion.as_deref()),
            (Rule::PromptCall, 2, 4, Some(help)),
            "{written}"
        );
        let message = format!("`{written}` is not a complete call: the model reads it as written");
        assert_eq!(found.message, message);
    }
}

#[test]
fn call_without_an_end_is_an_error() {
    for (prompt, help) in [
        ("Sort @call:reader(never closed", "Close the arguments with `)`"),
        (&*format!("Sort @call:reader({})", "x".repeat(2_001)), "Close the arguments with `)`"),
        ("Sort @call:reader[async, optional.", "Close the options with `]`"),
    ] {
        let error = Directory::v22().with("prompt.md", prompt).load().unwrap_err();
        let [found] = error.diagnostics.as_slice() else { panic!("{prompt}: {error:?}") };
        assert_eq!((found.rule, found.location.as_ref().unwrap().column), (Rule::PromptCall, 6));
        assert!(found.suggestion.as_ref().unwrap().starts_with(help), "{found:?}");
    }
}

#[test]
fn text_with_an_at_sign_is_not_a_call() {
    let prompt = "Write to me@call:x.org or help@call(x).com, and use `@call:NAME(ARGUMENTS)` or @calls:x.\n\
        Then @call somebody (now), @callback(x) and @recall:y. A call @call:a(of @call:B and `x).\n\
        ```\n@call:NAME(ARGUMENTS\n```\n";
    assert_eq!(of_prompt(prompt), [""; 0]);
}

#[test]
fn code_that_is_not_declared() {
    let prompt = "Answer with E5001 or E5002, E1001 where E50012 and XE5003 are text. E5001 again.";
    let directory = Directory::v22().with("prompt.md", prompt);
    let declared = |codes: &str| directory.read("module.yaml") + codes;
    assert_eq!(
        warnings(&directory),
        [
            "error-code-undeclared: the prompt names E5001, which the module does not declare [E5001]",
            "error-code-undeclared: the prompt names E5002, which the module does not declare [E5002]",
        ]
    );
    let manifest = declared("error_codes:\n  E5001: one\n  E5002: two\n");
    assert_eq!(warnings(&directory.with("module.yaml", manifest)), [""; 0]);
}

#[test]
fn misspelt_keyword_is_reported_at_its_key() {
    let schema = SCHEMA.replace("\"additionalProperties\": false", "\"additionalProps\": false");
    assert_eq!(
        warnings(&Directory::v22().with("schema.json", schema)),
        ["schema-keyword: unknown keyword `additionalProps`: it has no effect [additionalProps]"]
    );
    let schema = SCHEMA.replace("[\"queue\", \"rationale\"]", "[\"quue\", \"rationale\"]");
    assert_eq!(
        warnings(&Directory::v22().with("schema.json", schema)),
        ["schema-keyword: required field `quue` is not defined in `properties` [quue]"]
    );
}

#[test]
fn repeated_key_of_the_schema() {
    let schema = SCHEMA.replace("\"rationale\": {", "\"queue\": {}, \"rationale\": {");
    assert_eq!(
        warnings(&Directory::v22().with("schema.json", schema)),
        ["schema-duplicate: this key is repeated in its object; only the last one counts [queue]"]
    );
}

#[test]
fn rounded_numbers_of_the_schema() {
    let schema = SCHEMA.replace("\"other\"]", "12345678901234567890123, 0.1, 1.50, 18446744073709551615]");
    let found = warnings(&Directory::v22().with("schema.json", schema));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("schema-number: 12345678901234567890123 is rounded to 1.23"), "{found:?}");
}

#[test]
fn keys_without_effect() {
    let manifest = |more: &str| Directory::v22().with("module.yaml", format!("{MANIFEST}{more}"));
    for (more, expected) in [
        ("modalities:\n  input: [text, image]\n", "modality-field: `modalities.input` lists image"),
        ("meta:\n  risk_rule: max_issues_risk\n", "risk-rule-field: `meta.risk_rule` is `max_issues_risk`"),
    ] {
        let found = warnings(&manifest(more));
        assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
    }
    assert_eq!(warnings(&manifest("context:\n  accepts: []\n")), [""; 0]);
    assert_eq!(warnings(&manifest("context: fork\nmeta:\n  risk_rule: explicit\n")), [""; 0]);
    assert_eq!(warnings(&manifest("composition:\n  requires: []\n")), [""; 0]);
}

#[test]
fn key_of_a_section_at_the_top_level() {
    let manifest = format!("{MANIFEST}mode: streaming\ntemperature: 0\n");
    let module = Directory::v22().with("module.yaml", manifest).load().unwrap();
    let help: Vec<_> = module.warnings.iter().filter_map(|found| found.suggestion.as_deref()).collect();
    assert_eq!(help, ["Indent it under `response:`.", "Indent it under `generation:`."]);
}

#[test]
fn implicit_context_in_the_input_is_named() {
    let of_field = |name: &str| {
        let schema = SCHEMA.replace("\"text\": {", &format!("\"{name}\": {{}}, \"text\": {{"));
        let found = Directory::v22().with("schema.json", schema).load().unwrap().warnings;
        found.into_iter().filter(|found| found.rule == Rule::ImplicitContext).count()
    };
    for name in [
        "conversation_history",
        "chatHistory",
        "history",
        "messages",
        "session-state",
        "hidden_state",
        "_context",
        "PriorTurns",
        "thread_messages",
        "full_chat_history",
        "recentMessages",
        "messages_so_far",
        "conversation_history_json",
        "agent_memory",
        "history_messages",
        "prev-turns",
        "short_term_memory",
    ] {
        assert_eq!(of_field(name), 1, "{name}");
    }
    for name in [
        "commit_history",
        "message",
        "state",
        "context",
        "error_messages",
        "previous_state",
        "log",
        "chat",
        "full_text",
        "memory",
        "history_of_rome",
        "json",
    ] {
        assert_eq!(of_field(name), 0, "{name}");
    }
}

#[test]
fn implicit_context_is_found_wherever_the_schema_applies_to_the_input() {
    let inside = |schema: Value| {
        let document = json!({
            "input": schema,
            "data": { "type": "object", "properties": { "rationale": { "type": "string" } } },
            "$defs": {
                "talk": { "properties": { "messages": { "items": { "$ref": "#/$defs/talk" } } } },
                "unused": { "properties": { "session_state": {} } },
            },
        });
        let directory = Directory::v22().with("schema.json", document.to_string());
        let found = directory.load().unwrap().warnings;
        let found = found.into_iter().filter(|found| found.rule == Rule::ImplicitContext);
        found.map(|found| found.message).collect::<Vec<_>>()
    };
    let field = json!({ "properties": { "messages": {} } });
    for schema in [
        json!({ "$ref": "#/$defs/talk" }),
        json!({ "properties": { "a": { "$ref": "#/$defs/talk" }, "b": { "$ref": "#/$defs/talk" } } }),
        json!({ "allOf": [{ "required": ["a"] }, field] }),
        json!({ "oneOf": [{ "properties": { "a": { "anyOf": [{}, field] } } }] }),
        json!({ "additionalProperties": { "items": [field] } }),
        json!({ "if": { "required": ["a"] }, "then": field }),
    ] {
        let found = inside(schema.clone());
        assert!(matches!(found.as_slice(), [one] if one.contains("`messages`")), "{schema}: {found:?}");
    }
    assert_eq!(inside(json!({ "not": field, "const": field, "default": field })), [] as [String; 0]);
}

#[test]
fn media_field_needs_a_modality() {
    let schema =
        SCHEMA.replace("\"text\": {", "\"photo\": { \"$ref\": \"#/$defs/MediaInput\" }, \"text\": {");
    let directory = Directory::v22().with("schema.json", schema);
    let rules = |directory: &Directory| {
        let found = directory.load().unwrap().warnings;
        found.iter().map(|found| found.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(&directory), [Rule::ModalityField]);
    let manifest = format!("{MANIFEST}modalities:\n  input: [text, image]\n");
    assert_eq!(rules(&directory.with("module.yaml", manifest)), []);
}

#[test]
fn levels_of_a_list_are_levels_of_the_meta() {
    let found = |levels: &str, meta: &str, rule: &str| {
        let schema = format!(
            r#"{{"input": {{}}, "data": {{"properties": {{"rationale": {{}}, "changes": {{"items": {{"properties": {{"risk": {levels}}}}}}}}}}},
            "meta": {{"properties": {{"risk": {meta}}}}}}}"#
        );
        let manifest = format!("{MANIFEST}meta:\n  risk_rule: {rule}\n");
        let directory = Directory::v22().with("module.yaml", manifest).with("schema.json", schema);
        warnings(&directory).into_iter().filter(|line| line.starts_with("risk-rule")).collect::<Vec<_>>()
    };
    let narrow = r#"{"enum": ["none", "low"]}"#;
    let wide = found(r#"{"enum": ["low", "high"]}"#, narrow, "max_changes_risk");
    assert!(wide[0].contains("highest risk of `changes`, which can be `high`;"), "{wide:?}");
    assert!(found("{}", narrow, "max_changes_risk")[0].contains("can be `medium` or `high`;"));
    assert_eq!(found(narrow, narrow, "max_changes_risk"), [""; 0]);
    assert_eq!(found("{}", "{}", "max_changes_risk"), [""; 0]);
    assert_eq!(found("{}", narrow, "explicit"), [""; 0]);
}

#[test]
fn module_without_a_possible_answer_does_not_load() {
    let schema = r#"{"input": {}, "data": {"properties": {"a": {}}, "additionalProperties": false}}"#;
    let error = Directory::v22().with("schema.json", schema).load().unwrap_err();
    let [found] = error.diagnostics.as_slice() else { panic!("{error:?}") };
    let marked = found.location.as_ref().map(|at| at.excerpt.get(at.marked.clone()).unwrap_or_default());
    assert_eq!((found.rule, marked), (Rule::SchemaConflict, Some("additionalProperties")));
}

#[test]
fn version_of_a_streaming_format_needs_its_keys() {
    let of = |version: &str, tier: &str, more: &str| {
        let manifest = MANIFEST.replace("version: 1.0.0", &format!("version: {version}"));
        let manifest = manifest.replace("tier: decision", &format!("tier: {tier}")) + more;
        warnings(&Directory::v22().with("module.yaml", manifest))
            .into_iter()
            .filter(|line| line.starts_with("format-version"))
            .count()
    };
    assert_eq!(of("2.5.0", "exploration", ""), 1);
    assert_eq!(of("2.5.0", "exploration", "response:\n  mode: sync\n"), 0);
    assert_eq!(of("2.5.0", "exec", ""), 0);
    assert_eq!(of("1.0.0", "exploration", ""), 0);
}
