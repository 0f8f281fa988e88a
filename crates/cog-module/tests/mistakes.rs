//! Mistakes of first authors, as edits of a module: how many of them `validate` reports.
//!
//! `cargo test -p cog-module --test mistakes -- --nocapture` prints each one.

#![expect(clippy::disallowed_methods, reason = "the test writes modules and reads its cases")]

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    use cog_module::{Diagnostic, Level, Origin, files};
    use serde::Deserialize;

    /// The maximum number of mistakes that are not reported.
    const MAX_SILENT: usize = 2;

    #[derive(Deserialize)]
    struct Cases {
        mistakes: Vec<Case>,
        right: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        name: String,
        edits: Vec<Edit>,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Edit {
        Replace { file: PathBuf, find: String, replace: String },
        Content { file: PathBuf, content: String },
        Rename { file: PathBuf, rename: PathBuf },
        Remove { file: PathBuf, remove: bool },
    }

    impl Edit {
        fn apply(&self, directory: &Path) {
            match self {
                Self::Replace { file, find, replace } => {
                    let file = directory.join(file);
                    let text = fs::read_to_string(&file).unwrap();
                    assert!(text.contains(find), "{}: {find}", file.display());
                    fs::write(file, text.replace(find, replace)).unwrap();
                }
                Self::Content { file, content } => fs::write(directory.join(file), content).unwrap(),
                Self::Rename { file, rename } => {
                    let to = directory.join(rename);
                    fs::create_dir_all(to.parent().unwrap()).unwrap();
                    fs::rename(directory.join(file), to).unwrap();
                }
                Self::Remove { file, remove } => {
                    assert!(remove);
                    fs::remove_file(directory.join(file)).unwrap();
                }
            }
        }
    }

    fn cases() -> Cases {
        serde_json::from_str(&fs::read_to_string(root().join("mistakes.json")).unwrap()).unwrap()
    }

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/mistakes")
    }

    fn diagnostics(case: &Case) -> Vec<Diagnostic> {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("ticket-triage");
        files::copy_directory(&root().join("ticket-triage"), &directory).unwrap();
        case.edits.iter().for_each(|edit| edit.apply(&directory));
        cog_module::validate(&Origin::Directory(directory), Level::Any).diagnostics
    }

    #[test]
    fn mistakes_of_first_authors_are_reported() {
        let mistakes = cases().mistakes;
        let mut silent = Vec::new();
        for case in &mistakes {
            match diagnostics(case).first() {
                Some(first) => println!("reported  {}: {} [{}]", case.name, first.message, first.rule),
                None => {
                    println!("silent    {}", case.name);
                    silent.push(&case.name);
                }
            }
        }
        println!("{} of {} reported", mistakes.len() - silent.len(), mistakes.len());
        assert!(mistakes.len() >= 86);
        assert!(silent.len() <= MAX_SILENT, "{silent:?}");
    }

    #[test]
    fn right_modules_have_no_warnings() {
        let right = cases().right;
        assert!(right.len() >= 20);
        for case in &right {
            let found: Vec<_> = diagnostics(case).into_iter().map(|found| found.message).collect();
            assert!(found.is_empty(), "{}: {found:?}", case.name);
        }
    }
}
