//! The instructions of a skill as a prompt.

use crate::export::skill::{PROMPT_BEGIN, PROMPT_END};

/// Returns the prompt that `cog export` wrote between two comments; none in a skill from elsewhere.
pub(super) fn exported_prompt(body: &str) -> Option<&str> {
    let (_, rest) = body.split_once(PROMPT_BEGIN)?;
    // The last end, because the prompt may contain this comment itself.
    let (prompt, _) = rest.rsplit_once(PROMPT_END)?;
    Some(prompt.trim_matches(['\r', '\n']))
}

/// Returns the text in which links out of the skill's directory are replaced by their label, and the targets of these
/// links.
pub(super) fn without_outer_links(text: &str) -> (String, Vec<String>) {
    let mut out = String::with_capacity(text.len());
    let mut targets = Vec::new();
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let (before, after) = rest.split_at(middle);
        let Some((target, next)) = after.get(2..).and_then(|after| after.split_once(')')) else { break };
        let path = target.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
        match before.rfind('[').filter(|_| leads_out(path)) {
            Some(open) => {
                let (head, label) = before.split_at(open);
                out.push_str(head.strip_suffix('!').unwrap_or(head));
                out.push_str(label.get(1..).unwrap_or_default());
                targets.push(path.to_owned());
            }
            None => {
                out.push_str(before);
                out.push_str(after.get(..target.len() + 3).unwrap_or_default());
            }
        }
        rest = next;
    }
    out.push_str(rest);
    let kept =
        out.split_inclusive('\n').filter(|line| match definition(line).filter(|path| leads_out(path)) {
            Some(path) => {
                targets.push(path.to_owned());
                false
            }
            None => true,
        });
    (kept.collect(), targets)
}

/// Returns the target of a line that defines a link: `[label]: target`.
fn definition(line: &str) -> Option<&str> {
    let (_, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    target.split_whitespace().next()
}

/// Returns whether a target is a file outside the directory of the skill.
fn leads_out(target: &str) -> bool {
    let lower = target.to_ascii_lowercase();
    if lower.starts_with("file:") || target.starts_with(['/', '~', '\\']) {
        return true;
    }
    let has_drive =
        target.as_bytes().get(1) == Some(&b':') && target.starts_with(|c: char| c.is_ascii_alphabetic());
    if has_drive {
        return true;
    }
    if lower.contains("://") || lower.starts_with("mailto:") || target.starts_with('#') {
        return false;
    }
    // A reader decodes a target before it opens the file, and Windows takes both slashes.
    let decoded = lower.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace('\\', "/");
    let mut depth = 0_i32;
    decoded.split('/').any(|part| {
        depth += match part {
            ".." => -1,
            "" | "." => 0,
            _ => 1,
        };
        depth < 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_directory_are_replaced_by_their_label() {
        let text = "See [a](../../etc/passwd), [b](references/B.md), ![c](/etc/c.png \"C\"), [d](https://x.example/../y) and \
            [e](<file:///etc/e>).\n[f]: ~/.ssh/id\n[g]: references/g.md\n[h](references/%2e%2e/../../h) (i) [j";
        let (out, targets) = without_outer_links(text);
        let expected = "See a, [b](references/B.md), c, [d](https://x.example/../y) and e.\n[g]: references/g.md\nh (i) [j";
        assert_eq!(out, expected);
        assert_eq!(
            targets,
            ["../../etc/passwd", "/etc/c.png", "file:///etc/e", "references/%2e%2e/../../h", "~/.ssh/id"]
        );
    }

    #[test]
    fn text_without_links_is_unchanged() {
        for text in ["", "](", "a](b", "[](x)", "[a](b)[c](d)", "\\](", "[é](ü)\n"] {
            assert_eq!(without_outer_links(text), (text.to_owned(), Vec::new()), "{text}");
        }
    }

    #[test]
    fn targets_outside_are_found() {
        for target in [
            "..",
            "../a",
            "a/../../b",
            "/a",
            "~/a",
            "\\\\host\\a",
            "C:\\a",
            "FILE:/a",
            "a\\..\\..\\b",
            "..%2fa",
        ] {
            assert!(leads_out(target), "{target}");
        }
        for target in ["", "a", "a/../b", "./a", "#a", "https://a/../../b", "mailto:a@b", "..a", "a..b/c"] {
            assert!(!leads_out(target), "{target}");
        }
    }
}
