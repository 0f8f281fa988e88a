use std::path::PathBuf;

use cog_module::Origin;
use serde_json::Value;

use super::*;

/// Returns every module that ships or belongs to the conformance cases.
fn modules() -> Vec<Module> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let names = [
        "modules/api-designer",
        "modules/audio-transcriber",
        "modules/code-reviewer",
        "modules/code-simplifier",
        "modules/coder",
        "modules/image-analyzer",
        "modules/image-generator",
        "modules/planner",
        "modules/task-prioritizer",
        "conformance/modules/format-v0",
        "conformance/modules/format-v1",
        "conformance/modules/format-v21",
        "conformance/modules/format-v22",
        "conformance/modules/format-v25",
        "conformance/modules/my-module",
    ];
    let load = |name: &str| {
        let directory: PathBuf = [root, name].iter().collect();
        cog_module::load(&Origin::Directory(directory)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    names.into_iter().map(load).collect()
}

/// Calls `act` with the projection of each module to each dialect in each form.
fn each_projection(act: impl Fn(&Module, Dialect, &OutputSchema)) {
    for module in modules() {
        let compiled = Compiled::new(&module);
        for dialect in Dialect::ALL {
            for form in Form::ALL {
                act(&module, *dialect, &compiled.projected(&module, *dialect, form).unwrap().output);
            }
        }
    }
}

/// Returns the JSON Schemas in a text.
fn schemas_of(text: &str) -> Vec<Value> {
    text.lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the references that lead to nothing.
fn dangling(schema: &Value) -> Vec<String> {
    let mut open = vec![schema];
    let mut dangling = Vec::new();
    while let Some(value) = open.pop() {
        let target = value.get("$ref").and_then(Value::as_str);
        dangling.extend(
            target
                .filter(|target| target.strip_prefix('#').is_none_or(|path| schema.pointer(path).is_none()))
                .map(str::to_owned),
        );
        open.extend(value.as_object().into_iter().flat_map(serde_json::Map::values));
        open.extend(value.as_array().into_iter().flatten());
    }
    dangling
}

#[test]
fn no_reference_dangles_in_any_dialect() {
    each_projection(|module, dialect, output| {
        let name = &module.manifest.name;
        let sent = output.schema.as_ref().map(cog_json::Value::to_serde);
        for schema in sent.into_iter().chain(schemas_of(&output.instructions)) {
            assert_eq!(dangling(&schema), Vec::<String>::new(), "{name} in {dialect}");
        }
    });
}

#[test]
fn every_model_sees_the_contract_exactly_once() {
    each_projection(|module, dialect, output| {
        let is_shown = matches!(output.dialect, Dialect::OpenAiStrict | Dialect::Anthropic | Dialect::Gemini);
        let name = &module.manifest.name;
        // In a form for a grammar alone, the engine is all that sees it.
        let is_held = output.form.wording == Wording::Grammar && output.schema.is_some();
        assert_eq!(schemas_of(&output.instructions).is_empty(), is_shown || is_held, "{name} in {dialect}");
        assert!(!is_shown || output.schema.is_some(), "{name} in {dialect}");
    });
}

#[test]
fn every_model_reads_what_is_not_allowed() {
    each_projection(|module, dialect, output| {
        for excluded in &module.manifest.excludes {
            let line = format!("\n- {excluded}\n");
            let (name, form) = (&module.manifest.name, output.form);
            assert!(output.instructions.contains(&line), "{name} in {dialect}, {form}");
        }
    });
}

#[test]
fn codes_in_a_prompt_are_among_those_that_a_model_may_report() {
    for module in modules() {
        let codes = module.contract.model_codes();
        let words = module.prompt.text().split(|char: char| !char.is_ascii_alphanumeric());
        let mentioned = words.filter(|word| word.len() == 5 && word.parse::<cog_spec::Code>().is_ok());
        let mentioned: Vec<&str> = mentioned.collect();
        for code in mentioned {
            assert!(
                codes.iter().any(|known| known == code),
                "{}: {code} is not in {codes:?}",
                module.manifest.name
            );
        }
    }
}

/// Calls `act` with each schema inside a schema, itself included.
fn each_schema(schema: &Value, act: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    let Some(members) = schema.as_object() else { return };
    act(members);
    for keyword in ["properties", "$defs"] {
        let named =
            members.get(keyword).and_then(Value::as_object).into_iter().flat_map(serde_json::Map::values);
        named.for_each(|schema| each_schema(schema, act));
    }
    let listed = members.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let inner = ["items", "additionalProperties"].iter().filter_map(|keyword| members.get(*keyword));
    listed.chain(inner).for_each(|schema| each_schema(schema, act));
}

/// The keywords that a vendor documents for the schema of a reply.
fn documented(dialect: Dialect) -> Option<Vec<&'static str>> {
    let own: &[&str] = match dialect {
        Dialect::OpenAiStrict => &[
            "const",
            "pattern",
            "format",
            "multipleOf",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "minItems",
            "maxItems",
        ],
        Dialect::Anthropic => &["const", "pattern", "format", "minItems", "default"],
        Dialect::Gemini => &["format", "minItems", "maxItems", "minimum", "maximum"],
        _ => return None,
    };
    let common = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "enum",
        "$ref",
        "$defs",
        "title",
        "description",
    ];
    Some(common.iter().chain(own).copied().collect())
}

#[test]
fn schemas_follow_the_rules_of_their_vendor() {
    each_projection(|module, _, output| {
        let Some((known, schema)) = documented(output.dialect).zip(output.schema.as_ref()) else { return };
        let name = &module.manifest.name;
        let schema = schema.to_serde();
        assert_eq!(schema["type"], "object", "the root of {name} in {}", output.dialect);
        each_schema(&schema, &mut |members| {
            let unknown = members.keys().find(|keyword| !known.contains(&keyword.as_str()));
            assert_eq!(unknown, None, "{name} in {}", output.dialect);
            let is_object = members.get("type").is_some_and(|kind| kind == "object");
            if output.dialect == Dialect::OpenAiStrict && is_object {
                let names: Vec<&String> = members["properties"].as_object().unwrap().keys().collect();
                assert_eq!(members["required"], serde_json::json!(names), "{name}");
                assert_eq!(members["additionalProperties"], Value::Bool(false), "{name}");
            }
        });
    });
}

#[test]
fn form_without_meta_says_so_where_the_prompt_explains_meta() {
    each_projection(|module, dialect, output| {
        let is_held = output.form.wording == Wording::Grammar && output.schema.is_some();
        if output.form.is_data() && !is_held {
            let is_explained = module.prompt.text().contains("`meta.");
            let is_excluded = output.instructions.contains("Do not write `meta`.");
            assert_eq!(is_excluded, is_explained, "{} in {dialect}", module.manifest.name);
        }
    });
}
