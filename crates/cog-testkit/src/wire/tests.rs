use super::*;

#[test]
fn stream_and_body_contain_the_same_text() {
    let reply = Reply::text("{\"a\": \"é🙂\"}").chunk_size(3);
    for wire in Wire::ALL {
        let stream = wire.stream(&reply).concat();
        let texts: String = stream
            .lines()
            .filter_map(|line| {
                let value: Value = serde_json::from_str(line.trim_start_matches("data: ")).ok()?;
                let paths = [
                    "/delta",
                    "/choices/0/delta/content",
                    "/delta/text",
                    "/candidates/0/content/parts/0/text",
                    "/message/content",
                ];
                paths.iter().find_map(|path| Some(value.pointer(path)?.as_str()?.to_owned()))
            })
            .collect();
        assert_eq!(texts, "{\"a\": \"é🙂\"}", "{}", wire.name());
        assert!(wire.complete(&reply).to_string().contains("é🙂"));
    }
}

#[test]
fn path_identifies_the_wire_form() {
    assert_eq!(Wire::from_path("/v1/chat/completions"), Some(Wire::OpenAi));
    assert_eq!(Wire::from_path("/v1/responses"), Some(Wire::OpenAiResponses));
    assert_eq!(Wire::from_path("/v1/messages"), Some(Wire::Anthropic));
    assert_eq!(Wire::from_path("/v1beta/models/m:streamGenerateContent"), Some(Wire::Gemini));
    assert_eq!(Wire::from_path("/api/chat"), Some(Wire::Ollama));
    assert_eq!(Wire::from_path("/"), None);
}
