//! `xtask/circles.toml`: the circles of modules that are accepted, each with a reason.

use toml::{Table, Value};

use crate::dag::modules;
use crate::project::{Outcome, read, say};

const FILE: &str = "xtask/circles.toml";

/// An entry of the list.
struct Accepted {
    crate_name: String,
    /// A module of the circle; `*` for any circle of the crate.
    contains: String,
    modules: usize,
}

/// Returns the circles of these crates that the list does not cover.
pub(super) fn violations<'n>(crates: impl Iterator<Item = &'n str>) -> Outcome<Vec<String>> {
    let accepted = parse(&read(FILE)?).map_err(|reason| format!("{FILE}: {reason}"))?;
    let mut violations = Vec::new();
    for name in crates {
        let circles = modules::circles(name)?;
        violations.extend(uncovered(&accepted, name, &circles));
        for loose in loose(&accepted, name, &circles) {
            say(format_args!("dag: {FILE}: {loose}"));
        }
    }
    Ok(violations)
}

fn parse(text: &str) -> Outcome<Vec<Accepted>> {
    let table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let entries = table.get("circle").and_then(Value::as_array).ok_or("missing `[[circle]]`")?;
    entries.iter().map(Accepted::parse).collect()
}

impl Accepted {
    fn parse(entry: &Value) -> Outcome<Self> {
        string(entry, "reason")?;
        let modules =
            entry.get("modules").and_then(Value::as_integer).and_then(|count| count.try_into().ok());
        Ok(Self {
            crate_name: string(entry, "crate")?,
            contains: string(entry, "contains")?,
            modules: modules.ok_or("an entry without `modules`")?,
        })
    }

    fn is_about(&self, crate_name: &str, circle: &[String]) -> bool {
        self.crate_name == crate_name && (self.contains == "*" || circle.contains(&self.contains))
    }

    fn covers(&self, crate_name: &str, circle: &[String]) -> bool {
        self.is_about(crate_name, circle) && circle.len() <= self.modules
    }
}

fn string(entry: &Value, key: &str) -> Outcome<String> {
    let text = entry.get(key).and_then(Value::as_str);
    text.map(str::to_owned).ok_or(format!("an entry without `{key}`"))
}

fn uncovered(accepted: &[Accepted], name: &str, circles: &[Vec<String>]) -> Vec<String> {
    let open = circles.iter().filter(|circle| !accepted.iter().any(|entry| entry.covers(name, circle)));
    open.map(|circle| format!("{name}: a circle of {} modules: {}", circle.len(), circle.join(", ")))
        .collect()
}

/// Entries of a crate that allow more than there is.
fn loose(accepted: &[Accepted], name: &str, circles: &[Vec<String>]) -> Vec<String> {
    let of_crate = accepted.iter().filter(|entry| entry.crate_name == name);
    let loose = of_crate.filter_map(|entry| {
        let largest = circles.iter().filter(|circle| entry.is_about(name, circle)).map(Vec::len).max();
        let found = largest.unwrap_or_default();
        (found < entry.modules).then(|| match found {
            0 => format!("{name}: no circle contains `{}`; remove the entry", entry.contains),
            _ => format!("{name}: `{}` allows {} modules; {found} are enough", entry.contains, entry.modules),
        })
    });
    loose.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "[[circle]]\ncrate = 'a'\ncontains = 'y'\nmodules = 2\nreason = 'one thing'";

    fn circle(modules: &[&str]) -> Vec<String> {
        modules.iter().map(|module| (*module).to_owned()).collect()
    }

    #[test]
    fn a_listed_circle_is_accepted_up_to_its_size() {
        let list = parse(LIST).unwrap();
        assert!(uncovered(&list, "a", &[circle(&["y", "z"])]).is_empty());
        let grown = uncovered(&list, "a", &[circle(&["w", "y", "z"])]);
        assert_eq!(grown, ["a: a circle of 3 modules: w, y, z"]);
        assert_eq!(uncovered(&list, "a", &[circle(&["w", "z"])]).len(), 1);
        assert_eq!(uncovered(&list, "b", &[circle(&["y", "z"])]).len(), 1);
    }

    #[test]
    fn an_entry_that_is_not_needed_is_reported() {
        let list = parse(LIST).unwrap();
        assert_eq!(loose(&list, "a", &[]), ["a: no circle contains `y`; remove the entry"]);
        assert!(loose(&list, "a", &[circle(&["y", "z"])]).is_empty());
    }

    #[test]
    fn an_entry_needs_a_reason() {
        let error = parse("[[circle]]\ncrate = 'a'\ncontains = 'b'\nmodules = 2").err().unwrap();
        assert_eq!(error, "an entry without `reason`");
    }
}
