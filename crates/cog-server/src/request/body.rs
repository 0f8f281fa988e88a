//! The JSON body of a request.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header},
};
use cog_json::{Limits, Node, ToJson, Value, Writer};
use cog_media::MediaError;
use cog_module::Module;
use cog_run::RunInput;
use cog_spec::{Code, ErrorBody};
use multer::{Field, Multipart, parse_boundary};
use tokio::time::timeout;

use super::{Options, Recovery};
use crate::{
    error::{ApiError, allow_only},
    guard::{BodyLease, Client},
    media::{Span, UploadError, UploadLease, UploadRequest, receive},
    state::App,
};

/// The body of `POST /v1/modules/{name}/execute`, and of a WebSocket's first frame (docs/spec/http.md).
#[derive(Debug)]
pub(crate) struct ExecuteBody {
    /// `input`; optional for a resumed stream and for a halted run that continues.
    pub(crate) input: Option<Value>,
    /// `_options`. Boxed, because every future that passes them on contains a copy.
    pub(crate) options: Box<Options>,
    /// `_recovery`.
    pub(crate) recovery: Option<Recovery>,
    /// The size of the JSON text; unknown for a halted run that continues, whose state is in a file.
    pub(crate) bytes: usize,
}

/// The body of `POST /run`, for older clients.
#[derive(Debug)]
pub(crate) struct RunBody {
    /// `module`.
    pub(crate) module: String,
    /// `input` or `args`.
    pub(crate) input: RunInput,
    /// `provider` and `model`.
    pub(crate) options: Box<Options>,
    /// The size of the JSON text.
    pub(crate) bytes: usize,
}

/// The advice for a body that is the input itself.
const WRAP: &str = r#"Wrap the input: {"input": {…}}."#;

/// Reads a JSON body and parses it. The bytes of a large body reach `parse` off the event loop, and no route gets them otherwise.
/// `parse` owns the lease of their memory.
///
/// # Errors
/// 415 for another content type; as [`Bodies::read`](crate::guard::Bodies::read); as `parse`.
pub(crate) async fn read<T: Send + 'static, E: From<ApiError> + Send + 'static>(
    app: &App,
    client: &Client,
    headers: &HeaderMap,
    body: Body,
    parse: impl FnOnce(Bytes, BodyLease) -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    if !is_json(headers) {
        return Err(not_json(headers).into());
    }
    let (bytes, lease) = app.guard.bodies.read(client, body).await.map_err(ApiError::from)?;
    app.offload.run(bytes.len(), move || parse(bytes, lease)).await
}

impl ExecuteBody {
    /// Parses the body of an execute request. The headers may name the stream to resume.
    ///
    /// # Errors
    /// E1000 to E1003, with the path.
    pub(crate) fn parse(body: &[u8], header_recovery: Option<Recovery>) -> Result<Self, ApiError> {
        Self::from_value(&object(body)?, body.len(), header_recovery)
    }

    /// Reads a parsed body. `bytes` is the size of its text.
    ///
    /// # Errors
    /// The errors of [`ExecuteBody::parse`].
    pub(crate) fn from_value(
        value: &Value,
        bytes: usize,
        header_recovery: Option<Recovery>,
    ) -> Result<Self, ApiError> {
        allow_only(value.node(), "", &["input", "_options", "_recovery", "_continue"])
            .map_err(|error| if value.get("input").is_some() { error } else { error.suggest(WRAP) })?;
        let body_recovery =
            value.get("_recovery").filter(|it| !it.is_null()).map(super::from_body).transpose()?;
        let recovery = body_recovery.or(header_recovery);
        let mut input = value.get("input").map(|input| value.child(input));
        let approval = value.get("_continue").filter(|it| !it.is_null());
        let approval = approval.map(super::read_approval).transpose()?;
        if approval.is_some() {
            if input.as_ref().is_some_and(|input| !input.is_null()) {
                return Err(wrong(
                    "`input` and `_continue` cannot be used together: the input is that of the halted run",
                ));
            }
            input = Some(Value::null()); // the halted run has its own
        }
        if input.is_none() && recovery.is_none() {
            return Err(missing("input", WRAP));
        }
        let options = value.get("_options").map(Options::read).transpose()?;
        let mut options = options.map(Box::new).unwrap_or_default();
        options.run.approval = approval;
        // Its file may be large, so it is always read off the event loop.
        let bytes = if options.run.approval.is_some() { usize::MAX } else { bytes };
        Ok(Self { input, options, recovery, bytes })
    }
}

impl RunBody {
    /// Parses the body of a `/run` request.
    ///
    /// # Errors
    /// E1000 to E1003, with the path.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let value = object(body)?;
        let bytes = body.len();
        allow_only(value.node(), "", &["module", "args", "input", "provider", "model"])?;
        let Some(module) = text(&value, "module")? else {
            return Err(missing("module", r#"Send {"module": "NAME", "input": {…}}."#));
        };
        let input = match (value.get("input"), text(&value, "args")?) {
            (Some(_), Some(_)) => return Err(wrong("`args` and `input` cannot be used together")),
            (Some(input), None) => RunInput::Json(value.child(input)),
            (None, Some(args)) => RunInput::Args(args),
            (None, None) => return Err(missing("input", "Send `input`, an object, or `args`, a string.")),
        };
        let mut options = Box::<Options>::default();
        options.run.provider = text(&value, "provider")?;
        options.run.model = text(&value, "model")?;
        Ok(Self { module, input, options, bytes })
    }
}

/// Parses a JSON object.
pub(crate) fn object(body: &[u8]) -> Result<Value, ApiError> {
    // The guard has limited the size of the body already.
    let limits = Limits::default().with_bytes(body.len() as u64);
    let value = Value::parse_within(body, limits).map_err(|error| syntax(body, &error))?;
    match value.is_object() {
        true => Ok(value),
        false => Err(ApiError::new(Code::TypeMismatch, "the body must be a JSON object")),
    }
}

fn syntax(body: &[u8], error: &cog_json::SyntaxError) -> ApiError {
    let message = if body.is_empty() {
        "the body is empty; it must be a JSON object".to_owned()
    } else {
        let position = error.position(&String::from_utf8_lossy(body));
        format!("the body is not JSON: {error} (line {}, column {})", position.line, position.column)
    };
    ApiError::new(Code::ParseError, message).with_status(StatusCode::BAD_REQUEST)
}

fn text(value: &Value, key: &str) -> Result<Option<String>, ApiError> {
    match value.get(key).filter(|it| !it.is_null()) {
        None => Ok(None),
        Some(node) => match node.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(ApiError::new(Code::TypeMismatch, format!("{key}: must be a string"))),
        },
    }
}

fn missing(key: &str, suggestion: &str) -> ApiError {
    ApiError::new(Code::MissingRequiredField, format!("missing field `{key}`")).suggest(suggestion)
}

fn wrong(message: &str) -> ApiError {
    ApiError::new(Code::InvalidInput, message)
}

/// Whether the type is `application/json` or `application/…+json`. Web pages cannot send these across origins without a
/// preflight.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    name == "application/json" || (name.starts_with("application/") && name.ends_with("+json"))
}

fn not_json(headers: &HeaderMap) -> ApiError {
    let found = match headers.get(header::CONTENT_TYPE) {
        Some(value) => format!("`{}`", value.to_str().unwrap_or("?")),
        None => "none".to_owned(),
    };
    ApiError::new(Code::InvalidInput, format!("unsupported content type: {found}; allowed: application/json"))
        .suggest("Send the header Content-Type: application/json.")
        .with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

// The body of an execute request as a form: JSON parts, and files without base64.

/// The JSON parts: the members of a JSON body.
const JSON: [&str; 4] = ["input", "_options", "_recovery", "_continue"];
/// The maximum number of parts; an input has at most ten media files.
const MAX: usize = 16;

/// A form: the equivalent JSON body, and its files.
pub(crate) struct Form {
    /// In the input each file is an `upload_ref`.
    pub(crate) body: ExecuteBody,
    /// The files, stored until this value is dropped.
    pub(crate) files: Vec<UploadLease>,
    /// The memory of the JSON parts.
    pub(crate) lease: BodyLease,
    /// The names of their parts.
    names: Vec<String>,
}

impl Form {
    /// Returns a body without files.
    pub(crate) fn without_files(body: ExecuteBody, lease: BodyLease) -> Self {
        Self { body, files: Vec::new(), lease, names: Vec::new() }
    }

    /// Checks that each file is named after a media field of the module. Another field would pass the reference to the
    /// model as text.
    ///
    /// # Errors
    /// E1001, with the first other name.
    pub(crate) fn check_fields(&self, module: &Module) -> Result<(), ApiError> {
        let fields = module.contract.media_fields();
        let other = self.names.iter().find(|name| fields.iter().all(|field| field.name != field_of(name).0));
        let Some(name) = other else { return Ok(()) };
        let message = format!("the input of `{}` has no media field `{}`", module.manifest.name, shown(name));
        let known: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name)).collect();
        let suggestion = match known.as_slice() {
            [] => "Send only the part `input`: the module accepts no files.".to_owned(),
            _ => format!("Name the file after one of its media fields: {}.", known.join(", ")),
        };
        Err(ApiError::new(Code::InvalidInput, message).suggest(suggestion))
    }
}

/// A file of the form: its field and its upload.
struct File {
    name: String,
    id: String,
}

/// Whether the body is a form, by its content type.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    boundary(headers).is_some()
}

/// Reads a form. Files are stored as uploads, together up to [`UploadSettings::max_form_bytes`].
///
/// [`UploadSettings::max_form_bytes`]: crate::UploadSettings::max_form_bytes
///
/// # Errors
/// 400 for an invalid form; the error of a file that is not valid.
pub(crate) async fn read_form(
    app: &App,
    client: &Client,
    headers: &HeaderMap,
    body: Body,
    recovery: Option<Recovery>,
) -> Result<Form, ApiError> {
    let boundary = boundary(headers).unwrap_or_default();
    let mut form = Multipart::new(body.into_data_stream(), boundary);
    let max_time = app.settings.body_timeout;
    let mut json = Vec::new();
    let mut named = Vec::new();
    let mut bytes = 0;
    let mut lease = BodyLease::default();
    let owner = client.owner();
    let mut files = Files { app, owner: &owner, bytes: 0, lent: Vec::new() };
    while let Some(part) = next(&mut form, max_time).await? {
        if json.len() + named.len() == MAX {
            return Err(wrong_form(&format!("the form has more than {MAX} parts")));
        }
        let name = part.name().unwrap_or_default().to_owned();
        if JSON.contains(&name.as_str()) {
            let (text, part_lease) = app.guard.bodies.read(client, Body::from_stream(part)).await?;
            lease.merge(part_lease);
            bytes += text.len();
            json.push((name, app.offload.run(text.len(), move || object(&text)).await?));
        } else {
            let hint = part.content_type().map(|hint| hint.essence_str().to_owned());
            let hint = hint.filter(|hint| hint != "application/octet-stream");
            let id = files.store(Body::from_stream(part), hint).await?;
            named.push(File { name, id });
        }
    }
    let files = files.lent;
    let names = named.iter().map(|file| file.name.clone()).collect();
    let body = app
        .offload
        .run(bytes, move || ExecuteBody::from_value(&to_body(&json, &named)?, bytes, recovery))
        .await?;
    Ok(Form { body, files, lease, names })
}

/// The files of a form that is being read.
struct Files<'a> {
    app: &'a App,
    owner: &'a str,
    /// The bytes so far.
    bytes: u64,
    lent: Vec<UploadLease>,
}

impl Files<'_> {
    /// Stores a file, whose part suggests a type, and returns the id of its upload.
    async fn store(&mut self, part: Body, hint: Option<String>) -> Result<String, UploadError> {
        let max = self.app.settings.uploads.max_form_bytes as u64;
        let room = max.saturating_sub(self.bytes);
        let media = &self.app.media;
        let max_time = self.app.settings.body_timeout;
        let id = media.create(self.owner, UploadRequest::within(room, hint))?.id().to_owned();
        self.lent.push(media.lend(&id));
        match receive(media, (&id, self.owner), Span::Complete, part, max_time).await {
            // Not the limit of the file, but the rest of the limit of all files.
            Err(UploadError::Media(MediaError::TooLarge { limit })) if limit == room => {
                Err(UploadError::TotalTooLarge { max })
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

async fn next(form: &mut Multipart<'static>, max_time: Duration) -> Result<Option<Field<'static>>, ApiError> {
    match timeout(max_time, form.next_field()).await {
        Ok(Ok(part)) => Ok(part),
        Ok(Err(_)) => Err(wrong_form("the body is not a valid multipart form")),
        Err(_) => Err(wrong_form("the form did not arrive in time").with_status(StatusCode::REQUEST_TIMEOUT)),
    }
}

/// Returns the equivalent JSON body of a form.
fn to_body(json: &[(String, Value)], files: &[File]) -> Result<Value, ApiError> {
    let input = part(json, "input");
    if let Some((name, _)) = json
        .iter()
        .enumerate()
        .find_map(|(at, part)| json.get(..at)?.iter().any(|(name, _)| *name == part.0).then_some(part))
    {
        return Err(wrong_form(&format!("duplicate part `{name}`")));
    }
    check(input, files)?;
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        for name in ["_options", "_recovery", "_continue"] {
            w.optional(name, &part(json, name));
        }
        if input.is_some() || !files.is_empty() {
            w.key("input").object(|w| write_input(w, input, files));
        }
    });
    object(text.as_bytes())
}

/// Returns the JSON part of this name.
fn part<'a>(json: &'a [(String, Value)], name: &str) -> Option<Node<'a>> {
    json.iter().find(|(key, _)| key == name).map(|(_, value)| value.node())
}

/// Checks that each file has its own field in the input.
fn check(input: Option<Node<'_>>, files: &[File]) -> Result<(), ApiError> {
    for (at, file) in files.iter().enumerate() {
        let (key, is_list) = field_of(&file.name);
        let is_taken = files
            .get(..at)
            .into_iter()
            .flatten()
            .any(|before| field_of(&before.name).0 == key && !(is_list && before.name == file.name));
        if key.is_empty() || is_taken || input.is_some_and(|input| input.get(key).is_some()) {
            let message = format!("the file `{}` has no field of its own in the input", shown(&file.name));
            return Err(ApiError::new(Code::InvalidInput, message)
                .suggest("Name each file after its field in the input, or NAME[] for an item of a list."));
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
        match field_of(&file.name) {
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

/// Written by hand: the file is written as a media source.
impl ToJson for File {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("type", "upload_ref");
            w.field("upload_id", &self.id);
        });
    }
}

/// Returns a name for a message.
fn shown(name: &str) -> String {
    name.chars().take(60).collect::<String>().escape_debug().to_string()
}

/// The field of a part, and whether it is one item of a list: `page[]`.
fn field_of(name: &str) -> (&str, bool) {
    name.strip_suffix("[]").map_or((name, false), |key| (key, true))
}

fn wrong_form(message: &str) -> ApiError {
    ErrorBody::new(Code::InvalidInput, message)
        .suggest("Send the part `input` as JSON, and each file named after its field in the input.")
        .into()
}
