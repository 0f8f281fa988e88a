/// Returns every split of the bytes into two parts, which may be empty.
pub fn splits(bytes: &[u8]) -> impl Iterator<Item = [&[u8]; 2]> {
    (0..=bytes.len()).map(|at| {
        let (left, right) = bytes.split_at(at);
        [left, right]
    })
}
