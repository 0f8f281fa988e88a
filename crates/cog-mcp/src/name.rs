//! The names of tools, as vendors accept them.

/// Returns the name of a tool for models: `SERVER__TOOL`, with `_` for each character that vendors do not accept.
pub(crate) fn qualified(server: &str, tool: &str) -> String {
    let is_letter = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let accepted = |name: &str| -> String {
        name.chars().map(|letter| if is_letter(&letter) { letter } else { '_' }).collect()
    };
    format!("{}__{}", accepted(server), accepted(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_contains_only_what_vendors_accept() {
        assert_eq!(qualified("files", "read_file"), "files__read_file");
        assert_eq!(qualified("a b", "fs.read/ä"), "a_b__fs_read__");
    }
}
