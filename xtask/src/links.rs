//! Links of the pages: each leads to a file of this repository. Run with `cargo xtask generate`.

use std::path::Path;

use crate::project::{Outcome, read, root, tracked};

/// Lists the relative links that lead nowhere.
pub(crate) fn broken() -> Outcome<Vec<String>> {
    let mut broken = Vec::new();
    for page in tracked("*.md", ".md")? {
        // Prompts of modules are no pages.
        if page.starts_with("modules/") || page.starts_with("conformance/") || page.contains("/tests/") {
            continue;
        }
        let folder = Path::new(&page).parent().unwrap_or(Path::new("")).to_path_buf();
        for target in targets(&read(&page)?) {
            let path = target.split('#').next().unwrap_or_default();
            let leads_away = target.contains("://") || target.starts_with("mailto:") || path.is_empty();
            if !leads_away && !root().join(&folder).join(path).exists() {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    Ok(broken)
}

/// What stands in the parentheses of Markdown links.
fn targets(text: &str) -> Vec<&str> {
    let after = text.split("](").skip(1);
    after.filter_map(|rest| rest.split(')').next()).filter(|target| !target.contains(' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_stand_in_parentheses() {
        assert_eq!(targets("see [a](b.md#c) and [`d`](e/f.rs), not (g)"), ["b.md#c", "e/f.rs"]);
    }
}
