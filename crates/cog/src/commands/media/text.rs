//! `cog media text`: the text of a PDF, as models without PDF support receive it.

use cog_host::settings::{Environment, Flags, MediaSettings, Settings};
use cog_media::{MediaError, MediaRules, PageText};
use cog_spec::{ErrorBody, Modality};
use serde::Serialize;

use super::{super::runtime, sources};
use crate::{args::TextArgs, error::CliError, exit::Exit, output::Console};

/// Prints the text of each page.
pub(crate) fn text(args: &TextArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(read) = runtime::wait(read(&args.source, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let pages = read.map_err(|error| ErrorBody::from(&error))?;
    let blank: Vec<_> = pages.iter().filter(|page| page.text.is_empty()).map(|page| page.number).collect();
    if !blank.is_empty() {
        console.note(&format!("no text on {}", numbers(&blank)));
    }
    let unread: Vec<_> = pages.iter().filter(|page| page.unread > 0).map(|page| page.number).collect();
    if !unread.is_empty() {
        console.note(&format!("form fields or annotations could not be read on {}", numbers(&unread)));
    }
    if args.format.is_json() {
        console.print_json(&Pages { source: &args.source, pages: &pages })?;
    } else {
        console.print(&PageText::marked(&pages))?;
    }
    Ok(if blank.len() == pages.len() { Exit::Failed } else { Exit::Ok })
}

async fn read(source: &str, settings: &MediaSettings) -> Result<Vec<PageText>, MediaError> {
    let rules = MediaRules { kinds: vec![Modality::Document], ..MediaRules::default() };
    let media = sources::open(source, &rules, settings).await?;
    settings.tool().text(media.bytes()).await
}

/// `page 2`, `pages 2, 5 and 4 more`.
fn numbers(pages: &[u32]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<_> = pages.iter().take(SHOWN).map(u32::to_string).collect();
    let word = if pages.len() == 1 { "page" } else { "pages" };
    let more = match pages.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{word} {}{more}", shown.join(", "))
}

#[derive(Serialize)]
struct Pages<'a> {
    source: &'a str,
    pages: &'a [PageText],
}
