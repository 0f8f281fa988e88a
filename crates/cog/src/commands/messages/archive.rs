//! `cog messages archive`: stores a history with its images, before their URLs expire.

use std::collections::HashMap;

use cog_harmony::{Conversation, FileSource, Part};
use cog_host::settings::{Environment, Flags, MediaSettings, Settings};
use cog_media::{Access, Media, MediaDirectory, MediaError, MediaLocation, MediaRules, MediaSource, obtain};
use cog_module::files;
use cog_spec::ErrorBody;
use futures_util::{StreamExt as _, stream};
use serde::Serialize;

use crate::{
    args::ArchiveArgs,
    commands::{emit, messages, runtime},
    error::{CliError, Exit},
    output::Console,
};

/// The name of the history in an archive.
const HISTORY: &str = "messages.json";
/// How many URLs are fetched at the same time.
const CONCURRENT: usize = 8;

/// Writes the images of a history to a directory, and then the history with their names. The exit code is 1 if an image was not
/// fetched.
pub(crate) fn archive(
    args: &ArchiveArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let document = messages::read(&args.file)?;
    let mut conversation = messages::conversation(&document, &args.file)?;
    let settings = Settings::read(Flags::default(), environment)?;
    files::create_directory(&args.directory).map_err(|source| emit::unwritable(&args.directory, source))?;
    let directory = MediaDirectory::new(&args.directory);
    let Some(stored) = runtime::wait(store_all(&conversation, &directory, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let stored = stored?;
    let is_complete = rewrite(&mut conversation, &stored, console)?;
    let text = document.with_messages(&conversation);
    // Last, so that a history never names a file that is not there.
    emit::file(&args.directory.join(HISTORY), &text, console)?;
    Ok(if is_complete { Exit::Ok } else { Exit::Failed })
}

/// The file name of each URL, or why it was not fetched.
type Stored = HashMap<String, Result<String, MediaError>>;

/// Fetches each URL once, and writes its content as it arrives.
async fn store_all(
    conversation: &Conversation,
    directory: &MediaDirectory,
    settings: &MediaSettings,
) -> Result<Stored, ErrorBody> {
    let access = Access { fetcher: settings.fetcher(), tool: Some(settings.tool()), ..Access::default() };
    let mut urls: Vec<&str> =
        conversation.messages().iter().flat_map(|message| &message.content).filter_map(url_of).collect();
    urls.sort_unstable();
    urls.dedup();
    let fetches = urls.into_iter().map(|url| fetch(url.to_owned(), access.clone()));
    let mut fetched = stream::iter(fetches).buffer_unordered(CONCURRENT);
    let mut stored = Stored::new();
    while let Some((url, outcome)) = fetched.next().await {
        let name = outcome
            .map(|media| directory.store(&media).map_err(|error| ErrorBody::from(&error)))
            .map_or_else(|error| Ok(Err(error)), |name| name.map(Ok))?;
        stored.insert(url, name);
    }
    Ok(stored)
}

async fn fetch(url: String, access: Access) -> (String, Result<Media, MediaError>) {
    let source = MediaSource::new(MediaLocation::Url(url.clone()));
    (url, obtain(source, MediaRules::default(), access).await)
}

/// Returns the http(s) URL of a part.
fn url_of(part: &Part) -> Option<&str> {
    let url = match part {
        Part::Image(image) => &image.url,
        Part::FileReference(file) => match &file.source {
            FileSource::Url(url) => url,
            FileSource::Id(_) => return None,
        },
        _ => return None,
    };
    let scheme = url.split_once("://")?.0;
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")).then_some(url)
}

/// Replaces the URLs with the file names, and prints each with its path. Returns whether all were fetched.
fn rewrite(conversation: &mut Conversation, stored: &Stored, console: &Console) -> Result<bool, CliError> {
    let mut is_complete = true;
    for (index, message) in conversation.0.iter_mut().enumerate() {
        for (part_index, part) in message.content.iter_mut().enumerate() {
            let Some(outcome) = url_of(part).and_then(|url| stored.get(url)) else { continue };
            let path = format!("messages[{index}].content[{part_index}]");
            console.print_json(&Line::new(&path, part, outcome))?;
            match outcome {
                Ok(name) => set_url(part, name),
                Err(_) => is_complete = false,
            }
        }
    }
    Ok(is_complete)
}

fn set_url(part: &mut Part, name: &str) {
    match part {
        Part::Image(image) => name.clone_into(&mut image.url),
        Part::FileReference(file) => file.source = FileSource::Url(name.to_owned()),
        _ => {}
    }
}

/// The result for one part.
#[derive(Serialize)]
struct Line<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// Without its query, which may contain a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl<'a> Line<'a> {
    fn new(path: &'a str, part: &'a Part, outcome: &'a Result<String, MediaError>) -> Self {
        let none = Line { path, file: None, url: None, code: None, error: None };
        match outcome {
            Ok(name) => Line { file: Some(name), ..none },
            Err(error) => Line {
                url: url_of(part).and_then(|url| url.split(['?', '#']).next()),
                code: Some(error.code().as_str()),
                error: Some(format!("{}{error}", expired(error))),
                ..none
            },
        }
    }
}

/// Returns the beginning of the message about a URL that servers no longer accept.
fn expired(error: &MediaError) -> &'static str {
    match error {
        MediaError::Fetch { status: Some(401 | 403 | 404 | 410), .. } => {
            "the URL has expired or was removed: "
        }
        _ => "",
    }
}
