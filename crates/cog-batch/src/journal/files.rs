use std::fs::File;

use super::{JournalPaths, lock::LockedFile};

/// The files of a journal.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) paths: JournalPaths,
    pub(crate) header_len: u64,
    pub(crate) journal: LockedFile,
    pub(crate) results: File,
}
