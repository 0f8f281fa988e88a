//! `cog media check`: whether a run would accept a source.

use std::{
    io::{BufRead, Read as _},
    path::PathBuf,
};

use cog_host::settings::{Environment, Flags, MediaSettings, Settings};
use cog_json::{ToJson, Writer};
use cog_media::{Access, MediaError, MediaLocation, MediaRules, MediaSource, UrlGuard, obtain};

use super::classify;
use crate::{
    args::CheckArgs,
    commands::runtime,
    error::{CliError, Exit},
    output::{Console, Palette},
};

/// The maximum length of a line of stdin, in bytes; no URL and no path is longer.
const MAX_LEN: u64 = 64 * 1024;

/// Prints the decision on each source as soon as it is known.
pub(crate) fn check(args: &CheckArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let checker = Checker::new(&settings.media, args.no_fetch);
    let is_json = console.prints_json(args.format);
    runtime::block_on(async {
        let mut exit = Exit::Ok;
        for source in sources(&args.sources) {
            let source = source?;
            let decision = Decision { outcome: checker.decide(&source).await, source };
            if decision.outcome.is_err() {
                exit = Exit::Failed;
            }
            if is_json {
                console.print_json(&decision)?;
            } else {
                console.print(&decision.describe(console.out().palette))?;
            }
        }
        Ok(exit)
    })?
}

/// Returns the sources of the arguments, with the lines of stdin instead of `-`.
fn sources(arguments: &[String]) -> impl Iterator<Item = std::io::Result<String>> {
    arguments.iter().flat_map(|argument| -> Box<dyn Iterator<Item = std::io::Result<String>>> {
        match argument.as_str() {
            "-" => Box::new(Lines(std::io::stdin().lock())),
            argument => Box::new(std::iter::once(Ok(argument.to_owned()))),
        }
    })
}

/// Reads lines without their line endings. Long lines are truncated, and invalid UTF-8 is replaced.
struct Lines<R>(R);

impl<R: BufRead> Iterator for Lines<R> {
    type Item = std::io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match (&mut self.0).take(MAX_LEN).read_until(b'\n', &mut line) {
            Ok(0) => return None,
            // The rest of a long line is skipped, or it would be read as the next source.
            Ok(_) if !line.ends_with(b"\n") => {
                if let Err(error) = self.0.skip_until(b'\n') {
                    return Some(Err(error));
                }
            }
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        Some(Ok(line.strip_suffix('\r').unwrap_or(line).to_owned()))
    }
}

/// Decides by the operator's settings.
struct Checker {
    guard: UrlGuard,
    access: Access,
    rules: MediaRules,
    form_only: bool,
}

impl Checker {
    fn new(settings: &MediaSettings, form_only: bool) -> Self {
        let access = Access {
            fetcher: settings.fetcher().filter(|_| !form_only),
            files: settings.files([PathBuf::from(".")]),
            tool: Some(settings.tool()),
            ..Access::default()
        };
        Self { guard: settings.guard(), access, rules: MediaRules::default(), form_only }
    }

    async fn decide(&self, source: &str) -> Result<(), MediaError> {
        let place = classify(source);
        if !self.form_only {
            return obtain(MediaSource::new(place), self.rules.clone(), self.access.clone()).await.map(drop);
        }
        match place {
            MediaLocation::Url(url) => match self.guard.judge(&url) {
                Ok(_) => Ok(()),
                Err(refusal) => Err(MediaError::Refused { refusal, hop: 0 }),
            },
            MediaLocation::File(path) => self.access.files.check(&path),
            _ => Ok(()),
        }
    }
}

/// The decision on a source.
struct Decision {
    source: String,
    outcome: Result<(), MediaError>,
}

impl Decision {
    fn describe(&self, palette: Palette) -> String {
        match &self.outcome {
            Ok(()) => format!("{} {}\n", palette.success("allowed"), self.source),
            Err(error) => {
                let refused = palette.error(format_args!("refused {}", error.code()));
                format!("{refused} {} {}\n", self.source, palette.dim(error))
            }
        }
    }
}

/// Written by hand: all but the source is computed.
impl ToJson for Decision {
    fn write_json(&self, w: &mut Writer<'_>) {
        let error = self.outcome.as_ref().err();
        w.object(|w| {
            w.field("source", &self.source);
            w.field("allowed", &error.is_none());
            w.field("code", &error.map(|error| error.code().as_str()));
            w.field("reason", &error.map(ToString::to_string));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_one_source() {
        let long = "x".repeat(100_000);
        let text = format!("a\n\n b \r\n{long}\n\u{fffd}\nlast");
        let lines: Vec<_> = Lines(text.as_bytes()).map(Result::unwrap).collect();
        let truncated = &long[..usize::try_from(MAX_LEN).unwrap()];
        assert_eq!(lines, ["a", "", " b ", truncated, "\u{fffd}", "last"]);
        assert_eq!(Lines(&b""[..]).count(), 0);
        assert_eq!(Lines(&b"\n"[..]).count(), 1);
    }
}
