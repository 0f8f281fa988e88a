//! `cargo xtask sizes`: a report on the lengths of files and functions, and on what shortens them only in appearance. It fails
//! over 800 lines a file and 100 a function.

use crate::project::{Outcome, read, say, tracked};

/// The most lines of any file.
const FILE: usize = 800;
/// The most lines of any function.
const FUNCTION: usize = 100;

struct Item {
    place: String,
    lines: usize,
}

/// Prints the report, and fails over a limit.
pub(crate) fn run() -> Outcome {
    let mut files = Vec::new();
    let mut functions = Vec::new();
    let mut packing = Packing::default();
    for path in tracked("*.rs", ".rs")? {
        let text = read(&path)?;
        functions.extend(functions_in(&path, &text));
        if !path.contains("/tests") && !path.contains("/benches/") && !path.contains("/examples/") {
            packing.count(text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default());
        }
        files.push(Item { place: path, lines: text.lines().count() });
    }
    report("files", &mut files);
    report("functions", &mut functions);
    packing.report();
    let faults = faults(&files, &functions);
    if faults.is_empty() { Ok(()) } else { Err(format!("too long:\n  {}", faults.join("\n  "))) }
}

fn faults(files: &[Item], functions: &[Item]) -> Vec<String> {
    let mut faults = over(files, FILE);
    faults.extend(over(functions, FUNCTION));
    faults
}

/// What makes code shorter without making it simpler, in code that is not a test.
#[derive(Debug, Default, PartialEq, Eq)]
struct Packing {
    lines: usize,
    /// Lines of `use` and `mod`.
    imports: usize,
    /// `let (a, b) = (x, y);`
    tuple_bindings: usize,
    /// `let f = |x| …`
    named_closures: usize,
    /// `(a, b): (A, B)` as a parameter.
    tuple_parameters: usize,
    /// Lines of comments that are not documentation.
    comments: usize,
}

impl Packing {
    fn count(&mut self, text: &str) {
        let mut in_use = false;
        for line in text.lines() {
            self.lines += 1;
            let code = line.trim_start();
            let bare = code
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("pub(super) ");
            in_use |= bare.starts_with("use ");
            self.imports += usize::from(in_use || (bare.starts_with("mod ") && bare.ends_with(';')));
            in_use &= !code.ends_with(';');
            let binding = code.strip_prefix("let ").unwrap_or_default();
            self.tuple_bindings += usize::from(binding.starts_with('(') && binding.contains(") = ("));
            self.named_closures += usize::from(binding.contains(" = |") || binding.contains(" = move |"));
            self.tuple_parameters += usize::from(code.contains("): (") && !code.starts_with("let "));
            self.comments += usize::from(code.starts_with("// "));
        }
    }

    fn report(&self) {
        let Self { lines, imports, tuple_bindings, named_closures, tuple_parameters, comments } = self;
        say(format_args!(
            "{lines} lines of code: use and mod {}, comments {}; {tuple_bindings} tuple bindings, \
             {named_closures} named closures, {tuple_parameters} tuple parameters",
            percent(*imports, *lines),
            percent(*comments, *lines),
        ));
    }
}

fn percent(count: usize, all: usize) -> String {
    format!("{:.1} %", 100.0 * count as f64 / all.max(1) as f64)
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
    fn packing_is_counted() {
        let mut packing = Packing::default();
        packing.count("mod a;\nuse b::{\n    c,\n};\n// why\nlet (x, y) = (1, 2);\nlet f = |x| x;\nfn g((a, b): (A, B)) {}\n");
        let expected = Packing {
            lines: 8,
            imports: 4,
            tuple_bindings: 1,
            named_closures: 1,
            tuple_parameters: 1,
            comments: 1,
        };
        assert_eq!(packing, expected);
    }

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
