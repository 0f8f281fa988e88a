//! The values of a running composition, and the pure functions that read them.

use std::collections::HashMap;

use cog_json::{Kind, Limits, Node, Value, Writer};
use cog_module::PromptPart;
use cog_rules::ValuePath;
use cog_spec::Aggregate;

use crate::{
    Callee, Items, Iteration, PathError, Plan, Route, Selection, Source, Step,
    json_path::{Document, MAX_ELEMENTS},
};

/// The input of a composition, and the results so far. Values are shared, so that a clone is cheap.
#[derive(Debug, Clone)]
pub struct Results {
    input: Value,
    /// The envelope of the own prompt, then one for each part; null if it has none.
    envelopes: Vec<Value>,
    latest: Option<Callee>,
}

/// Which part of a result a step reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    /// The envelope, for paths and conditions.
    Envelope,
    /// The data, for a step without a mapping.
    Payload,
}

impl Results {
    /// Creates the results of a composition that starts.
    pub fn new(plan: &Plan, input: Value) -> Self {
        Self { input, envelopes: vec![Value::null(); plan.parts.len() + 1], latest: None }
    }

    /// Returns the input of the module.
    pub fn input(&self) -> &Value {
        &self.input
    }

    /// Stores the envelope of a call that succeeded, or `null` for an optional call that failed.
    pub fn set(&mut self, callee: Callee, envelope: Value) {
        if let Some(slot) = self.envelopes.get_mut(callee.slot()) {
            *slot = envelope;
        }
    }

    /// Returns the envelope of a call; null if it has none.
    pub fn get(&self, callee: Callee) -> Value {
        self.envelopes.get(callee.slot()).cloned().unwrap_or_default()
    }

    /// Makes a call the result so far, if it has a result.
    pub fn set_latest(&mut self, callee: Callee) {
        if !self.get(callee).is_null() {
            self.latest = Some(callee);
        }
    }

    /// Returns the result so far: the call and its envelope.
    pub fn latest(&self) -> Option<(Callee, Value)> {
        self.latest.map(|callee| (callee, self.get(callee)))
    }

    fn source(&self, source: Source, view: View) -> Value {
        match (source, view) {
            (Source::Input, _) => self.input.clone(),
            (Source::Output(callee), View::Envelope) => self.get(callee),
            (Source::Output(callee), View::Payload) => {
                let envelope = self.get(callee);
                envelope.get("data").map_or_else(Value::null, |data| envelope.child(data))
            }
        }
    }
}

impl Plan {
    /// Returns the name of a callee, by which steps refer to it.
    pub fn name_of(&self, callee: Callee) -> &str {
        match callee {
            Callee::Own => &self.module.manifest.name,
            Callee::Part(index) => self.parts.get(index).map_or("", |part| &part.name),
        }
    }

    /// Returns the name of the module that runs for a callee.
    pub fn module_of(&self, callee: Callee) -> &str {
        match callee {
            Callee::Own => &self.module.manifest.name,
            Callee::Part(index) => self.parts.get(index).map_or("", |part| &part.module),
        }
    }

    /// Returns whether a step runs: one of its sources has a value, and its condition is true.
    pub fn is_selected(&self, step: &Step, results: &Results) -> bool {
        let mut sources = step.from.sources.iter();
        sources.any(|source| !results.source(*source, View::Envelope).is_null())
            && step.condition.as_ref().is_none_or(|condition| {
                condition.is_true(self.selected(&step.from, results, View::Envelope).node())
            })
    }

    /// Returns the values of a step for its target: the input of a module, or data of the answer.
    ///
    /// # Errors
    /// When a path of the mapping selects too much (E1005).
    pub fn values(&self, step: &Step, results: &Results) -> Result<Value, PathError> {
        match &step.mapping {
            Some(mapping) => mapping.apply(&self.selected(&step.from, results, View::Envelope)),
            None => Ok(self.selected(&step.from, results, View::Payload)),
        }
    }

    /// Returns the elements for which a step runs; none if it runs once.
    ///
    /// # Errors
    /// When the list is too long or no list, or a path selects too much (E1005).
    pub fn items(&self, step: &Step, results: &Results) -> Result<Option<Items>, PathError> {
        let Some(each) = &step.each else { return Ok(None) };
        let document = self.selected(&step.from, results, View::Envelope);
        let list = each.path.select(&Document::new(&document))?.unwrap_or_default();
        match list.node().kind() {
            Kind::Null | Kind::Array if list.node().len() <= MAX_ELEMENTS => {}
            Kind::Null | Kind::Array => return Err(PathError::TooMany(list.node().len())),
            other => return Err(PathError::NotAList(other.as_str())),
        }
        let elements = list.elements().map(|element| list.child(element)).collect();
        let shared = step.mapping.as_ref().map(|mapping| mapping.shared(&document)).transpose()?;
        Ok(Some(Items { elements, shared: shared.unwrap_or_default() }))
    }

    /// Returns the input of a module for one of the elements.
    ///
    /// # Errors
    /// As [`Plan::values`].
    pub fn item_values(&self, step: &Step, items: &Items, index: usize) -> Result<Value, PathError> {
        let element = items.elements.get(index).cloned().unwrap_or_default();
        match &step.mapping {
            Some(mapping) => mapping.apply_to(&items.shared, &element, index),
            None => Ok(element),
        }
    }

    /// Returns the input of a module that a route names: the values of its step, otherwise the input of this module.
    ///
    /// # Errors
    /// As [`Plan::values`].
    pub fn routed_values(&self, next: Callee, results: &Results) -> Result<Value, PathError> {
        match self.routed_step(next) {
            Some(step) => self.values(step, results),
            None => Ok(results.input.clone()),
        }
    }

    /// Returns the first rule of the routing whose condition is true. Rules that read the same sources share their document.
    pub fn route(&self, results: &Results) -> Option<&Route> {
        let mut documents: HashMap<Option<&[Source]>, Value> = HashMap::new();
        self.routes.iter().find(|route| {
            let Some(condition) = &route.condition else { return true };
            let from = route.from.as_ref();
            let document = documents.entry(from.map(|from| from.sources.as_slice()));
            condition.is_true(document.or_insert_with(|| self.judged(from, results)).node())
        })
    }

    /// Returns whether the condition that ends the rounds is true after a round.
    pub fn is_accepted(&self, iteration: &Iteration, results: &Results) -> bool {
        let judged = || self.judged(iteration.from.as_ref(), results);
        iteration.until.as_ref().is_some_and(|until| until.is_true(judged().node()))
    }

    /// Returns the number that says how good a round is; none if it has none.
    pub fn score(&self, iteration: &Iteration, results: &Results) -> Option<f64> {
        let (path, _) = iteration.best.as_ref()?;
        path.find(self.judged(iteration.from.as_ref(), results).node())?.as_f64()
    }

    /// Returns the data of the answer, put together by the steps to `output`; later steps win. None if no step ran.
    ///
    /// # Errors
    /// As [`Plan::values`].
    pub fn output(&self, results: &Results) -> Result<Option<Value>, PathError> {
        let mut values = Vec::new();
        for step in self.outputs.iter().filter(|step| self.is_selected(step, results)) {
            values.push(self.values(step, results)?);
        }
        Ok(match values.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            many => Some(merge(many)),
        })
    }

    /// Returns the document of a condition after the steps: the selected sources, otherwise the result so far.
    fn judged(&self, from: Option<&Selection>, results: &Results) -> Value {
        match from {
            Some(from) => self.selected(from, results, View::Envelope),
            None => results.latest().map_or_else(Value::null, |(_, envelope)| envelope),
        }
    }

    /// Returns the sources of a step as one value.
    fn selected(&self, from: &Selection, results: &Results, view: View) -> Value {
        if let ([only], None) = (from.sources.as_slice(), from.aggregate) {
            return results.source(*only, view);
        }
        let values = from.sources.iter().map(|source| (*source, results.source(*source, view)));
        let Some(aggregate) = from.aggregate else { return self.by_name(&values.collect::<Vec<_>>()) };
        let values: Vec<Value> = values.map(|(_, value)| value).filter(|value| !value.is_null()).collect();
        match aggregate {
            Aggregate::Merge => merge(&values),
            Aggregate::Array => array(&values),
            Aggregate::First => values.into_iter().next().unwrap_or_else(Value::null),
        }
    }

    /// Returns an object with a member for each source.
    fn by_name(&self, values: &[(Source, Value)]) -> Value {
        written(|w| {
            w.object(|w| {
                for (source, value) in values {
                    w.field(self.source_name(*source), value);
                }
            });
        })
    }

    /// Returns the name of a source in a document of several sources.
    pub(crate) fn source_name(&self, source: Source) -> &str {
        match source {
            Source::Input => "input",
            Source::Output(callee) => self.name_of(callee),
        }
    }
}

// What the calls and references of a prompt insert.

impl Plan {
    /// Returns the texts that replace the calls and references of the module's prompt, in its order. A result that does not exist
    /// is `null`.
    pub fn prompt_texts(&self, results: &Results) -> Vec<String> {
        let parts = self.module.prompt.parts().iter().enumerate();
        parts
            .filter_map(|(position, part)| match part {
                PromptPart::Call(_) => Some(self.called_text(results, position)),
                PromptPart::Reference { module, path, .. } => {
                    Some(as_text(self.value_at(results, module, path).node()))
                }
                _ => None,
            })
            .collect()
    }

    /// Returns the data that takes the place of a call of the prompt.
    fn called_text(&self, results: &Results, position: usize) -> String {
        let mention = self.mentions.binary_search_by_key(&position, |mention| mention.position).ok();
        let mention = mention.and_then(|index| self.mentions.get(index));
        let envelope = mention.map(|mention| results.get(Callee::Part(mention.part))).unwrap_or_default();
        envelope.get("data").map_or_else(|| "null".to_owned(), as_text)
    }

    /// Returns a value of the envelope of a module, at a path such as `data.issues[0]`; null if it does not exist.
    pub fn value_at(&self, results: &Results, module: &str, path: &str) -> Value {
        let envelope = self.callee_named(module).map(|callee| results.get(callee)).unwrap_or_default();
        let path = ValuePath::parse(&format!("$.{path}"));
        let found = path.and_then(|path| path.find(envelope.node()));
        found.map_or_else(Value::null, |found| envelope.child(found))
    }
}

/// Returns a string as it is, and another value as JSON.
pub fn as_text(value: Node<'_>) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn array(values: &[Value]) -> Value {
    written(|w| {
        w.array(|w| {
            for value in values {
                w.item(value);
            }
        });
    })
}

// Merges values: objects member by member, at any depth; of other values, the later one wins.

/// Returns the merged value; an empty object without values.
fn merge(values: &[Value]) -> Value {
    let nodes: Vec<Node<'_>> = values.iter().map(Value::node).collect();
    written(|w| if nodes.is_empty() { w.object(|_| {}) } else { write_merged(&nodes, w) })
}

/// Writes values merged. The recursion is as deep as the values, whose nesting is limited.
fn write_merged(nodes: &[Node<'_>], w: &mut Writer<'_>) {
    // Objects before a value of another type are replaced by it.
    let start = nodes.iter().rposition(|node| !node.is_object());
    match nodes.get(start.map_or(0, |start| start + 1)..) {
        Some([]) | None => {
            if let Some(last) = nodes.last() {
                w.node(*last);
            }
        }
        Some(objects) => w.object(|w| write_members(objects, w)),
    }
}

fn write_members(objects: &[Node<'_>], w: &mut Writer<'_>) {
    for (index, object) in objects.iter().enumerate() {
        let (before, from) = objects.split_at(index);
        for (key, _) in object.members().filter(|(key, _)| before.iter().all(|node| node.get(key).is_none()))
        {
            let values: Vec<Node<'_>> = from.iter().filter_map(|node| node.get(key)).collect();
            write_merged(&values, w.key(key));
        }
    }
}

// Writes values that are put together.

/// Returns a value that is written. Everything that is written was read within limits.
fn written(write: impl FnOnce(&mut Writer<'_>)) -> Value {
    // A value is a tree over its own text, so that parts of several values become one by writing and reading them.
    let mut text = String::new();
    write(&mut Writer::compact(&mut text));
    Value::parse_within(text.as_bytes(), Limits::unbounded()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
