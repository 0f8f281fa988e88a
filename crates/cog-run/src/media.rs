//! The media of an input: opened and checked before the first call, then added to the request (SPEC 4.4,
//! 8.3).

mod artifacts;
mod cited;
mod generated;

use std::pin::Pin;

use cog_answer::PendingReply;
use cog_json::{Node, Path, Value};
use cog_media::{
    Access, Media, MediaCapabilities, MediaDeclaration, MediaError, MediaLocation, MediaRules,
    ProcessedMedia, Progress, UrlGuard, collect, modality_of, prepare,
};
use cog_module::Module;
use cog_provider::Provider;
use cog_spec::{ErrorBody, Modality, Warning, WarningCode};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub use self::cited::citation_source;
use self::generated::{Base64, PendingDelivery, reject, value_at};
pub(crate) use self::{
    artifacts::ArtifactTexts,
    cited::{CitedMedia, MediaText},
    generated::{GeneratedMedia, MediaSink, MissingMedia, limits, parts_of},
};
use crate::{call_log::CallLog, error::media_rejected, input::CheckedInput};

/// Media that are not opened yet.
pub(crate) struct Sources {
    input: CheckedInput,
    rules: MediaRules,
    access: Access,
    /// Whether the run continues an earlier one in a resumed stream.
    is_resumed: bool,
    /// The log of the run, if it can start again.
    log: Option<CallLog>,
}

/// Media that passed every check, ready to be prepared for a provider.
pub(crate) struct Collected {
    sources: Sources,
    media: Vec<Media>,
    texts: ArtifactTexts,
}

/// The opening of media, in progress.
pub(crate) struct Opening {
    work: Pin<Box<dyn Future<Output = Result<Collected, ErrorBody>> + Send>>,
    done: Option<Result<Collected, ErrorBody>>,
    progress: UnboundedReceiver<Progress>,
}

/// The result of waiting for media to be opened.
pub(crate) enum Opened {
    /// The percentage of media that are open.
    Some(u8),
    /// All media are open, or one was rejected.
    All(Box<Result<Collected, ErrorBody>>),
}

impl Opening {
    /// Waits for the next progress or the result. All progress is reported before the result.
    pub(crate) async fn next(&mut self) -> Opened {
        loop {
            tokio::select! {
                biased;
                Some(Progress { done, total, .. }) = self.progress.recv() => {
                    if done < total {
                        return Opened::Some(u8::try_from(done * 100 / total).unwrap_or(100));
                    }
                }
                done = &mut self.work, if self.done.is_none() => self.done = Some(done),
                else => if let Some(done) = self.done.take() { return Opened::All(Box::new(done)) },
            }
        }
    }
}

impl Sources {
    /// Returns the media and text files that an input names. `access` has the media that an earlier attempt of the run stored.
    ///
    /// # Errors
    /// E1010 when the declared type is not one that the module accepts.
    pub(crate) fn new(
        module: &Module,
        input: &CheckedInput,
        mut access: Access,
        log: Option<CallLog>,
        is_resumed: bool,
    ) -> Result<Self, ErrorBody> {
        // A URL whose content is stored may have expired for a provider, too.
        access.by_url &= access.stored.is_empty();
        let mut rules = MediaRules::from_manifest(&module.manifest);
        rules.strip_metadata = access.strip_metadata.unwrap_or(rules.strip_metadata);
        for (path, source) in input.media() {
            source.check(&rules).map_err(|error| media_rejected(&[(path.clone(), error)]))?;
        }
        Ok(Self { input: input.clone(), rules, access, is_resumed, log })
    }

    /// Opens and checks all media, and reads the text files among the artifacts of a packet.
    ///
    /// # Errors
    /// The code of the first rejected media item; the message names all of them.
    pub(crate) async fn collect(self, progress: impl FnMut(Progress)) -> Result<Collected, ErrorBody> {
        let sources = self.input.media().to_vec();
        let media = collect(sources, &self.rules, &self.access, progress).await;
        let media = media.map_err(|errors| self.rejected(&errors))?;
        let texts = ArtifactTexts::read(self.input.text_artifacts(), &self.access).await?;
        let collected = Collected { media, texts, sources: self };
        collected.log_media().await;
        Ok(collected)
    }

    /// Opens and checks all media, and reports progress.
    pub(crate) fn open(self) -> Opening {
        let (sender, progress) = unbounded_channel();
        // The receiver may be dropped already.
        let work = self.collect(move |progress| {
            let _ = sender.send(progress);
        });
        Opening { work: Box::pin(work), done: None, progress }
    }

    fn rejected(&self, errors: &[(Path, MediaError)]) -> ErrorBody {
        let error = media_rejected(errors);
        match errors.first() {
            Some((_, MediaError::Upload { .. })) if self.is_resumed => error.suggest(
                "The run is repeated, but its files are no longer stored: start a new run and send the files with it.",
            ),
            _ => error,
        }
    }
}

impl Collected {
    /// Returns the input that names the media.
    pub(crate) fn input(&self) -> &CheckedInput {
        &self.sources.input
    }

    /// Returns the text files among the artifacts of a packet.
    pub(crate) fn texts(&self) -> &ArtifactTexts {
        &self.texts
    }

    /// Prepares the media for a model of a provider.
    ///
    /// # Errors
    /// E4011 when the provider supports no form of a media item.
    pub(crate) async fn prepare(
        &self,
        provider: &dyn Provider,
        model: &str,
    ) -> Result<Vec<ProcessedMedia>, ErrorBody> {
        let Sources { input, access, .. } = &self.sources;
        let mut capabilities = capabilities_of(provider, model);
        capabilities.by_url &= access.by_url;
        let mut all = Vec::with_capacity(self.media.len());
        for (media, (path, _)) in self.media.iter().zip(input.media()) {
            all.push(self.prepare_one(path, media, &capabilities).await?);
        }
        if let Some(many) = provider.info().formats.many_images
            && images_in(&all) > many.over
        {
            capabilities.max_dimension = Some(many.max_side);
            for one in all.iter_mut().filter(|one| is_larger(&one.media, many.max_side)) {
                *one = self.prepare_one(&one.path, &one.media, &capabilities).await?;
            }
        }
        Ok(all)
    }

    async fn prepare_one(
        &self,
        path: &Path,
        media: &Media,
        capabilities: &MediaCapabilities,
    ) -> Result<ProcessedMedia, ErrorBody> {
        let Sources { rules, access, .. } = &self.sources;
        let sent = prepare(media, capabilities, rules, access.tool.as_deref(), access.owner.as_deref()).await;
        let sent = sent.map_err(|error| media_rejected(&[(path.clone(), error)]))?;
        Ok(ProcessedMedia { path: path.clone(), media: media.clone(), sent })
    }
}

fn images_in(all: &[ProcessedMedia]) -> usize {
    let parts = all.iter().flat_map(|one| &one.sent);
    parts.filter(|part| part.media_type.starts_with("image/")).count()
}

/// Returns whether this is an image with a longer side.
fn is_larger(media: &Media, max_side: u32) -> bool {
    media.kind() == Modality::Image && media.info().width.max(media.info().height) > Some(max_side)
}

/// Returns the media capabilities of a model. The offline provider accepts everything.
fn capabilities_of(provider: &dyn Provider, model: &str) -> MediaCapabilities {
    let formats = provider.info().formats;
    let kinds = provider.info().input_media(model);
    let types = formats.types.iter().copied();
    let media_types = types.filter(|one| modality_of(one).is_some_and(|kind| kinds.contains(&kind)));
    MediaCapabilities {
        media_types: media_types.collect(),
        max_dimension: formats.max_side,
        max_bytes: formats.max_image_bytes,
        by_url: formats.by_url,
        ..MediaCapabilities::default()
    }
}

/// Returns the warnings about prepared media and artifacts.
pub(crate) fn warnings(all: &[ProcessedMedia], texts: &ArtifactTexts) -> Vec<Warning> {
    let hints = all.iter().filter_map(|one| {
        let warning = one.media.hint_warning()?;
        Some((WarningCode::ContentHint, format!("{}: {warning}", one.path)))
    });
    let partial = all.iter().flat_map(|one| {
        let warnings = one.sent.iter().filter_map(|part| part.warning.as_ref());
        warnings.map(|warning| (WarningCode::MediaInPart, format!("{}: {warning}", one.path)))
    });
    let media = hints.chain(partial).map(|(code, message)| Warning::new(code, message));
    media.chain(texts.warnings.iter().cloned()).collect()
}

// The media of an input whose source can expire before a stored run continues.

impl Collected {
    /// Returns the media that have a URL or an upload as their source, each with it.
    pub(crate) fn expiring(&self) -> Vec<(String, Media)> {
        let sources = self.input().media().iter().map(|(_, source)| &source.location);
        let mut expiring = Vec::new();
        for (media, location) in self.media.iter().zip(sources) {
            if let MediaLocation::Url(from) | MediaLocation::Upload(from) = location {
                expiring.push((from.clone(), media.clone()));
            }
        }
        expiring
    }

    /// Stores the media that can expire with the log of the run, for a run that starts again.
    async fn log_media(&self) {
        let Some(log) = &self.sources.log else { return };
        let media = self.expiring();
        if !media.is_empty() {
            log.add_media(media).await;
        }
    }
}

// Media that a model writes in its JSON (SPEC 4.3).

/// A media item to deliver like one next to the text; none when the value is not changed.
type Judged = Result<Option<(Media, Option<Base64>)>, MediaError>;

impl MediaSink {
    /// Collects the media that the model wrote in its answer, and rejects invalid ones.
    async fn written(
        &self,
        pending: &mut PendingReply,
        data: &Value,
    ) -> Result<Vec<PendingDelivery>, ErrorBody> {
        let mut due = Vec::new();
        for slot in pending.written() {
            let Some(written) = value_at(data, &slot) else { continue };
            match self.judge(written, data, due.len()).await {
                Ok(Some((media, text))) => {
                    due.push(PendingDelivery { slot, media, text, params: Vec::new() });
                }
                Err(error) if !self.is_lenient => reject(pending, &slot.path.to_string(), &error)?,
                Err(_) | Ok(None) => {}
            }
        }
        Ok(due)
    }

    /// Checks a media value. Base64 is decoded and checked, a URL is checked by its form only, and a file
    /// path is rejected.
    async fn judge(&self, written: Node<'_>, data: &Value, index: usize) -> Judged {
        let text = |member: &str| written.get(member).and_then(Node::as_str);
        match text("type") {
            Some("base64") => {
                let Some(base64) = written.get("data").filter(|data| data.is_string()) else {
                    return Ok(None);
                };
                self.check_count(index)?;
                let media_type = text("media_type").map(str::to_owned);
                let expected = MediaDeclaration { media_type, ..MediaDeclaration::default() };
                let (text, outcome) = self.read(Base64::Shared(data.child(base64)), expected).await;
                outcome.map(|media| Some((media, text)))
            }
            Some("url") => text("url").map_or(Ok(None), |url| self.judge_url(url)),
            Some("file") => Err(MediaError::SourceUnavailable { what: "files that a model names" }),
            _ => Ok(None),
        }
    }

    fn judge_url(&self, url: &str) -> Judged {
        let judged = match &self.fetcher {
            Some(fetcher) => fetcher.guard().judge(url),
            None => UrlGuard::default().judge(url),
        };
        judged.map(|_| None).map_err(|refusal| MediaError::Refused { refusal, hop: 0 })
    }
}
