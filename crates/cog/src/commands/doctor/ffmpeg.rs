use std::{path::PathBuf, process::Command};

use cog_json::{ToJson, Writer};

use crate::settings::MediaSettings;

/// The ffmpeg that runs use.
pub(super) struct Ffmpeg {
    /// Its path.
    path: Option<PathBuf>,
    /// Its version; none if it cannot be run.
    version: Option<String>,
}

impl Ffmpeg {
    /// Finds the ffmpeg that runs use, and its version.
    pub(super) fn find(settings: &MediaSettings) -> Self {
        let path = settings.tool().ffmpeg().map(PathBuf::from);
        let version = path.as_ref().and_then(|path| {
            let output = Command::new(path).arg("-version").env_clear().output().ok()?;
            // `ffmpeg version 5.1.9 Copyright …`
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.strip_prefix("ffmpeg version ")?.split_whitespace().next().map(str::to_owned)
        });
        Self { path, version }
    }

    /// Describes it in one line.
    pub(super) fn described(&self) -> String {
        match (&self.path, &self.version) {
            (Some(path), Some(version)) => format!("\nffmpeg {version}: {}\n", path.display()),
            (Some(path), None) => format!("\nffmpeg: cannot run {}\n", path.display()),
            (None, _) => {
                "\nffmpeg: not found; it is required to extract frames and audio from videos\n".to_owned()
            }
        }
    }
}

/// Written by hand: null if ffmpeg is not installed.
impl ToJson for Ffmpeg {
    fn write_json(&self, w: &mut Writer<'_>) {
        match &self.path {
            None => w.null(),
            Some(path) => w.object(|w| {
                w.field("path", &*path.to_string_lossy());
                w.optional("version", &self.version.as_deref());
            }),
        }
    }
}
