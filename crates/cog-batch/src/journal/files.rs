use std::fs::File;

use super::JournalPaths;

/// The files of a journal. The journal file is locked as long as it is open.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) paths: JournalPaths,
    pub(crate) header_len: u64,
    pub(crate) journal: File,
    pub(crate) results: File,
}
