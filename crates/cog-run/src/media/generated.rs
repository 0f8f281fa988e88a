//! Generated media: checked as they arrive, delivered after the reply (SPEC 4.3).

use std::{io::Read as _, path::PathBuf, sync::Arc};

use cog_answer::{PendingReply, PlacedValue};
use cog_harmony::{Detail, Part, VideoFrame};
use cog_json::{Limits, Node, Path, ToJson, Value, Writer};
use cog_media::{
    Access, Delivery, DeliveryPlace, Fetcher, LimitKind, Media, MediaDeclaration, MediaError, MediaPart,
    MediaRules, PartKind, ProcessedMedia, Store, StoredUrl, Tool, check, decode_base64, encode_base64,
    modality_of,
};
use cog_module::Module;
use cog_schema::{MediaSlot, Placement};
use cog_spec::{Code, ErrorBody, ModelMedia, Warning, WarningCode, media_type::canonical};

use crate::error;

/// The rules and the delivery of the media that a model generates.
pub(crate) struct MediaSink {
    rules: MediaRules,
    tool: Option<Arc<Tool>>,
    pub(super) fetcher: Option<Arc<Fetcher>>,
    delivery: Delivery,
    owner: Option<String>,
    module: String,
    /// The optional media that the model cannot generate. It can still write them into its JSON.
    pub(crate) not_generated: Vec<MissingMedia>,
    /// Whether the answer is an offline one, which may have text where a media item belongs.
    pub(super) is_lenient: bool,
}

/// A media field that stays empty unless the model writes it itself.
pub(crate) struct MissingMedia {
    pub(crate) path: Path,
    pub(crate) warning: Warning,
}

/// A media item that arrived next to the text of a reply.
pub(crate) struct GeneratedMedia {
    /// The media type that the provider declares.
    declared: Option<String>,
    params: Vec<(&'static str, String)>,
    /// The base64 text, stored when it goes into the answer unchanged.
    text: Option<Base64>,
    outcome: Result<Media, MediaError>,
}

/// A media item of the answer that is not delivered yet.
pub(super) struct PendingDelivery {
    pub(super) slot: MediaSlot,
    pub(super) media: Media,
    pub(super) text: Option<Base64>,
    pub(super) params: Vec<(&'static str, String)>,
}

impl MediaSink {
    pub(crate) fn new(
        module: &Module,
        access: &Access,
        delivery: Delivery,
        owner: Option<String>,
        is_lenient: bool,
    ) -> Self {
        Self {
            rules: MediaRules::output_from_manifest(&module.manifest),
            tool: access.tool.clone(),
            fetcher: access.fetcher.clone(),
            delivery,
            owner,
            module: module.manifest.name.clone(),
            not_generated: Vec::new(),
            is_lenient,
        }
    }

    /// Checks a media item as it arrives: item `index` of its reply, from 0. The provider's type is a hint (ruling R69).
    pub(crate) async fn check(&self, media: ModelMedia, index: usize) -> GeneratedMedia {
        let ModelMedia { media_type, data, params } = media;
        if let Err(error) = self.check_count(index) {
            return GeneratedMedia { declared: media_type, params, text: None, outcome: Err(error) };
        }
        let expected = MediaDeclaration { hint: media_type.clone(), ..MediaDeclaration::default() };
        let (text, outcome) = self.read(Base64::Own(data), expected).await;
        let text = text.filter(|_| matches!(self.delivery, Delivery::Inline));
        GeneratedMedia { declared: media_type, params, text, outcome }
    }

    /// Checks the maximum number of media in a reply.
    pub(super) fn check_count(&self, index: usize) -> Result<(), MediaError> {
        let index = index as u64;
        let limit = u64::from(self.rules.max_items);
        let is_over = index >= limit || self.generates_nothing();
        if is_over {
            Err(MediaError::LimitExceeded { limit_kind: LimitKind::Items, found: index + 1, limit })
        } else {
            Ok(())
        }
    }

    /// Decodes base64 and checks the decoded bytes. Returns the text too. The type that a provider declares is a hint;
    /// the type in a model's JSON must match (rulings R61, R69).
    pub(super) async fn read(
        &self,
        text: Base64,
        expected: MediaDeclaration,
    ) -> (Option<Base64>, Result<Media, MediaError>) {
        let store = Store::for_media(&self.rules);
        let decoding = tokio::task::spawn_blocking(move || (decode_base64(text.as_str(), store), text));
        let (stored, text) = match decoding.await {
            Ok((Ok(stored), text)) => (stored, text),
            Ok((Err(error), text)) => return (Some(text), Err(error)),
            Err(error) => return (None, Err(error::task_failed(&error).into())),
        };
        let outcome = check(stored, &expected, &self.rules, self.tool.as_deref()).await;
        (Some(text), outcome)
    }

    /// Adds generated media to the answer: media next to its text, and media that the model wrote in it.
    ///
    /// # Errors
    /// Errors that the model did not cause, such as a media type that the runtime cannot read.
    pub(crate) async fn add_to(
        &self,
        pending: &mut PendingReply,
        generated: Vec<GeneratedMedia>,
    ) -> Result<(), ErrorBody> {
        let Some(data) = pending.data() else { return Ok(()) };
        let mut due =
            if self.generates_nothing() { Vec::new() } else { self.written(pending, &data).await? };
        due.extend(self.place(pending, generated)?);
        if pending.is_refused() {
            return Ok(());
        }
        let mut placed = Vec::with_capacity(due.len());
        for one in due {
            placed.push(self.deliver(pending, one, &data).await?);
        }
        pending.put(&placed);
        self.warn_of_missing(pending);
        Ok(())
    }

    /// Warns about each media field that is empty because the model cannot generate it.
    fn warn_of_missing(&self, pending: &mut PendingReply) {
        let Some(data) = pending.data() else { return };
        for MissingMedia { path, warning } in &self.not_generated {
            let pointer = path.pointer();
            let value = pointer.strip_prefix("/data").and_then(|pointer| data.pointer(pointer));
            if value.is_none_or(Node::is_null) {
                pending.warn(warning.clone());
            }
        }
    }

    /// Assigns a location to each media item next to the text.
    fn place(
        &self,
        pending: &mut PendingReply,
        generated: Vec<GeneratedMedia>,
    ) -> Result<Vec<PendingDelivery>, ErrorBody> {
        let form = self.delivery.kind();
        let wanted: Vec<Placement<'_>> =
            generated.iter().map(|one| Placement { media_type: one.media_type(), form }).collect();
        let slots = pending.places(&wanted);
        let model = pending.model().map(|model| ("model", model.to_owned()));
        let mut due = Vec::with_capacity(generated.len());
        for (one, slot) in generated.into_iter().zip(slots) {
            let path = slot.as_ref().map_or_else(|| "data".to_owned(), |slot| slot.path.to_string());
            match (one.outcome, slot) {
                (Ok(media), Some(slot)) => {
                    let hint = media.hint_warning().map(|warning| format!("{path}: {warning}"));
                    hint.into_iter().for_each(|it| pending.warn(Warning::new(WarningCode::ContentHint, it)));
                    let params = model.iter().cloned().chain(one.params).collect();
                    due.push(PendingDelivery { slot, media, text: one.text, params });
                }
                (Ok(media), None) => pending.warn(omitted(media.media_type(), Some(media.bytes().len()))),
                (Err(error), _) if self.is_unwanted(&error, one.declared.as_deref()) => {
                    pending.warn(omitted(one.declared.as_deref().unwrap_or("a media file"), None));
                }
                (Err(error), _) => reject(pending, &path, &error)?,
            }
        }
        Ok(due)
    }

    /// Delivers a media item as the caller requested. When the delivery fails, the media item is included
    /// inline.
    async fn deliver(
        &self,
        pending: &mut PendingReply,
        due: PendingDelivery,
        data: &Value,
    ) -> Result<PlacedValue, ErrorBody> {
        let PendingDelivery { slot, media, text, params } = due;
        let fits = slot.takes(self.delivery.kind());
        let delivery = if fits { self.delivery.clone() } else { Delivery::Inline };
        let module = self.module.clone();
        let owner = self.owner.clone();
        let copy = media.clone();
        let delivering =
            tokio::task::spawn_blocking(move || match delivery.deliver(&module, owner.as_deref(), &copy) {
                Ok(DeliveryPlace::Inline) => (inline(&copy, text), None),
                Ok(DeliveryPlace::File(path)) => (Ok(Content::File(path)), None),
                Ok(DeliveryPlace::Url(published)) => (Ok(Content::Url(published)), None),
                Err(error) => (inline(&copy, text), Some(error)),
            });
        let (content, failure) = delivering.await.map_err(|error| error::from_task(&error))?;
        if let Some(error) = failure {
            let message =
                format!("{}: the media file is in the answer as base64: {}", slot.path, error.message);
            pending.warn(Warning::new(WarningCode::MediaInline, message));
        }
        let content = content.map_err(|error| ErrorBody::from(&error))?;
        let own = value_at(data, &slot).filter(|own| own.is_object()).map(|own| data.child(own));
        let path = slot.path.clone();
        let output = Output { slot, media, content, params, own };
        for (member, before, after) in output.corrected() {
            let mut path = path.clone();
            path.push_key(member);
            pending.note_fact(&path, before, after);
        }
        Ok(PlacedValue { path, value: Box::new(output) })
    }

    /// Returns whether a media item is of a kind that the module does not generate.
    fn is_unwanted(&self, error: &MediaError, declared: Option<&str>) -> bool {
        let kind = declared.and_then(modality_of);
        let is_other = kind.is_some_and(|kind| !self.rules.kinds.contains(&kind));
        self.generates_nothing() || (is_other && matches!(error, MediaError::Unsupported { .. }))
    }

    fn generates_nothing(&self) -> bool {
        self.rules.media_types().is_empty()
    }
}

/// Returns the limits of an answer with media in its text: the largest media item is added, as base64.
pub(crate) fn limits(text: Limits, module: &Module) -> Limits {
    let media = MediaRules::output_from_manifest(&module.manifest).max_bytes_of_any();
    text.with_bytes(text.bytes + media.div_ceil(3) * 4)
}

impl GeneratedMedia {
    /// Returns the checked media type, or the declared one.
    fn media_type(&self) -> &str {
        match &self.outcome {
            Ok(media) => media.media_type(),
            Err(_) => self.declared.as_deref().unwrap_or_default(),
        }
    }
}

fn inline(media: &Media, text: Option<Base64>) -> Result<Content, MediaError> {
    Ok(Content::Base64(match text {
        Some(text) => text,
        None => Base64::Own(encode_base64(media.bytes())?),
    }))
}

/// Rejects the media item as a violation, or returns an error when the model did not cause it.
pub(super) fn reject(pending: &mut PendingReply, path: &str, error: &MediaError) -> Result<(), ErrorBody> {
    match error.code() {
        Code::InternalError | Code::MultimodalNotSupported => Err(ErrorBody::from(error)),
        code => {
            pending.refuse(path, code, &error.to_string());
            Ok(())
        }
    }
}

fn omitted(what: &str, bytes: Option<u64>) -> Warning {
    let size = bytes.map(|bytes| format!(" of {bytes} bytes")).unwrap_or_default();
    let message =
        format!("The model generated {what}{size}, but the answer has no free field for it; it was omitted.");
    Warning::new(WarningCode::MediaUnplaced, message)
}

/// Returns the current value at a location of the data.
pub(super) fn value_at<'a>(data: &'a Value, slot: &MediaSlot) -> Option<Node<'a>> {
    data.pointer(slot.path.pointer().strip_prefix("/data")?)
}

// A media item as it is written in an answer (SPEC 4.3).

/// A media item for its location: facts of its bytes, generation parameters, and content.
pub(super) struct Output {
    pub(super) slot: MediaSlot,
    pub(super) media: Media,
    pub(super) content: Content,
    /// The generation parameters from the provider, the model first.
    pub(super) params: Vec<(&'static str, String)>,
    /// The value that the model wrote at the location. Its additional members are retained.
    pub(super) own: Option<Value>,
}

/// The content of a media item: inline or a reference.
pub(super) enum Content {
    Base64(Base64),
    File(PathBuf),
    Url(StoredUrl),
}

/// Base64 text, owned or shared with the reply.
pub(super) enum Base64 {
    Own(String),
    Shared(Value),
}

/// Members that are computed from the bytes, and not copied from the model's value.
const COMPUTED: [&str; 9] =
    ["type", "media_type", "data", "path", "url", "expires_at", "width", "height", "duration_ms"];

impl Base64 {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Own(text) => text,
            Self::Shared(value) => value.as_str().unwrap_or_default(),
        }
    }
}

impl Output {
    /// Returns what the file says of itself.
    fn facts(&self) -> [(&'static str, Option<u64>); 3] {
        let media = self.media.info();
        [
            ("width", media.width.map(u64::from)),
            ("height", media.height.map(u64::from)),
            ("duration_ms", media.duration_ms),
        ]
    }

    /// Returns the members in which the model states something else than the file says, with the sizes of both in bytes.
    fn corrected(&self) -> Vec<(&'static str, usize, usize)> {
        let Some(own) = &self.own else { return Vec::new() };
        let stated = |member: &str| own.get(member).filter(|stated| !stated.is_null());
        let mut found = Vec::new();
        for (member, fact) in self.facts() {
            if let Some(stated) = stated(member).filter(|stated| stated.as_u64() != fact) {
                let fact = fact.filter(|_| self.slot.allows(member));
                found.push((member, stated.to_json().len(), fact.map_or(0, |fact| fact.to_json().len())));
            }
        }
        // Another name of the type states the same.
        let media_type = self.media.media_type();
        let is_other =
            |stated: &Node<'_>| stated.as_str().is_none_or(|name| canonical(name) != canonical(media_type));
        if let Some(stated) = stated("media_type").filter(is_other) {
            found.push(("media_type", stated.to_json().len(), media_type.to_json().len()));
        }
        found
    }

    fn write_facts(&self, w: &mut Writer<'_>) {
        for (member, value) in self.facts().into_iter().filter(|(member, _)| self.slot.allows(member)) {
            w.optional(member, &value);
        }
    }

    /// Writes the provider's parameters, then the additional members of the model's value.
    fn write_params(&self, w: &mut Writer<'_>) {
        let own_params =
            self.own.iter().filter_map(|own| own.get("generation_params")).flat_map(Node::members);
        let own_params: Vec<_> =
            own_params.filter(|(name, _)| self.params.iter().all(|(known, _)| *known != *name)).collect();
        if !self.slot.allows("generation_params") || (own_params.is_empty() && self.params.is_empty()) {
            return;
        }
        w.key("generation_params").object(|w| {
            for (name, value) in &self.params {
                w.field(name, value.as_str());
            }
            for (name, value) in own_params {
                w.key(name).node(value);
            }
        });
    }
}

/// Written by hand: the members depend on the form and on the slot.
impl ToJson for Output {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            let form = match &self.content {
                Content::Base64(_) => "base64",
                Content::File(_) => "file",
                Content::Url(_) => "url",
            };
            w.field("type", form).field("media_type", self.media.media_type());
            match &self.content {
                Content::Base64(text) => w.field("data", text.as_str()),
                Content::File(path) => w.field("path", &*path.to_string_lossy()),
                Content::Url(published) => w.field("url", published.url.as_str()),
            };
            if let (Content::Url(published), true) = (&self.content, self.slot.allows("expires_at")) {
                w.field("expires_at", published.expires_at.as_str());
            }
            self.write_facts(w);
            self.write_params(w);
            for (member, value) in self.own.iter().flat_map(Value::members) {
                if !COMPUTED.contains(&member) && member != "generation_params" {
                    w.key(member).node(value);
                }
            }
        });
    }
}

// Prepared media as parts of a message.

/// Returns the message parts of all media. Each follows a line with its number in the input.
///
/// # Errors
/// The media cannot be read from disk.
pub(crate) fn parts_of(all: &[ProcessedMedia]) -> Result<Vec<Part>, MediaError> {
    let mut parts = Vec::new();
    for (index, processed) in all.iter().enumerate() {
        for prepared in &processed.sent {
            parts.push(Part::text(label(index + 1, processed, prepared)));
            parts.push(part(index + 1, processed, prepared)?);
        }
    }
    Ok(parts)
}

fn label(number: usize, processed: &ProcessedMedia, prepared: &MediaPart) -> String {
    let media_type = processed.media.media_type();
    match prepared.part {
        PartKind::Frame { at_ms, .. } => {
            format!("[media {number}: {media_type}, frame at {}.{:03} s]", at_ms / 1000, at_ms % 1000)
        }
        PartKind::Audio => format!("[media {number}: {media_type}, its sound]"),
        PartKind::Text => format!("[media {number}: {media_type}, its text]"),
        PartKind::Page { number: page } => format!("[media {number}: {media_type}, page {page}]"),
        _ => format!("[media {number}: {media_type}]"),
    }
}

fn part(number: usize, processed: &ProcessedMedia, prepared: &MediaPart) -> Result<Part, MediaError> {
    if prepared.part == PartKind::Text {
        let mut text = String::new();
        prepared.stored.reader().read_to_string(&mut text)?;
        return Ok(Part::text(text));
    }
    let mut part = match &prepared.url {
        Some(url) => Part::image_at(url),
        None => Part::media(prepared.media_type, encode_base64(&prepared.stored)?),
    };
    if let Part::Image(image) = &mut part {
        image.detail = processed.media.detail().and_then(detail);
        image.video = frame(number, prepared.part);
    }
    Ok(part)
}

fn detail(detail: cog_media::Detail) -> Option<Detail> {
    Detail::ALL.into_iter().find(|known| known.as_str() == detail.as_str())
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a video are far below 2^52")]
fn frame(number: usize, part: PartKind) -> Option<VideoFrame> {
    let PartKind::Frame { at_ms, number: frame_index } = part else { return None };
    let timestamp_sec = at_ms as f64 / 1000.0;
    Some(VideoFrame { video_id: Some(format!("media {number}")), timestamp_sec, frame_index })
}

#[cfg(test)]
mod tests {
    use cog_media::{
        MediaCapabilities, MediaDeclaration, MediaRules, Store, check, decode_base64, normalise,
    };

    use super::*;

    #[tokio::test]
    async fn image_with_a_url_is_not_sent_as_base64() {
        let pixel = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
        let stored = decode_base64(pixel, Store::with_limit(100)).unwrap();
        let rules = MediaRules::default();
        let media = check(stored, &MediaDeclaration::default(), &rules, None).await.unwrap();
        let inside = normalise(&media, &MediaCapabilities::default(), &rules).unwrap();
        let url = Some("https://example.com/a.gif".to_owned());
        let sent = vec![MediaPart { url, ..inside.clone() }, inside];
        let parts = parts_of(&[ProcessedMedia { path: cog_json::Path::root(), media, sent }]).unwrap();
        let urls: Vec<_> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Image(image) => Some(image.url.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(urls, ["https://example.com/a.gif", &format!("data:image/gif;base64,{pixel}")]);
    }
}
