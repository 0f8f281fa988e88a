//! Tests of requests in each vendor's format. `sdk/check.py` validates them with the types of the vendors' clients.

use std::{path::Path, sync::Arc};

use cog_harmony::{AudioPart, Conversation, Detail, ImagePart, Message, Part, Role};
use cog_json::ToJson;
use cog_provider::{
    Formats, HttpProvider, ModelRequest, OutputGrammar, OutputSchema, Provider, ProviderError, RequestError,
    protocol::ProtocolKind,
    vendors::{ProviderSettings, VENDORS, Vendor},
};
use cog_spec::{Code, Dialect, Effort, Generation, Modality, Secret, ServiceTier, Verbosity};
use serde_json::json;

fn provider(name: &str) -> HttpProvider {
    provider_over(name, None)
}

/// Creates a provider that calls with this protocol.
pub(crate) fn provider_over(name: &str, protocol: Option<&str>) -> HttpProvider {
    let base_url = matches!(name, "azure" | "custom").then(|| "https://llm.example/v1".to_owned());
    let model = Some("a-model".to_owned());
    let key = Some(Secret::new("sk-canary"));
    let protocol = protocol.and_then(ProtocolKind::from_setting);
    let settings = ProviderSettings { base_url, protocol, model, key, ..ProviderSettings::default() };
    HttpProvider::new(Vendor::by_name(name).unwrap(), settings).unwrap()
}

/// Creates the request of a module run: system text, the input, and a schema in the vendor's dialect.
pub(crate) fn request_for(dialect: Dialect) -> ModelRequest {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["ok"],
        "properties": { "ok": { "type": "boolean" } },
    });
    let with_schema = !matches!(dialect, Dialect::JsonObject | Dialect::Prompt);
    ModelRequest {
        model: String::new(),
        messages: Conversation::new([
            Message::system("Answer in JSON."),
            Message::user("{\"code\":\"x = 1\"}"),
        ]),
        output: Some(Arc::new(OutputSchema {
            form: cog_spec::Form::ENVELOPE,
            name: "code-reviewer".to_owned(),
            dialect,
            schema: with_schema.then(|| schema.into()),
            grammar: None,
            instructions: "Answer in JSON.".into(),
        })),
        output_media: Vec::new(),
        image: None,
        tools: None,
        generation: Generation::default(),
        cache_key: None,
        stream_options: true,
        renames_token_limit: false,
        merges_system: false,
        probabilities: false,
        timeout: None,
        on_retry: None,
        on_reply: None,
    }
}

pub(crate) fn rendered(name: &str, request: &ModelRequest) -> Result<String, ProviderError> {
    Ok(provider(name).render(request)?.unwrap().to_json_pretty())
}

/// Returns a request over a protocol that the operator chooses.
pub(crate) fn rendered_over(
    protocol: &str,
    name: &str,
    request: &ModelRequest,
) -> Result<String, ProviderError> {
    Ok(provider_over(name, Some(protocol)).render(request)?.unwrap().to_json_pretty())
}

pub(crate) fn snapshot(directory: &str, name: &str, text: &str) {
    assert!(!text.contains("canary"), "the key is shown: {text}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(directory);
    insta::with_settings!({ snapshot_path => path, prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(format!("request-{name}"), text);
    });
}

/// Returns the directory of a vendor's wire form.
fn directory(vendor: &Vendor) -> &'static str {
    match vendor.name {
        "anthropic" => "anthropic",
        "gemini" => "gemini",
        "ollama" => "ollama",
        "openai" | "xai" => "openai_responses",
        _ => "openai",
    }
}

#[test]
fn every_vendor_gets_its_own_format() {
    for vendor in VENDORS {
        let text = rendered(vendor.name, &request_for(vendor.dialect)).unwrap();
        snapshot(directory(vendor), vendor.name, &text);
    }
}

#[test]
fn system_text_can_be_the_beginning_of_the_first_message() {
    for name in ["llamacpp", "ollama", "openai"] {
        let request = ModelRequest { merges_system: true, ..request_for(Dialect::Prompt) };
        let text = rendered(name, &request).unwrap();
        let merged = r#""content": "Answer in JSON.\n\n{\"code\":\"x = 1\"}""#;
        assert!(text.contains(merged) && !text.contains(r#""system""#), "{name}: {text}");
    }
}

/// Returns the body of a request for the probabilities of tokens.
fn body_with_probabilities(name: &str, model: &str, effort: Option<Effort>) -> serde_json::Value {
    let mut request = request_for(Vendor::by_name(name).unwrap().dialect);
    request.model = model.to_owned();
    request.probabilities = true;
    request.generation.effort = effort;
    let wire: serde_json::Value = serde_json::from_str(&rendered(name, &request).unwrap()).unwrap();
    wire["body"].clone()
}

#[test]
fn probabilities_are_not_requested_of_models_that_refuse() {
    let asks = |name: &str, model: &str, effort: Option<Effort>| {
        let body = body_with_probabilities(name, model, effort);
        let chat = body["logprobs"] == json!(true) && body["top_logprobs"] == json!(20);
        let responses =
            body["include"] == json!(["message.output_text.logprobs"]) && body["top_logprobs"] == json!(20);
        let config = &body["generationConfig"];
        let gemini = config["responseLogprobs"] == json!(true) && config["logprobs"] == json!(5);
        let is_asked = chat || responses || gemini;
        assert_eq!(is_asked, body.to_string().contains("logprobs"), "{body}");
        is_asked
    };
    for (name, model, effort, expected) in [
        ("openai", "gpt-4.1-mini", None, true),
        ("openai", "gpt-6-luna", None, false), // it may reason
        ("openai", "gpt-6-luna", Some(Effort::None), true),
        ("openai", "o3", None, false),
        ("azure", "gpt-4o", None, true),
        ("vllm", "any", None, true),
        ("gemini", "gemini-2.5-flash", None, true),
        ("gemini", "gemini-3.5-flash", None, false),
        ("anthropic", "claude-sonnet-5", None, false),
        ("mistral", "mistral-small", None, false),
        ("ollama", "llama3", None, false),
    ] {
        assert_eq!(asks(name, model, effort), expected, "{name}/{model} {effort:?}");
    }
}

#[test]
fn requests_for_probabilities() {
    for (name, model) in [("openai", "gpt-4.1-mini"), ("vllm", "a-model"), ("gemini", "gemini-2.5-flash")] {
        let vendor = Vendor::by_name(name).unwrap();
        let mut request = request_for(vendor.dialect);
        (request.model, request.probabilities) = (model.to_owned(), true);
        snapshot(directory(vendor), &format!("{name}-probabilities"), &rendered(name, &request).unwrap());
    }
}

/// Returns the body of a request with a grammar.
fn body_with_grammar(name: &str, change: impl FnOnce(&mut ModelRequest)) -> serde_json::Value {
    let mut request = request_for(Dialect::LlamaCpp);
    let grammar = OutputGrammar { text: "root ::= \"{}\"".to_owned(), max_tokens: 99 };
    request.output.iter_mut().for_each(|output| Arc::make_mut(output).grammar = Some(grammar.clone()));
    change(&mut request);
    let wire: serde_json::Value = serde_json::from_str(&rendered(name, &request).unwrap()).unwrap();
    wire["body"].clone()
}

#[test]
fn probabilities_are_requested_where_the_server_reports_them_with_a_grammar() {
    let requested = |name: &str, probabilities: bool| {
        let body = body_with_grammar(name, |request| request.probabilities = probabilities);
        (body.get("logprobs").cloned(), body.get("top_logprobs").cloned())
    };
    assert_eq!(requested("llamacpp", true), (Some(json!(true)), Some(json!(20))));
    for (name, probabilities) in [("llamacpp", false), ("openai", true), ("ollama", true), ("lmstudio", true)]
    {
        assert_eq!(requested(name, probabilities), (None, None), "{name}");
    }
    assert_eq!(requested("vllm", true), (Some(json!(true)), Some(json!(20))), "also without one");
    let reasons = body_with_grammar("llamacpp", |request| {
        (request.probabilities, request.generation.effort) = (true, Some(Effort::Low));
    });
    assert_eq!(reasons.get("logprobs"), None, "without a grammar, other texts come before the answer");
}

#[test]
fn grammar_replaces_the_schema_where_the_server_accepts_one() {
    let body = body_with_grammar("llamacpp", |_| {});
    assert_eq!((&body["grammar"], &body["max_tokens"]), (&json!("root ::= \"{}\""), &json!(99)));
    assert_eq!(body.get("response_format"), None);
    let own = body_with_grammar("llamacpp", |request| request.generation.max_tokens = Some(7));
    assert_eq!(own["max_tokens"], 7);
    let none = body_with_grammar("llamacpp", |request| request.generation.effort = Some(Effort::None));
    assert!(none.get("grammar").is_some());
    // A model that is to reason cannot do so within a grammar.
    let reasons = body_with_grammar("llamacpp", |request| request.generation.effort = Some(Effort::Low));
    for body in [reasons, body_with_grammar("lmstudio", |_| {}), body_with_grammar("vllm", |_| {})] {
        assert!(body.get("grammar").is_none() && body.get("max_tokens").is_none(), "{body}");
        assert_eq!(body["response_format"]["type"], "json_schema");
    }
    let ollama = body_with_grammar("ollama", |_| {});
    assert!(ollama.get("grammar").is_none() && ollama["format"].is_object(), "{ollama}");
}

#[test]
fn generation_options_have_each_vendors_names() {
    for name in ["deepseek", "mistral", "gemini", "ollama"] {
        let vendor = Vendor::by_name(name).unwrap();
        let mut request = request_for(Dialect::Prompt);
        let seed = vendor.quirks.seed.map(|_| 7);
        request.generation = Generation {
            temperature: Some(0.2),
            max_tokens: Some(500),
            seed,
            stop: vec!["END".to_owned()],
            ..Generation::default()
        };
        snapshot(directory(vendor), &format!("{name}-options"), &rendered(name, &request).unwrap());
    }
    let generation = Generation {
        temperature: Some(0.2),
        max_tokens: Some(500),
        seed: Some(7),
        stop: vec!["END".to_owned()],
        ..Generation::default()
    };
    let request = ModelRequest { generation, ..request_for(Dialect::Prompt) };
    snapshot("openai", "openai-options", &rendered_over("chat", "openai", &request).unwrap());
    let mut request = request_for(Dialect::Prompt);
    request.generation =
        Generation { max_tokens: Some(500), stop: vec!["END".to_owned()], ..Generation::default() };
    snapshot("anthropic", "anthropic-options", &rendered("anthropic", &request).unwrap());
}

/// Creates a request with the settings of reasoning models.
fn reasoning_request(model: &str, effort: Effort) -> ModelRequest {
    let generation = Generation { effort: Some(effort), ..Generation::default() };
    ModelRequest { model: model.to_owned(), generation, ..request_for(Dialect::Prompt) }
}

#[test]
fn effort_is_sent_in_the_form_of_each_model() {
    for (vendor, model, effort, expected) in [
        ("openai", "gpt-6-luna", Effort::XHigh, json!({ "reasoning": { "effort": "xhigh" } })),
        ("openrouter", "openai/gpt-6-luna", Effort::Low, json!({ "reasoning_effort": "low" })),
        ("llamacpp", "default", Effort::None, json!({ "reasoning_effort": "none" })),
        ("deepseek", "deepseek-v4-flash", Effort::Max, json!({ "reasoning_effort": "max" })),
        ("deepseek", "deepseek-v4-flash", Effort::None, json!({ "thinking": { "type": "disabled" } })),
        ("moonshot", "kimi-k2.6", Effort::High, json!({ "thinking": { "type": "enabled" } })),
        ("qwen", "qwen-plus", Effort::None, json!({ "enable_thinking": false })),
        ("anthropic", "claude-sonnet-5-5", Effort::Max, json!({ "output_config": { "effort": "max" } })),
        ("anthropic", "claude-haiku-4-5", Effort::None, json!({ "thinking": { "type": "disabled" } })),
        (
            "gemini",
            "gemini-3.8-flash",
            Effort::Low,
            json!({ "generationConfig": { "thinkingConfig": { "thinkingLevel": "LOW" } } }),
        ),
        (
            "gemini",
            "gemini-2.5-flash",
            Effort::None,
            json!({ "generationConfig": { "thinkingConfig": { "thinkingBudget": 0 } } }),
        ),
        ("ollama", "gpt-oss:20b", Effort::Medium, json!({ "think": "medium" })),
        ("ollama", "qwen3", Effort::None, json!({ "think": false })),
    ] {
        let wire = provider(vendor).render(&reasoning_request(model, effort)).unwrap().unwrap();
        let body: serde_json::Value = serde_json::from_slice(&wire.body).unwrap();
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&body[key], value, "{vendor} {model} {effort}");
        }
    }
}

#[test]
fn reasoning_settings_have_each_vendors_names() {
    for name in ["openai", "groq", "anthropic", "gemini", "ollama", "openrouter"] {
        let vendor = Vendor::by_name(name).unwrap();
        let mut request =
            ModelRequest { model: vendor.default_model.unwrap().to_owned(), ..request_for(vendor.dialect) };
        let settings = vendor.settings_of(&request.model);
        request.generation.effort = Some(if name == "ollama" { Effort::None } else { Effort::High });
        request.generation.verbosity = settings.verbosity.then_some(Verbosity::Low);
        request.generation.service_tier = settings.service_tiers.first().map(|_| ServiceTier::Flex);
        if name == "anthropic" {
            request.generation.service_tier = Some(ServiceTier::Standard);
        }
        snapshot(directory(vendor), &format!("{name}-reasoning"), &rendered(name, &request).unwrap());
        if name == "openai" {
            snapshot("openai", "openai-reasoning", &rendered_over("chat", name, &request).unwrap());
        }
    }
}

#[test]
fn cached_part_is_marked_only_at_the_vendors_own_url() {
    for name in ["openai", "anthropic", "gemini", "llamacpp", "deepseek"] {
        let vendor = Vendor::by_name(name).unwrap();
        let request = ModelRequest {
            model: vendor.default_model.unwrap().to_owned(),
            cache_key: Some("code-reviewer@1.0.0".to_owned()),
            ..request_for(vendor.dialect)
        };
        let marked = rendered(name, &request).unwrap();
        if matches!(name, "openai" | "anthropic") {
            snapshot(directory(vendor), &format!("{name}-cached"), &marked);
        }
        let plain = ModelRequest { cache_key: None, ..request.clone() };
        let is_marked = marked != rendered(name, &plain).unwrap();
        assert_eq!(is_marked, matches!(name, "openai" | "anthropic"), "{name}");

        let base_url = Some("https://gateway.example/v1".to_owned());
        let gateway =
            HttpProvider::new(vendor, ProviderSettings { base_url, ..ProviderSettings::default() }).unwrap();
        assert_eq!(gateway.render(&request).unwrap(), gateway.render(&plain).unwrap(), "{name}");
    }
    let settings =
        ProviderSettings { protocol: Some(ProtocolKind::OpenAiChat), ..ProviderSettings::default() };
    let chat = HttpProvider::new(Vendor::by_name("openai").unwrap(), settings).unwrap();
    let request = ModelRequest {
        cache_key: Some("code-reviewer@1.0.0".to_owned()),
        ..request_for(Dialect::OpenAiStrict)
    };
    snapshot("openai", "openai-cached", &chat.render(&request).unwrap().unwrap().to_json_pretty());
}

#[test]
fn older_models_get_a_cache_key_without_a_breakpoint() {
    let request = ModelRequest {
        model: "gpt-4.1".to_owned(),
        cache_key: Some("n".repeat(100)),
        ..request_for(Dialect::OpenAiStrict)
    };
    let body = provider("openai").render(&request).unwrap().unwrap().body;
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["prompt_cache_key"].as_str().unwrap().len(), 64);
    assert_eq!(
        (&body["prompt_cache_options"], &body["input"][0]["content"]),
        (&json!(null), &json!("Answer in JSON."))
    );
}

#[test]
fn unsupported_levels_list_the_supported_ones() {
    for (vendor, model, effort, expected) in [
        (
            "openai",
            "gpt-6-luna",
            Effort::Minimal,
            "OpenAI does not support `effort: minimal` with the model `gpt-6-luna`; supported: none, low, medium, high, xhigh, max",
        ),
        (
            "openai",
            "gpt-6-astra",
            Effort::None,
            "OpenAI does not support `effort: none` with the model `gpt-6-astra`; supported: low, medium, high, xhigh, max",
        ),
        ("openai", "gpt-4.1", Effort::Low, "OpenAI does not support `effort` with the model `gpt-4.1`"),
        (
            "mistral",
            "mistral-medium-latest",
            Effort::Low,
            "Mistral does not support `effort: low` with the model `mistral-medium-latest`; supported: none, high",
        ),
        (
            "gemini",
            "gemini-3.8-flash",
            Effort::Max,
            "Gemini does not support `effort: max` with the model `gemini-3.8-flash`; supported: low, medium, high",
        ),
    ] {
        let error = rendered(vendor, &reasoning_request(model, effort)).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.code()), (expected, Code::UnsupportedValue));
    }
    let mut request = reasoning_request("gpt-6-luna", Effort::None);
    request.generation.temperature = Some(0.0);
    assert!(rendered("openai", &request).is_ok());
    request.generation.effort = None;
    assert_eq!(
        rendered("openai", &request).unwrap_err().to_string(),
        "OpenAI supports `temperature` with the model `gpt-6-luna` only if `effort` is none"
    );
    let mut request = request_for(Dialect::Prompt);
    request.generation.verbosity = Some(Verbosity::Low);
    let error = rendered("ollama", &request).unwrap_err();
    assert_eq!(error.to_string(), "Ollama does not support `verbosity` with the model `a-model`");
}

#[test]
fn media_are_sent_in_each_vendors_format() {
    let image = |url: &str| {
        Part::Image(ImagePart { url: url.to_owned(), detail: Some(Detail::Low), ..ImagePart::default() })
    };
    let inline = image("data:image/png;base64,iVBORw0KGgo=");
    let audio = Part::Audio(AudioPart {
        data: "UklGRg==".to_owned(),
        format: "wav".to_owned(),
        ..AudioPart::default()
    });
    let request = |parts: Vec<Part>| ModelRequest {
        messages: Conversation::new([
            Message::new(Role::User, parts),
            Message::assistant("Hm."),
            Message::user("Now?"),
        ]),
        output: None,
        ..request_for(Dialect::Prompt)
    };
    let text = Part::text("What is this?");
    let document = Part::media("application/pdf", "JVBERi0=".to_owned());
    let video = Part::media("video/mp4", "AAAAGGZ0eXA=".to_owned());
    let linked = image("https://images.example/a.jpg");
    for (directory, parts) in [
        ("openai", vec![text.clone(), inline.clone(), linked.clone(), audio.clone(), document.clone()]),
        ("anthropic", vec![text.clone(), inline.clone(), linked.clone(), document.clone()]),
        ("gemini", vec![text.clone(), inline.clone(), audio.clone(), document.clone(), video.clone()]),
        ("ollama", vec![text.clone(), inline.clone()]),
    ] {
        let text = match directory {
            "openai" => rendered_over("chat", "openai", &request(parts)),
            vendor => rendered(vendor, &request(parts)),
        };
        snapshot(directory, &format!("{directory}-media"), &text.unwrap());
    }
    for (vendor, part) in
        [("ollama", &document), ("anthropic", &video), ("openai", &video), ("mistral", &document)]
    {
        let error = rendered(vendor, &request(vec![part.clone()])).unwrap_err();
        assert_eq!(error.code(), Code::MultimodalNotSupported, "{vendor}: {error}");
    }
    for vendor in ["gemini", "ollama"] {
        let error = rendered(vendor, &request(vec![linked.clone()])).unwrap_err();
        assert!(matches!(error, ProviderError::Request(RequestError::ImageUrl { .. })), "{error}");
    }
}

/// Creates the request of a module run that generates images and audio.
fn media_request(model: &str) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        output_media: vec![Modality::Image, Modality::Audio],
        ..request_for(Dialect::Prompt)
    }
}

#[test]
fn media_are_requested_in_each_vendors_format() {
    for (vendor, model, directory, name) in [
        ("gemini", "gemini-2.5-flash-image", "gemini", "gemini-image"),
        ("openai", "gpt-audio", "openai", "openai-speech"),
        ("openrouter", "google/gemini-2.5-flash-image", "openai", "openrouter-image"),
        ("openai", "gpt-image-1", "openai_images", "openai-image"),
        ("openai", "dall-e-3", "openai_images", "openai-dalle"),
    ] {
        snapshot(directory, name, &rendered(vendor, &media_request(model)).unwrap());
    }
}

#[test]
fn image_model_rejects_options_and_media() {
    let mut request = media_request("gpt-image-1");
    request.generation.max_tokens = Some(9);
    assert_eq!(
        rendered("openai", &request).unwrap_err().to_string(),
        "OpenAI does not support `max_tokens` with the model `gpt-image-1`"
    );
    let image = Part::media("image/png", "iVBORw0KGgo=".to_owned());
    let request = ModelRequest {
        messages: Conversation::new([Message::new(Role::User, vec![image])]),
        ..media_request("gpt-image-1")
    };
    assert_eq!(rendered("openai", &request).unwrap_err().code(), Code::MultimodalNotSupported);
}

#[test]
fn model_without_media_output_gets_a_text_request() {
    for vendor in VENDORS.iter().filter(|vendor| vendor.output_media("a-model").is_empty()) {
        let plain = rendered(vendor.name, &request_for(Dialect::Prompt)).unwrap();
        assert_eq!(
            rendered(vendor.name, &ModelRequest { model: "a-model".to_owned(), ..media_request("") })
                .unwrap(),
            plain
        );
    }
}

#[test]
fn system_text_alone_becomes_a_user_turn_where_one_is_required() {
    let request = ModelRequest {
        messages: Conversation::new([Message::system("Do it.")]),
        output: None,
        ..request_for(Dialect::Prompt)
    };
    for vendor in ["anthropic", "gemini"] {
        snapshot(vendor, &format!("{vendor}-system-only"), &rendered(vendor, &request).unwrap());
    }
}

#[test]
fn unsupported_requests_are_rejected_before_the_call() {
    let mut request = request_for(Dialect::Prompt);
    request.generation.seed = Some(1);
    let error = rendered("deepseek", &request).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.code()),
        ("DeepSeek does not support `seed` with the model `a-model`", Code::UnsupportedValue)
    );
    assert_eq!(error.suggestion().unwrap(), "Remove `generation.seed` (--seed), or choose another provider.");

    let mut request = request_for(Dialect::Prompt);
    request.generation.temperature = Some(0.0);
    assert_eq!(
        rendered("anthropic", &request).unwrap_err().to_string(),
        "Anthropic does not support `temperature` with the model `a-model`"
    );

    let audio =
        Part::Audio(AudioPart { data: String::new(), format: "wav".to_owned(), ..AudioPart::default() });
    let request = ModelRequest {
        messages: Conversation::new([Message::new(Role::User, vec![audio])]),
        ..request_for(Dialect::Prompt)
    };
    let error = rendered("ollama", &request).unwrap_err();
    let expected = RequestError::Modality { vendor: "Ollama", modality: Modality::Audio };
    assert_eq!((&error, error.code()), (&ProviderError::Request(expected), Code::MultimodalNotSupported));
}

/// Creates a provider whose vendor accepts at most `limit` bytes per request.
fn with_limit(limit: u64) -> HttpProvider {
    let formats = Formats { max_request_bytes: Some(limit), ..Formats::ANY };
    let vendor: &Vendor = Box::leak(Box::new(Vendor { formats, ..*Vendor::by_name("openai").unwrap() }));
    HttpProvider::new(vendor, ProviderSettings::default()).unwrap()
}

#[test]
fn request_may_have_the_vendors_limit_and_no_byte_more() {
    let image = Part::media("image/png", "A".repeat(100));
    let request = |parts| ModelRequest {
        messages: Conversation::new([Message::new(Role::User, parts)]),
        ..request_for(Dialect::Prompt)
    };
    let (text, media) = (request(vec![Part::text("why?")]), request(vec![image]));
    for (request, code) in [(text, Code::InputTooLarge), (media, Code::MediaTooLarge)] {
        let body = with_limit(u64::MAX).render(&request).unwrap().unwrap().body;
        let exact = body.len() as u64;
        assert!(with_limit(exact).render(&request).is_ok());
        let error = with_limit(exact - 1).render(&request).unwrap_err();
        assert_eq!((error.code(), error.reason()), (code, Some("request_size")));
        assert!(error.allows_fallback());
    }
    let large = request(vec![Part::media("application/pdf", "A".repeat((32 << 20) + 1))]);
    let error = provider("anthropic").check(&large).unwrap_err();
    assert_eq!(error.code(), Code::MediaTooLarge, "reported before the body is written");
}

#[test]
fn rejects_missing_and_invalid_model_names() {
    let bare =
        |name: &str| HttpProvider::new(Vendor::by_name(name).unwrap(), ProviderSettings::default()).unwrap();
    let error = bare("vllm").render(&request_for(Dialect::Prompt)).unwrap_err();
    assert_eq!(error.to_string(), "no model is set, and vLLM has no default model");
    for model in ["../secrets", "a/b", "a?key=1", ""] {
        let request = ModelRequest { model: format!("models/{model}"), ..request_for(Dialect::Prompt) };
        let error = bare("gemini").render(&request).unwrap_err();
        assert!(matches!(error, ProviderError::Request(RequestError::BadModel { .. })), "{model}: {error}");
    }
}

#[test]
fn renders_request_without_a_key() {
    let provider =
        HttpProvider::new(Vendor::by_name("openai").unwrap(), ProviderSettings::default()).unwrap();
    let wire = provider.render(&request_for(Dialect::OpenAiStrict)).unwrap().unwrap();
    assert_eq!(wire.auth, Some(("authorization", "Bearer $OPENAI_API_KEY".to_owned())));
    let local = HttpProvider::new(Vendor::by_name("llamacpp").unwrap(), ProviderSettings::default()).unwrap();
    assert_eq!(local.render(&request_for(Dialect::JsonSchema)).unwrap().unwrap().auth, None);
}

#[test]
fn missing_base_url_names_its_variable() {
    let error =
        HttpProvider::new(Vendor::by_name("azure").unwrap(), ProviderSettings::default()).err().unwrap();
    assert_eq!(error.to_string(), "Azure OpenAI cannot be called: no base URL is configured");
    assert_eq!(error.suggestion().unwrap(), "Set AZURE_OPENAI_BASE_URL to the base URL of the server.");
}
