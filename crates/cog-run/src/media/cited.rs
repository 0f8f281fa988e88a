//! The media of an input as the sources of citations (appendix A.4).

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use cog_answer::PendingReply;
use cog_harmony::citation::{Source, SourcePage, Sources, source_ids};
use cog_json::{Node, Path, Segment};
use cog_media::{Media, MediaError, MediaLocation, MediaSource, PageText, Tool};
use cog_spec::Modality;

use super::{Collected, artifacts::ArtifactText};
use crate::input::pointer_in_input;

/// The media of an input, by the names that citations may use.
pub(crate) struct CitedMedia {
    media: Vec<Media>,
    /// The path of each media item: `input.files[0]`.
    paths: Vec<String>,
    /// The number of each name's media item; none for a name of several.
    names: HashMap<String, Option<usize>>,
    /// The text files among the artifacts of a packet.
    texts: Vec<ArtifactText>,
    tool: Option<Arc<Tool>>,
}

impl Collected {
    /// Returns the media as sources of citations.
    pub(crate) fn cited(&self) -> CitedMedia {
        let input = self.input().original();
        let mut names = HashMap::new();
        for (index, (path, source)) in self.input().media().iter().enumerate() {
            for name in names_of(index + 1, path, source, input.node()) {
                let known = names.entry(name).or_insert(Some(index));
                *known = known.filter(|known| *known == index);
            }
        }
        let media = self.media.clone();
        let paths = self.input().media().iter().map(|(path, _)| path.to_string()).collect();
        let texts = self.texts.texts.clone();
        CitedMedia { media, paths, names, texts, tool: self.sources.access.tool.clone() }
    }
}

impl CitedMedia {
    /// Reads the media that the citations of an answer name, so that the snippets are compared with them. An answer without
    /// such citations reads nothing.
    pub(crate) async fn add_to(&self, pending: &mut PendingReply) {
        let Some(data) = pending.data() else { return };
        let cited = source_ids(data.node());
        if cited.is_empty() {
            return;
        }
        let mut sources = Sources::new();
        for ArtifactText { name, reference, text } in &self.texts {
            let names = [name, reference].into_iter().filter(|name| cited.contains(name.as_str()));
            sources.extend(names.map(|name| (name.clone(), Source::from_text(text))));
        }
        for (index, media) in self.media.iter().enumerate() {
            let names: HashSet<&str> =
                cited.iter().copied().filter(|name| self.names.get(*name) == Some(&Some(index))).collect();
            if !names.is_empty()
                && let Some(source) = self.read(media).await
            {
                sources.extend(names.into_iter().map(|name| (name.to_owned(), source.clone())));
            }
        }
        pending.set_sources(sources);
    }

    /// Reads a media item; none if this program cannot read its kind.
    async fn read(&self, media: &Media) -> Option<Source> {
        if media.kind() == Modality::Document && self.tool.is_none() {
            return None;
        }
        let source = citation_source(media, self.tool.as_deref()).await;
        Some(source.unwrap_or_else(|error| Source::unreadable(error.to_string())))
    }
}

/// The text of a document of an input, or of one of its pages.
pub(crate) struct MediaText {
    /// The path of the document: `input.files[0]`.
    pub(crate) name: String,
    pub(crate) page: Option<u32>,
    pub(crate) text: String,
}

impl CitedMedia {
    /// Returns the texts of all documents, and of the text files among the artifacts of a packet.
    ///
    /// # Errors
    /// A media item cannot be read as text, with the reason.
    pub(crate) async fn texts(&self) -> Result<Vec<MediaText>, String> {
        let artifacts = self.texts.iter();
        let mut texts: Vec<_> = artifacts
            .map(|artifact| MediaText {
                name: artifact.reference.clone(),
                page: None,
                text: artifact.text.clone(),
            })
            .collect();
        for (media, path) in self.media.iter().zip(&self.paths) {
            let kind = media.kind();
            let Some(tool) = self.tool.as_ref().filter(|_| kind == Modality::Document) else {
                return Err(format!("{path} ({}) has no text that can be searched", kind.as_str()));
            };
            let pages =
                tool.text(media.bytes()).await.map_err(|error| format!("{path} cannot be read: {error}"))?;
            texts.extend(pages.into_iter().map(|PageText { number, text, .. }| MediaText {
                name: path.clone(),
                page: Some(number),
                text,
            }));
        }
        Ok(texts)
    }
}

/// Reads a media file as the source of citations: the text and the size of each page of a document, the size of an image, or the
/// length of a recording.
///
/// # Errors
/// A document that cannot be read.
pub async fn citation_source(media: &Media, tool: Option<&Tool>) -> Result<Source, MediaError> {
    let facts = media.info();
    let size = facts.width.zip(facts.height).map(|(width, height)| (f64::from(width), f64::from(height)));
    Ok(match (media.kind(), size, facts.duration_ms) {
        (Modality::Document, ..) => match tool {
            Some(tool) => document(media, tool).await?,
            None => Source::default(),
        },
        (Modality::Image, Some(size), _) => Source::from_image(size),
        (_, _, Some(ms)) => Source::from_recording(ms as f64 / 1000.0),
        _ => Source::default(),
    })
}

async fn document(media: &Media, tool: &Tool) -> Result<Source, MediaError> {
    let texts = tool.text(media.bytes()).await?;
    let sizes = tool.page_sizes(media.bytes()).await?;
    let pages = texts.into_iter().map(move |PageText { number, text, .. }| {
        let index = usize::try_from(number).unwrap_or_default().wrapping_sub(1); // pages count from 1
        SourcePage { size: sizes.get(index).copied().flatten(), number, text }
    });
    let prepared = tokio::task::spawn_blocking(move || Source::from_pages(pages)).await;
    prepared.map_err(|error| std::io::Error::other(error).into())
}

/// Returns the names of a media item: `media 1` as in its label, its path in the input, the name of its field, the `id` or
/// `source_id` of the object around it, and its URL or path.
fn names_of(number: usize, path: &Path, source: &MediaSource, input: Node<'_>) -> Vec<String> {
    let path_text = path.to_string();
    let mut names = vec![format!("media {number}")];
    names.extend(path_text.strip_prefix("input.").map(str::to_owned));
    let field = path.segments().rev().find_map(|segment| match segment {
        Segment::Key(key) => Some(key.to_owned()),
        Segment::Index(_) => None,
    });
    names.extend(field);
    let pointer = path.pointer();
    let parent = pointer_in_input(&pointer).rsplit_once('/').and_then(|(parent, _)| input.pointer(parent));
    let ids = ["id", "source_id"].into_iter().filter_map(|key| parent?.get(key)?.as_str());
    names.extend(ids.map(str::to_owned));
    match &source.location {
        MediaLocation::Url(url) => names.push(url.clone()),
        MediaLocation::File(file) | MediaLocation::Artifact(file) => {
            names.push(file.display().to_string());
            names.extend(file.file_name().map(|name| name.display().to_string()));
        }
        _ => {}
    }
    names
}
