//! The sizes in a WAV file, which programs that write it as a stream do not know.

use std::io::{self, Read as _, Seek as _, SeekFrom};

use super::handle::Handle;

/// Where the size of the whole file is, which says nothing that the samples do not.
const SIZE_OF_FILE: u64 = 4;
/// The size of a file that was written as a stream.
const UNKNOWN: [u8; 4] = [0xff; 4];
/// Where the first chunk begins.
const FIRST_CHUNK: u64 = 12;
/// The maximum number of chunks before the samples.
const MAX_CHUNKS: usize = 1000;

/// Returns the places of sizes, and the sizes to read there. The samples are the rest of the file if their size is zero or
/// more than the file has.
pub(super) fn sizes(input: &mut Handle) -> Vec<(u64, [u8; 4])> {
    let samples = size_of_samples(input).ok().flatten();
    [(SIZE_OF_FILE, UNKNOWN)].into_iter().chain(samples).collect()
}

/// Returns the place of the size of the samples, and the size that it should have.
fn size_of_samples(input: &mut Handle) -> io::Result<Option<(u64, [u8; 4])>> {
    let end = input.seek(SeekFrom::End(0))?;
    let mut at = FIRST_CHUNK;
    for _ in 0..MAX_CHUNKS {
        input.seek(SeekFrom::Start(at))?;
        let mut head = [0; 8];
        input.read_exact(&mut head)?;
        let [name @ .., a, b, c, d] = head;
        let (size, content) = (u64::from(u32::from_le_bytes([a, b, c, d])), at + 8);
        if name == *b"data" {
            let rest = end.saturating_sub(content);
            let actual = u32::try_from(rest).unwrap_or(u32::MAX).to_le_bytes();
            return Ok((size == 0 || size > rest).then_some((at + 4, actual)));
        }
        at = content.saturating_add(size).saturating_add(size % 2);
    }
    Ok(None)
}
