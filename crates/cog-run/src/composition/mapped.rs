//! Steps with `each`: a call for each element of a list. Its result is the list of their data, in the same order.

use cog_flow::{Callee, Items, Plan, Step};
use cog_json::{Limits, ToJson as _, Value};
use cog_spec::{ErrorBody, Meta, Risk, RiskValue, Warning, WarningCode};

use super::{
    call::CallResult,
    error::{self, CompositionError},
    execution::Execution,
};

/// The maximum size of a list of results, as JSON: 64 MB.
const MAX_LIST: usize = 64 << 20;

/// The calls of one module for the elements of a list. Only those in flight exist, however long the list is.
pub(super) struct MappedCalls {
    /// The task that waits for all of them.
    pub(super) task: usize,
    /// The index of the step in the plan.
    step: usize,
    pub(super) callee: Callee,
    items: Items,
    max_parallel: usize,
    /// The number of calls that were created.
    created: usize,
    results: ElementResults,
}

/// The results of the elements so far.
#[derive(Default)]
struct ElementResults {
    /// The data of each element; null if it has none.
    data: Vec<Value>,
    ended: usize,
    confidence: Option<f64>,
    risk: Option<Risk>,
    failed: usize,
    /// The error of the first element that failed, with its path.
    first_failure: Option<String>,
}

impl Execution {
    /// Starts the calls of a step for the elements of a list. Without elements, the result is there at once.
    pub(super) fn start_mapped(
        &mut self,
        plan: &Plan,
        task: usize,
        index: usize,
        targets: &[Callee],
    ) -> Result<(), CompositionError> {
        let Some(step) = plan.steps.get(index) else { return Ok(()) };
        for target in targets {
            let items = self.items(plan, step)?;
            let results = ElementResults { data: vec![Value::null(); items.len()], ..Default::default() };
            if items.is_empty() {
                self.results.set(*target, results.envelope()?);
                self.set_latest(plan, index);
                continue;
            }
            self.expected += items.len() - 1;
            let max_parallel = step.each.as_ref().and_then(|each| each.max_parallel);
            let max_parallel = max_parallel.unwrap_or(usize::MAX).min(self.context.max_parallel()).max(1);
            let callee = *target;
            self.mapped.push(MappedCalls {
                task,
                step: index,
                callee,
                items,
                max_parallel,
                created: 0,
                results,
            });
        }
        Ok(())
    }

    fn items(&self, plan: &Plan, step: &Step) -> Result<Items, ErrorBody> {
        let items = plan.items(step, &self.results).map_err(|found| error::mapping(&plan.module, &found))?;
        items.ok_or_else(|| error::no_result(&plan.module))
    }

    /// Queues calls for further elements, so that as many are in flight as may be.
    pub(super) fn queue_elements(&mut self, plan: &Plan) -> Result<(), CompositionError> {
        let mut elements = Vec::new();
        for mapped in self.mapped.iter_mut().filter(|_| self.halted.is_empty()) {
            let Some(step) = plan.steps.get(mapped.step) else { continue };
            while let Some(index) = mapped.take_next() {
                let values = plan.item_values(step, &mapped.items, index);
                let values = values.map_err(|found| error::mapping(&plan.module, &found))?;
                elements.push((mapped.task, mapped.callee, index, values));
            }
        }
        for (task, callee, index, values) in elements {
            let call = self.call(plan, task, callee, Some(index), values);
            self.queue.push_back(call);
        }
        Ok(())
    }

    /// Returns whether elements of a callee have not ended.
    pub(super) fn is_mapping(&self, callee: Callee) -> bool {
        self.mapped.iter().any(|mapped| mapped.callee == callee)
    }

    /// Stores the data of an element. The result is complete with the last one.
    ///
    /// # Errors
    /// The list is too large (E1005).
    pub(super) fn end_element(&mut self, index: usize, ended: &CallResult) -> Result<(), CompositionError> {
        let callee = ended.call.result_of;
        let Some(position) = self.mapped.iter().position(|mapped| mapped.callee == callee) else {
            return Ok(());
        };
        let Some(mapped) = self.mapped.get_mut(position) else { return Ok(()) };
        mapped.results.end(index, ended);
        if mapped.results.ended < mapped.items.len() {
            return Ok(());
        }
        let results = self.mapped.swap_remove(position).results;
        self.results.set(callee, results.envelope()?);
        if let Some(first) = results.first_failure {
            let failed = results.failed;
            let all = results.data.len();
            let message = format!("{failed} of {all} optional elements failed; the first: {first}");
            self.warn(Warning::new(WarningCode::OptionalPartFailed, message));
        }
        Ok(())
    }

    /// Makes the elements that are done results, for a composition that fails.
    pub(super) fn keep_elements(&mut self) {
        for mapped in std::mem::take(&mut self.mapped) {
            if let (true, Ok(envelope)) = (mapped.results.ended > 0, mapped.results.envelope()) {
                self.results.set(mapped.callee, envelope);
            }
        }
    }
}

impl MappedCalls {
    /// Returns the index of the next element whose call may be created.
    fn take_next(&mut self) -> Option<usize> {
        let index = self.created;
        let may_start = index < self.items.len() && index - self.results.ended < self.max_parallel;
        self.created += usize::from(may_start);
        may_start.then_some(index)
    }
}

impl ElementResults {
    fn end(&mut self, index: usize, ended: &CallResult) {
        self.ended += 1;
        if !ended.is_ok() {
            self.failed += 1;
            let (code, message) = ended.error().unwrap_or_default();
            self.first_failure.get_or_insert_with(|| format!("`{}`: {code}: {message}", ended.call.path));
            return;
        }
        let data = ended.envelope.get("data").map(|data| ended.envelope.child(data));
        if let (Some(slot), Some(data)) = (self.data.get_mut(index), data) {
            *slot = data;
        }
        if let Some(meta) = ended.meta() {
            let least = |least: f64| meta.confidence.map_or(least, |confidence| least.min(confidence));
            self.confidence = self.confidence.map(least).or(meta.confidence);
            self.risk = self.risk.max(Some(meta.risk.level()));
        }
    }

    /// Returns the envelope of the list. Its confidence is the least of the elements, its risk the greatest.
    fn envelope(&self) -> Result<Value, ErrorBody> {
        let explain = format!("The confidence is the minimum of {} elements.", self.ended - self.failed);
        let meta = Meta::new(self.confidence, RiskValue::from(self.risk.unwrap_or(Risk::None)), explain);
        let mut text = format!(r#"{{"ok":true,"meta":{},"data":["#, meta.to_json());
        for (index, data) in self.data.iter().enumerate() {
            text += if index > 0 { "," } else { "" };
            data.node().write(&mut text);
            if text.len() > MAX_LIST {
                return Err(error::list_too_large(MAX_LIST));
            }
        }
        text += "]}";
        Ok(Value::parse_within(text.as_bytes(), Limits::unbounded()).unwrap_or_default())
    }
}
