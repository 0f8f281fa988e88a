//! Modules in memory: those that ship with the program, and others that a program embeds or generates.

use std::{borrow::Cow, collections::BTreeMap};

/// The text files of a module in memory.
///
/// ```
/// use cog_module::{ModuleFiles, golden};
///
/// let module = ModuleFiles::default()
///     .with("module.yaml", "name: greeter\nversion: 1.0.0\nresponsibility: Greets a person\ntier: exploration\nexcludes: []\n")
///     .with("prompt.md", "Greet $ARGUMENTS.")
///     .with("schema.json", r#"{"input": {}, "meta": {}, "data": {"required": ["rationale"]}}"#)
///     .with("tests/case1.input.json", r#"{"query": "Ada"}"#)
///     .with("tests/case1.expected.json", r#"{"greeting": "Hello Ada", "rationale": "A greeting."}"#)
///     .load()?;
/// assert_eq!(golden::discover(&module).cases.len(), 1);
/// # Ok::<(), cog_module::LoadError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleFiles {
    files: BTreeMap<Cow<'static, str>, Cow<'static, str>>,
}

impl ModuleFiles {
    /// Adds a file, or replaces the file with the same path.
    ///
    /// The path is relative to the module's directory, with `/` between its parts.
    #[must_use]
    pub fn with(mut self, path: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    /// Returns the text of a file.
    pub(crate) fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(AsRef::as_ref)
    }

    /// Returns every file: its path and its text.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_ref(), text.as_ref()))
    }

    /// Returns the names of the files directly in a directory of the module.
    pub(crate) fn file_names_in(&self, directory: &str) -> Vec<String> {
        names_in(self.files.keys().map(AsRef::as_ref), directory)
    }
}

/// A module that ships: its name and its files.
#[derive(Debug, PartialEq, Eq)]
pub struct BuiltinModule {
    /// Its name, which is the name of its directory.
    pub name: &'static str,
    /// Its files with their relative paths, sorted by path.
    pub files: &'static [(&'static str, &'static [u8])],
}

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

impl BuiltinModule {
    /// Returns the module with a name.
    pub fn find(name: &str) -> Option<&'static BuiltinModule> {
        SHIPPED.iter().find(|shipped| shipped.name == name)
    }

    /// Returns every module, sorted by name.
    pub fn all() -> &'static [BuiltinModule] {
        SHIPPED
    }

    /// Returns the content of a file.
    pub(crate) fn file(&self, path: &str) -> Option<&'static [u8]> {
        self.files.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
    }

    /// Returns the names of the files directly in a directory of the module.
    pub(crate) fn file_names_in(&self, directory: &str) -> Vec<String> {
        names_in(self.files.iter().map(|(path, _)| *path), directory)
    }
}

/// Returns the names of the paths directly in a directory; an empty directory name is the top.
pub(crate) fn names_in<'a>(paths: impl Iterator<Item = &'a str>, directory: &str) -> Vec<String> {
    let names = paths.filter_map(|path| {
        let rest =
            if directory.is_empty() { path } else { path.strip_prefix(directory)?.strip_prefix('/')? };
        (!rest.contains('/')).then(|| rest.to_owned())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use crate::{
        Level, Module, Origin, golden, load, scaffold,
        testing::{Directory, MANIFEST, SCHEMA},
        validate,
    };

    use super::*;

    fn files() -> ModuleFiles {
        ModuleFiles::default()
            .with("module.yaml", MANIFEST)
            .with("prompt.md", "Sort $ARGUMENTS.\n")
            .with("schema.json", SCHEMA)
    }

    #[test]
    fn embedded_module_equals_the_module_on_disk() {
        let embedded = Module::from_parts(MANIFEST, "Sort $ARGUMENTS.\n", SCHEMA).unwrap();
        let on_disk = Directory::v22().load().unwrap();
        assert_eq!(embedded.manifest, on_disk.manifest);
        assert_eq!(embedded.prompt, on_disk.prompt);
        assert_eq!(embedded.schema, on_disk.schema);
        assert_eq!(embedded.warnings, []);
    }

    /// A model that writes its verdict first justifies it afterwards.
    #[test]
    fn modules_that_ship_reason_before_they_decide_and_show_an_example() {
        for shipped in BuiltinModule::all() {
            let module = load(&Origin::BuiltIn(shipped)).unwrap();
            let prompt = module.prompt.text();
            if prompt.is_empty() {
                continue; // its parts decide
            }
            let fields: Vec<&str> =
                module.schema["data"]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            let place = |name: &str| fields.iter().position(|field| *field == name);
            for decision in ["verdict", "accepted", "meets", "behavior_equivalence"] {
                assert!(
                    place(decision).is_none() || place("rationale") < place(decision),
                    "{}",
                    shipped.name
                );
            }
            // An example makes the model of 135M parameters, for which the classifier is, answer by chance, and a judge that sees
            // one decision repeats it (docs/benchmarks.md). A model that generates only images would paint it.
            let needs_none =
                ["answer-judge", "sentiment-classifier", "image-generator"].contains(&shipped.name);
            assert!(prompt.contains("## Example") || needs_none, "{}", shipped.name);
            // A model without tools can do nothing of what a policy forbids.
            assert!(!module.manifest.policies.denied.network, "{}", shipped.name);
        }
    }

    #[test]
    fn embedded_module_reports_file_and_line() {
        let error = Module::from_parts(MANIFEST, "Sort.", "{\n  \"input\": ").unwrap_err();
        let found = error.diagnostics.first().unwrap();
        assert_eq!(found.file.to_str(), Some("embedded/schema.json"));
        assert_eq!(found.location.as_ref().map(|location| location.line), Some(2));
    }

    #[test]
    fn embedded_module_without_a_prompt_does_not_load() {
        let error = ModuleFiles::default()
            .with("module.yaml", MANIFEST)
            .with("schema.json", SCHEMA)
            .load()
            .unwrap_err();
        assert!(error.to_string().contains("prompt.md"), "{error}");
    }

    #[test]
    fn embedded_module_over_the_size_limit_does_not_load() {
        let prompt = "x".repeat(crate::files::MAX_PART as usize + 1);
        let error = Module::from_parts(MANIFEST, prompt, SCHEMA).unwrap_err();
        assert_eq!(error.diagnostics.first().unwrap().rule, crate::Rule::FileTooLarge);
    }

    #[test]
    fn embedded_module_has_golden_tests_and_can_be_copied() {
        let module = files()
            .with("tests/case1.input.json", r#"{"text": "refund"}"#)
            .with("tests/case1.expected.json", r#"{"queue": "billing", "rationale": "Money."}"#)
            .load()
            .unwrap();
        assert_eq!(golden::discover(&module).cases.len(), 1);
        assert!(validate(&module.origin, Level::Any).is_valid());
        let parent = tempfile::TempDir::new().unwrap();
        let copy = scaffold::copy(parent.path(), "copied", &module.origin).unwrap();
        assert_eq!(load(&Origin::Directory(copy)).unwrap().manifest.name, "copied");
    }
}
