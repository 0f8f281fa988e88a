//! Checks the caller's input against the module's contract.

use std::{
    borrow::Cow,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use cog_harmony::{
    Finding, Message,
    handoff::{Artifact, Handoff, PROTOCOL, Reference},
};
use cog_json::{Node, Object, Path, SerializeError, ToJson, Value, Writer};
use cog_media::{Checksum, MediaError, MediaLocation, MediaSource, modality_of, type_of_name};
use cog_module::Module;
use cog_spec::{Code, ErrorBody, Modality};
use serde::Serialize;

use crate::{
    changes::{Change, with_changes},
    error,
};

/// The input of a run.
///
/// ```
/// use cog_run::RunInput;
///
/// #[derive(serde::Serialize)]
/// struct Review {
///     code: String,
/// }
///
/// let input = RunInput::json(&Review { code: "fn main() {}".to_owned() })?;
/// let text = RunInput::text("fn main() {}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunInput {
    /// The input as JSON.
    Json(Value),
    /// One text, which becomes the text field of the input, like `--args` (docs/spec/modules.md).
    Args(String),
    /// One text, and an object with the other fields of the input.
    ArgsWith(String, Value),
}

impl RunInput {
    /// Returns the input from a value that serde can serialize, such as a struct of the program.
    ///
    /// # Errors
    /// A value that JSON cannot represent, such as a map whose keys are not strings.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, SerializeError> {
        cog_json::to_value(value).map(Self::Json)
    }

    /// Returns the input from one text, which becomes the text field of the module's input.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Args(text.into())
    }

    /// Returns the input as JSON: text is in the text field of the module's input.
    ///
    /// # Errors
    /// The module has no such field, or several.
    pub fn to_value(&self, module: &Module) -> Result<Value, ErrorBody> {
        match self {
            Self::Json(value) => Ok(value.clone()),
            Self::Args(text) => Ok(from_args(module, text.clone(), &Value::default())?.0),
            Self::ArgsWith(text, rest) => Ok(from_args(module, text.clone(), rest)?.0),
        }
    }

    /// Returns the SHA-256 of the input's canonical JSON (RFC 8785) in hexadecimal. Equal inputs have the same, however they were
    /// given. None if text has no field.
    pub fn sha256(&self, module: &Module) -> Option<String> {
        let hash = cog_harmony::canonical_hash(self.to_value(module).ok()?.node());
        Some(hash.trim_start_matches("sha256:").to_owned())
    }
}

impl From<Value> for RunInput {
    fn from(input: Value) -> Self {
        Self::Json(input)
    }
}

/// An input that matches the module's schema. A prompt contains only checked input.
#[derive(Debug, Clone)]
pub(crate) struct CheckedInput {
    value: Value,
    /// `_context` as the caller gave it.
    given_context: Option<Value>,
    /// `_context` as the model receives it.
    context: Option<Value>,
    /// The input for the prompt with its context, and with a number for each media item.
    prompt_value: Value,
    /// The media of the input with their paths.
    media: Vec<(Path, MediaSource)>,
    /// The value of `$ARGUMENTS` and the field of the input that contains it.
    arguments: Option<Arguments>,
    /// The input as a handoff packet, if it is one.
    packet: Option<Arc<Handoff>>,
    /// What the caller adds to the prompt.
    instructions: Option<String>,
    /// The messages before the input.
    history: Vec<Message>,
}

#[derive(Debug, Clone)]
struct Arguments {
    text: String,
    field: String,
}

impl CheckedInput {
    /// Builds the input when it is given as text, and checks it.
    ///
    /// # Errors
    /// E1001 to E1004, with every violation in `details.violations`, also of a handoff packet.
    pub(crate) fn new(module: &Module, input: RunInput) -> Result<Self, ErrorBody> {
        let (value, arguments) = match input {
            RunInput::Json(value) => (value.clone(), arguments_of(&value)),
            RunInput::Args(text) => from_args(module, text, &Value::default())?,
            RunInput::ArgsWith(text, rest) => from_args(module, text, &rest)?,
        };
        let (value, given_context) = without_context(value);
        let packet = packet_of(&value)?;
        let violations = module.contract.check_input(value.node());
        if !violations.is_empty() {
            return Err(error::from_violations(&violations));
        }
        let mut media = media_of(module, &value)?;
        let fields = media.len();
        if let Some(packet) = &packet {
            media.extend(packet_media(packet, module)?);
        }
        let prompt_value = if media.is_empty() { value.clone() } else { numbered(&value, &media, fields) };
        let arguments = arguments.filter(|_| packet.is_none());
        let packet = packet.map(Arc::new);
        Ok(Self {
            value,
            given_context,
            context: None,
            prompt_value,
            media,
            arguments,
            packet,
            instructions: None,
            history: Vec::new(),
        })
    }

    /// Adds what the caller adds to the prompt ([`RunOptions::instructions`](crate::RunOptions::instructions)).
    pub(crate) fn with_instructions(self, instructions: Option<String>) -> Self {
        Self { instructions, ..self }
    }

    /// Adds the messages before the input ([`RunOptions::messages`](crate::RunOptions::messages)).
    pub(crate) fn with_history(self, history: Vec<Message>) -> Self {
        Self { history, ..self }
    }

    /// Adds the context as the model receives it, and checks the size of the whole input.
    ///
    /// # Errors
    /// E1005 when it exceeds `runtime_requirements.max_input_tokens`.
    pub(crate) fn with_context(mut self, module: &Module, context: Option<Value>) -> Result<Self, ErrorBody> {
        if let Some(context) = &context {
            self.prompt_value = with_member(&self.prompt_value, CONTEXT, context);
        }
        self.context = context;
        self.fits_in(module.manifest.requirements.max_input_tokens)?;
        Ok(self)
    }

    fn fits_in(&self, limit: Option<u64>) -> Result<(), ErrorBody> {
        let Some(limit) = limit else { return Ok(()) };
        let instructions = self.instructions().map_or(0, estimate_tokens);
        let history: u64 = self.history.iter().map(|message| estimate_tokens(&message.text())).sum();
        let tokens = instructions + history + estimate_tokens(&self.prompt_value.to_string());
        if tokens <= limit {
            return Ok(());
        }
        let message = format!(
            "the input has about {tokens} tokens (estimated), and the module accepts at most {limit}"
        );
        let details = serde_json::json!({ "estimated_tokens": tokens, "max_input_tokens": limit });
        Err(ErrorBody::new(Code::InputTooLarge, message)
            .suggest("Shorten or split the input, or raise runtime_requirements.max_input_tokens.")
            .with_details(Value::from(details)))
    }

    /// Returns the input without `_context`.
    pub(crate) fn node(&self) -> Node<'_> {
        self.value.node()
    }

    /// Returns the input without `_context`.
    pub(crate) fn without_context(&self) -> &Value {
        &self.value
    }

    /// Returns `_context` as the caller gave it.
    pub(crate) fn given_context(&self) -> Option<Node<'_>> {
        self.given_context.as_ref().map(Value::node)
    }

    /// Returns `_context` as the model receives it.
    pub(crate) fn context(&self) -> Option<Node<'_>> {
        self.context.as_ref().map(Value::node)
    }

    /// Returns the input as the caller gave it.
    pub(crate) fn original(&self) -> Value {
        match &self.given_context {
            Some(context) => with_member(&self.value, CONTEXT, context),
            None => self.value.clone(),
        }
    }

    /// Returns the input with the context that the model receives, for another run that continues this one.
    pub(crate) fn to_continue(&self) -> Value {
        match &self.context {
            Some(context) => with_member(&self.value, CONTEXT, context),
            None => self.value.clone(),
        }
    }

    /// Returns the input for the prompt.
    pub(crate) fn for_prompt(&self) -> &Value {
        &self.prompt_value
    }

    /// Returns the input as a handoff packet, if it is one.
    pub(crate) fn packet(&self) -> Option<&Handoff> {
        self.packet.as_deref()
    }

    /// Returns what the caller adds to the prompt.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Returns the messages before the input.
    pub(crate) fn history(&self) -> &[Message] {
        &self.history
    }

    /// Returns the text files among the artifacts of a handoff packet.
    pub(crate) fn text_artifacts(&self) -> Vec<TextArtifact> {
        self.packet().map(texts).unwrap_or_default()
    }

    /// Whether the input names media or text files, which are opened before the provider is called.
    pub(crate) fn has_files(&self) -> bool {
        !self.media.is_empty() || !self.text_artifacts().is_empty()
    }

    /// Returns the media of the input with their paths, starting at `input`.
    pub(crate) fn media(&self) -> &[(Path, MediaSource)] {
        &self.media
    }

    /// Returns the value of `$ARGUMENTS`; empty when the input has no such text.
    pub(crate) fn arguments(&self) -> &str {
        self.arguments.as_ref().map_or("", |arguments| &arguments.text)
    }

    /// Returns the input as JSON without the field of `$ARGUMENTS`; none when no field is left.
    pub(crate) fn without_arguments(&self) -> Option<String> {
        let Some(Arguments { field, .. }) = &self.arguments else {
            return Some(self.prompt_value.to_string());
        };
        let rest: Vec<_> = self.prompt_value.members().filter(|(key, _)| *key != field.as_str()).collect();
        (!rest.is_empty()).then(|| Members(rest).to_json())
    }
}

fn from_args(module: &Module, text: String, rest: &Value) -> Result<(Value, Option<Arguments>), ErrorBody> {
    if module.contract.requires_packet() {
        return Err(without_packet(&module.manifest.name));
    }
    let field = module.contract.args_target().map_err(|candidates| ambiguous(&candidates))?;
    // A field of the same name in the rest counts.
    let mut object = Object::default();
    object.insert(field, cog_json::to_value(&text).unwrap_or_default());
    rest.members().for_each(|(name, value)| object.insert(name, value.to_value()));
    Ok((object.to_value(), Some(Arguments { text, field: field.to_owned() })))
}

/// Returns the media of an input in its order.
fn media_of(module: &Module, input: &Value) -> Result<Vec<(Path, MediaSource)>, ErrorBody> {
    let mut media = Vec::new();
    for path in module.contract.media_paths(input.node()) {
        let node = input.pointer(pointer_in_input(&path.pointer())).unwrap_or(input.node());
        match MediaSource::read(input, node) {
            Ok(source) => media.push((path, source)),
            Err(error) => return Err(error::media_rejected(&[(path, error)])),
        }
    }
    Ok(media)
}

/// Returns the input with a number for each media item, from 1. The message parts use the same numbers. The first `fields` are
/// fields for media, which keep only the members that do not describe the source; the others are artifacts, whose references
/// stay.
fn numbered(input: &Value, media: &[(Path, MediaSource)], fields: usize) -> Value {
    let changes = media.iter().enumerate().map(|(index, (path, source))| {
        let pointer = pointer_in_input(&path.pointer()).to_owned();
        let field_source = (index < fields).then_some(source);
        let item = number(index + 1, input.pointer(&pointer), field_source);
        (pointer, Change::Replace(item))
    });
    with_changes(input.node(), &changes.collect())
}

/// Returns the number of a media item with its other members: for a field without those that describe its source, for an
/// artifact with its reference. The number is called `media`, or `media_number` if the item has a member of that name.
fn number(number: usize, item: Option<Node<'_>>, field_source: Option<&MediaSource>) -> Value {
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| match item {
        Some(item) if item.is_object() => {
            w.field(&free_name(item), &number);
            for (key, member) in item.members() {
                let is_of_source = field_source.is_some_and(|source| describes_source(key, source));
                if !is_of_source {
                    w.field(key, &member);
                }
            }
        }
        reference => {
            w.field("media", &number).optional("reference", &reference);
        }
    });
    Value::parse(&text).unwrap_or_default()
}

/// Returns the name of the number of an item, which no member of the item has.
fn free_name(item: Node<'_>) -> Cow<'static, str> {
    let mut name = Cow::Borrowed("media");
    while item.get(&name).is_some() {
        name = if name == "media" { "media_number".into() } else { format!("{name}_").into() };
    }
    name
}

/// Returns whether a member of a media item belongs to its source, and not to the model.
fn describes_source(name: &str, source: &MediaSource) -> bool {
    let location = match source.location.kind() {
        "url" => "url",
        "base64" => "data",
        "file" => "path",
        _ => "upload_id",
    };
    let common = ["type", "media_type", "checksum", "detail", "rotation"];
    name == location || common.contains(&name)
}

/// Strips the leading `input` from a pointer.
pub(crate) fn pointer_in_input(pointer: &str) -> &str {
    pointer.strip_prefix("/input").unwrap_or(pointer)
}

/// The member of an input with its context.
const CONTEXT: &str = "_context";

/// Splits an input into the input and its `_context`.
fn without_context(input: Value) -> (Value, Option<Value>) {
    let Some(context) = input.get(CONTEXT).map(|context| input.child(context)) else { return (input, None) };
    let rest = input.members().filter(|(key, _)| *key != CONTEXT).collect();
    (Value::parse(&Members(rest).to_json()).unwrap_or_default(), Some(context))
}

/// Returns an object with another member at its end.
fn with_member(object: &Value, name: &str, member: &Value) -> Value {
    let members = object.members().filter(|(key, _)| *key != name).chain([(name, member.node())]);
    Value::parse(&Members(members.collect()).to_json()).unwrap_or_default()
}

struct Members<'a>(Vec<(&'a str, Node<'a>)>);

/// Written by hand: an object of borrowed members.
impl ToJson for Members<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for (key, value) in &self.0 {
                w.field(key, value);
            }
        });
    }
}

/// Returns the input's own `$ARGUMENTS` or `query`.
fn arguments_of(input: &Value) -> Option<Arguments> {
    ["$ARGUMENTS", "query"].into_iter().find_map(|field| {
        let text = input.get(field)?.as_str()?.to_owned();
        Some(Arguments { text, field: field.to_owned() })
    })
}

/// Estimates the tokens of a string as a fourth of its bytes, the usual rule of thumb.
fn estimate_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

fn ambiguous(candidates: &[String]) -> ErrorBody {
    let message = match candidates {
        [] => "--args needs a text field, but the input schema has none".to_owned(),
        _ => format!("--args is ambiguous: it could set any of the fields {}", candidates.join(", ")),
    };
    ErrorBody::new(Code::InvalidInput, message)
        .suggest("Pass the input as JSON: --input-json '{…}' or a file.")
}

fn without_packet(name: &str) -> ErrorBody {
    let message = format!("{name} takes a handoff packet, not a text");
    ErrorBody::new(Code::InvalidInput, message).suggest(format!(
        "Create one: `cog handoff new --from me --to {name} --objective TEXT | cog run {name} -`."
    ))
}

// A handoff packet as the input of a run (docs/handoff.md).

/// The maximum number of violations in a message; `details.violations` contains all of them.
const MAX_LISTED: usize = 20;

/// Returns the packet that an input is; none if it is not one.
///
/// # Errors
/// E1001 with every rule that the packet violates, also if it was changed after it was created.
fn packet_of(input: &Value) -> Result<Option<Handoff>, ErrorBody> {
    if input.get("protocol").and_then(|protocol| protocol.as_str()) != Some(PROTOCOL) {
        return Ok(None);
    }
    let packet = Handoff::read(input.clone()).map_err(|findings| refused(&findings))?;
    let findings = packet.check_seal();
    if findings.is_empty() { Ok(Some(packet)) } else { Err(refused(&findings)) }
}

/// Returns the artifacts of a packet that are media of the kinds that the module accepts, with their paths.
///
/// # Errors
/// The code of the first artifact that cannot be media.
fn packet_media(packet: &Handoff, module: &Module) -> Result<Vec<(Path, MediaSource)>, ErrorBody> {
    let accepted = &module.manifest.modalities.input;
    let found = packet.artifacts().filter_map(|artifact| {
        let source = media_source(&artifact, accepted)?;
        let path = path_of(&artifact);
        Some(
            source
                .map(|source| (path.clone(), source))
                .map_err(|error| error::media_rejected(&[(path, error)])),
        )
    });
    found.collect()
}

/// A text file among the artifacts of a packet.
#[derive(Debug, Clone)]
pub(crate) struct TextArtifact {
    pub(crate) name: String,
    /// Its URL or path, as in the packet.
    pub(crate) reference: String,
    pub(crate) path: Path,
    pub(crate) location: MediaLocation,
    pub(crate) checksum: Option<Checksum>,
}

/// Returns the artifacts of a packet that may be text files: they have a text type, or a name without a media type.
/// Directories and URLs without a file name are only references.
pub(crate) fn texts(packet: &Handoff) -> Vec<TextArtifact> {
    packet.artifacts().filter_map(|artifact| text_artifact(&artifact)).collect()
}

fn text_artifact(artifact: &Artifact<'_>) -> Option<TextArtifact> {
    Some(TextArtifact {
        name: artifact.name.to_owned(),
        reference: artifact.reference.as_str().to_owned(),
        path: path_of(artifact),
        location: text_location(artifact)?,
        // The digits were checked when the packet was read.
        checksum: artifact.sha256.and_then(|digest| Checksum::new("sha256", digest).ok()),
    })
}

fn text_location(artifact: &Artifact<'_>) -> Option<MediaLocation> {
    let (location, name) = match artifact.reference {
        Reference::Url(url) => {
            let (_, rest) = url.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme))?;
            let (_, path) = rest.split(['?', '#']).next()?.split_once('/')?;
            (MediaLocation::Url(url.to_owned()), path.rsplit('/').next()?)
        }
        Reference::Path(path) if path.ends_with(['/', '\\']) => return None,
        Reference::Path(path) => (MediaLocation::Artifact(PathBuf::from(path)), path),
    };
    let is_file = !matches!(location, MediaLocation::Url(_)) || name.contains('.');
    let is_text = match artifact.media_type {
        Some(media_type) => is_text_type(media_type),
        None => is_file && type_of_name(FilePath::new(name)).is_none(),
    };
    is_text.then_some(location)
}

/// Whether files of a media type are text: `text/markdown`, `application/json`, `application/ld+json`.
fn is_text_type(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some((kind, subtype)) = essence.split_once('/') else { return false };
    let format = subtype.rsplit_once('+').map_or(subtype, |(_, format)| format);
    let formats = ["json", "yaml", "x-yaml", "xml", "toml", "javascript", "sql", "x-sh", "x-ndjson"];
    kind == "text" || (kind == "application" && formats.contains(&format))
}

fn media_source(artifact: &Artifact<'_>, accepted: &[Modality]) -> Option<Result<MediaSource, MediaError>> {
    let (location, name) = match artifact.reference {
        Reference::Url(url) if url.starts_with("https://") || url.starts_with("http://") => {
            (MediaLocation::Url(url.to_owned()), url.split(['?', '#']).next().unwrap_or(url))
        }
        Reference::Url(_) => return None,
        Reference::Path(path) => (MediaLocation::Artifact(PathBuf::from(path)), path),
    };
    let media_type = artifact.media_type.or_else(|| type_of_name(FilePath::new(name)))?;
    modality_of(media_type).filter(|kind| accepted.contains(kind))?;
    let checksum = artifact.sha256.map(|digest| Checksum::new("sha256", digest)).transpose();
    Some(checksum.map(|checksum| MediaSource {
        media_type: artifact.media_type.map(str::to_owned),
        checksum,
        ..MediaSource::new(location)
    }))
}

fn path_of(artifact: &Artifact<'_>) -> Path {
    let mut path = Path::root();
    ["input", "context", "artifacts", artifact.name].iter().for_each(|key| path.push_key(key));
    path
}

/// Returns the error of an invalid packet.
fn refused(findings: &[Finding]) -> ErrorBody {
    let mut findings = findings.to_vec();
    for finding in &mut findings {
        let separator = if finding.path.is_empty() { "" } else { "." };
        finding.path = format!("input{separator}{}", finding.path);
    }
    let listed = findings.iter().take(MAX_LISTED).map(|one| format!("{}: {}", one.path, one.message));
    let message = format!("the handoff packet is invalid: {}", listed.collect::<Vec<_>>().join("; "));
    let details = Value::parse(&format!("{{\"violations\":{}}}", findings.to_json())).unwrap_or_default();
    let mut error = ErrorBody::new(Code::InvalidInput, message).with_details(details);
    error.suggestion = findings.iter().find_map(|finding| finding.suggestion.clone());
    error
}
