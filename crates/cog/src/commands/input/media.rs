//! Adds the media of `--image`, `--audio`, `--video`, `--pdf` and `--file` to the media fields of the input.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use cog_json::{Node, Object, Value};
use cog_module::Module;
use cog_run::RunInput;
use cog_schema::MediaField;
use cog_spec::{Code, ErrorBody};
use serde_json::json;

use crate::args::{InputArgs, MediaFlags};

/// A kind of media: its flag, the names of fields that accept it, and the extensions of its files.
struct Kind {
    flag: &'static str,
    names: &'static [&'static str],
    extensions: &'static [&'static str],
}

impl Kind {
    /// Returns whether the name of a field says that it has this kind.
    fn names(&self, field: &MediaField<'_>) -> bool {
        let name = field.name.to_lowercase();
        self.names.iter().any(|part| name.contains(part))
    }

    fn has_extension(&self, extension: &str) -> bool {
        self.extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
    }
}

const IMAGE: Kind = Kind {
    flag: "--image",
    names: &["image", "picture", "photo", "screenshot"],
    extensions: &["png", "jpg", "jpeg", "gif", "webp", "heic", "avif", "svg", "bmp", "tif", "tiff"],
};
const AUDIO: Kind = Kind {
    flag: "--audio",
    names: &["audio", "sound", "speech", "voice", "recording"],
    extensions: &["mp3", "wav", "ogg", "opus", "m4a", "aac", "flac", "webm", "mp4"],
};
const VIDEO: Kind = Kind {
    flag: "--video",
    names: &["video", "film", "movie", "clip"],
    extensions: &["mp4", "mov", "webm", "mkv", "avi", "3gp"],
};
const PDF: Kind = Kind { flag: "--pdf", names: &["pdf", "document"], extensions: &["pdf"] };

const KINDS: [Kind; 4] = [IMAGE, AUDIO, VIDEO, PDF];

/// Adds the media to the input.
///
/// # Errors
/// E1001 if there is no field for a flag, or more than one; E1006 for a path that is not UTF-8; E1010 for a file whose
/// name belongs to another kind.
pub(super) fn add(input: RunInput, flags: &MediaFlags, module: &Module) -> Result<RunInput, ErrorBody> {
    let (text, mut object) = split(input)?;
    let fields = module.contract.media_fields();
    for (kind, sources) in
        [(IMAGE, &flags.image), (AUDIO, &flags.audio), (VIDEO, &flags.video), (PDF, &flags.pdf)]
    {
        if !sources.is_empty() {
            let field = field_of(&kind, &fields, &missing(module, &fields, &object))?;
            sources.iter().try_for_each(|source| {
                check_kind(&kind, source)?;
                put(&mut object, field, source)
            })?;
        }
    }
    for named in &flags.file {
        let field = fields.iter().find(|field| field.name == named.field);
        let field = field.ok_or_else(|| no_field(&format!("--file {}=…", named.field), &fields))?;
        put(&mut object, *field, &named.source)?;
    }
    let value = object.to_value();
    Ok(match text {
        Some(text) => RunInput::ArgsWith(text, value),
        None => RunInput::Json(value),
    })
}

/// Returns the files that the command line names, in flags and in `--input-json`. The user who starts the program may read them. An
/// input in a file or from stdin can be written by somebody else, so its files must be under the roots.
pub(in crate::commands) fn files(args: &InputArgs) -> impl Iterator<Item = PathBuf> {
    let MediaFlags { image, audio, video, pdf, file } = &args.media;
    let sources =
        [image, audio, video, pdf].into_iter().flatten().chain(file.iter().map(|named| &named.source));
    let typed = args.input_json.as_deref().and_then(|text| Value::parse(text).ok());
    let typed = typed.map(|value| paths_in(value.node())).unwrap_or_default();
    sources.filter(|source| !is_url(source)).map(PathBuf::from).chain(typed)
}

/// Returns the absolute paths of the file sources in a value (SPEC 4.2.3).
fn paths_in(root: Node<'_>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if node.get_str("type") == Some("file") {
            paths.extend(node.get_str("path").map(PathBuf::from).filter(|path| path.is_absolute()));
        }
        open.extend(node.members().map(|(_, member)| member).chain(node.elements()));
    }
    paths
}

/// Splits the input into the text of `--args` and the object to add media to.
fn split(input: RunInput) -> Result<(Option<String>, Object), ErrorBody> {
    match input {
        RunInput::Args(text) => Ok((Some(text), Object::default())),
        RunInput::Json(value) if !value.is_object() => {
            Err(ErrorBody::new(Code::InvalidInput, "media flags require an input that is a JSON object"))
        }
        RunInput::Json(value) => Ok((None, Object::from_node(value.node()))),
        _ => Ok((None, Object::default())),
    }
}

/// Returns the required media fields that the input does not contain yet.
fn missing<'a>(module: &Module, fields: &[MediaField<'a>], object: &Object) -> Vec<MediaField<'a>> {
    let required = module.contract.input_schema().and_then(|input| input.get("required")?.as_array());
    let required: Vec<&str> = required.into_iter().flatten().filter_map(serde_json::Value::as_str).collect();
    let fields = fields.iter().copied();
    fields.filter(|field| required.contains(&field.name) && object.get(field.name).is_none()).collect()
}

/// Returns the only field whose name has this kind; otherwise the only required field that is missing; otherwise the only
/// media field; otherwise the only field whose name has no kind.
fn field_of<'a>(
    kind: &Kind,
    fields: &[MediaField<'a>],
    missing: &[MediaField<'a>],
) -> Result<MediaField<'a>, ErrorBody> {
    let named: Vec<_> = fields.iter().copied().filter(|field| kind.names(field)).collect();
    let unnamed = fields.iter().copied().filter(|field| !KINDS.iter().any(|kind| kind.names(field)));
    let unnamed: Vec<_> = unnamed.collect();
    match (named.as_slice(), missing, fields, unnamed.as_slice()) {
        ([only], ..) | ([], [only], ..) | ([], _, [only], _) | ([], _, _, [only]) => Ok(*only),
        _ => Err(no_field(kind.flag, fields)),
    }
}

fn no_field(flag: &str, fields: &[MediaField<'_>]) -> ErrorBody {
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    match names.first() {
        None => ErrorBody::new(
            Code::InvalidInput,
            format!("{flag}: the input of this module has no media fields"),
        )
        .suggest("To send the text of a file, use `--args @FILE`, or name a JSON file after the module."),
        Some(first) => {
            let message = format!(
                "{flag}: unclear which input field is meant; these accept media: {}",
                names.join(", ")
            );
            ErrorBody::new(Code::InvalidInput, message)
                .suggest(format!("Name the field: `--file {first}=FILE`."))
        }
    }
}

/// Rejects a file whose name has an extension of another kind only.
fn check_kind(kind: &Kind, source: &OsStr) -> Result<(), ErrorBody> {
    let extension = Path::new(source).extension().and_then(OsStr::to_str).unwrap_or_default();
    match KINDS.iter().find(|other| other.has_extension(extension)) {
        Some(other) if !kind.has_extension(extension) => {
            let message =
                format!("{} {}: .{extension} is not a file of this kind", kind.flag, source.display());
            let advice = format!("Use {}, or --file FIELD=FILE for any type.", other.flag);
            Err(ErrorBody::new(Code::UnsupportedMediaType, message).suggest(advice))
        }
        _ => Ok(()),
    }
}

fn put(object: &mut Object, field: MediaField<'_>, source: &OsStr) -> Result<(), ErrorBody> {
    let item = source_of(source)?;
    let given = object.get(field.name).filter(|given| !given.is_null()).cloned();
    let value = match given {
        None if field.is_list => json!([item]).into(),
        None => item.into(),
        Some(list) if field.is_list && list.is_array() => {
            let items: Vec<Value> = list.elements().map(Node::to_value).chain([item.into()]).collect();
            cog_json::to_value(&items).unwrap_or_default()
        }
        Some(_) => {
            let message = format!("input.{} accepts one media file and already has one", field.name);
            return Err(ErrorBody::new(Code::InvalidInput, message));
        }
    };
    object.insert(field.name, value);
    Ok(())
}

/// Creates a `MediaInput` (SPEC 4.2). Its path is absolute, since relative paths start at the module's directory.
fn source_of(source: &OsStr) -> Result<serde_json::Value, ErrorBody> {
    if is_url(source) {
        return Ok(json!({ "type": "url", "url": source.to_string_lossy() }));
    }
    if source == "-" || is_pipe(Path::new(source)) {
        let message =
            format!("{}: media are read from files and URLs, not from pipes", source.to_string_lossy());
        return Err(ErrorBody::new(Code::InvalidReference, message).suggest("Write it to a file first."));
    }
    let path = std::path::absolute(Path::new(source)).ok().and_then(|path| path.to_str().map(str::to_owned));
    match path {
        Some(path) => Ok(json!({ "type": "file", "path": path })),
        None => {
            let message = format!("the file name {} is not valid UTF-8", source.to_string_lossy());
            Err(ErrorBody::new(Code::InvalidReference, message).suggest("Rename the file."))
        }
    }
}

/// Returns whether a path is an open pipe of the shell: `<(command)`.
fn is_pipe(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdin", "/proc"].iter().any(|pipes| path.starts_with(pipes))
}

fn is_url(source: &OsStr) -> bool {
    source.to_str().is_some_and(|text| text.starts_with("https://") || text.starts_with("http://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, is_list: bool) -> MediaField<'_> {
        MediaField { name, is_list }
    }

    fn chosen<'a>(kind: &Kind, fields: &[MediaField<'a>]) -> Option<&'a str> {
        field_of(kind, fields, &[]).ok().map(|field| field.name)
    }

    #[test]
    fn a_medium_goes_into_the_field_that_says_it_takes_its_kind() {
        let both = [field("coverImage", false), field("voice", false)];
        assert_eq!(chosen(&IMAGE, &both), Some("coverImage"));
        assert_eq!(chosen(&AUDIO, &both), Some("voice"));
        assert_eq!(chosen(&PDF, &both), None);
        assert_eq!(chosen(&VIDEO, &[field("images", true)]), Some("images"), "the only one");
        assert_eq!(chosen(&PDF, &[field("images", true), field("source", false)]), Some("source"));
        assert_eq!(chosen(&IMAGE, &[field("image_a", false), field("image_b", false)]), None);
        assert_eq!(chosen(&IMAGE, &[]), None);
        let fields = [field("document", false), field("pages", true)];
        assert_eq!(
            field_of(&IMAGE, &fields, &fields[..1]).unwrap().name,
            "document",
            "it is required and missing"
        );
        assert_eq!(field_of(&IMAGE, &fields, &[]).unwrap().name, "pages");
    }

    #[test]
    fn a_list_takes_several_and_a_field_one() {
        let mut object = Object::default();
        let source = OsStr::new("https://x.test/a.png");
        for _ in 0..2 {
            put(&mut object, field("images", true), source).unwrap();
        }
        put(&mut object, field("audio", false), source).unwrap();
        assert_eq!(object.get("images").unwrap().elements().len(), 2);
        let audio = object.get("audio").unwrap().to_serde();
        assert_eq!(audio, json!({"type": "url", "url": "https://x.test/a.png"}));
        let error = put(&mut object, field("audio", false), source).unwrap_err();
        assert_eq!(error.message, "input.audio accepts one media file and already has one");
    }

    #[test]
    fn file_of_another_kind_names_its_flag() {
        let advice =
            |kind: &Kind, name: &str| check_kind(kind, OsStr::new(name)).map_err(|error| error.suggestion);
        let use_image = Err(Some("Use --image, or --file FIELD=FILE for any type.".to_owned()));
        assert_eq!(advice(&PDF, "a.PNG"), use_image);
        assert_eq!(advice(&IMAGE, "https://x.test/a.png"), Ok(()));
        assert!(advice(&IMAGE, "a.wav").is_err() && advice(&PDF, "a.mp4").is_err());
        for (kind, name) in [(&AUDIO, "a.webm"), (&VIDEO, "a.webm"), (&PDF, "report"), (&IMAGE, "a.docx")] {
            assert_eq!(advice(kind, name), Ok(()), "{name}");
        }
    }

    #[test]
    fn pipe_is_refused() {
        for pipe in ["-", "/dev/fd/63", "/dev/stdin"] {
            let error = source_of(OsStr::new(pipe)).unwrap_err();
            assert_eq!(error.message, format!("{pipe}: media are read from files and URLs, not from pipes"));
        }
    }

    #[test]
    fn a_file_is_named_in_full() {
        let path = source_of(OsStr::new("a.png")).unwrap()["path"].as_str().unwrap().to_owned();
        assert!(Path::new(&path).is_absolute() && path.ends_with("a.png"), "{path}");
    }
}
