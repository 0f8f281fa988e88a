//! The golden tests of the modules that ship, and the replies of a model that gives their answers.

#![expect(clippy::disallowed_methods, reason = "the golden tests are files")]

use std::path::{Path, PathBuf};

use cog_testkit::Reply;
use serde_json::Value;

/// A golden test with an answer.
pub(crate) struct Golden {
    pub(crate) module: String,
    pub(crate) name: String,
    pub(crate) input: Value,
    /// The envelope.
    pub(crate) answer: Value,
}

/// Returns the directory of a module that ships.
pub(crate) fn shipped(module: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules").join(module)
}

/// Returns the golden tests of a module whose expected file has an envelope.
pub(crate) fn goldens(module: &str) -> Vec<Golden> {
    let directory = shipped(module).join("tests");
    let parsed =
        |file: String| serde_json::from_str(&std::fs::read_to_string(directory.join(file)).unwrap()).unwrap();
    let golden = |entry: std::io::Result<std::fs::DirEntry>| {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".input.json")?.to_owned();
        let mut expected: Value = parsed(format!("{name}.expected.json"));
        let answer = expected.get_mut("$example").map(Value::take).unwrap_or(expected);
        let module = module.to_owned();
        answer.get("ok").is_some().then(|| Golden { module, input: parsed(file), answer, name })
    };
    let mut goldens: Vec<Golden> = std::fs::read_dir(&directory).unwrap().filter_map(golden).collect();
    goldens.sort_by(|one, other| one.name.cmp(&other.name));
    goldens
}

/// Returns the replies of a model that gives each module its golden answers. It recognizes a request by the heading of the
/// prompt and by the fields of the input, in every protocol. To any other input, a module gives its first golden answer.
pub(crate) fn replies() -> Vec<Reply> {
    let modules = std::fs::read_dir(shipped("")).unwrap();
    let names = modules.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let all: Vec<Vec<Golden>> = names.map(|name| goldens(&name)).collect();
    let mut exact: Vec<&Golden> = all.iter().flatten().collect();
    exact.sort_by_key(|golden| std::cmp::Reverse(golden.input.as_object().unwrap().len()));
    let exact =
        exact.into_iter().filter_map(|golden| Some(golden.fields().fold(golden.reply()?, Reply::when)));
    let any = all.iter().filter_map(|goldens| goldens.first()?.reply());
    exact.chain(any).collect()
}

impl Golden {
    /// Returns the reply to a request with the prompt of the module; `None` for modules without a prompt.
    fn reply(&self) -> Option<Reply> {
        let prompt = std::fs::read_to_string(shipped(&self.module).join("prompt.md")).ok()?;
        let heading = format!("{}\n", prompt.lines().next().unwrap());
        Some(Reply::text(self.answer.to_string()).when(in_json(&heading)))
    }

    /// Returns the fields of the input as they are in a request.
    fn fields(&self) -> impl Iterator<Item = String> {
        let fields = self.input.as_object().unwrap().iter();
        fields.map(|(name, value)| in_json(&format!("{}:{value}", Value::from(name.as_str()))))
    }
}

/// Returns a text as it is within a string of a JSON body.
fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
