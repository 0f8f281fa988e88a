//! `cargo xtask sizes`: files and functions stay short enough to be read in one go.

use crate::project::{Outcome, read, say, tracked};

/// The most lines of any file.
const FILE: usize = 800;
/// The most lines of nine files in ten.
const FILE_USUALLY: usize = 400;
/// The most lines of any function.
const FUNCTION: usize = 100;
/// The most lines of nine functions in ten.
const FUNCTION_USUALLY: usize = 25;
/// The most lines of a `lib.rs`: documentation, modules, re-exports.
const LIBRARY_ROOT: usize = 60;

struct Item {
    place: String,
    lines: usize,
}

/// Prints the lengths and fails where a limit is passed.
pub(crate) fn run() -> Outcome {
    let mut files = Vec::new();
    let mut functions = Vec::new();
    for path in tracked("*.rs", ".rs")? {
        let text = read(&path)?;
        functions.extend(functions_in(&path, &text));
        files.push(Item { place: path, lines: text.lines().count() });
    }
    report("files", &mut files);
    report("functions", &mut functions);
    let faults = faults(&files, &functions);
    if faults.is_empty() { Ok(()) } else { Err(format!("too long:\n  {}", faults.join("\n  "))) }
}

fn faults(files: &[Item], functions: &[Item]) -> Vec<String> {
    let mut faults = over(files, FILE);
    faults.extend(over(functions, FUNCTION));
    faults.extend(over(files, LIBRARY_ROOT).into_iter().filter(|place| place.contains("/src/lib.rs")));
    if share(files, 9, 10) > FILE_USUALLY {
        faults.push(format!("nine files in ten should be under {FILE_USUALLY} lines"));
    }
    if share(functions, 9, 10) > FUNCTION_USUALLY {
        faults.push(format!("nine functions in ten should be under {FUNCTION_USUALLY} lines"));
    }
    faults
}

/// Sorts by length and prints the median, the ninth in ten, and the longest.
fn report(what: &str, items: &mut [Item]) {
    items.sort_by_key(|item| item.lines);
    say(format_args!(
        "{} {what}: median {}, nine in ten up to {}, longest {}",
        items.len(),
        share(items, 1, 2),
        share(items, 9, 10),
        items.last().map_or_else(String::new, |item| format!("{} ({})", item.lines, item.place)),
    ));
}

fn over(items: &[Item], limit: usize) -> Vec<String> {
    let long = items.iter().filter(|item| item.lines > limit);
    long.map(|item| format!("{}: {} lines, at most {limit}", item.place, item.lines)).collect()
}

/// The length that a share of the items, sorted, does not exceed.
fn share(sorted: &[Item], part: usize, of: usize) -> usize {
    let index = (sorted.len() * part).div_ceil(of).saturating_sub(1);
    sorted.get(index).map_or(0, |item| item.lines)
}

/// Returns the functions of a file that `rustfmt` has formatted: a body ends with the first brace that is indented
/// like its signature.
fn functions_in(path: &str, text: &str) -> Vec<Item> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let body = lines.iter().skip(start).enumerate().find(|(offset, later)| {
            **later == end || (*offset == 0 && (later.ends_with('}') || later.ends_with(';')))
        });
        if let Some((offset, _)) = body {
            found.push(Item { place: format!("{path}:{} {name}", start + 1), lines: offset + 1 });
        }
    }
    found
}

/// The name of the function whose signature begins on this line.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start();
    for prefix in ["pub(crate) ", "pub(super) ", "pub ", "const ", "async ", "unsafe ", "extern \"C\" "] {
        words = words.strip_prefix(prefix).unwrap_or(words);
    }
    let rest = words.strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let text =
            "pub fn one() {}\n\nimpl A {\n    fn two(\n        x: u8,\n    ) -> u8 {\n        x\n    }\n}\n";
        let found = functions_in("a.rs", text);
        let lengths: Vec<(&str, usize)> =
            found.iter().map(|item| (item.place.as_str(), item.lines)).collect();
        assert_eq!(lengths, [("a.rs:1 one", 1), ("a.rs:4 two", 5)]);
    }
}
