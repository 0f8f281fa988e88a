//! The content of one message: its text and its files.

use cog_json::Node;
use cog_spec::Code;
use serde_json::{Value, json};

use super::{error::OpenAiError, parameters::shown};

/// The content of a message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Content {
    /// The text parts, as one text.
    pub(super) text: Option<String>,
    /// The files as sources of media (docs/spec/media.md).
    pub(super) files: Vec<Value>,
}

impl Content {
    /// Reads the content of a message; `param` is its path in the request.
    ///
    /// # Errors
    /// E1001, E1003 and E1004 with the path of the part.
    pub(super) fn read(content: Node<'_>, param: &str) -> Result<Self, OpenAiError> {
        if let Some(text) = content.as_str() {
            return Ok(Self { text: Some(text.to_owned()), files: Vec::new() });
        }
        if !content.is_array() {
            let message = format!("`{param}` must be a string or an array of parts");
            return Err(OpenAiError::new(Code::TypeMismatch, param, message));
        }
        let mut read = Self::default();
        for (index, part) in content.elements().enumerate() {
            read.add(part, &format!("{param}[{index}]"))?;
        }
        Ok(read)
    }

    fn add(&mut self, part: Node<'_>, param: &str) -> Result<(), OpenAiError> {
        let kind = member(part, "type", param)?;
        match kind {
            "text" | "input_text" => {
                known(part, param, &["type", "text"])?;
                self.add_text(member(part, "text", param)?);
            }
            // A part of an answer that the client sends back.
            "output_text" => {
                known(part, param, &["type", "text", "annotations", "logprobs"])?;
                self.add_text(member(part, "text", param)?);
            }
            "image_url" => self.files.push(image(part, param)?),
            "input_image" => self.files.push(input_image(part, param)?),
            "input_audio" => self.files.push(audio(part, param)?),
            "file" => self.files.push(file(part, param)?),
            "input_file" => self.files.push(input_file(part, param)?),
            _ => {
                let message = format!("`{param}.type`: `{}` is not supported", shown(kind));
                return Err(OpenAiError::new(Code::UnsupportedValue, format!("{param}.type"), message)
                    .suggest("Use text, image_url, input_audio or file; in a response, input_text, input_image or input_file."));
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) {
        match &mut self.text {
            Some(before) => {
                before.push('\n');
                before.push_str(text);
            }
            None => self.text = Some(text.to_owned()),
        }
    }
}

/// Checks that a part has no other members than these.
fn known(part: Node<'_>, param: &str, keys: &[&str]) -> Result<(), OpenAiError> {
    match part.members().find(|(key, value)| !keys.contains(key) && !value.is_null()) {
        Some((key, _)) => {
            let param = format!("{param}.{}", shown(key));
            Err(OpenAiError::new(Code::UnsupportedValue, &param, format!("`{param}` is not supported")))
        }
        None => Ok(()),
    }
}

/// Returns a member that is text.
fn member<'a>(object: Node<'a>, key: &str, param: &str) -> Result<&'a str, OpenAiError> {
    object.get(key).and_then(Node::as_str).ok_or_else(|| {
        OpenAiError::new(Code::MissingRequiredField, param, format!("`{param}.{key}` must be a string"))
    })
}

/// Returns the member that has the content of a part, and its path.
fn object<'a>(
    part: Node<'a>,
    key: &str,
    param: &str,
    keys: &[&str],
) -> Result<(Node<'a>, String), OpenAiError> {
    known(part, param, &["type", key])?;
    let param = format!("{param}.{key}");
    match part.get(key).filter(|value| value.is_object()) {
        Some(value) => known(value, &param, keys).map(|()| (value, param)),
        None => {
            let message = format!("`{param}` must be an object");
            Err(OpenAiError::new(Code::MissingRequiredField, param, message))
        }
    }
}

fn image(part: Node<'_>, param: &str) -> Result<Value, OpenAiError> {
    let (image, param) = object(part, "image_url", param, &["url", "detail"])?;
    check_detail(image, &param)?;
    Ok(url_source(member(image, "url", &param)?))
}

fn input_image(part: Node<'_>, param: &str) -> Result<Value, OpenAiError> {
    known(part, param, &["type", "image_url", "file_id", "detail"])?;
    check_detail(part, param)?;
    source(part, param, &["image_url", "file_id"])
}

/// The module decides how an image is read.
fn check_detail(image: Node<'_>, param: &str) -> Result<(), OpenAiError> {
    match image.get("detail").and_then(Node::as_str) {
        None | Some("auto") => Ok(()),
        Some(detail) => {
            let message = format!("`{param}.detail`: `{}` is not supported, except auto", shown(detail));
            Err(OpenAiError::new(Code::UnsupportedValue, format!("{param}.detail"), message))
        }
    }
}

/// Returns the source that one of these members names.
fn source(part: Node<'_>, param: &str, keys: &[&str]) -> Result<Value, OpenAiError> {
    let mut present = keys.iter().filter(|key| part.get(key).is_some_and(|value| !value.is_null()));
    let (Some(key), None) = (present.next(), present.next()) else {
        let message = format!("`{param}` must have exactly one of {}", keys.join(", "));
        return Err(OpenAiError::new(Code::MissingRequiredField, param, message));
    };
    let value = member(part, key, param)?;
    match *key {
        "file_id" => Ok(json!({ "type": "upload_ref", "upload_id": value })),
        "file_data" => file_data(value, param),
        _ => Ok(url_source(value)),
    }
}

/// Returns the source of a data URL or of another URL, which the runtime checks.
fn url_source(url: &str) -> Value {
    match data_url(url) {
        Some((media_type, data)) => json!({ "type": "base64", "media_type": media_type, "data": data }),
        None => json!({ "type": "url", "url": url }),
    }
}

/// Splits `data:TYPE;base64,DATA`.
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let media_type = media_type.split(';').next().unwrap_or_default();
    Some((media_type, data))
}

fn audio(part: Node<'_>, param: &str) -> Result<Value, OpenAiError> {
    let (audio, param) = object(part, "input_audio", param, &["data", "format"])?;
    let media_type = match member(audio, "format", &param)? {
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        other => {
            let message = format!("`{param}.format`: `{}` is not supported", shown(other));
            return Err(OpenAiError::new(Code::UnsupportedValue, format!("{param}.format"), message)
                .suggest("Use wav or mp3."));
        }
    };
    Ok(json!({ "type": "base64", "media_type": media_type, "data": member(audio, "data", &param)? }))
}

fn file(part: Node<'_>, param: &str) -> Result<Value, OpenAiError> {
    let (file, param) = object(part, "file", param, &["file_id", "file_data", "filename"])?;
    source(file, &param, &["file_id", "file_data"])
}

fn input_file(part: Node<'_>, param: &str) -> Result<Value, OpenAiError> {
    known(part, param, &["type", "file_id", "file_data", "file_url", "filename"])?;
    source(part, param, &["file_id", "file_data", "file_url"])
}

fn file_data(data: &str, param: &str) -> Result<Value, OpenAiError> {
    let Some((media_type, data)) = data_url(data) else {
        let message = format!("`{param}.file_data` is not a data URL");
        return Err(OpenAiError::new(Code::InvalidInput, format!("{param}.file_data"), message)
            .suggest("Send data:application/pdf;base64,… with the type of the file."));
    };
    Ok(json!({ "type": "base64", "media_type": media_type, "data": data }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Result<Content, String> {
        let content = cog_json::Value::parse(content).unwrap();
        Content::read(content.node(), "messages[0].content").map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn parts_become_text_and_files() {
        let read = read(
            r#"[{"type": "text", "text": "a"}, {"type": "text", "text": "b"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "image_url", "image_url": {"url": "https://a.example/b.png", "detail": "auto"}},
                {"type": "input_audio", "input_audio": {"format": "mp3", "data": "BBBB"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,CCCC"}},
                {"type": "file", "file": {"file_id": "upl_1"}},
                {"type": "input_text", "text": "c"},
                {"type": "output_text", "text": "d", "annotations": [], "logprobs": []},
                {"type": "input_image", "image_url": "data:image/png;base64,DDDD", "detail": "auto"},
                {"type": "input_image", "file_id": "upl_2"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,EEEE"},
                {"type": "input_file", "file_url": "https://a.example/c.pdf"}]"#,
        )
        .unwrap();
        assert_eq!(read.text.as_deref(), Some("a\nb\nc\nd"));
        let expected = json!([
            {"type": "base64", "media_type": "image/png", "data": "AAAA"},
            {"type": "url", "url": "https://a.example/b.png"},
            {"type": "base64", "media_type": "audio/mpeg", "data": "BBBB"},
            {"type": "base64", "media_type": "application/pdf", "data": "CCCC"},
            {"type": "upload_ref", "upload_id": "upl_1"},
            {"type": "base64", "media_type": "image/png", "data": "DDDD"},
            {"type": "upload_ref", "upload_id": "upl_2"},
            {"type": "base64", "media_type": "application/pdf", "data": "EEEE"},
            {"type": "url", "url": "https://a.example/c.pdf"},
        ]);
        assert_eq!(Value::Array(read.files), expected);
    }

    #[test]
    fn other_parts_are_refused_with_their_path() {
        for (content, expected) in [
            (r#"[{"type": "video_url"}]"#, "messages[0].content[0].type"),
            (
                r#"[{"type": "image_url", "image_url": "https://a.example"}]"#,
                "messages[0].content[0].image_url",
            ),
            (r#"[{"type": "image_url", "image_url": {"url": "x", "detail": "high"}}]"#, "image_url.detail"),
            (
                r#"[{"type": "input_audio", "input_audio": {"format": "flac", "data": ""}}]"#,
                "input_audio.format",
            ),
            (r#"[{"type": "file", "file": {"file_data": "AAAA"}}]"#, "file.file_data"),
            (r#"[{"type": "text", "text": "a", "cache": true}]"#, "messages[0].content[0].cache"),
            (r#"[{"type": "image_url", "image_url": {"url": "x", "crop": 1}}]"#, "image_url.crop"),
            (r#"[{"type": "input_image", "image_url": "x", "file_id": "y"}]"#, "exactly one of"),
            (r#"[{"type": "input_file", "filename": "a.pdf"}]"#, "exactly one of"),
            (r#"[{"type": "input_image", "image_url": "x", "detail": "low"}]"#, "content[0].detail"),
            ("[{}]", "messages[0].content[0]"),
            ("7", "messages[0].content"),
        ] {
            let error = read(content).unwrap_err();
            assert!(error.contains(expected), "{content}: {error}");
        }
    }
}
