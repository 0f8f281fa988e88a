//! What vendors refuse in the tools of a request, as their references and clients' bug reports describe it.

use serde_json::{Value, json};

use crate::Wire;

/// Returns the message with which a vendor refuses the tools of a request; `None` if it accepts them.
pub(crate) fn refusal(wire: Wire, body: &Value) -> Option<String> {
    let tools = tools(wire, body);
    match wire {
        Wire::OpenAi | Wire::OpenAiResponses => openai(&tools),
        Wire::Anthropic => anthropic(&tools, body),
        Wire::Gemini => {
            let name = tools.iter().map(|tool| tool.name).find(|name| !is_name(name, true, 64))?;
            Some(format!("Invalid function name `{name}`. Must start with a letter or an underscore."))
        }
        Wire::OpenAiImages | Wire::Ollama => None,
    }
}

struct Tool<'a> {
    name: &'a str,
    schema: &'a Value,
    strict: bool,
}

/// Returns the tools of a request.
fn tools(wire: Wire, body: &Value) -> Vec<Tool<'_>> {
    let (list, member, schema) = match wire {
        Wire::OpenAi => ("/tools", "/function", "parameters"),
        Wire::Gemini => ("/tools/0/functionDeclarations", "", "parametersJsonSchema"),
        Wire::Anthropic => ("/tools", "", "input_schema"),
        _ => ("/tools", "", "parameters"),
    };
    let list = body.pointer(list).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|tool| tool.pointer(member))
        .map(|tool| Tool {
            name: tool["name"].as_str().unwrap_or_default(),
            schema: &tool[schema],
            strict: tool["strict"] == true,
        })
        .collect()
}

fn openai(tools: &[Tool<'_>]) -> Option<String> {
    if tools.len() > 128 {
        let count = tools.len();
        return Some(format!(
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length {count} instead."
        ));
    }
    tools.iter().find_map(|Tool { name, schema, strict }| {
        let reason = if !is_name(name, false, 64) {
            "the name does not match '^[a-zA-Z0-9_-]+$'"
        } else if schema["type"] != "object" || !schema["properties"].is_object() {
            "schema must be of 'type: \"object\"' and have 'properties'"
        } else if has_choice(schema) || schema.get("enum").is_some() || schema.get("not").is_some() {
            "schema must not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level"
        } else if *strict && !all_objects(schema, &|object| is_closed(object) && requires_all(object)) {
            "'additionalProperties' must be false and 'required' must include every key in properties"
        } else {
            return None;
        };
        Some(format!("Invalid schema for function '{name}': {reason}."))
    })
}

fn anthropic(tools: &[Tool<'_>], body: &Value) -> Option<String> {
    for (index, tool) in tools.iter().enumerate() {
        if !is_name(tool.name, false, 128) || tool.schema["type"] != "object" {
            return Some(format!("tools.{index}.custom: invalid name or input_schema"));
        }
        let mut members = tool.schema["properties"].as_object().into_iter().flatten();
        if members.any(|(name, _)| !is_member_name(name)) {
            return Some(format!(
                "tools.{index}.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
            ));
        }
        if has_choice(tool.schema) {
            let reason = "input_schema does not support oneOf, allOf, or anyOf at the top level";
            return Some(format!("tools.{index}.custom.input_schema: {reason}"));
        }
        if tool.strict && !all_objects(tool.schema, &is_closed) {
            return Some(format!(
                "tools.{index}.custom: For 'object' type, 'additionalProperties' must be explicitly set to false"
            ));
        }
    }
    let strict: Vec<&Value> = tools.iter().filter(|tool| tool.strict).map(|tool| tool.schema).collect();
    if strict.len() > 20 {
        return Some(format!(
            "Too many strict tools ({}). The maximum number of strict tools supported is 20.",
            strict.len()
        ));
    }
    let answer = body.pointer("/output_config/format/schema");
    let mut counts = [0, 0];
    strict.into_iter().chain(answer).for_each(|schema| count(schema, &mut counts));
    let [optional, unions] = counts;
    if optional > 24 {
        return Some(format!("Schemas contains too many optional parameters ({optional}), limit: 24"));
    }
    (unions > 16)
        .then(|| format!("Schemas contains too many parameters with union types ({unions}), limit: 16"))
}

fn is_name(name: &str, letter_first: bool, max: usize) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    (1..=max).contains(&name.len()) && name.bytes().all(is_letter) && (starts || !letter_first)
}

fn is_member_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_letter)
}

fn has_choice(schema: &Value) -> bool {
    ["oneOf", "anyOf", "allOf"].iter().any(|keyword| schema.get(keyword).is_some())
}

fn is_closed(object: &Value) -> bool {
    object["additionalProperties"] == json!(false)
}

fn requires_all(object: &Value) -> bool {
    let required = object["required"].as_array().map_or(0, Vec::len);
    required == object["properties"].as_object().map_or(0, |properties| properties.len())
}

/// Returns whether every object schema in a schema has a property.
fn all_objects(schema: &Value, check: &impl Fn(&Value) -> bool) -> bool {
    let is_object = schema["type"] == "object" && schema.get("properties").is_some_and(Value::is_object);
    let inner = match schema {
        Value::Object(members) => members.values().all(|member| all_objects(member, check)),
        Value::Array(items) => items.iter().all(|item| all_objects(item, check)),
        _ => true,
    };
    inner && (!is_object || check(schema))
}

/// Counts the optional members, and the members of several types.
fn count(schema: &Value, counts: &mut [usize; 2]) {
    if let Some(properties) = schema["properties"].as_object() {
        let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
        for (name, member) in properties {
            counts[0] += usize::from(!required.iter().any(|one| *one == name));
            counts[1] += usize::from(member.get("anyOf").is_some() || member["type"].is_array());
        }
    }
    match schema {
        Value::Object(members) => members.values().for_each(|member| count(member, counts)),
        Value::Array(items) => items.iter().for_each(|item| count(item, counts)),
        _ => {}
    }
}
