use super::*;

#[test]
fn a_stream_and_a_body_hold_the_same_text() {
    let reply = Reply::text("{\"a\": \"é🙂\"}").pieces(3);
    for wire in Wire::ALL {
        let stream = wire.stream(&reply).concat();
        let texts: String = stream
            .lines()
            .filter_map(|line| {
                let value: Value = serde_json::from_str(line.trim_start_matches("data: ")).ok()?;
                let places = [
                    "/choices/0/delta/content",
                    "/delta/text",
                    "/candidates/0/content/parts/0/text",
                    "/message/content",
                ];
                places.iter().find_map(|place| Some(value.pointer(place)?.as_str()?.to_owned()))
            })
            .collect();
        assert_eq!(texts, "{\"a\": \"é🙂\"}", "{}", wire.name());
        assert!(wire.whole(&reply).to_string().contains("é🙂"));
    }
}

#[test]
fn paths_tell_the_wire_form() {
    assert_eq!(Wire::at("/v1/chat/completions"), Some(Wire::OpenAi));
    assert_eq!(Wire::at("/v1/messages"), Some(Wire::Anthropic));
    assert_eq!(Wire::at("/v1beta/models/m:streamGenerateContent"), Some(Wire::Gemini));
    assert_eq!(Wire::at("/api/chat"), Some(Wire::Ollama));
    assert_eq!(Wire::at("/"), None);
}
