//! The file layer of the journal, which tests replace by one that fails.

use std::{fs::File, io};

/// A file that grows at its end.
pub(crate) trait Append: io::Write + Send {
    /// Waits until what was written is on disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file at a length, and continues there.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// Wraps a file in a layer.
pub(crate) type Wrap<'a> = &'a dyn Fn(File) -> Box<dyn Append>;

/// Writes to the file itself.
pub(crate) fn plain(file: File) -> Box<dyn Append> {
    Box::new(file)
}

impl Append for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        io::Seek::seek(self, io::SeekFrom::Start(length)).map(drop)
    }
}
