//! `cargo xtask dag`: the crates use each other, and the world, only as the design allows.

mod modules;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toml::Table;

use crate::project::{Outcome, capture, cargo, read, say, tracked};

/// What each crate may use of the others, lowest first (docs/flow.md shows the same as an image).
const TABLE: &[(&str, &[&str])] = &[
    ("cog-json", &[]),
    ("cog-spec", &["cog-json"]),
    ("cog-schema", &["cog-json", "cog-spec"]),
    ("cog-rules", &["cog-json", "cog-spec", "cog-schema"]),
    ("cog-harmony", &["cog-json", "cog-spec"]),
    ("cog-answer", &["cog-json", "cog-spec", "cog-schema", "cog-rules", "cog-harmony"]),
    // Sources are read in place, in the input, so that base64 is not copied; reports are written for meta.
    ("cog-media", &["cog-json", "cog-spec"]),
    ("cog-store", &[]),
    ("cog-trust", &["cog-spec"]),
    // Its files are written as those of a store.
    ("cog-module", &["cog-json", "cog-spec", "cog-schema", "cog-rules", "cog-store"]),
    ("cog-contract", &["cog-json", "cog-spec", "cog-schema", "cog-module", "cog-trust"]),
    ("cog-provider", &["cog-json", "cog-spec", "cog-harmony"]),
    ("cog-flow", &["cog-json", "cog-spec", "cog-schema", "cog-module", "cog-rules"]),
    (
        "cog-run",
        &[
            "cog-json",
            "cog-spec",
            "cog-schema",
            "cog-harmony",
            "cog-answer",
            "cog-media",
            "cog-module",
            "cog-provider",
            "cog-store",
            "cog-flow",
            "cog-trust",
        ],
    ),
    // Its feature `server` adds cog-module. The tokens of servers are written as files of a store.
    ("cog-mcp", &["cog-json", "cog-spec", "cog-module", "cog-store", "cog-run"]),
    // Its client is that of the operator's addresses.
    ("cog-telemetry", &["cog-spec", "cog-provider", "cog-run"]),
    // Its feature `mcp` adds that one.
    ("cog-server", &["cog-json", "cog-spec", "cog-schema", "cog-media", "cog-module", "cog-run", "cog-mcp"]),
    // Its features `mcp`, `server` and `telemetry` add those three.
    (
        "cog-host",
        &[
            "cog-json",
            "cog-spec",
            "cog-schema",
            "cog-media",
            "cog-module",
            "cog-provider",
            "cog-run",
            "cog-flow",
            "cog-mcp",
            "cog-server",
            "cog-store",
            "cog-telemetry",
        ],
    ),
    (
        "cog-batch",
        &[
            "cog-json",
            "cog-spec",
            "cog-schema",
            "cog-module",
            "cog-provider",
            "cog-store",
            "cog-run",
            "cog-flow",
        ],
    ),
    ("cog-lsp", &["cog-spec", "cog-module", "cog-flow"]),
    ("cog-testkit", &[]),
    // The mock of the test kit is the model of its cases.
    ("cog-conformance", &["cog-json", "cog-spec", "cog-schema", "cog-answer", "cog-provider", "cog-testkit"]),
    ("cog-nats", &["cog-json", "cog-spec", "cog-module", "cog-run", "cog-batch"]),
    // Its feature `nats` adds that one.
    (
        "cogn",
        &[
            "cog-batch",
            "cog-nats",
            "cog-conformance",
            "cog-contract",
            "cog-json",
            "cog-spec",
            "cog-schema",
            "cog-harmony",
            "cog-answer",
            "cog-media",
            "cog-module",
            "cog-provider",
            "cog-run",
            "cog-flow",
            "cog-lsp",
            "cog-mcp",
            "cog-server",
            "cog-store",
            "cog-trust",
            "cog-host",
        ],
    ),
    (
        "cog-py",
        &[
            "cog-json",
            "cog-spec",
            "cog-answer",
            "cog-media",
            "cog-module",
            "cog-contract",
            "cog-conformance",
            "cog-run",
            "cog-host",
        ],
    ),
    ("xtask", &["cog-spec", "cog-trust"]),
];

/// Crates without clocks, files and sockets: what comes in is an argument, what goes out is a result.
const PURE: &[&str] = &[
    "cog-json",
    "cog-spec",
    "cog-schema",
    "cog-rules",
    "cog-harmony",
    "cog-answer",
    "cog-trust",
    "cog-contract",
    "cog-flow",
];

/// What a pure crate may not depend on, however far down.
const IMPURE_CRATES: &[&str] = &["tokio", "mio", "socket2", "hyper", "reqwest", "async-std", "smol"];

/// Clients of other machines.
const CLIENTS: &[&str] =
    &["reqwest", "ureq", "isahc", "curl", "attohttpc", "awc", "surf", "hickory-resolver"];

/// The crates that call other machines: providers and MCP servers at URLs of the operator, and URLs of inputs and models,
/// which one guarded client fetches.
const ASKING: &[&str] = &["cog-provider", "cog-mcp", "cog-media"];

/// What the source of a pure crate may not name.
const IMPURE_WORDS: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "Instant",
    "SystemTime",
    "UNIX_EPOCH",
];

/// The files that convert values to `serde_json`, which rounds a number that no 64 bits hold: not on the way of an input, an answer,
/// an argument or a result.
const ROUNDING: &[(&str, &str)] = &[
    ("crates/cog-answer/src/fold.rs", "the data of a stream that broke off"),
    (
        "crates/cog-answer/src/verify/chunk.rs",
        "what the deltas of a stream add up to, compared with its last chunk",
    ),
    ("crates/cog-contract/src/diff/manifest.rs", "a sample"),
    (
        "crates/cog-flow/src/json_path.rs",
        "the library selects from a copy; the values come from the document",
    ),
    ("crates/cog-mcp/src/verbatim.rs", "headers that a server wants to have from arguments"),
    ("crates/cog-module/src/export/promptfoo.rs", "an expected value in the format of another program"),
    ("crates/cog-module/src/golden.rs", "the error of an expected envelope"),
    ("crates/cog-module/src/golden/expected.rs", "the schemas of an expected file"),
    ("crates/cog-module/src/migrate.rs", "a schema"),
    ("crates/cog-module/src/schema.rs", "a schema, whose long numbers `validate` names"),
    ("crates/cog-provider/src/protocol/reply.rs", "the index in a part of the reasoning"),
    ("crates/cog-run/src/offline.rs", "a sample"),
    ("crates/cog-run/src/tool.rs", "the schema of arguments"),
    ("crates/cog-schema/src/engine/tree.rs", "a value in the message of a violation"),
    ("crates/cog-server/src/vendor_api/request.rs", "a schema"),
    ("crates/cog/src/commands/test/add.rs", "a golden case in the form of an imported one"),
    ("crates/cog/src/commands/test/answer.rs", "the difference of two answers on a terminal"),
    ("crates/cog/src/commands/test/import.rs", "golden cases in the file of another program"),
];

/// Checks everything and lists all that is wrong.
pub(crate) fn run() -> Outcome {
    let metadata = capture(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let mut faults = edge_faults(&metadata);
    faults.extend(dependency_faults(&metadata));
    faults.extend(source_faults()?);
    faults.extend(rounding_faults()?);
    faults.extend(share_faults()?);
    faults.extend(violations(TABLE.iter().map(|(name, _)| *name).filter(|name| *name != "xtask"))?);
    if faults.is_empty() {
        say(format_args!("dag: every edge is in the table; {} crates are pure", PURE.len()));
        return Ok(());
    }
    Err(format!("the design does not allow:\n  {}", faults.join("\n  ")))
}

/// Draws the crates for docs/flow.md, as they depend on each other. An arrow that follows from others is left out.
pub(crate) fn picture() -> Outcome<String> {
    let metadata = capture(cargo().args(["metadata", "--format-version", "1", "--locked", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let mut uses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in list(&metadata, "packages") {
        let name = text(package, "name");
        if name == "xtask" {
            continue;
        }
        let dependencies = list(package, "dependencies").iter().filter(|one| text(one, "kind") != "dev");
        let ours = dependencies.map(|one| text(one, "name")).filter(|name| name.starts_with("cog-"));
        uses.entry(name).or_default().extend(ours);
    }
    let mut drawn = "```mermaid\nflowchart TD\n".to_owned();
    for (name, direct) in &uses {
        for target in direct {
            let others = direct.iter().filter(|other| *other != target);
            if !others.into_iter().any(|other| reach(other, &uses).contains(target)) {
                drawn.push_str(&format!("  {name} --> {target}\n"));
            }
        }
    }
    drawn.push_str("```\n");
    Ok(drawn)
}

/// Edges between the workspace's crates that the table does not have.
fn edge_faults(metadata: &Value) -> Vec<String> {
    let table: BTreeMap<&str, &[&str]> = TABLE.iter().copied().collect();
    let mut faults = Vec::new();
    for package in members(metadata) {
        let name = text(package, "name");
        let Some(allowed) = table.get(name) else {
            faults.push(format!("{name}: the table has no such crate"));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let target = text(dependency, "name");
            let development = text(dependency, "kind") == "dev";
            let known = table.contains_key(target);
            // A test may use every crate below its own, and its own with other features.
            let below =
                allowed.iter().filter_map(|lower| table.get(lower)).any(|lower| lower.contains(&target));
            let fine = allowed.contains(&target)
                || (development && (below || target == name || target == "cog-testkit"));
            if known && !fine {
                faults.push(format!("{name} -> {target}"));
            }
            if CLIENTS.contains(&target) && !development && !ASKING.contains(&name) {
                faults.push(format!("{name} -> {target}: a client outside of {}", ASKING.join(", ")));
            }
        }
    }
    faults
}

/// Crates that a pure crate reaches and must not.
fn dependency_faults(metadata: &Value) -> Vec<String> {
    let names: BTreeMap<&str, &str> = list(metadata, "packages")
        .iter()
        .map(|package| (text(package, "id"), text(package, "name")))
        .collect();
    let nodes: BTreeMap<&str, Vec<&str>> = metadata
        .pointer("/resolve/nodes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|node| (text(node, "id"), normal_dependencies(node)))
        .collect();
    let mut faults = Vec::new();
    for (id, name) in &names {
        if PURE.contains(name) {
            let reached = reach(id, &nodes);
            let reached: BTreeSet<&str> = reached.iter().filter_map(|id| names.get(id).copied()).collect();
            let impure = IMPURE_CRATES.iter().filter(|crate_name| reached.contains(*crate_name));
            faults.extend(impure.map(|crate_name| format!("{name} reaches {crate_name}")));
        }
    }
    faults
}

/// Words in the source of a pure crate that speak of clocks, files or sockets.
fn source_faults() -> Outcome<Vec<String>> {
    let mut faults = Vec::new();
    for name in PURE {
        for path in tracked(&format!("crates/{name}/src"), ".rs")? {
            if path.ends_with("tests.rs") {
                continue;
            }
            let text = read(&path)?;
            let code = code_of(&text);
            for (index, line) in code.lines().enumerate() {
                let statement = line.split("//").next().unwrap_or_default();
                let words = IMPURE_WORDS.iter().filter(|word| statement.contains(*word));
                faults.extend(words.map(|word| format!("{path}:{}: {word}", index + 1)));
            }
        }
    }
    Ok(faults)
}

/// Returns a file without the tests at its end. A declaration of tests in a file of their own can stand at its beginning.
fn code_of(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// Files that round numbers without a reason, and reasons that are no longer needed.
fn rounding_faults() -> Outcome<Vec<String>> {
    let mut found = BTreeSet::new();
    for path in tracked("crates", ".rs")? {
        let is_code = path.contains("/src/") && !path.contains("/tests/") && !path.ends_with("tests.rs");
        let own = ["crates/cog-json/", "crates/cog-testkit/", "crates/cog-answer/src/testing.rs"];
        if !is_code || own.iter().any(|own| path.starts_with(own)) {
            continue;
        }
        let text = read(&path)?;
        if code_of(&text).contains(".to_serde()") {
            found.insert(path);
        }
    }
    let listed: BTreeSet<String> = ROUNDING.iter().map(|(path, _)| (*path).to_owned()).collect();
    let new = found
        .difference(&listed)
        .map(|path| format!("{path}: `to_serde` rounds long numbers (ROUNDING in xtask/src/dag.rs)"));
    let old = listed.difference(&found).map(|path| format!("{path}: is in ROUNDING, and rounds nothing"));
    Ok(new.chain(old).collect())
}

/// Crates that hold more than a quarter of the code.
fn share_faults() -> Outcome<Vec<String>> {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for path in tracked("crates", ".rs")? {
        let mut parts = path.split('/').skip(1);
        if let (Some(name), Some("src")) = (parts.next(), parts.next()) {
            *lines.entry(name.to_owned()).or_default() += read(&path)?.lines().count();
        }
    }
    let whole: usize = lines.values().sum();
    let heavy = lines.iter().filter(|(_, count)| *count * 4 > whole);
    Ok(heavy.map(|(name, count)| format!("{name} holds {count} of {whole} lines, over a quarter")).collect())
}

fn members(metadata: &Value) -> impl Iterator<Item = &Value> {
    let ids = list(metadata, "workspace_members");
    list(metadata, "packages").iter().filter(|package| package.get("id").is_some_and(|id| ids.contains(id)))
}

fn normal_dependencies(node: &Value) -> Vec<&str> {
    let mut used = Vec::new();
    for dependency in list(node, "deps") {
        let kinds = list(dependency, "dep_kinds");
        if kinds.iter().any(|kind| kind.get("kind").is_some_and(Value::is_null)) {
            used.push(text(dependency, "pkg"));
        }
    }
    used
}

fn reach<'a>(start: &'a str, nodes: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(nodes.get(id).into_iter().flatten());
        }
    }
    seen
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

// `xtask/circles.toml`: the circles of modules that are accepted, each with a reason.

const FILE: &str = "xtask/circles.toml";

/// An entry of the list.
struct Accepted {
    crate_name: String,
    /// A module of the circle; `*` for any circle of the crate.
    contains: String,
    modules: usize,
}

/// Returns the circles of these crates that the list does not cover.
fn violations<'n>(crates: impl Iterator<Item = &'n str>) -> Outcome<Vec<String>> {
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
    let entries = table.get("circle").and_then(toml::Value::as_array).ok_or("missing `[[circle]]`")?;
    entries.iter().map(Accepted::parse).collect()
}

impl Accepted {
    fn parse(entry: &toml::Value) -> Outcome<Self> {
        string(entry, "reason")?;
        let modules =
            entry.get("modules").and_then(toml::Value::as_integer).and_then(|count| count.try_into().ok());
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

fn string(entry: &toml::Value, key: &str) -> Outcome<String> {
    let text = entry.get(key).and_then(toml::Value::as_str);
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
