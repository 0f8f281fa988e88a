use std::{path::Path, process::Command};

use cog_host::settings::MediaSettings;
use cog_json::{ToJson, Writer};
use cog_media::Programs;

/// The programs that read media files in runs.
pub(super) struct MediaPrograms([Program; 3]);

/// A program that runs use.
struct Program {
    name: &'static str,
    /// What its absence means.
    without: &'static str,
    /// Its path and, if it can be run, its version.
    found: Option<(String, Option<String>)>,
}

impl MediaPrograms {
    /// Finds the programs that runs use, and their versions.
    pub(super) fn find(settings: &MediaSettings) -> Self {
        let tool = settings.tool();
        let Programs { ffmpeg, pdftotext, pdftoppm } = tool.programs();
        Self([
            program(
                "ffmpeg",
                "-version",
                "it is required to extract frames and audio from videos",
                ffmpeg.as_deref(),
            ),
            program(
                "pdftotext",
                "-v",
                "a simpler reader extracts the text of PDF files",
                pdftotext.as_deref(),
            ),
            program("pdftoppm", "-v", "it is required to send scanned pages as images", pdftoppm.as_deref()),
        ])
    }

    /// Describes them, one per line.
    pub(super) fn described(&self) -> String {
        let lines = self.0.iter().map(Program::described);
        format!("\n{}\n", lines.collect::<Vec<_>>().join("\n"))
    }

    /// Writes each as a member; null if it is not installed.
    pub(super) fn write_fields(&self, w: &mut Writer<'_>) {
        for program in &self.0 {
            w.field(program.name, program);
        }
    }
}

impl Program {
    fn described(&self) -> String {
        let Self { name, without, found } = self;
        match found {
            Some((path, Some(version))) => format!("{name} {version}: {path}"),
            Some((path, None)) => format!("{name}: cannot run {path}"),
            None => format!("{name}: not found; {without}"),
        }
    }
}

fn program(name: &'static str, flag: &str, without: &'static str, path: Option<&Path>) -> Program {
    let found = path.map(|path| (path.display().to_string(), version(name, flag, path)));
    Program { name, without, found }
}

/// Returns the version that a program prints: `ffmpeg version 5.1.9 Copyright …`.
fn version(name: &str, flag: &str, path: &Path) -> Option<String> {
    let output = Command::new(path).arg(flag).env_clear().output().ok()?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let version = printed.strip_prefix(name)?.trim_start().strip_prefix("version ")?;
    version.split_whitespace().next().map(str::to_owned)
}

/// Written by hand: null if it is not installed.
impl ToJson for Program {
    fn write_json(&self, w: &mut Writer<'_>) {
        match &self.found {
            None => w.null(),
            Some((path, version)) => w.object(|w| {
                w.field("path", path.as_str());
                w.optional("version", &version.as_deref());
            }),
        }
    }
}
