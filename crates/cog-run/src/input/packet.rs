//! A handoff packet as the input of a run (docs/handoff.md).

use std::path::{Path as FilePath, PathBuf};

use cog_harmony::{
    Finding,
    handoff::{Artifact, Handoff, PROTOCOL, Reference},
};
use cog_json::{Path, ToJson as _, Value};
use cog_media::{Checksum, MediaError, MediaLocation, MediaSource, modality_of, type_of_name};
use cog_module::Module;
use cog_spec::{Code, ErrorBody, Modality};

use crate::error;

/// The maximum number of violations in a message; `details.violations` contains all of them.
const MAX_LISTED: usize = 20;

/// Returns the packet that an input is; none if it is not one.
///
/// # Errors
/// E1001 with every rule that the packet violates, also if it was changed after it was created.
pub(crate) fn packet_of(input: &Value) -> Result<Option<Handoff>, ErrorBody> {
    if input.get("protocol").and_then(|protocol| protocol.as_str()) != Some(PROTOCOL) {
        return Ok(None);
    }
    let packet = Handoff::read(input.clone()).map_err(|findings| refused(&findings))?;
    let findings = packet.check_seal();
    if findings.is_empty() { Ok(Some(packet)) } else { Err(refused(&findings)) }
}

/// Returns the artifacts of a packet that are media of the kinds that the module accepts, with their paths.
///
/// # Errors
/// The code of the first artifact that cannot be media.
pub(crate) fn media(packet: &Handoff, module: &Module) -> Result<Vec<(Path, MediaSource)>, ErrorBody> {
    let accepted = &module.manifest.modalities.input;
    let found = packet.artifacts().filter_map(|artifact| {
        let source = media_source(&artifact, accepted)?;
        let path = path_of(&artifact);
        Some(
            source
                .map(|source| (path.clone(), source))
                .map_err(|error| error::media_rejected(&[(path, error)])),
        )
    });
    found.collect()
}

/// A text file among the artifacts of a packet.
#[derive(Debug, Clone)]
pub(crate) struct TextArtifact {
    pub(crate) name: String,
    /// Its URL or path, as in the packet.
    pub(crate) reference: String,
    pub(crate) path: Path,
    pub(crate) location: MediaLocation,
    pub(crate) checksum: Option<Checksum>,
}

/// Returns the artifacts of a packet that may be text files: they have a text type, or a name without a media type.
/// Directories and URLs without a file name are only references.
pub(crate) fn texts(packet: &Handoff) -> Vec<TextArtifact> {
    packet.artifacts().filter_map(|artifact| text_artifact(&artifact)).collect()
}

fn text_artifact(artifact: &Artifact<'_>) -> Option<TextArtifact> {
    Some(TextArtifact {
        name: artifact.name.to_owned(),
        reference: artifact.reference.as_str().to_owned(),
        path: path_of(artifact),
        location: text_location(artifact)?,
        // The digits were checked when the packet was read.
        checksum: artifact.sha256.and_then(|digest| Checksum::new("sha256", digest).ok()),
    })
}

fn text_location(artifact: &Artifact<'_>) -> Option<MediaLocation> {
    let (location, name) = match artifact.reference {
        Reference::Url(url) => {
            let (_, rest) = url.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme))?;
            let (_, path) = rest.split(['?', '#']).next()?.split_once('/')?;
            (MediaLocation::Url(url.to_owned()), path.rsplit('/').next()?)
        }
        Reference::Path(path) if path.ends_with(['/', '\\']) => return None,
        Reference::Path(path) => (MediaLocation::Artifact(PathBuf::from(path)), path),
    };
    let is_file = !matches!(location, MediaLocation::Url(_)) || name.contains('.');
    let is_text = match artifact.media_type {
        Some(media_type) => is_text_type(media_type),
        None => is_file && type_of_name(FilePath::new(name)).is_none(),
    };
    is_text.then_some(location)
}

/// Whether files of a media type are text: `text/markdown`, `application/json`, `application/ld+json`.
fn is_text_type(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some((kind, subtype)) = essence.split_once('/') else { return false };
    let format = subtype.rsplit_once('+').map_or(subtype, |(_, format)| format);
    let formats = ["json", "yaml", "x-yaml", "xml", "toml", "javascript", "sql", "x-sh", "x-ndjson"];
    kind == "text" || (kind == "application" && formats.contains(&format))
}

fn media_source(artifact: &Artifact<'_>, accepted: &[Modality]) -> Option<Result<MediaSource, MediaError>> {
    let (location, name) = match artifact.reference {
        Reference::Url(url) if url.starts_with("https://") || url.starts_with("http://") => {
            (MediaLocation::Url(url.to_owned()), url.split(['?', '#']).next().unwrap_or(url))
        }
        Reference::Url(_) => return None,
        Reference::Path(path) => (MediaLocation::Artifact(PathBuf::from(path)), path),
    };
    let media_type = artifact.media_type.or_else(|| type_of_name(FilePath::new(name)))?;
    modality_of(media_type).filter(|kind| accepted.contains(kind))?;
    let checksum = artifact.sha256.map(|digest| Checksum::new("sha256", digest)).transpose();
    Some(checksum.map(|checksum| MediaSource {
        media_type: artifact.media_type.map(str::to_owned),
        checksum,
        ..MediaSource::new(location)
    }))
}

fn path_of(artifact: &Artifact<'_>) -> Path {
    let mut path = Path::root();
    ["input", "context", "artifacts", artifact.name].iter().for_each(|key| path.push_key(key));
    path
}

/// Returns the error of an invalid packet.
fn refused(findings: &[Finding]) -> ErrorBody {
    let mut findings = findings.to_vec();
    for finding in &mut findings {
        let separator = if finding.path.is_empty() { "" } else { "." };
        finding.path = format!("input{separator}{}", finding.path);
    }
    let listed = findings.iter().take(MAX_LISTED).map(|one| format!("{}: {}", one.path, one.message));
    let message = format!("the handoff packet is invalid: {}", listed.collect::<Vec<_>>().join("; "));
    let details = Value::parse(&format!("{{\"violations\":{}}}", findings.to_json())).unwrap_or_default();
    let mut error = ErrorBody::new(Code::InvalidInput, message).with_details(details);
    error.suggestion = findings.iter().find_map(|finding| finding.suggestion.clone());
    error
}
