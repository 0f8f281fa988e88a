//! Reads the parts of a message.

use cog_json::Node;

use super::{Fields, object, shown};
use crate::{
    AudioPart, Detail, FilePart, FileReferencePart, FileSource, ImagePart, NativePart, Part, RefusalPart,
    TextPart, VideoFrame,
    other::{Inner, other},
    problem::{Path, Problems},
    rules::{ENUM, TYPE},
    wire::data_url,
};

/// The types of parts, in the order of the documentation.
const KINDS: &str = "text, image_url, input_audio, file, refusal, native";

pub(super) fn part(node: Node<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<Part> {
    if !node.is_object() {
        problems.add(path, &TYPE, format!("found {}, expected a part", node.kind()));
        return None;
    }
    let mut fields = Fields { node, path, problems };
    let kind = fields.required_text("type")?;
    match kind {
        "text" => text(&mut fields).map(Part::Text),
        "image_url" => image(&mut fields).map(Part::Image),
        "input_audio" => audio(&mut fields).map(Part::Audio),
        "file" => file(&mut fields),
        "refusal" => {
            let refusal = fields.required_string("refusal")?;
            Some(Part::Refusal(RefusalPart { refusal, other: other(node, &["type", "refusal"], &[]) }))
        }
        "native" => native(&mut fields).map(Part::Native),
        _ => {
            let message = format!("`{}` is not one of {KINDS}", shown(kind));
            fields.problems.add(&path.key("type"), &ENUM, message);
            None
        }
    }
}

fn text(fields: &mut Fields<'_, '_>) -> Option<TextPart> {
    let index = fields.optional("index", "a whole number", Node::as_u64);
    let text = fields.required_string("text")?;
    Some(TextPart { text, index, other: other(fields.node, &["type", "text", "index"], &[]) })
}

fn image(fields: &mut Fields<'_, '_>) -> Option<ImagePart> {
    let part = fields.node;
    let metadata = fields.optional("video_metadata", "an object", object);
    let video = metadata.and_then(|node| frame(node, &fields.path.key("video_metadata"), fields.problems));
    let node = fields.required("image_url", "an object", object)?;
    let path = fields.path.key("image_url");
    let mut fields = Fields { node, path: &path, problems: fields.problems };
    let rotation = fields.optional("rotation", "degrees", Node::as_f64);
    let name = fields.text("detail");
    let detail = name.and_then(|name| detail(name, &mut fields));
    let url = fields.required_string("url")?;
    // A level that only OpenAI has stays an unknown member.
    let known: &[&str] = match (name, detail) {
        (Some(_), None) => &["url", "rotation"],
        _ => &["url", "rotation", "detail"],
    };
    let inner = [
        Inner { key: "image_url", object: Some(node), known },
        Inner {
            key: "video_metadata",
            object: metadata,
            known: &["video_id", "timestamp_sec", "frame_index"],
        },
    ];
    let other = other(part, &["type", "image_url", "video_metadata"], &inner);
    Some(ImagePart { url, detail, rotation, video, other })
}

fn detail(name: &str, fields: &mut Fields<'_, '_>) -> Option<Detail> {
    let detail = Detail::from_name(name);
    if detail.is_none() && name != "original" {
        let message = format!("`{}` is not one of low, high, auto", shown(name));
        fields.problems.add(&fields.path.key("detail"), &ENUM, message);
    }
    detail
}

fn frame(node: Node<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<VideoFrame> {
    let mut fields = Fields { node, path, problems };
    let video_id = fields.string("video_id");
    let frame_index = fields.optional("frame_index", "a whole number", Node::as_u64);
    let timestamp_sec = fields.required("timestamp_sec", "seconds", Node::as_f64)?;
    Some(VideoFrame { video_id, timestamp_sec, frame_index })
}

fn audio(fields: &mut Fields<'_, '_>) -> Option<AudioPart> {
    let part = fields.node;
    let node = fields.required("input_audio", "an object", object)?;
    let path = fields.path.key("input_audio");
    let mut fields = Fields { node, path: &path, problems: fields.problems };
    let sample_rate = fields.optional("sample_rate", "samples per second", Node::as_u64);
    let data = fields.required_string("data");
    let format = fields.required_string("format");
    let inner = Inner { key: "input_audio", object: Some(node), known: &["data", "format", "sample_rate"] };
    let other = other(part, &["type", "input_audio"], &[inner]);
    Some(AudioPart { data: data?, format: format?, sample_rate, other })
}

fn file(fields: &mut Fields<'_, '_>) -> Option<Part> {
    let part = fields.node;
    let node = fields.required("file", "an object", object)?;
    let path = fields.path.key("file");
    let mut fields = Fields { node, path: &path, problems: fields.problems };
    let filename = fields.string("filename");
    if let Some(url) = fields.text("file_data") {
        let Some((media_type, data)) = data_url(url) else {
            fields.problems.add(&path.key("file_data"), &TYPE, "expected `data:MEDIA/TYPE;base64,…`");
            return None;
        };
        let inner = Inner { key: "file", object: Some(node), known: &["filename", "file_data"] };
        return Some(Part::File(FilePart {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
            filename,
            other: other(part, &["type", "file"], &[inner]),
        }));
    }
    let source = match fields.string("file_id") {
        Some(id) => FileSource::Id(id),
        None => FileSource::Url(
            fields
                .required("url", "`file_data`, `file_id` or `url`", |url| url.as_str().map(str::to_owned))?,
        ),
    };
    let media_type = fields.string("media_type");
    let known: &[&str] = match source {
        FileSource::Id(_) => &["filename", "file_data", "file_id", "media_type"],
        FileSource::Url(_) => &["filename", "file_data", "file_id", "url", "media_type"],
    };
    let other = other(part, &["type", "file"], &[Inner { key: "file", object: Some(node), known }]);
    Some(Part::FileReference(FileReferencePart { source, media_type, filename, other }))
}

fn native(fields: &mut Fields<'_, '_>) -> Option<NativePart> {
    let part = fields.node;
    let node = fields.required("native", "an object", object)?;
    let path = fields.path.key("native");
    let mut fields = Fields { node, path: &path, problems: fields.problems };
    let provider = fields.required_string("provider");
    let item = fields.required("item", "a value", |item| Some(item.to_value()));
    let inner = Inner { key: "native", object: Some(node), known: &["provider", "item"] };
    let other = other(part, &["type", "native"], &[inner]);
    Some(NativePart { provider: provider?, item: item?, other })
}
