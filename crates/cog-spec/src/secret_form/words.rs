/// Returns the words of a text that can be names or keys, with their offsets: letters, digits, `_`, `-` and `.`.
pub(super) fn words_of_text(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.as_bytes().get(at..)?;
        let start = at + rest.iter().position(|byte| is_part(*byte))?;
        let word = text.as_bytes().get(start..)?;
        let end = start + word.iter().position(|byte| !is_part(*byte)).unwrap_or(word.len());
        at = end;
        text.get(start..end).map(|word| (start, word))
    })
}
