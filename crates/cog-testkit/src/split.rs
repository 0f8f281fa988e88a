/// Every way to cut bytes into two, the empty halves included.
pub fn splits(bytes: &[u8]) -> impl Iterator<Item = [&[u8]; 2]> {
    (0..=bytes.len()).map(|at| {
        let (left, right) = bytes.split_at(at);
        [left, right]
    })
}

/// The bytes in pieces of this size.
pub fn pieces_of(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(size.max(1))
}
