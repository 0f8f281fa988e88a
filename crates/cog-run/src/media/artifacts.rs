//! The text files among the artifacts of a handoff packet (appendix A.3, docs/handoff.md).

use std::{io::Read as _, path::Component};

use cog_harmony::Part;
use cog_json::Path;
use cog_media::{Access, MediaError, MediaLocation, receive};
use cog_spec::{ErrorBody, Warning, WarningCode};

use crate::{error::media_rejected, input::TextArtifact};

/// The maximum bytes of one text file.
const MAX_BYTES: u64 = 256 << 10;
/// The maximum bytes of all text files of a packet.
const MAX_TOTAL: usize = 1 << 20;
/// The maximum number of text files that are read. Each URL among them is a request to a server that another agent chose.
const MAX_FILES: usize = 20;

/// The texts of a packet's artifacts, and the warnings about artifacts that could not be read.
#[derive(Default)]
pub(crate) struct ArtifactTexts {
    pub(crate) texts: Vec<ArtifactText>,
    pub(crate) warnings: Vec<Warning>,
}

/// The text of an artifact.
#[derive(Clone)]
pub(crate) struct ArtifactText {
    pub(crate) name: String,
    pub(crate) reference: String,
    pub(crate) text: String,
}

impl ArtifactTexts {
    /// Reads the text files. One that does not exist, is too large, or is not text remains a reference.
    ///
    /// # Errors
    /// A file differs from the hash in the packet.
    pub(crate) async fn read(artifacts: Vec<TextArtifact>, access: &Access) -> Result<Self, ErrorBody> {
        let mut all = Self::default();
        let mut total = 0;
        for (index, artifact) in artifacts.into_iter().enumerate() {
            if index >= MAX_FILES {
                all.warnings
                    .push(not_read(&artifact.path, &format!("at most {MAX_FILES} text files are read")));
                continue;
            }
            let text = match text_of(&artifact, access).await {
                Err(Unread::Changed(error)) => return Err(media_rejected(&[(artifact.path, error)])),
                Ok(text) if total + text.len() > MAX_TOTAL => Err(too_large(MAX_TOTAL)),
                Ok(text) => Ok(text),
                Err(Unread::Refused(why)) => Err(why),
            };
            match text {
                Ok(text) => {
                    total += text.len();
                    let TextArtifact { name, reference, .. } = artifact;
                    all.texts.push(ArtifactText { name, reference, text });
                }
                Err(why) => all.warnings.push(not_read(&artifact.path, &why)),
            }
        }
        Ok(all)
    }

    /// Returns the texts as parts of a message. Each begins with a line that names its artifact.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> {
        self.texts.iter().map(|ArtifactText { name, reference, text }| {
            Part::text(format!("[artifact {name}: {reference}]\n{text}"))
        })
    }
}

/// Why the text of an artifact is not known.
enum Unread {
    /// It differs from its hash.
    Changed(MediaError),
    Refused(String),
}

async fn text_of(artifact: &TextArtifact, access: &Access) -> Result<String, Unread> {
    if is_hidden(&artifact.location) {
        return Err(Unread::Refused("the path leads to a hidden file".to_owned()));
    }
    let received = receive(artifact.location.clone(), MAX_BYTES, access.clone()).await;
    let stored = received.map_err(|error| Unread::Refused(error.to_string()))?.stored;
    if let Some(checksum) = &artifact.checksum {
        checksum.verify(&stored).map_err(Unread::Changed)?;
    }
    let mut text = String::new();
    let read = stored.reader().read_to_string(&mut text);
    match read {
        Ok(_) if !text.contains('\0') => Ok(text),
        _ => Err(Unread::Refused("it is not text in UTF-8".to_owned())),
    }
}

/// Whether a path contains a hidden file or directory, such as `.env`. Another agent wrote the path, and such files often
/// contain keys.
fn is_hidden(location: &MediaLocation) -> bool {
    let MediaLocation::Artifact(path) = location else { return false };
    path.components().any(|part| match part {
        Component::Normal(name) => name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    })
}

fn too_large(limit: usize) -> String {
    format!("the text files of the packet have more than {limit} bytes")
}

fn not_read(path: &Path, why: &str) -> Warning {
    let message = format!("{path} was not read, so the model receives only its reference: {why}.");
    Warning::new(WarningCode::ArtifactNotRead, message)
}
