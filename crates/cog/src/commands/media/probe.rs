//! `cog media probe`: type, size and dimensions of media files.

use cog_host::settings::{Environment, Flags, Settings};
use cog_json::{ToJson, Writer};
use cog_media::{Facts, Media, MediaError, MediaRules};

use super::{super::runtime, sources};
use crate::{
    args::ProbeArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Table},
};

/// Prints the properties of each source, or why it is rejected.
pub(crate) fn probe(args: &ProbeArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let rules = MediaRules::default();
    let is_json = console.prints_json(args.format);
    let mut found = Vec::new();
    for source in &args.sources {
        let Some(outcome) = runtime::wait(sources::open(source, &rules, &settings.media))? else {
            return Ok(Exit::Interrupted);
        };
        let finding = Finding { source, outcome };
        if is_json {
            console.print_json(&finding)?;
        }
        found.push(finding);
    }
    if !is_json {
        console.print(&table(&found, console))?;
    }
    Ok(if found.iter().all(|finding| finding.outcome.is_ok()) { Exit::Ok } else { Exit::Failed })
}

/// The result for one source.
struct Finding<'a> {
    source: &'a str,
    outcome: Result<Media, MediaError>,
}

/// Written by hand: the members depend on the kind of the media file.
impl ToJson for Finding<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("source", self.source);
            match &self.outcome {
                Ok(media) => media.write_fields(w),
                Err(error) => {
                    w.field("error", &Refusal(error));
                }
            }
        });
    }
}

struct Refusal<'a>(&'a MediaError);

/// Written by hand: all members are computed.
impl ToJson for Refusal<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("code", &self.0.code());
            w.field("message", &self.0.to_string());
            w.field("suggestion", self.0.suggestion());
        });
    }
}

fn table(found: &[Finding<'_>], console: &Console) -> String {
    let mut table = Table::new(["source", "type", "bytes", "details"]);
    for Finding { source, outcome } in found {
        table.row(match outcome {
            Ok(media) => [
                (*source).to_owned(),
                media.media_type().to_owned(),
                media.bytes().len().to_string(),
                described(media.facts()),
            ],
            Err(error) => {
                [(*source).to_owned(), "-".to_owned(), "-".to_owned(), format!("{}: {error}", error.code())]
            }
        });
    }
    table.render(console.out().palette, console.out_columns())
}

fn described(facts: &Facts) -> String {
    let sides = facts.width.zip(facts.height).map(|(width, height)| format!("{width}×{height}"));
    let duration = facts.duration_ms.map(|ms| format!("{}.{:03} s", ms / 1000, ms % 1000));
    let pages =
        facts.pages.map(|pages| if pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") });
    let turn = facts.orientation.map(|turn| format!("EXIF orientation {}", turn.exif()));
    [sides, duration, pages, turn].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
