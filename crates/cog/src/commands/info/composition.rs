//! The modules that a composed module calls.

use std::sync::Arc;

use cog_flow::{CheckResult, Part, Plan};
use cog_host::settings::show_duration;
use cog_json::{ToJson, Writer};
use cog_module::{Finder, Module};
use cog_spec::{Composition, DataflowStep, IterationRule, Manifest, Requirement, RoutingRule};

use crate::output::{Console, Table};

/// The modules that a module calls.
pub(super) struct Parts(Option<CheckResult>);

impl Parts {
    /// Finds the modules that a module calls.
    pub(super) fn find(module: &Arc<Module>, finder: &Finder) -> Self {
        let checked = cog_flow::check(Arc::clone(module), finder);
        Self(checked.flow().is_composed().then_some(checked))
    }

    /// Returns the pattern and the limits; none if the module calls no other.
    pub(super) fn pattern(&self) -> Option<String> {
        let plan = self.0.as_ref()?.flow().root();
        let timeout = show_duration(plan.timeout);
        Some(format!("{}; at most {timeout}, {} modules deep", plan.pattern.as_str(), plan.max_depth))
    }

    /// Formats the parts as a table; none if there are none.
    pub(super) fn render(&self, console: &Console) -> Option<String> {
        let rows = self.rows();
        if rows.is_empty() {
            return None;
        }
        let mut table = Table::new(["module", "version", "tier", "options"]);
        for row in rows {
            let manifest = row.manifest;
            let version = manifest.map_or("missing", |manifest| &manifest.version);
            let tier = manifest.and_then(|manifest| manifest.tier).map_or("-", |tier| tier.as_str());
            table.row([row.name(), version.to_owned(), tier.to_owned(), row.options()]);
        }
        let columns = console.out_columns().map(|columns| columns.saturating_sub(2));
        Some(table.render(console.out().palette, columns).lines().map(|line| format!("  {line}\n")).collect())
    }

    /// Whether the module calls no other.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let Some(flow) = self.0.as_ref().map(CheckResult::flow) else { return Vec::new() };
        let plan = flow.root();
        let parts = plan.parts.iter().enumerate();
        let rows = parts.map(|(index, part)| Row {
            manifest: part.plan.map(|id| &*flow.plan(id).module.manifest),
            is_optional: part.optional || is_called_optionally(plan, index),
            fallback: part.fallback.and_then(|fallback| Some(plan.parts.get(fallback)?.name.as_str())),
            part,
        });
        rows.collect()
    }
}

/// Returns whether the prompt calls a part, and each call is optional.
fn is_called_optionally(plan: &Plan, part: usize) -> bool {
    let mut calls = plan.calls.iter().filter(|call| call.part == part).peekable();
    calls.peek().is_some() && calls.all(|call| call.optional)
}

struct Row<'a> {
    part: &'a Part,
    /// None if the module is missing.
    manifest: Option<&'a Manifest>,
    is_optional: bool,
    fallback: Option<&'a str>,
}

impl Row<'_> {
    /// Returns the name of the module, and the name of its result if it has another one.
    fn name(&self) -> String {
        let Part { name, module, .. } = self.part;
        if self.part.is_named() { format!("{module} as {name}") } else { name.clone() }
    }

    fn options(&self) -> String {
        let optional = self.is_optional.then(|| "optional".to_owned());
        let fallback = self.fallback.map(|name| format!("fallback {name}"));
        let timeout = self.part.timeout.map(|timeout| format!("timeout {}", show_duration(timeout)));
        [optional, fallback, timeout].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Written by hand: it has the members of a part and of its manifest.
impl ToJson for Row<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.part.name);
            w.optional("module", &self.part.is_named().then_some(&self.part.module));
            w.optional("version", &self.manifest.map(|manifest| &manifest.version));
            w.optional("tier", &self.manifest.and_then(|manifest| manifest.tier).map(|tier| tier.as_str()));
            w.field("optional", &self.is_optional);
            w.optional("fallback", &self.fallback);
            let millis = self.part.timeout.map(|timeout| timeout.as_millis());
            w.optional("timeout_ms", &millis.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX)));
        });
    }
}

impl ToJson for Parts {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.array(|w| self.rows().iter().for_each(|row| row.write_json(w)));
    }
}

/// Writes `composition` of a manifest.
pub(super) fn composition(w: &mut Writer<'_>, composition: &Composition) {
    w.field("pattern", composition.pattern.as_str());
    w.field("max_depth", &composition.max_depth);
    w.field("timeout_ms", &composition.timeout_ms);
    list(w, "requires", &composition.requires, requirement);
    list(w, "dataflow", &composition.dataflow, step);
    list(w, "routing", &composition.routing, rule);
    if let Some(rounds) = &composition.iteration {
        w.key("iteration").object(|w| iteration(w, rounds));
    }
}

/// Writes a list of objects.
fn list<T>(w: &mut Writer<'_>, key: &str, items: &[T], write: fn(&mut Writer<'_>, &T)) {
    w.key(key).array(|w| items.iter().for_each(|item| w.object(|w| write(w, item))));
}

fn requirement(w: &mut Writer<'_>, requirement: &Requirement) {
    w.field("name", &requirement.name);
    w.field("version", requirement.version.as_deref().unwrap_or("*"));
    w.field("optional", &requirement.optional);
    w.optional("fallback", &requirement.fallback);
    w.optional("timeout_ms", &requirement.timeout_ms);
}

fn step(w: &mut Writer<'_>, step: &DataflowStep) {
    w.field("from", &step.from);
    w.field("to", &step.to);
    if let Some(mapping) = &step.mapping {
        w.key("mapping").object(|w| {
            for (field, path) in mapping {
                w.field(field, path);
            }
        });
    }
    w.optional("condition", &step.condition);
    w.optional("aggregate", &step.aggregate.map(|aggregate| aggregate.as_str()));
    w.optional("as", &step.result_name);
}

fn rule(w: &mut Writer<'_>, rule: &RoutingRule) {
    if !rule.from.is_empty() {
        w.field("from", &rule.from);
    }
    w.optional("condition", &rule.condition);
    w.field("next", &rule.next);
}

fn iteration(w: &mut Writer<'_>, iteration: &IterationRule) {
    if !iteration.from.is_empty() {
        w.field("from", &iteration.from);
    }
    w.optional("until", &iteration.until);
    w.field("max_rounds", &iteration.max_rounds);
}
