//! Tests of requests over OpenAI Responses, and of the choice between it and Chat Completions.

use cog_harmony::{AudioPart, Conversation, Detail, ImagePart, Message, Part, Reasoning, Role};
use cog_provider::{
    HttpProvider, ModelRequest, Provider,
    vendors::{ProviderSettings, Vendor},
};
use cog_spec::{Code, Dialect, Generation};
use serde_json::json;

use crate::requests::{rendered, rendered_over, request_for, snapshot};

#[test]
fn protocol_can_be_chosen() {
    for (protocol, directory, names) in
        [("chat", "openai", ["openai", "xai"]), ("responses", "openai_responses", ["groq", "deepseek"])]
    {
        for name in names {
            let dialect = Vendor::by_name(name).unwrap().dialect;
            let text = rendered_over(protocol, name, &request_for(dialect)).unwrap();
            snapshot(directory, name, &text);
        }
    }
}

#[test]
fn gateway_gets_chat_completions() {
    let base_url = Some("http://127.0.0.1:4000/v1".to_owned());
    let settings = ProviderSettings { base_url, ..ProviderSettings::default() };
    let provider = HttpProvider::new(Vendor::by_name("openai").unwrap(), settings).unwrap();
    let wire = provider.render(&request_for(Dialect::OpenAiStrict)).unwrap().unwrap();
    assert_eq!(wire.url, "http://127.0.0.1:4000/v1/chat/completions");
}

#[test]
fn options_and_media_have_the_names_of_the_protocol() {
    let mut request = request_for(Dialect::Prompt);
    request.generation =
        Generation { temperature: Some(0.2), max_tokens: Some(500), ..Generation::default() };
    snapshot("openai_responses", "openai-options", &rendered("openai", &request).unwrap());

    let image =
        |url: &str, detail| Part::Image(ImagePart { url: url.to_owned(), detail, ..ImagePart::default() });
    let parts = vec![
        Part::text("What is this?"),
        image("data:image/png;base64,iVBORw0KGgo=", Some(Detail::Low)),
        image("https://images.example/a.jpg", None),
        Part::media("application/pdf", "JVBERi0=".to_owned()),
    ];
    let messages = [Message::new(Role::User, parts), Message::assistant("Hm."), Message::user("Now?")];
    let request = ModelRequest { messages: Conversation::new(messages), output: None, ..request };
    snapshot("openai_responses", "openai-media", &rendered("openai", &request).unwrap());
}

#[test]
fn reasoning_is_sent_back_to_its_provider_only() {
    let item =
        json!({ "id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAAABqVRWu" });
    let reasoning = Reasoning { provider: "openai".to_owned(), items: vec![item.into()] };
    let answer = Message { reasoning: Some(reasoning), ..Message::assistant("{}") };
    let messages = [Message::user("Count."), answer, Message::user("`n` is missing.")];
    let request =
        ModelRequest { messages: Conversation::new(messages), ..request_for(Dialect::OpenAiStrict) };
    snapshot("openai_responses", "openai-retry", &rendered("openai", &request).unwrap());
    for other in [rendered("xai", &request).unwrap(), rendered("anthropic", &request).unwrap()] {
        assert!(!other.contains("rs_1") && other.contains("missing"), "{other}");
    }
}

#[test]
fn rejects_what_the_protocol_has_no_parameter_for() {
    let request = |generation| ModelRequest { generation, ..request_for(Dialect::Prompt) };
    let (seed, stop) = (Some(1), vec!["END".to_owned()]);
    for (request, expected) in [
        (
            request(Generation { seed, ..Generation::default() }),
            "OpenAI does not support `seed` with the model `a-model`",
        ),
        (
            request(Generation { stop, ..Generation::default() }),
            "OpenAI does not support `stop` with the model `a-model`",
        ),
    ] {
        let error = rendered("openai", &request).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.code()), (expected, Code::UnsupportedValue));
    }
    let audio =
        Part::Audio(AudioPart { data: String::new(), format: "wav".to_owned(), ..AudioPart::default() });
    let messages = Conversation::new([Message::new(Role::User, vec![audio])]);
    let request = ModelRequest { messages, ..request_for(Dialect::Prompt) };
    assert_eq!(rendered("openai", &request).unwrap_err().code(), Code::MultimodalNotSupported);
    let model = "gpt-audio".to_owned();
    let text = rendered("openai", &ModelRequest { model, ..request }).unwrap();
    assert!(text.contains("/v1/chat/completions") && text.contains("input_audio"), "{text}");
}
