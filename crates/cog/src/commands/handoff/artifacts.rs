//! Resolves the artifacts of a packet.

use std::path::{Path, PathBuf};

use cog_harmony::{
    Finding,
    handoff::{Artifact, Handoff, Reference},
};
use cog_host::settings::MediaSettings;
use cog_media::{MediaError, MediaRules, Stored};

use super::super::opened;
use crate::{args::HandoffCheckArgs, output::Console};

/// Returns a finding for each artifact that does not exist, or differs from its hash.
pub(super) async fn check(
    packet: &Handoff,
    args: &HandoffCheckArgs,
    settings: &MediaSettings,
    console: &Console,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for artifact in packet.artifacts() {
        match resolve(&artifact, args.no_fetch, settings).await {
            Ok(()) => {}
            Err(Unresolved::Refused(message)) => findings.push(finding(&artifact, message)),
            Err(Unresolved::Unknown(message)) if args.strict => findings.push(finding(&artifact, message)),
            Err(Unresolved::Unknown(message)) => {
                console.note(&format!("artifact `{}` was not checked: {message}", artifact.name));
            }
        }
    }
    findings
}

/// Why an artifact is not known to exist.
enum Unresolved {
    /// It does not exist, or differs.
    Refused(String),
    /// Its scheme is not one that can be resolved here.
    Unknown(String),
}

impl From<MediaError> for Unresolved {
    fn from(error: MediaError) -> Self {
        Self::Refused(error.to_string())
    }
}

async fn resolve(
    artifact: &Artifact<'_>,
    no_fetch: bool,
    settings: &MediaSettings,
) -> Result<(), Unresolved> {
    match artifact.reference {
        Reference::Url(url) if is_web(url) && no_fetch => match settings.guard().judge(url) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(MediaError::Refused { refusal, hop: 0 }.into()),
        },
        Reference::Url(url) if is_web(url) => {
            let limit = MediaRules::default().max_bytes_of_any();
            compare(artifact, &opened::open(url, settings, limit).await?)
        }
        Reference::Url(url) => {
            let scheme = url.split(':').next().unwrap_or_default();
            Err(Unresolved::Unknown(format!("the scheme `{scheme}` cannot be resolved")))
        }
        Reference::Path(path) => file(artifact, Path::new(path), settings),
    }
}

/// Looks for a file or directory in the working directory or under the operator's roots.
fn file(artifact: &Artifact<'_>, path: &Path, settings: &MediaSettings) -> Result<(), Unresolved> {
    let inside = |root: PathBuf| Some(path.canonicalize().ok()?.starts_with(root.canonicalize().ok()?));
    if path.is_dir() && artifact.sha256.is_none() && inside(PathBuf::from(".")) == Some(true) {
        return Ok(());
    }
    let guard = settings.files([PathBuf::from(".")]);
    if artifact.sha256.is_none() {
        return Ok(guard.check(path)?);
    }
    let store = cog_media::Store::with_limit(MediaRules::default().max_bytes_of_any());
    compare(artifact, &guard.open(path, store)?)
}

fn compare(artifact: &Artifact<'_>, stored: &Stored) -> Result<(), Unresolved> {
    let (Some(expected), Some(found)) = (artifact.sha256, stored.sha256()) else { return Ok(()) };
    let found = found.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    match found.eq_ignore_ascii_case(expected) {
        true => Ok(()),
        false => Err(Unresolved::Refused(format!("its SHA-256 is {found}"))),
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

fn finding(artifact: &Artifact<'_>, message: String) -> Finding {
    let name = artifact.name;
    Finding {
        path: format!("context.artifacts.{name}"),
        rule: "artifact",
        message,
        suggestion: Some("Put the artifact where the receiver can read it.".to_owned()),
    }
}
