//! The body of an execute request as a form: JSON and files, which need no base64 there.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, StatusCode, header},
};
use cog_json::{Node, ToJson, Value, Writer};
use cog_media::MediaError;
use cog_spec::{Code, ErrorBody};
use multer::{Field, Multipart, parse_boundary};
use tokio::time::timeout;

use super::{ExecuteBody, object, recovery::Recovery};
use crate::{
    error::ApiError,
    guard,
    media::{Span, UploadError, UploadLease, Wanted, receive},
    state::App,
};

/// The parts that are JSON: the members of the body that is not a form.
const JSON: [&str; 3] = ["input", "_options", "_recovery"];
/// The most parts of a form; an input has ten media at most.
const MAX: usize = 16;

/// A form, as the body that it stands for, and the files that came with it.
pub(crate) struct Form {
    /// `{"input": …, "_options": …, "_recovery": …}`; each file stands in the input as an `upload_ref`.
    pub(crate) body: ExecuteBody,
    /// The files, kept as long as this is.
    pub(crate) files: Vec<UploadLease>,
}

/// A file of the form: where it stands in the input, and its upload.
struct File {
    name: String,
    id: String,
}

/// Whether a body is a form.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    boundary(headers).is_some()
}

/// Reads a form. Files go to the store as uploads do, and are held together to [`UploadSettings::form_bytes`] while they
/// come.
///
/// [`UploadSettings::form_bytes`]: crate::UploadSettings::form_bytes
///
/// # Errors
/// 400 for what is no form, or has a part that has no place; what is wrong with a file.
pub(crate) async fn read_form(
    app: &App,
    owner: &str,
    headers: &HeaderMap,
    body: Body,
    recovery: Option<Recovery>,
) -> Result<Form, ApiError> {
    let boundary = boundary(headers).unwrap_or_default();
    let mut form = Multipart::new(body.into_data_stream(), boundary);
    let longest = app.settings.body_timeout;
    let (mut json, mut named, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut files = Files { app, owner, bytes: 0, lent: Vec::new() };
    while let Some(part) = next(&mut form, longest).await? {
        if json.len() + named.len() == MAX {
            return Err(wrong(&format!("the form has more than {MAX} parts")));
        }
        let name = part.name().unwrap_or_default().to_owned();
        if JSON.contains(&name.as_str()) {
            let room = app.settings.max_body_bytes;
            let text = guard::body::read(Body::from_stream(part), room, longest).await?;
            bytes += text.len();
            json.push((name, app.offload.run(text.len(), move || object(&text)).await?));
        } else {
            let id = files.take(Body::from_stream(part)).await?;
            named.push(File { name, id });
        }
    }
    let files = files.lent;
    let read = move || ExecuteBody::of(&whole(&json, &named)?, bytes, recovery);
    Ok(Form { body: app.offload.run(bytes, read).await?, files })
}

/// The files of a form on their way to the store.
struct Files<'a> {
    app: &'a App,
    owner: &'a str,
    /// How many have come.
    bytes: u64,
    lent: Vec<UploadLease>,
}

impl Files<'_> {
    /// MediaCapabilities one, and gives the id of its upload.
    async fn take(&mut self, part: Body) -> Result<String, UploadError> {
        let max = self.app.settings.uploads.form_bytes as u64;
        let room = max.saturating_sub(self.bytes);
        let (media, longest) = (&self.app.media, self.app.settings.body_timeout);
        let id = media.create(self.owner, Wanted::within(room))?.id().to_owned();
        self.lent.push(media.lend(&id));
        match receive(media, (&id, self.owner), Span::Whole, part, longest).await {
            // Not its own limit, but what the others have left of that of all.
            Err(UploadError::Media(MediaError::TooLarge { limit })) if limit == room => {
                Err(UploadError::Together { max })
            }
            received => {
                self.bytes += received?.received();
                Ok(id)
            }
        }
    }
}

fn boundary(headers: &HeaderMap) -> Option<String> {
    parse_boundary(headers.get(header::CONTENT_TYPE)?.to_str().ok()?).ok()
}

async fn next(form: &mut Multipart<'static>, longest: Duration) -> Result<Option<Field<'static>>, ApiError> {
    match timeout(longest, form.next_field()).await {
        Ok(Ok(part)) => Ok(part),
        Ok(Err(_)) => Err(wrong("the body is not the form that its content type says")),
        Err(_) => Err(wrong("the form stood still").with_status(StatusCode::REQUEST_TIMEOUT)),
    }
}

/// The body that a form stands for.
fn whole(json: &[(String, Value)], files: &[File]) -> Result<Value, ApiError> {
    let part = |name: &str| json.iter().find(|(key, _)| key == name).map(|(_, value)| value.node());
    let input = part("input");
    if let Some((name, _)) = json
        .iter()
        .enumerate()
        .find_map(|(at, part)| json.get(..at)?.iter().any(|(name, _)| *name == part.0).then_some(part))
    {
        return Err(wrong(&format!("the form has two parts `{name}`")));
    }
    check(input, files)?;
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        for name in ["_options", "_recovery"] {
            w.optional(name, &part(name));
        }
        if input.is_some() || !files.is_empty() {
            w.key("input").object(|w| write_input(w, input, files));
        }
    });
    object(text.as_bytes())
}

/// That each file has a place of its own in the input.
fn check(input: Option<Node<'_>>, files: &[File]) -> Result<(), ApiError> {
    for (at, file) in files.iter().enumerate() {
        let (key, is_list) = place(&file.name);
        let is_taken = |other: &File| place(&other.name).0 == key && !(is_list && other.name == file.name);
        let is_again = files.get(..at).is_some_and(|before| before.iter().any(is_taken));
        if key.is_empty() || is_again || input.is_some_and(|input| input.get(key).is_some()) {
            let name: String = file.name.chars().take(60).collect();
            let message = format!("the file `{}` has no place of its own in the input", name.escape_debug());
            return Err(ApiError::new(Code::InvalidInput, message)
                .suggest("name each file as the input's member that it is, or NAME[] for one of a list"));
        }
    }
    Ok(())
}

fn write_input(w: &mut Writer<'_>, input: Option<Node<'_>>, files: &[File]) {
    for (key, value) in input.iter().flat_map(|input| input.members()) {
        w.field(key, &value);
    }
    for (at, file) in files.iter().enumerate() {
        let is_first = files.get(..at).is_some_and(|before| before.iter().all(|it| it.name != file.name));
        match place(&file.name) {
            (key, false) => {
                w.field(key, file);
            }
            (key, true) if is_first => w.key(key).array(|w| {
                let list = files.iter().filter(|other| other.name == file.name);
                list.for_each(|file| {
                    w.item(file);
                });
            }),
            (_, true) => {}
        }
    }
}

impl ToJson for File {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("type", "upload_ref");
            w.field("upload_id", &self.id);
        });
    }
}

/// The member of the input that a part is, and whether it is one of a list: `page[]`.
fn place(name: &str) -> (&str, bool) {
    name.strip_suffix("[]").map_or((name, false), |key| (key, true))
}

fn wrong(message: &str) -> ApiError {
    ErrorBody::new(Code::InvalidInput, message)
        .suggest(
            "send the part `input` as JSON, and each file under the name of the input's member that it is",
        )
        .into()
}
