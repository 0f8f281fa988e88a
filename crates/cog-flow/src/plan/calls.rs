//! The calls and references of a prompt.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use cog_module::{Call, CallOptions, Prompt, PromptPart, Rule};
use cog_schema::nearest;

use super::{Compiler, Mention};
use crate::{
    Callee, PromptCall,
    finding::{Finding, FindingLocation},
};

/// The calls of the prompt so far, for those that name a module again.
#[derive(Debug, Default)]
pub(super) struct KnownCalls {
    /// The part of each call, by what it says.
    same: HashMap<CallKey, usize>,
    /// The calls of each module whose results have names.
    named: HashMap<String, Vec<usize>>,
    /// The call of each module whose result has the module's name.
    unnamed: HashMap<String, FirstCall>,
}

/// A call, and where the prompt has it.
pub(super) struct LocatedCall<'p> {
    /// Its index among the parts of the prompt.
    pub(super) position: usize,
    pub(super) range: Range<usize>,
    pub(super) call: &'p Call,
}

impl LocatedCall<'_> {
    /// Returns whether `as` names its result.
    pub(super) fn has_name(&self) -> bool {
        self.call.options.result_name.is_some()
    }
}

/// Returns the calls of a prompt.
pub(super) fn written(prompt: &Prompt) -> Vec<LocatedCall<'_>> {
    let calls = prompt.located().enumerate().filter_map(|(position, (range, part))| match part {
        PromptPart::Call(call) => Some(LocatedCall { position, range, call }),
        _ => None,
    });
    calls.collect()
}

/// What a call says: equal calls mean the same result.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CallKey {
    module: String,
    arguments: Option<String>,
    options: CallOptions,
}

impl CallKey {
    pub(super) fn new(call: &Call) -> Self {
        let arguments = call.arguments.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let arguments = arguments.map(str::to_owned);
        Self { module: call.name.clone(), arguments, options: call.options.clone() }
    }

    /// Returns whether it says nothing else than the module.
    fn is_bare(&self) -> bool {
        self.arguments.is_none() && self.options == CallOptions::default()
    }

    /// Returns whether its result has a name of its own.
    fn is_named(&self) -> bool {
        self.options.result_name.as_ref().is_some_and(|name| *name != self.module)
    }
}

#[derive(Debug)]
struct FirstCall {
    part: usize,
    location: FindingLocation,
}

impl Compiler<'_> {
    /// Adds the calls of the prompt. A mention that says nothing but the module means its call with arguments, before the
    /// mention or after it (ruling R81).
    pub(super) fn calls(&mut self, calls: &[LocatedCall<'_>]) {
        let said: Vec<CallKey> = calls.iter().map(|written| CallKey::new(written.call)).collect();
        let unnamed = said.iter().filter(|said| said.arguments.is_some() && !said.is_named());
        let with_arguments: HashSet<&str> = unnamed.map(|said| said.module.as_str()).collect();
        let (mentions, calls): (Vec<_>, Vec<_>) = calls
            .iter()
            .zip(&said)
            .partition(|(_, said)| said.is_bare() && with_arguments.contains(&*said.module));
        for (written, _) in calls.into_iter().chain(mentions) {
            self.call(written);
        }
        // Both are searched by position.
        self.calls.sort_by_key(|call| call.position);
        self.mentions.sort_by_key(|mention| mention.position);
    }

    fn call(&mut self, written: &LocatedCall<'_>) {
        let LocatedCall { position, ref range, call } = *written;
        let location = FindingLocation::Prompt(range.clone());
        if !self.is_callable(&call.name, &location) {
            return;
        }
        let said = CallKey::new(call);
        match self.called_before(&said, &location) {
            CallMatch::Same(part) => return self.mentions.push(Mention { position, part }),
            CallMatch::Refused(finding) => return self.report(*finding),
            CallMatch::None => {}
        }
        let arguments = said.arguments.as_deref().map(Prompt::parse);
        if let Some(arguments) = &arguments {
            self.arguments(arguments, &location);
        }
        let Some(part) = self.part_of_call(position, &said, location) else { return };
        self.parts.mark_used(part);
        let Some(declared) = self.parts.list.get_mut(part) else { return };
        declared.is_called = true;
        // Steps that read the result must be prepared for null as well, so the part itself becomes optional.
        declared.rule.optional |= call.options.optional;
        self.calls.push(PromptCall {
            part,
            position,
            range: range.clone(),
            arguments,
            is_async: call.options.is_async,
            optional: declared.rule.optional,
            timeout: call.options.timeout.or(declared.rule.timeout),
            tier: call.options.tier,
        });
        self.called.same.insert(said, part);
        self.mentions.push(Mention { position, part });
    }

    /// Returns the result that a call means if its module was called before: the result of an equal call, or, for a call that
    /// says nothing but the module, the only result of the module.
    fn called_before(&self, said: &CallKey, location: &FindingLocation) -> CallMatch {
        if let Some(part) = self.called.same.get(said) {
            return CallMatch::Same(*part);
        }
        let module = said.module.as_str();
        let unnamed = self.called.unnamed.get(module);
        if said.is_bare() {
            let named = self.called.named.get(module).map(Vec::as_slice).unwrap_or_default();
            return match (unnamed, named) {
                (Some(first), _) => CallMatch::Same(first.part),
                (None, []) => CallMatch::None,
                (None, [only]) => CallMatch::Same(*only),
                (None, [first, ..]) => {
                    let name = self.name_of(Callee::Part(*first));
                    let count = named.len();
                    let message = format!("`@call:{module}` can mean {count} results, which have names");
                    let help = format!("Read one of them by its name, such as `{{{{{name}.data}}}}`.");
                    let finding = Finding::error(Rule::PromptCall, location.clone(), message).suggest(help);
                    CallMatch::Refused(Box::new(finding))
                }
            };
        }
        match unnamed.filter(|_| !said.is_named()) {
            Some(first) => {
                let message = format!("two calls of `{module}` differ, but have one result");
                let help = format!(
                    "Name the result of one of them: `@call:{module}(…)[as=NAME]`. To read the first one again, write \
                     `{{{{{module}.data}}}}`."
                );
                let finding = Finding::error(Rule::PromptCall, location.clone(), message).suggest(help);
                CallMatch::Refused(Box::new(finding.also_at(first.location.clone())))
            }
            None => CallMatch::None,
        }
    }

    /// Returns the part of a call that is not known yet; none if its name was reported.
    fn part_of_call(&mut self, position: usize, said: &CallKey, location: FindingLocation) -> Option<usize> {
        let named = self.names.of_calls.get(&position).copied();
        if said.options.result_name.is_some() && named.is_none() {
            return None;
        }
        if let Some(part) = named.filter(|_| said.is_named()) {
            self.called.named.entry(said.module.clone()).or_default().push(part);
            return Some(part);
        }
        let part = self.parts.index(&said.module, location.clone());
        self.called.unnamed.insert(said.module.clone(), FirstCall { part, location });
        Some(part)
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
                    let help = match self.parts.named(module).filter(|part| part.is_named()) {
                        Some(part) => format!("Write `@call:{}[as={module}]` before it.", part.module),
                        None => format!("Write `@call:{module}` before it."),
                    };
                    self.report(finding.suggest(help));
                }
                _ => {}
            }
        }
    }

    /// Checks that the references of the prompt read the results of modules that run.
    pub(super) fn references(&mut self) {
        let module = self.module;
        let mut reported = HashSet::new();
        let with_results = self.with_results();
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
        let suggestion = match (replaced, self.parts.names_of(name).next(), near) {
            (Some(part), _, _) => {
                message = format!("`{raw}` reads a fallback: its result is the result of `{part}`");
                format!("Write `{{{{{part}.…}}}}`.")
            }
            (None, Some(named), _) => {
                format!("The results of `{name}` have names: write `{{{{{named}.…}}}}`.")
            }
            (None, None, _) if name == "input" => {
                "A field of the input cannot be inserted; `$INPUT` inserts the complete input.".to_owned()
            }
            (None, None, Some(near)) => format!("Did you mean `{near}`?"),
            (None, None, None) => {
                format!("Call it with `@call:{name}`, or add a step to it in `composition.dataflow`.")
            }
        };
        Finding::error(Rule::PromptCall, FindingLocation::Prompt(range), message).suggest(suggestion)
    }
}

/// How a call relates to the calls before it.
enum CallMatch {
    /// It means the result of this part.
    Same(usize),
    /// It is ambiguous, or differs from another call with the same result.
    Refused(Box<Finding>),
    /// It is a call of its own.
    None,
}
