//! `cog test add`: a golden test of a labelled run.

use std::path::{Path, PathBuf};

use cog_host::{
    run_log::{Contents, Entries, Entry, Labels},
    settings::{Environment, Flags, Settings},
};
use cog_json::Value;
use cog_module::{
    Module, Origin,
    files::{self, FileError},
    golden::import::{ImportedCase, NewCases},
};
use cog_run::feedback::LabelKind;
use cog_spec::{Code, ErrorBody};
use cog_store::private;
use serde_json::{Map, Value as Json, json};

use super::{answer, import};
use crate::{
    args::TestAddArgs,
    commands::logs::label::module_of,
    error::{CliError, Exit},
    output::Console,
};

/// The maximum size of a media file that is copied.
const MAX_MEDIA: u64 = 64 << 20;

/// What a right answer is not compared in: two right answers explain themselves in different words.
const FREE: [&str; 2] = ["rationale", "extensions"];

/// Writes a golden test of a labelled run.
pub(super) fn add(args: &TestAddArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let entry = Entries::read(&settings)?.find(Some(&args.run))?;
    let mut labels = Labels::new(&settings)?.of_runs(|run| run == entry.id)?;
    let entry = Entry { labels: labels.remove(&entry.id).unwrap_or_default(), ..entry };
    let contents = entry.stored_contents()?;
    let expected = expected(&entry, contents)?;
    let module = module_of(&entry.labelled(), &settings)?;
    console.diagnose(&module.warnings);
    let Origin::Directory(directory) = &module.origin else {
        return Err(answer::built_in(&module).into());
    };
    let name = args.name.clone().unwrap_or_else(|| format!("run-{}", entry.id));
    let mut input = contents.run_input().to_value(&module)?.to_serde();
    let media = moved_media(&mut input, &module, directory, &entry.id)?;
    let case = ImportedCase {
        location: format!("run {}", entry.id),
        name: Some(name),
        input,
        expected,
        left_out: Vec::new(),
    };
    let new = match NewCases::check(&module, vec![case]) {
        Ok(new) if new.known > 0 => return Err(known(&entry).into()),
        Ok(new) => new,
        Err(problems) => return Ok(import::report(&problems, console)),
    };
    write(&new, &media, &module, directory)?;
    let names: Vec<&str> = new.names().collect();
    console.print(&names.join("\n"))?;
    for file in &media {
        console.note(&format!("copied {} to {}", file.from.display(), file.to.display()));
    }
    console.note(&format!("next: `cog test {}`", entry.target()));
    Ok(Exit::Ok)
}

/// Returns the content of the expected file: what the label says that the answer must be.
///
/// # Errors
/// E1006 if the run has no label, or is only known to be wrong.
fn expected(entry: &Entry, contents: &Contents) -> Result<Json, ErrorBody> {
    let id = &entry.id;
    let label = entry.labels.last().ok_or_else(|| {
        ErrorBody::new(Code::InvalidReference, format!("the run `{id}` has no label"))
            .suggest(format!("Say whether its answer is right: `cog logs label {id} right`."))
    })?;
    match (label.label, &label.data) {
        (LabelKind::Corrected, Some(data)) => Ok(rules(data.to_serde())),
        (LabelKind::Right, _) if !entry.ok => {
            Ok(json!({ "_validate": { "ok": false, "error.code": entry.code } }))
        }
        (LabelKind::Right, _) => {
            Ok(rules(contents.envelope.get("data").map_or(Json::Null, |data| data.to_value().to_serde())))
        }
        _ => Err(ErrorBody::new(
            Code::InvalidReference,
            format!("the answer of the run `{id}` is wrong, and the right one is not known"),
        )
        .suggest(format!("Correct it: `cog logs label {id} corrected --data answer.json`."))),
    }
}

/// Writes a golden test of an input and its right answer, an envelope. Returns the path of the expected file in the module.
///
/// # Errors
/// E1001 for an input or an answer that no test of the module can have, E1006 for a file that cannot be written, E4007 for a
/// module that is built in.
pub(in crate::commands) fn add_answer(
    module: &Module,
    name: &str,
    input: &Value,
    envelope: &Value,
) -> Result<String, CliError> {
    let Origin::Directory(directory) = &module.origin else { return Err(answer::built_in(module).into()) };
    check_tests(directory)?;
    let mut input = input.to_serde();
    if let Some(media) = moved_media(&mut input, module, directory, name)?.first() {
        let message = format!("{} is not a file of the module", media.from.display());
        return Err(ErrorBody::new(Code::InvalidReference, message)
            .suggest("Copy it into the module first, or send it as base64.")
            .into());
    }
    let case = ImportedCase {
        location: name.to_owned(),
        name: Some(name.to_owned()),
        input,
        expected: expected_of(envelope)?,
        left_out: Vec::new(),
    };
    let new = NewCases::check(module, vec![case]).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
        ErrorBody::new(Code::InvalidInput, problems.join("; "))
            .suggest("A golden test needs an input and an answer that fit the schema of the module.")
    })?;
    write(&new, &[], module, directory)?;
    Ok(format!("tests/{name}.expected.json"))
}

/// Checks that the tests of a module are in its directory, and not where a link leads.
fn check_tests(directory: &Path) -> Result<(), ErrorBody> {
    let tests = directory.join("tests");
    match !tests.exists() || is_inside(&tests, directory) {
        true => Ok(()),
        false => {
            Err(ErrorBody::new(Code::PermissionDenied, "tests is a link out of the directory of the module")
                .suggest("Replace it with a directory."))
        }
    }
}

/// Returns the content of the expected file for an envelope that is right.
fn expected_of(envelope: &Value) -> Result<Json, ErrorBody> {
    let code = envelope.get("error").and_then(|error| error.get("code")?.as_str());
    match (envelope.get("ok").and_then(|ok| ok.as_bool()), envelope.get("data"), code) {
        (Some(true), Some(data), _) => Ok(rules(data.to_value().to_serde())),
        (Some(false), _, Some(code)) => Ok(json!({ "_validate": { "ok": false, "error.code": code } })),
        _ => Err(ErrorBody::new(Code::InvalidInput, "envelope: is not an envelope")
            .suggest("Send the envelope of a run, with `ok`, and `data` or `error`.")),
    }
}

/// Returns rules that compare each field of an answer; all of it if a field has a name that rules cannot express.
fn rules(data: Json) -> Json {
    let Json::Object(members) = &data else { return data };
    let is_plain = |name: &str| {
        !["ok", "meta", "error", "data", "required"].contains(&name)
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let compared: Map<String, Json> = members
        .iter()
        .filter(|(name, _)| !FREE.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    match compared.is_empty() || !compared.keys().all(|name| is_plain(name)) {
        true => data,
        false => json!({ "_validate": compared }),
    }
}

/// A media file of an input that becomes a part of the module.
struct MediaCopy {
    from: PathBuf,
    to: PathBuf,
}

/// Renames the media files of an input to copies in `tests/`, and returns the copies to make. Files of the module stay where they are.
///
/// # Errors
/// E1006 for an upload, which only the server has.
fn moved_media(
    input: &mut Json,
    module: &Module,
    directory: &Path,
    id: &str,
) -> Result<Vec<MediaCopy>, ErrorBody> {
    let mut copies = Vec::new();
    let read = cog_json::Value::from(input.clone());
    for path in module.contract.media_paths(read.node()) {
        let pointer = path.pointer();
        let Some(source) = input.pointer_mut(pointer.strip_prefix("/input").unwrap_or(&pointer)) else {
            continue;
        };
        match source.get("type").and_then(Json::as_str) {
            Some("file") => {
                let Some(file) = source.get("path").and_then(Json::as_str) else { continue };
                let from = directory.join(file);
                if is_inside(&from, directory) {
                    continue;
                }
                let extension = from.extension().and_then(|extension| extension.to_str());
                let extension = extension.map(|extension| format!(".{extension}")).unwrap_or_default();
                let name = format!("tests/run-{id}-{}{extension}", copies.len() + 1);
                let to = directory.join(&name);
                copies.push(MediaCopy { from, to });
                if let Some(member) = source.get_mut("path") {
                    *member = Json::String(name);
                }
            }
            Some("upload_ref") => {
                return Err(ErrorBody::new(
                    Code::InvalidReference,
                    format!("{path} is an upload, which only the server has"),
                )
                .suggest("Write the test by hand, with the media as a file."));
            }
            // URLs stay URLs, and base64 is in the input already.
            _ => {}
        }
    }
    Ok(copies)
}

fn is_inside(file: &Path, directory: &Path) -> bool {
    let resolved = (file.canonicalize(), directory.canonicalize());
    matches!(resolved, (Ok(file), Ok(directory)) if file.starts_with(&directory))
}

/// Copies the media, then writes the test: a test whose media are missing would fail.
fn write(new: &NewCases, media: &[MediaCopy], module: &Module, directory: &Path) -> Result<(), CliError> {
    for MediaCopy { from, to } in media {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source: FileError| CliError::File { what, path, source }
        };
        let bytes = private::read(from, MAX_MEDIA)
            .map_err(FileError::Io)
            .map_err(failed("cannot read the media of the run", from))?;
        files::create_directory(&directory.join("tests"))
            .map_err(failed("cannot create the directory", to))?;
        files::write_atomic(to, bytes).map_err(failed("cannot copy the media of the run", to))?;
    }
    let failed =
        |source| CliError::File { what: "cannot write the golden test", path: directory.to_owned(), source };
    new.write(module).map(drop).map_err(failed)
}

fn known(entry: &Entry) -> ErrorBody {
    let message = format!("a golden test has the input of the run `{}` already", entry.id);
    ErrorBody::new(Code::InvalidReference, message)
        .suggest("Edit its expected file, or remove the test first.")
}
