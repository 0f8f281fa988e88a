//! Tests of requests with tools, calls and results in each vendor's format.

use std::sync::Arc;

use cog_harmony::{Conversation, Message, Part, Reasoning, Role, ToolCall, ToolChoice, ToolDefinition};
use cog_json::ToJson as _;
use cog_provider::{
    ModelRequest, Provider, ProviderError, ToolRequest,
    vendors::{VENDORS, Vendor},
};
use cog_spec::{Code, Dialect, Effort};
use serde_json::{Value, json};

use crate::requests::{provider_over, rendered_over, request_for, snapshot};

/// Every wire form: the vendor, the protocol that the operator chooses, and the directory of the snapshots.
const FORMS: [(&str, Option<&str>, &str); 5] = [
    ("openai", Some("chat"), "openai"),
    ("openai", None, "openai_responses"),
    ("anthropic", None, "anthropic"),
    ("gemini", None, "gemini"),
    ("ollama", None, "ollama"),
];

fn definition(name: &str, strict: bool) -> ToolDefinition {
    let parameters = json!({
        "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"],
        "additionalProperties": false,
    });
    let description = format!("Runs {name}.");
    ToolDefinition { name: name.to_owned(), description, parameters: parameters.into(), strict }
}

fn tools(choice: ToolChoice, parallel: bool, strict: bool) -> Option<Arc<ToolRequest>> {
    let definitions = vec![definition("search", strict), definition("render_chart", strict)];
    Some(Arc::new(ToolRequest { definitions, choice, parallel, relaxed: 0 }))
}

/// Creates a request to the vendor's default model, with a schema if the model accepts one together with tools.
fn first_request(vendor: &Vendor) -> ModelRequest {
    let model = vendor.default_model.unwrap().to_owned();
    let settings = vendor.tools_of(&model);
    let dialect = if settings.with_schema { vendor.dialect } else { Dialect::Prompt };
    let tools = tools(ToolChoice::Auto, true, settings.strict);
    ModelRequest { model, tools, ..request_for(dialect) }
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, name, arguments)
}

fn result(id: &str, parts: Vec<Part>) -> Message {
    Message { tool_call_id: Some(id.to_owned()), ..Message::new(Role::Tool, parts) }
}

/// Creates the request after two calls, of which one failed, and with the reasoning of the vendor.
fn second_request(vendor: &Vendor, reasoning: &[Value]) -> ModelRequest {
    let mut calls = vec![
        call("call_0", "search", r#"{"q":"harmony"}"#),
        call("call_1", "search", r#"{"q":"#),
        call("call_2", "render_chart", r#"{"q":"a"}"#),
    ];
    if vendor.name == "gemini" {
        calls[0].signature = Some("c2lnbmF0dXJl".to_owned());
    }
    let items = reasoning.iter().cloned().map(Into::into).collect();
    let reasoning = Reasoning { provider: vendor.name.to_owned(), items };
    let assistant = Message {
        tool_calls: calls,
        reasoning: Some(reasoning).filter(|reasoning| !reasoning.items.is_empty()),
        ..Message::new(Role::Assistant, Vec::new())
    };
    let chart =
        vec![Part::text(r#"{"status":"success"}"#), Part::media("image/png", "iVBORw0KGgo=".to_owned())];
    let error = r#"{"status":"error","error_type":"InvalidArguments","message":"`q` is not complete"}"#;
    let results = [
        result("call_0", vec![Part::text(r#"{"status":"success","results":[]}"#)]),
        result("call_1", vec![Part::text(error)]),
        result("call_2", chart),
    ];
    let request = first_request(vendor);
    let before = request.messages.0.iter().cloned();
    let messages = Conversation::new(before.chain([assistant]).chain(results).collect::<Vec<_>>());
    ModelRequest { messages, ..request }
}

fn rendered(name: &str, protocol: Option<&str>, request: &ModelRequest) -> Result<String, ProviderError> {
    Ok(provider_over(name, protocol).render(request)?.unwrap().to_json_pretty())
}

fn body(name: &str, protocol: Option<&str>, request: &ModelRequest) -> Value {
    let wire = provider_over(name, protocol).render(request).unwrap().unwrap();
    serde_json::from_slice(&wire.body).unwrap()
}

fn refusal(name: &str, protocol: Option<&str>, request: &ModelRequest) -> String {
    let provider = provider_over(name, protocol);
    let error = provider.render(request).unwrap_err();
    assert_eq!(provider.check(request).unwrap_err(), error);
    assert_eq!(error.code(), Code::UnsupportedValue, "{error}");
    assert!(error.suggestion().is_some(), "{error}");
    error.to_string()
}

#[test]
fn tools_and_results_have_each_vendors_form() {
    let encrypted =
        json!({ "id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAAABqVRWu" });
    let item = json!({
        "id": "fc_0", "type": "function_call", "status": "completed", "call_id": "call_0", "name": "search",
        "arguments": r#"{"q":"harmony"}"#,
    });
    let again =
        json!({ "id": "rs_2", "type": "reasoning", "summary": [], "encrypted_content": "gAAAAABqVRWv" });
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    let marker = json!({ "type": "tool_use", "id": "call_0", "name": "search" });
    let redacted = json!({ "type": "redacted_thinking", "data": "b3BhcXVl" });
    for ((name, protocol, directory), reasoning) in FORMS.into_iter().zip([
        vec![json!({ "reasoning_content": "Hm." })],
        vec![encrypted, item, again],
        vec![thinking, marker, redacted],
        Vec::new(),
        vec![json!({ "thinking": "Hm." })],
    ]) {
        let request = second_request(Vendor::by_name(name).unwrap(), &reasoning);
        snapshot(directory, &format!("{name}-tools"), &rendered(name, protocol, &request).unwrap());
    }
    for (name, key) in [("deepseek", "reasoning_content"), ("moonshot", "reasoning_content")] {
        let request = second_request(Vendor::by_name(name).unwrap(), &[json!({ key: "Hm." })]);
        let request = without_media(request);
        snapshot("openai", &format!("{name}-tools"), &rendered(name, None, &request).unwrap());
    }
}

fn without_media(mut request: ModelRequest) -> ModelRequest {
    request.messages.0.iter_mut().for_each(|message| message.content.truncate(1));
    request
}

#[test]
fn reasoning_details_are_sent_back() {
    let detail = json!({ "type": "reasoning.text", "text": "Hm.", "index": 0 });
    let item = json!({ "reasoning_content": "Hm.", "reasoning_details": [detail] });
    for (name, expected) in [("minimax", true), ("openrouter", true), ("groq", false)] {
        let request =
            without_media(second_request(Vendor::by_name(name).unwrap(), std::slice::from_ref(&item)));
        let message = &body(name, None, &request)["messages"][2];
        assert_eq!(message["reasoning_details"] == json!([detail]), expected, "{name}: {message}");
        assert_eq!(message["reasoning_content"], Value::Null, "{name}");
    }
}

#[test]
fn reasoning_of_another_provider_is_not_sent() {
    let vendor = Vendor::by_name("anthropic").unwrap();
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    let mut request = second_request(vendor, &[thinking]);
    if let Some(reasoning) = &mut request.messages.0[2].reasoning {
        reasoning.provider = "openai".to_owned();
    }
    assert!(!rendered("anthropic", None, &request).unwrap().contains("c2ln"));
}

#[test]
fn gemini_gets_a_placeholder_for_the_signature_of_another_provider() {
    let vendor = Vendor::by_name("gemini").unwrap();
    let mut request = second_request(vendor, &[]);
    request.messages.0[2].tool_calls[0].signature = None;
    let parts = |request: &ModelRequest| body("gemini", None, request)["contents"][1]["parts"].clone();
    assert_eq!(parts(&request)[0]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(parts(&request)[1].get("thoughtSignature"), None);
    let old = ModelRequest { model: "gemini-2.5-flash".to_owned(), output: None, ..request };
    assert_eq!(parts(&old)[0].get("thoughtSignature"), None);
}

#[test]
fn choice_has_each_vendors_form() {
    let named = || ToolChoice::Named("search".to_owned());
    let chat = Some("chat");
    for (name, protocol, choice, parallel, expected) in [
        (
            "openai",
            chat,
            ToolChoice::None,
            true,
            json!({ "tool_choice": "none", "parallel_tool_calls": true }),
        ),
        (
            "openai",
            chat,
            ToolChoice::Required,
            false,
            json!({ "tool_choice": "required", "parallel_tool_calls": false }),
        ),
        (
            "openai",
            chat,
            named(),
            true,
            json!({ "tool_choice": { "type": "function", "function": { "name": "search" } } }),
        ),
        ("openai", None, named(), true, json!({ "tool_choice": { "type": "function", "name": "search" } })),
        (
            "openai",
            None,
            ToolChoice::Auto,
            false,
            json!({ "tool_choice": null, "parallel_tool_calls": false }),
        ),
        ("anthropic", None, ToolChoice::Auto, true, json!({ "tool_choice": null })),
        (
            "anthropic",
            None,
            ToolChoice::Auto,
            false,
            json!({ "tool_choice": { "type": "auto", "disable_parallel_tool_use": true } }),
        ),
        ("anthropic", None, ToolChoice::None, false, json!({ "tool_choice": { "type": "none" } })),
        ("anthropic", None, ToolChoice::Required, true, json!({ "tool_choice": { "type": "any" } })),
        ("anthropic", None, named(), true, json!({ "tool_choice": { "type": "tool", "name": "search" } })),
        (
            "gemini",
            None,
            ToolChoice::None,
            true,
            json!({ "toolConfig": { "functionCallingConfig": { "mode": "NONE" } } }),
        ),
        (
            "gemini",
            None,
            named(),
            true,
            json!({ "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["search"] } } }),
        ),
        ("ollama", None, ToolChoice::None, true, json!({ "tools": null })),
        ("groq", None, ToolChoice::Auto, false, json!({ "parallel_tool_calls": false })),
    ] {
        let vendor = Vendor::by_name(name).unwrap();
        let mut request = ModelRequest { tools: tools(choice, parallel, false), ..first_request(vendor) };
        request.generation.effort = (name == "anthropic").then_some(Effort::None);
        let body = body(name, protocol, &request);
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&body[key], value, "{name}: {body}");
        }
    }
}

#[test]
fn chat_completions_gets_tools_in_the_form_that_the_model_accepts() {
    let vendor = Vendor::by_name("openai").unwrap();
    let with_model = |model: &str| ModelRequest { model: model.to_owned(), ..first_request(vendor) };
    for (model, effort) in [("gpt-6-luna", "none"), ("gpt-5.6", "none"), ("gpt-5.5", ""), ("gpt-4.1", "")] {
        let effort = Some(effort).filter(|effort| !effort.is_empty());
        assert_eq!(
            body("openai", Some("chat"), &with_model(model))["reasoning_effort"].as_str(),
            effort,
            "{model}"
        );
        assert_eq!(body("openai", None, &with_model(model)).get("reasoning"), None, "{model}");
    }
    let mut request = with_model("gpt-6-luna");
    request.generation.effort = Some(Effort::High);
    assert_eq!(body("openai", None, &request)["reasoning"]["effort"], "high");
    assert_eq!(
        refusal("openai", Some("chat"), &request),
        "over Chat Completions, OpenAI supports tools with the model `gpt-6-luna` only if `effort` is none"
    );
    assert_eq!(
        refusal("openai", Some("chat"), &with_model("gpt-6-astra")),
        "OpenAI supports tools with the model `gpt-6-astra` only over the protocol Responses"
    );
    assert!(rendered_over("responses", "openai", &with_model("gpt-6-astra")).is_ok());
}

#[test]
fn rejects_tools_that_the_model_does_not_support() {
    let request = |name: &str, model: &str| {
        let vendor = Vendor::by_name(name).unwrap();
        ModelRequest { model: model.to_owned(), ..first_request(vendor) }
    };
    assert_eq!(
        refusal("gemini", None, &request("gemini", "gemini-2.5-flash-image")),
        "Gemini does not support tools with the model `gemini-2.5-flash-image`"
    );
    assert_eq!(
        refusal("gemini", None, &request("gemini", "gemini-2.5-flash")),
        "Gemini does not support tools together with a schema with the model `gemini-2.5-flash`"
    );
    let forced = ModelRequest {
        tools: tools(ToolChoice::Required, true, false),
        ..request("anthropic", "claude-sonnet-5-5")
    };
    assert_eq!(
        refusal("anthropic", None, &forced),
        "Anthropic cannot force the model `claude-sonnet-5-5` to call a tool"
    );
    let named = |name: &str| {
        let definitions = vec![definition(name, false)];
        let tools = Some(Arc::new(ToolRequest { definitions, ..ToolRequest::default() }));
        ModelRequest { tools, ..request("openai", "gpt-6-luna") }
    };
    for name in ["", "files.read", "a b", &"n".repeat(65)] {
        assert!(refusal("openai", None, &named(name)).contains("is not a valid name of a tool"), "{name}");
    }
    assert!(rendered("openai", None, &named(&"n".repeat(64))).is_ok());
    assert!(rendered("openai", None, &named("7zip")).is_ok());
    let gemini = ModelRequest { model: "gemini-2.5-pro".to_owned(), ..named("7zip") };
    assert!(refusal("gemini", None, &gemini).contains("begin with a letter or `_`, unlike `7zip`"));
    let many = |count: usize| {
        let definitions = (0..count).map(|number| definition(&format!("t{number}"), false)).collect();
        let tools = Some(Arc::new(ToolRequest { definitions, ..ToolRequest::default() }));
        ModelRequest { tools, ..request("openai", "gpt-6-luna") }
    };
    assert!(rendered("openai", None, &many(128)).is_ok());
    assert!(refusal("openai", None, &many(129)).contains("129 tools, but OpenAI accepts at most 128"));
}

#[test]
fn media_of_results_follow_in_a_message_where_results_are_text() {
    for (name, protocol, is_inside) in [
        ("openai", Some("chat"), false),
        ("openai", None, true),
        ("anthropic", None, true),
        ("gemini", None, true),
        ("ollama", None, false),
        ("xai", None, false),
    ] {
        let request = second_request(Vendor::by_name(name).unwrap(), &[]);
        let text = rendered(name, protocol, &request).unwrap();
        assert!(text.contains("iVBORw0KGgo="), "{name}: {text}");
        let moved = text.contains("Media in the result of `render_chart` (call_2):");
        assert_eq!(moved, !is_inside, "{name}: {text}");
    }
}

#[test]
fn every_vendor_has_settings_for_tools() {
    for vendor in VENDORS {
        let model = vendor.default_model.unwrap_or("a-model");
        assert!(vendor.tools_of(model).supported, "{}", vendor.name);
        let base = matches!(vendor.name, "azure" | "custom" | "vllm" | "lmstudio" | "together");
        if !base {
            assert!(rendered(vendor.name, None, &first_request(vendor)).is_ok(), "{}", vendor.name);
        }
    }
}
