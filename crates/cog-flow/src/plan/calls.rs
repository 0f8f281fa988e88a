//! The calls and references of a prompt.

use std::{collections::HashSet, ops::Range};

use cog_module::{Call, Prompt, PromptPart, Rule};
use cog_schema::nearest;

use super::compile::Compiler;
use crate::{
    Callee, PromptCall,
    finding::{Finding, FindingLocation},
};

impl Compiler<'_> {
    /// Adds the calls of the prompt.
    pub(super) fn calls(&mut self) {
        let module = self.module;
        for (position, (range, part)) in module.prompt.located().enumerate() {
            if let PromptPart::Call(call) = part {
                self.call(position, range, call);
            }
        }
    }

    fn call(&mut self, position: usize, range: Range<usize>, call: &Call) {
        let location = FindingLocation::Prompt(range);
        if !self.is_callable(&call.name, &location) {
            return;
        }
        let arguments = call.arguments.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let arguments = arguments.map(Prompt::parse);
        if let Some(arguments) = &arguments {
            self.arguments(arguments, &location);
        }
        let part = self.parts.index(&call.name, location.clone());
        self.parts.mark_used(part);
        let Some(declared) = self.parts.list.get_mut(part) else { return };
        if std::mem::replace(&mut declared.is_called, true) {
            let message = format!("`@call:{}` is in the prompt twice", call.name);
            let finding = Finding::error(Rule::PromptCall, location, message);
            self.report(finding.suggest(format!("Read its result again with `{{{{{}.data}}}}`.", call.name)));
            return;
        }
        declared.optional |= call.options.optional;
        let (optional, timeout) = (declared.optional, call.options.timeout.or(declared.timeout));
        let (is_async, tier) = (call.options.is_async, call.options.tier);
        self.calls.push(PromptCall { part, position, arguments, is_async, optional, timeout, tier });
    }

    /// Checks the placeholders of arguments: calls cannot be nested, and references read earlier calls.
    fn arguments(&mut self, arguments: &Prompt, location: &FindingLocation) {
        for part in arguments.parts() {
            match part {
                PromptPart::Call(call) => {
                    let message = format!("`{}` is inside the arguments of another call", call.raw);
                    let finding = Finding::error(Rule::PromptCall, location.clone(), message);
                    let help =
                        format!("Call it before, and read its result with `{{{{{}.data}}}}`.", call.name);
                    self.report(finding.suggest(help));
                }
                PromptPart::Reference { module, raw, .. }
                    if self.parts.named(module).is_none_or(|part| !part.is_called) =>
                {
                    let message = format!("`{raw}` reads a result that no earlier call of the prompt has");
                    let finding = Finding::error(Rule::PromptCall, location.clone(), message);
                    self.report(finding.suggest(format!("Write `@call:{module}` before it.")));
                }
                _ => {}
            }
        }
    }

    /// Checks that the references of the prompt read the results of modules that run.
    pub(super) fn references(&mut self) {
        let module = self.module;
        let (mut reported, with_results) = (HashSet::new(), self.with_results());
        for (range, part) in module.prompt.located() {
            let PromptPart::Reference { module: name, raw, .. } = part else { continue };
            if self.is_enough() {
                return;
            }
            let is_own = *name == module.manifest.name && self.iteration.is_some();
            let runs = self.parts.find(name).is_some_and(|part| with_results.contains(&Callee::Part(part)));
            if !is_own && !runs && reported.insert(name) {
                self.report(self.unknown_reference(name, raw, range));
            }
        }
    }

    fn unknown_reference(&self, name: &str, raw: &str, range: Range<usize>) -> Finding {
        let mut message = format!("`{raw}` reads the result of `{name}`, which nothing runs");
        let near = nearest(name, self.parts.names().filter(|known| *known != name));
        let replaced = self.parts.find(name).and_then(|part| self.replaced_by(Callee::Part(part)));
        let suggestion = match (replaced, near) {
            (Some(part), _) => {
                message = format!("`{raw}` reads a fallback: its result is that of `{part}`");
                format!("Write `{{{{{part}.…}}}}`.")
            }
            (None, _) if name == "input" => {
                "A field of the input cannot be inserted; `$INPUT` inserts the complete input.".to_owned()
            }
            (None, Some(near)) => format!("Did you mean `{near}`?"),
            (None, None) => {
                format!("Call it with `@call:{name}`, or add a step to it in `composition.dataflow`.")
            }
        };
        Finding::error(Rule::PromptCall, FindingLocation::Prompt(range), message).suggest(suggestion)
    }
}
