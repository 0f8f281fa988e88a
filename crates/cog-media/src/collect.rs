//! Opens the media files of an input: all of them or none.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use cog_json::Path;
use futures_util::{StreamExt as _, stream::FuturesUnordered};

use crate::{
    Fetcher, FileGuard, LimitKind, Media, MediaDeclaration, MediaError, MediaLocation, MediaRules,
    MediaSource, SourceContent, Store, Stored, Tool, check, decode_base64, store::run_blocking,
};

/// The maximum bytes of all media files of one input.
const TOTAL: u64 = 200 << 20;

/// How many media files of an input are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// How many are ready or refused.
    pub done: usize,
    /// How many the input has.
    pub total: usize,
}

/// Opens and checks all media files of an input concurrently. Returns them in the order of their sources.
///
/// # Errors
/// Every refused file, in order, with its path.
pub async fn collect(
    sources: Vec<(Path, MediaSource)>,
    rules: &MediaRules,
    access: &Access,
    mut progress: impl FnMut(Progress),
) -> Result<Vec<Media>, Vec<(Path, MediaError)>> {
    check_count(&sources, rules)?;
    let total = sources.len();
    let (paths, sources): (Vec<_>, Vec<_>) = sources.into_iter().unzip();
    let mut opening: FuturesUnordered<_> = sources
        .into_iter()
        .enumerate()
        .map(async |(at, source)| (at, obtain(source, rules.clone(), access.clone()).await))
        .collect();
    let mut outcomes = Vec::with_capacity(total);
    while let Some(outcome) = opening.next().await {
        outcomes.push(outcome);
        progress(Progress { done: outcomes.len(), total });
    }
    outcomes.sort_by_key(|(at, _)| *at);
    check_total(paths.into_iter().zip(outcomes.into_iter().map(|(_, outcome)| outcome)))
}

fn check_count(sources: &[(Path, MediaSource)], rules: &MediaRules) -> Result<(), Vec<(Path, MediaError)>> {
    let limit = rules.max_items as usize;
    // Where no media are accepted, their number does not matter (ruling R80).
    let Some((path, _)) = sources.get(limit).filter(|_| !rules.media_types().is_empty()) else {
        return Ok(());
    };
    let error = MediaError::LimitExceeded {
        limit_kind: LimitKind::Items,
        found: sources.len() as u64,
        limit: limit as u64,
    };
    Err(vec![(path.clone(), error)])
}

/// Opens and checks one media file. Decoding, hashing and disk access run on threads that may block.
///
/// # Errors
/// Why it is refused.
pub async fn obtain(source: MediaSource, rules: MediaRules, access: Access) -> Result<Media, MediaError> {
    if rules.media_types().is_empty() {
        // Before anything is fetched or measured: no content could be accepted (ruling R80).
        return Err(MediaError::unsupported(Some("a media file"), &[]));
    }
    source.check(&rules)?;
    let mut expected = MediaDeclaration::from_source(&source);
    let tool = access.tool.clone();
    let SourceContent { stored, declared } =
        receive_into(Store::for_media(&rules), source.location, access).await?;
    expected.hint = declared.or(expected.hint);
    check(stored, &expected, &rules, tool.as_deref()).await
}

/// Opens content of any kind with at most this many bytes, and does not check what it is.
///
/// # Errors
/// Why it cannot be opened.
pub async fn receive(
    location: MediaLocation,
    limit: u64,
    access: Access,
) -> Result<SourceContent, MediaError> {
    receive_into(Store::with_limit(limit), location, access).await
}

async fn receive_into(
    store: Store,
    location: MediaLocation,
    access: Access,
) -> Result<SourceContent, MediaError> {
    match location {
        MediaLocation::Url(url) => access.fetch(&url, store).await,
        location => run_blocking(move || open(&location, store, &access)).await,
    }
}

fn open(location: &MediaLocation, store: Store, access: &Access) -> Result<SourceContent, MediaError> {
    let stored = match location {
        MediaLocation::Base64(data) => decode_base64(data.as_str().unwrap_or_default(), store),
        MediaLocation::File(path) => access.file(path, store),
        MediaLocation::Artifact(path) => access.files.open(path, store),
        MediaLocation::Upload(id) => return access.upload(id),
        MediaLocation::Url(_) => Err(MediaError::SourceUnavailable { what: "URLs" }),
    };
    Ok(SourceContent { stored: stored?, declared: None })
}

/// Returns all media files, or all errors; the first file over the total limit is an error too.
fn check_total(
    outcomes: impl Iterator<Item = (Path, Result<Media, MediaError>)>,
) -> Result<Vec<Media>, Vec<(Path, MediaError)>> {
    let mut media = Vec::new();
    let mut errors = Vec::new();
    let mut total = 0;
    for (path, outcome) in outcomes {
        match outcome {
            Ok(file) => {
                let before = total;
                total += file.bytes().len();
                if before <= TOTAL && total > TOTAL {
                    errors.push((
                        path,
                        MediaError::LimitExceeded {
                            limit_kind: LimitKind::Total,
                            found: total,
                            limit: TOTAL,
                        },
                    ));
                }
                media.push(file);
            }
            Err(error) => errors.push((path, error)),
        }
    }
    if errors.is_empty() { Ok(media) } else { Err(errors) }
}

// What a run may open.

/// What a run may open. By default nothing.
#[derive(Clone, Default)]
pub struct Access {
    /// The module's directory, the base of relative paths (SPEC 4.2.3).
    pub directory: Option<PathBuf>,
    /// Whether a run may also open the files in the directory of its module, which is then the base of relative paths
    /// ([`Access::for_module`]).
    pub opens_module_files: bool,
    /// Fetches URLs; none if URLs may not be fetched.
    pub fetcher: Option<Arc<Fetcher>>,
    /// Whether an unchanged image may be sent as a URL, which the provider fetches itself.
    pub by_url: bool,
    /// Overrides whether metadata is removed; none to follow the manifest.
    pub strip_metadata: Option<bool>,
    /// Opens files under its roots.
    pub files: FileGuard,
    /// Opens uploads; none without a server that stores them.
    pub uploads: Option<Arc<dyn Uploads>>,
    /// Reads documents, audio and video; without it they are refused.
    pub tool: Option<Arc<Tool>>,
    /// The content of URLs and uploads that was stored before, by URL or id. It is used instead of opening them again,
    /// since they may have expired.
    pub stored: Arc<HashMap<String, SourceContent>>,
    /// The owner whose uploads may be opened, if uploads have owners.
    pub owner: Option<String>,
}

/// Files that were uploaded before a run (docs/spec/media.md).
pub trait Uploads: Send + Sync {
    /// Opens an upload for its owner, with the type that the client suggested. Called on a thread that may block.
    ///
    /// # Errors
    /// [`MediaError::Upload`] if this owner has no such upload, or it has expired.
    fn open(&self, id: &str, owner: Option<&str>) -> Result<SourceContent, MediaError>;
}

impl Access {
    /// Returns the access of a run of a module in this directory; none for a module that is not in one.
    #[must_use]
    pub fn for_module(self, directory: Option<&std::path::Path>) -> Self {
        let directory = directory.and_then(|directory| directory.canonicalize().ok());
        let files = directory.iter().cloned().fold(self.files, FileGuard::with_root);
        Self { directory, files, opens_module_files: false, ..self }
    }

    /// Fetches a URL.
    pub(crate) async fn fetch(&self, url: &str, mut store: Store) -> Result<SourceContent, MediaError> {
        if let Some(stored) = self.stored.get(url) {
            store.expect(stored.stored.len())?;
            return Ok(stored.clone());
        }
        let fetcher = self.fetcher.as_ref().ok_or(MediaError::SourceUnavailable { what: "URLs" })?;
        fetcher.fetch(url, store).await
    }

    /// Opens a file.
    pub(crate) fn file(&self, path: &std::path::Path, store: Store) -> Result<Stored, MediaError> {
        match &self.directory {
            Some(directory) => self.files.open(&directory.join(path), store),
            None => self.files.open(path, store),
        }
    }

    /// Opens an upload.
    pub(crate) fn upload(&self, id: &str) -> Result<SourceContent, MediaError> {
        if let Some(stored) = self.stored.get(id) {
            return Ok(stored.clone());
        }
        let uploads = self.uploads.as_ref().ok_or(MediaError::SourceUnavailable { what: "uploads" })?;
        uploads.open(id, self.owner.as_deref())
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("directory", &self.directory)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the files of the tests")]
mod tests {
    use cog_json::Value;

    use super::*;
    use crate::FileGuard;

    const PIXEL: &str = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";

    async fn collected(sources: &[String], access: &Access) -> Result<Vec<Media>, Vec<(Path, MediaError)>> {
        collected_by(&MediaRules::default(), sources, access).await
    }

    async fn collected_by(
        rules: &MediaRules,
        sources: &[String],
        access: &Access,
    ) -> Result<Vec<Media>, Vec<(Path, MediaError)>> {
        let input = Value::parse(&format!("[{}]", sources.join(","))).unwrap();
        let sources = input.elements().enumerate().map(|(at, node)| {
            let mut path = Path::root();
            path.push_index(at);
            (path, MediaSource::read(&input, node).unwrap())
        });
        collect(sources.collect(), rules, access, |_| {}).await
    }

    fn base64(data: &str) -> String {
        format!(r#"{{"type":"base64","media_type":"image/gif","data":"{data}"}}"#)
    }

    #[tokio::test]
    async fn media_have_the_order_of_their_sources() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("b.png"), pixel()).unwrap();
        let access = Access {
            directory: Some(directory.path().to_owned()),
            files: FileGuard::new([directory.path().to_owned()]),
            ..Access::default()
        };
        let sources = [r#"{"type":"file","path":"b.png"}"#.to_owned(), base64(PIXEL)];
        let media = collected(&sources, &access).await.unwrap();
        let types: Vec<_> =
            media.iter().map(|file| (file.media_type(), file.hint_warning().is_some())).collect();
        assert_eq!(types, [("image/gif", true), ("image/gif", false)]);
    }

    fn pixel() -> Vec<u8> {
        base64_simd::STANDARD.decode_to_vec(PIXEL).unwrap()
    }

    #[tokio::test]
    async fn every_refused_file_is_reported_with_its_path() {
        let sources = [
            base64("*"),
            base64(PIXEL),
            r#"{"type":"upload_ref","upload_id":"upl_1"}"#.to_owned(),
            r#"{"type":"file","path":"/etc/passwd"}"#.to_owned(),
        ];
        let errors = collected(&sources, &Access::default()).await.unwrap_err();
        let errors: Vec<_> =
            errors.iter().map(|(path, error)| format!("{path} {}", error.code().as_str())).collect();
        assert_eq!(errors, ["[0] E1013", "[2] E4007", "[3] E4007"]);
    }

    #[tokio::test]
    async fn ten_files_pass_and_eleven_fail() {
        let sources = vec![base64(PIXEL); 11];
        assert_eq!(collected(&sources[..10], &Access::default()).await.unwrap().len(), 10);
        let errors = collected(&sources, &Access::default()).await.unwrap_err();
        assert!(matches!(
            errors[..],
            [(_, MediaError::LimitExceeded { limit_kind: LimitKind::Items, found: 11, limit: 10 })]
        ));
        let none = MediaRules { kinds: vec![cog_spec::Modality::Text], ..MediaRules::default() };
        let errors = collected_by(&none, &sources, &Access::default()).await.unwrap_err();
        assert!(
            errors.iter().all(|(_, error)| matches!(error, MediaError::Unsupported { .. })),
            "{errors:?}"
        );
        assert_eq!(errors.len(), 11);
    }
}
