//! Converts a checked media file into the parts that a provider is sent.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cog_spec::Modality;
use tokio::sync::oneshot;

use crate::{
    Frame, Media, MediaCapabilities, MediaError, MediaInfo, MediaPart, MediaRules, PageText, PartKind,
    Placeholder, Step, Store, Stored, Tool,
    error::seconds,
    normalise::{check_pixels, normalise},
    store::run_blocking,
};

/// The types of extracted text, video frames and audio tracks.
const TEXT: &str = "text/plain";
const FRAME: &str = "image/jpeg";
const AUDIO: &str = "audio/wav";

/// The maximum number of pages that are sent as images.
const MAX_PAGES: u32 = 20;

/// Converts a media file into what a provider supports. Images are normalised; a document becomes text, a video frames
/// and audio, and other audio WAV. Supported types are sent unchanged.
///
/// Images are decoded on threads that may block, other files in the tool's process. Images wait for their turn: the
/// owners of runs, such as the clients of a server, take turns. Also an image that is sent unchanged is decoded once,
/// because a model does not say that it saw only a part of it.
///
/// # Errors
/// As [`normalise`]; [`MediaError::UnsupportedByProvider`] (E4011) if it cannot be converted, such as a document
/// without text.
pub async fn prepare(
    media: &Media,
    capabilities: &MediaCapabilities,
    rules: &MediaRules,
    tool: Option<&Tool>,
    owner: Option<&str>,
) -> Result<Vec<MediaPart>, MediaError> {
    let mut parts = parts_of(media, capabilities, rules, tool, owner).await?;
    if let (Some(first), Some(warning)) = (parts.first_mut(), warning_of(media.info())) {
        let others = first.warning.take();
        first.warning = Some([warning].into_iter().chain(others).collect::<Vec<_>>().join("; "));
    }
    Ok(parts)
}

async fn parts_of(
    media: &Media,
    capabilities: &MediaCapabilities,
    rules: &MediaRules,
    tool: Option<&Tool>,
    owner: Option<&str>,
) -> Result<Vec<MediaPart>, MediaError> {
    if media.kind() == Modality::Image {
        return image_of(media, capabilities, rules, owner).await.map(|image| vec![image]);
    }
    if capabilities.media_types.contains(&media.media_type()) {
        return Ok(vec![MediaPart::complete(media)]);
    }
    let tool = tool.ok_or_else(|| unsupported(media))?;
    match media.kind() {
        Modality::Document => document_of(media, capabilities, tool).await,
        Modality::Video => frames_of(media, capabilities, tool).await,
        _ => Ok(vec![audio_of(media, capabilities, tool).await?.ok_or_else(|| unsupported(media))?]),
    }
}

/// Returns a warning about content that is not in the file, whatever is sent of it.
fn warning_of(facts: &MediaInfo) -> Option<String> {
    let what = match facts.placeholder {
        Some(Placeholder::XfaForm) => {
            "the pages are a placeholder: the content is an XFA form, which only some programs of Adobe display"
        }
        Some(Placeholder::Portfolio) => {
            "the pages are a cover: the document is a portfolio, whose files were not sent"
        }
        None => {
            let missing = seconds(facts.missing_ms?);
            return Some(format!("the recording ends {missing} seconds before its header says"));
        }
    };
    Some(what.to_owned())
}

/// Returns an image as the provider supports it, after its turn to be decoded.
async fn image_of(
    media: &Media,
    capabilities: &MediaCapabilities,
    rules: &MediaRules,
    owner: Option<&str>,
) -> Result<MediaPart, MediaError> {
    let permit = wait(media, owner).await;
    let image = media.clone();
    let accepted = capabilities.clone();
    let rules = rules.clone();
    let mut prepared = run_blocking(move || {
        let warning = check_pixels(&image, &rules);
        let normalised = warning.and_then(|warning| {
            let part = normalise(&image, &accepted, &rules)?;
            Ok(MediaPart { warning: warning.map(str::to_owned), ..part })
        });
        // The permit lasts until the work ends, even if the future is dropped: the thread goes on, and uses its memory.
        drop(permit);
        normalised
    })
    .await?;
    // A changed image exists only here, so only an unchanged one can be fetched by its URL.
    if capabilities.by_url && prepared.steps.is_empty() {
        prepared.url = media.public_url().map(str::to_owned);
    }
    Ok(prepared)
}

fn unsupported(media: &Media) -> MediaError {
    MediaError::UnsupportedByProvider { media_type: media.media_type() }
}

/// Returns the frames of a video in order, then its audio track.
async fn frames_of(
    media: &Media,
    capabilities: &MediaCapabilities,
    tool: &Tool,
) -> Result<Vec<MediaPart>, MediaError> {
    if !capabilities.media_types.contains(&FRAME) {
        return Err(unsupported(media));
    }
    let mut plan = capabilities.frames;
    plan.max_side = capabilities.max_dimension.map_or(plan.max_side, |limit| limit.min(plan.max_side));
    let frames = tool.frames(media, &plan).await?;
    let frames = frames.into_iter().map(|Frame { at_ms, number, image }| MediaPart {
        part: PartKind::Frame { at_ms, number },
        ..converted(FRAME, image)
    });
    let mut parts: Vec<_> = frames.collect();
    match audio_of(media, capabilities, tool).await? {
        Some(audio) => parts.push(MediaPart { part: PartKind::Audio, ..audio }),
        None if media.info().sample_rate.is_some() => {
            let warning = match capabilities.media_types.contains(&AUDIO) {
                true => "the audio track was not sent: it contains no sound",
                false => "the audio track was not sent: the model does not support audio",
            }
            .to_owned();
            parts.iter_mut().take(1).for_each(|first| first.warning = Some(warning.clone()));
        }
        None => {}
    }
    Ok(parts)
}

/// Returns the audio track for a provider that supports WAV.
async fn audio_of(
    media: &Media,
    capabilities: &MediaCapabilities,
    tool: &Tool,
) -> Result<Option<MediaPart>, MediaError> {
    if !capabilities.media_types.contains(&AUDIO) {
        return Ok(None);
    }
    Ok(tool.audio(media).await?.map(|audio| converted(AUDIO, audio)))
}

/// Returns converted content.
fn converted(media_type: &'static str, stored: Stored) -> MediaPart {
    MediaPart {
        media_type,
        stored,
        url: None,
        steps: vec![Step::Converted],
        part: PartKind::Complete,
        warning: None,
    }
}

/// Returns the text of a document with page marks, or the images of its pages if it has no text, such as a scan.
async fn document_of(
    media: &Media,
    capabilities: &MediaCapabilities,
    tool: &Tool,
) -> Result<Vec<MediaPart>, MediaError> {
    let pages = tool.text(media.bytes()).await?;
    if pages.iter().all(|page| page.text.is_empty()) {
        return pages_of(media, pages.len(), capabilities, tool).await;
    }
    run_blocking(move || {
        let mut store = Store::unhashed(u64::MAX);
        store.push(PageText::marked(&pages).as_bytes())?;
        let text = converted(TEXT, store.finish());
        Ok(vec![MediaPart { part: PartKind::Text, warning: not_sent(&pages), ..text }])
    })
    .await
}

/// Returns the images of the first pages of a document.
async fn pages_of(
    media: &Media,
    pages: usize,
    capabilities: &MediaCapabilities,
    tool: &Tool,
) -> Result<Vec<MediaPart>, MediaError> {
    if !capabilities.media_types.contains(&FRAME) {
        return Err(MediaError::NoText { what: "the provider does not support images" });
    }
    let mut parts = Vec::new();
    for number in (1..=MAX_PAGES).take(pages) {
        let image = tool.page_image(media.bytes(), number).await?;
        parts.push(MediaPart { part: PartKind::Page { number }, ..converted(FRAME, image) });
    }
    if pages > parts.len() {
        let warning = format!("only the first {MAX_PAGES} of {pages} pages were sent, as images");
        parts.iter_mut().take(1).for_each(|first| first.warning = Some(warning.clone()));
    }
    Ok(parts)
}

/// Returns a warning about the pages without text, and about form fields and annotations that could not be read.
fn not_sent(pages: &[PageText]) -> Option<String> {
    let unread = pages.iter().filter(|page| page.unread > 0);
    let unread: Vec<String> = unread.map(|page| page.number.to_string()).collect();
    let fields = match unread.as_slice() {
        [] => None,
        [one] => {
            Some(format!("form fields or annotations of page {one} could not be read and were not sent"))
        }
        several => {
            let pages = several.join(", ");
            Some(format!("form fields or annotations of pages {pages} could not be read and were not sent"))
        }
    };
    let warnings: Vec<String> = without_text(pages).into_iter().chain(fields).chain(unknown(pages)).collect();
    (!warnings.is_empty()).then(|| warnings.join("; "))
}

/// Returns a warning about the characters without a meaning.
fn unknown(pages: &[PageText]) -> Option<String> {
    let count: u64 = pages.iter().map(|page| u64::from(page.unknown)).sum();
    let first = pages.iter().find(|page| page.unknown > 0)?.number;
    Some(format!(
        "{count} characters have no meaning in their fonts and were sent as U+FFFD, first on page {first}"
    ))
}

/// Returns a warning about the pages without text.
fn without_text(pages: &[PageText]) -> Option<String> {
    let empty = pages.iter().filter(|page| page.text.is_empty());
    let numbers: Vec<String> = empty.map(|page| page.number.to_string()).collect();
    match numbers.as_slice() {
        [] => None,
        [one] => Some(format!("page {one} has no text and was not sent")),
        several => Some(format!("pages {} have no text and were not sent", several.join(", "))),
    }
}

// Bounds the images that are decoded concurrently in this process, and lets owners take queue.

/// How many megapixels of large images are decoded concurrently: one image of the maximum size.
const LARGE: u32 = 64;
/// How many megapixels of small images are decoded concurrently. They do not wait for large ones.
const SMALL: u32 = 32;
/// The maximum megapixels of a small image: most photographs have fewer.
const MAX_SMALL: u32 = 16;

static LARGE_IMAGES: DecodeQueue = DecodeQueue::new(LARGE);
static SMALL_IMAGES: DecodeQueue = DecodeQueue::new(SMALL);

/// Waits for the turn of an image.
async fn wait(media: &Media, owner: Option<&str>) -> Permit {
    let facts = media.info();
    let pixels = u64::from(facts.width.unwrap_or(0)) * u64::from(facts.height.unwrap_or(0));
    let megapixels = u32::try_from(pixels >> 20).unwrap_or(LARGE).clamp(1, LARGE);
    let queue = if megapixels <= MAX_SMALL { &SMALL_IMAGES } else { &LARGE_IMAGES };
    queue.wait(owner.unwrap_or_default(), megapixels).await
}

/// A number of megapixels, which the owners of images take in queue.
struct DecodeQueue(Mutex<Queue>);

struct Queue {
    free: u32,
    /// The owners in the order of their queue, each with its images in order.
    owners: VecDeque<(String, VecDeque<QueuedImage>)>,
}

struct QueuedImage {
    megapixels: u32,
    sender: oneshot::Sender<Permit>,
}

/// The megapixels of an image. Dropping it lets the next images begin.
struct Permit {
    queue: &'static DecodeQueue,
    megapixels: u32,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.lock().free += self.megapixels;
        self.queue.admit();
    }
}

impl DecodeQueue {
    const fn new(megapixels: u32) -> Self {
        Self(Mutex::new(Queue { free: megapixels, owners: VecDeque::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait(&'static self, owner: &str, megapixels: u32) -> Permit {
        let (sender, receiver) = oneshot::channel();
        self.lock().push(owner, QueuedImage { megapixels, sender });
        self.admit();
        // The sender is stored until it sends.
        receiver.await.unwrap_or(Permit { queue: self, megapixels: 0 })
    }

    /// Lets images begin while there is room for the next one.
    fn admit(&'static self) {
        loop {
            let Some(QueuedImage { megapixels, sender }) = self.lock().next() else { return };
            // The permit of an image that is not waiting any more is dropped, which frees its megapixels.
            drop(sender.send(Permit { queue: self, megapixels }));
        }
    }
}

impl Queue {
    fn push(&mut self, owner: &str, waiting: QueuedImage) {
        match self.owners.iter_mut().find(|(known, _)| known == owner) {
            Some((_, images)) => images.push_back(waiting),
            None => self.owners.push_back((owner.to_owned(), VecDeque::from([waiting]))),
        }
    }

    /// Takes the next image of the first owner, whose next turn is after all others.
    fn next(&mut self) -> Option<QueuedImage> {
        self.owners.iter_mut().for_each(|(_, images)| images.retain(|image| !image.sender.is_closed()));
        self.owners.retain(|(_, images)| !images.is_empty());
        let (_, images) = self.owners.front_mut()?;
        let next = images.pop_front_if(|next| next.megapixels <= self.free)?;
        let (owner, images) = self.owners.pop_front()?;
        if !images.is_empty() {
            self.owners.push_back((owner, images));
        }
        self.free -= next.megapixels;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::{MediaDeclaration, MediaSource, check, decode_base64};

    fn page(number: u32, text: &str) -> PageText {
        PageText { number, text: text.to_owned(), annotations: 0, unread: 0, unknown: 0 }
    }

    const PIXEL: &str = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";

    /// Returns the URL that is sent for this source to a provider that fetches images.
    async fn url(source: &str, capabilities: &[&'static str]) -> Option<String> {
        let source = Value::parse(source).unwrap();
        let source = MediaSource::read(&source, source.node()).unwrap();
        let stored = decode_base64(PIXEL, Store::with_limit(100)).unwrap();
        let rules = MediaRules::default();
        let media = check(stored, &MediaDeclaration::from_source(&source), &rules, None).await.unwrap();
        let capabilities = MediaCapabilities {
            media_types: capabilities.to_vec(),
            by_url: true,
            ..MediaCapabilities::default()
        };
        prepare(&media, &capabilities, &rules, None, None).await.unwrap().remove(0).url
    }

    #[tokio::test]
    async fn only_unchanged_images_are_sent_by_url() {
        let source = |more: &str| format!(r#"{{"type": "url", "url": "https://example.com/a.gif"{more}}}"#);
        let both = ["image/gif", "image/png"];
        assert_eq!(url(&source(""), &both).await.as_deref(), Some("https://example.com/a.gif"));
        assert_eq!(url(&source(""), &["image/png"]).await, None, "converted");
        assert_eq!(url(&source(r#", "rotation": 90"#), &both).await, None, "rotated");
        let sum = crc32fast::hash(&base64_simd::STANDARD.decode_to_vec(PIXEL).unwrap());
        let sum = format!(r#", "checksum": {{"algorithm": "crc32", "value": "{sum:08x}"}}"#);
        assert_eq!(url(&source(&sum), &both).await, None, "has a checksum");
        let inside = format!(r#"{{"type": "base64", "media_type": "image/gif", "data": "{PIXEL}"}}"#);
        assert_eq!(url(&inside, &both).await, None);
    }

    #[test]
    fn missing_content_is_a_warning() {
        assert_eq!(warning_of(&MediaInfo { duration_ms: Some(4000), ..MediaInfo::default() }), None);
        let cut = MediaInfo { missing_ms: Some(3700), ..MediaInfo::default() };
        assert_eq!(
            warning_of(&cut).as_deref(),
            Some("the recording ends 3.7 seconds before its header says")
        );
        let form = MediaInfo { placeholder: Some(Placeholder::XfaForm), ..MediaInfo::default() };
        assert!(warning_of(&form).unwrap().starts_with("the pages are a placeholder"));
    }

    #[test]
    fn pages_without_text_are_named() {
        assert_eq!(without_text(&[page(1, "a")]), None);
        let warning = without_text(&[page(1, ""), page(2, "a")]).unwrap();
        assert_eq!(warning, "page 1 has no text and was not sent");
        let warning = without_text(&[page(1, ""), page(2, "a"), page(3, "")]).unwrap();
        assert_eq!(warning, "pages 1, 3 have no text and were not sent");
        let form = PageText { unread: 2, ..page(4, "a") };
        let warning = not_sent(&[page(1, ""), form]).unwrap();
        let fields = "form fields or annotations of page 4 could not be read and were not sent";
        assert_eq!(warning, format!("page 1 has no text and was not sent; {fields}"));
        let odd = PageText { unknown: 3, ..page(2, "a") };
        let warning = not_sent(&[page(1, "a"), odd]).unwrap();
        assert_eq!(
            warning,
            "3 characters have no meaning in their fonts and were sent as U+FFFD, first on page 2"
        );
    }

    #[tokio::test]
    async fn owners_take_turns() {
        static TURNS: DecodeQueue = DecodeQueue::new(10);
        let first = TURNS.wait("ann", 10).await;
        let mut anns: Vec<_> = (0..3).map(|_| Box::pin(TURNS.wait("ann", 10))).collect();
        assert!(anns.iter_mut().all(|next| next.now_or_never().is_none()));
        let mut bob = Box::pin(TURNS.wait("bob", 1));
        assert!((&mut bob).now_or_never().is_none());
        drop(first);
        let second = (&mut anns[0]).now_or_never().expect("the first in order");
        drop(second);
        let bobs = (&mut bob).now_or_never().expect("his turn is before the other images of ann");
        assert!((&mut anns[1]).now_or_never().is_none(), "there is no room next to it");
        drop(bobs);
        assert!((&mut anns[1]).now_or_never().is_some());
    }

    #[tokio::test]
    async fn image_that_is_not_needed_any_more_gives_up_its_turn() {
        static TURNS: DecodeQueue = DecodeQueue::new(10);
        let first = TURNS.wait("ann", 10).await;
        let mut dropped = Box::pin(TURNS.wait("ann", 10));
        assert!((&mut dropped).now_or_never().is_none());
        let mut next = Box::pin(TURNS.wait("bob", 10));
        assert!((&mut next).now_or_never().is_none());
        drop(dropped);
        drop(first);
        assert!((&mut next).now_or_never().is_some());
        assert_eq!(TURNS.lock().free, 10);
    }

    #[tokio::test]
    async fn images_within_the_limit_do_not_wait() {
        static TURNS: DecodeQueue = DecodeQueue::new(10);
        let permits = [TURNS.wait("ann", 4).await, TURNS.wait("ann", 4).await, TURNS.wait("bob", 2).await];
        assert!(TURNS.wait("bob", 1).now_or_never().is_none());
        drop(permits);
        assert_eq!(TURNS.lock().free, 10);
    }
}
