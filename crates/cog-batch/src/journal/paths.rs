use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The paths of a journal and its results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPaths {
    /// The journal.
    pub journal: PathBuf,
    /// The results, one JSON line each.
    pub results: PathBuf,
}

impl JournalPaths {
    /// Returns the paths beside an output: `OUT.journal` and `OUT.results`.
    #[must_use]
    pub fn beside(out: &Path) -> Self {
        Self { journal: with_suffix(out, ".journal"), results: with_suffix(out, ".results") }
    }

    /// Returns the paths for a journal at any path (`--journal`), with the results beside it.
    #[must_use]
    pub fn from_journal(journal: &Path) -> Self {
        let out = journal.extension().filter(|extension| *extension == "journal");
        let out = out.map_or_else(|| journal.to_owned(), |_| journal.with_extension(""));
        Self { journal: journal.to_owned(), results: with_suffix(&out, ".results") }
    }
}

/// Adds a suffix to a path, after its extension.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_output_or_the_journal() {
        let beside = JournalPaths::beside(Path::new("a/out.csv"));
        assert_eq!(beside.journal, Path::new("a/out.csv.journal"));
        assert_eq!(beside.results, Path::new("a/out.csv.results"));
        assert_eq!(JournalPaths::from_journal(&beside.journal), beside);
        assert_eq!(JournalPaths::from_journal(Path::new("a/b")).results, Path::new("a/b.results"));
    }
}
