//! `cog media check`: whether a run would take it, were it named in an input.

use std::{
    io::{BufRead, Read as _},
    path::PathBuf,
};

use cog_json::{ToJson, Writer};
use cog_media::{Access, MediaError, MediaRules, MediaSource, Place, UrlGuard, obtain};

use super::{super::running, sources::place};
use crate::{
    args::CheckArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Paint},
    settings::{Environment, Flags, MediaSettings, Settings},
};

/// The longest line of stdin that is looked at, in bytes; no address and no path is longer.
const MAX_LEN: u64 = 64 * 1024;

/// Prints what is decided of each source, as soon as it is.
pub(crate) fn check(args: &CheckArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::load(Flags::default(), environment, console)?;
    let judge = Judge::new(&settings.media, args.no_fetch);
    let is_json = args.format.is_json() || !(console.out().is_terminal || args.format.is_human());
    running::block_on(async {
        let mut exit = Exit::Ok;
        for source in sources(&args.sources) {
            let source = source?;
            let decision = Decision { outcome: judge.decide(&source).await, source };
            if decision.outcome.is_err() {
                exit = Exit::Failed;
            }
            if is_json {
                console.print_json(&decision)?;
            } else {
                console.print(&decision.describe(console.out().paint))?;
            }
        }
        Ok(exit)
    })?
}

/// The sources that were typed, and in place of `-` the lines of stdin.
fn sources(words: &[String]) -> impl Iterator<Item = std::io::Result<String>> {
    words.iter().flat_map(|word| -> Box<dyn Iterator<Item = std::io::Result<String>>> {
        match word.as_str() {
            "-" => Box::new(Lines(std::io::stdin().lock())),
            word => Box::new(std::iter::once(Ok(word.to_owned()))),
        }
    })
}

/// Lines without their ends, the beginnings of those that are too long. What is no UTF-8 in them is replaced.
struct Lines<R>(R);

impl<R: BufRead> Iterator for Lines<R> {
    type Item = std::io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match (&mut self.0).take(MAX_LEN).read_until(b'\n', &mut line) {
            Ok(0) => return None,
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

/// Decides as the operator set it up.
struct Judge {
    guard: UrlGuard,
    access: Access,
    rules: MediaRules,
    is_by_form: bool,
}

impl Judge {
    fn new(settings: &MediaSettings, is_by_form: bool) -> Self {
        let access = Access {
            fetcher: settings.fetcher().filter(|_| !is_by_form),
            files: settings.files([PathBuf::from(".")]),
            tool: Some(settings.tool()),
            ..Access::default()
        };
        Self { guard: settings.guard(), access, rules: MediaRules::default(), is_by_form }
    }

    async fn decide(&self, source: &str) -> Result<(), MediaError> {
        let place = place(source);
        if !self.is_by_form {
            return obtain(MediaSource::new(place), self.rules.clone(), self.access.clone()).await.map(drop);
        }
        match place {
            Place::Url(url) => match self.guard.judge(&url) {
                Ok(_) => Ok(()),
                Err(refusal) => Err(MediaError::Refused { refusal, hop: 0 }),
            },
            Place::File(path) => self.access.files.check(&path),
            _ => Ok(()),
        }
    }
}

/// What was decided of a source.
struct Decision {
    source: String,
    outcome: Result<(), MediaError>,
}

impl Decision {
    fn describe(&self, paint: Paint) -> String {
        match &self.outcome {
            Ok(()) => format!("{} {}\n", paint.good("allowed"), self.source),
            Err(error) => {
                let refused = paint.bad(format_args!("refused {}", error.code()));
                format!("{refused} {} {}\n", self.source, paint.dim(error))
            }
        }
    }
}

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
    fn every_line_is_one_source_whatever_it_holds() {
        let long = "x".repeat(100_000);
        let text = format!("a\n\n b \r\n{long}\n\u{fffd}\nlast");
        let lines: Vec<_> = Lines(text.as_bytes()).map(Result::unwrap).collect();
        let cut = &long[..usize::try_from(MAX_LEN).unwrap()];
        assert_eq!(lines, ["a", "", " b ", cut, "\u{fffd}", "last"]);
        assert_eq!(Lines(&b""[..]).count(), 0);
        assert_eq!(Lines(&b"\n"[..]).count(), 1);
    }
}
