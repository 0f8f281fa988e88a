//! The form of module names.

/// Returns whether a name is lower case letters, digits and hyphens, starts with a letter, and has at most 128
/// characters.
pub fn is_module_name(name: &str) -> bool {
    name.len() <= 128
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Returns the module name most similar to text; none for text without letters.
pub(crate) fn similar_module_name(text: &str) -> Option<String> {
    let lower =
        text.chars().take(80).map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let name: String = lower.skip_while(|c| !c.is_ascii_lowercase()).collect();
    let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_a_valid_name() {
        for (text, expected) in
            [("Sorter Deluxe", "sorter-deluxe"), ("2nd__Try!", "nd-try"), ("ünï x", "n-x")]
        {
            let name = similar_module_name(text).unwrap();
            assert_eq!(name, expected);
            assert!(is_module_name(&name));
        }
        assert_eq!(similar_module_name("42 - 7"), None);
        assert!(is_module_name(&similar_module_name(&"x".repeat(1000)).unwrap()));
    }
}
