//! The judge of an answer: another run, of the module `answer-judge` or of one that the run names.

use std::{sync::Arc, time::Duration};

use cog_json::{Object, Value};
use cog_module::Module;
use cog_spec::{Envelope, Judgement, RepairRule};

use super::{answers::Costs, rounded};
use crate::{
    RunContext, RunInput, RunOptions,
    composition::{CompositionMode, PartRun, StartPart},
};

/// What the judge decides. A module of its own receives it in the same field.
const CRITERION: &str = "The answer is right for the input: each of its values follows from the input, and nothing that the input \
                         requires is missing or wrong.";

/// The run that judges an answer.
pub(crate) struct Judge {
    pub(crate) module: Arc<Module>,
    pub(crate) options: RunOptions,
    pub(crate) context: RunContext,
    pub(crate) start: StartPart,
}

impl Judge {
    /// Judges an answer within this time, and adds what that costs.
    ///
    /// # Errors
    /// The run failed, or its data have no boolean `meets`, with the reason.
    pub(super) async fn run(
        &self,
        input: &Value,
        answer: &Value,
        timeout: Duration,
        costs: &mut Costs,
    ) -> Result<Judgement, String> {
        let mut asked = Object::default();
        asked.insert("criterion", Value::from(serde_json::Value::from(CRITERION)));
        asked.insert("answer", answer.clone());
        asked.insert("input", input.clone());
        let started = (self.start)(PartRun {
            module: Arc::clone(&self.module),
            input: RunInput::Json(asked.to_value()),
            options: RunOptions { timeout: Some(timeout), ..self.options.clone() },
            context: self.context.clone(),
            mode: CompositionMode::Find,
        });
        let envelope = started.map_err(|error| error.message)?.fold().await;
        costs.count(&envelope);
        self.judgement(&envelope)
    }

    fn judgement(&self, envelope: &Envelope) -> Result<Judgement, String> {
        let name = &self.module.manifest.name;
        let data = match envelope.error() {
            Some(error) => return Err(format!("{name} failed: {}", error.message)),
            None => envelope.data(),
        };
        let meets = data.and_then(|data| data.get("meets")?.as_bool());
        let meets = meets.ok_or_else(|| format!("the data of {name} have no boolean `meets`."))?;
        let confidence = confidence(envelope);
        let value = rounded(if meets { confidence } else { 1.0 - confidence });
        let model = envelope.meta.runtime.model.clone();
        Ok(Judgement { value, meets, module: name.clone(), model })
    }
}

/// Returns how sure a judge is. One that states nothing is taken at its word.
fn confidence(envelope: &Envelope) -> f64 {
    let runtime = &envelope.meta.runtime;
    let is_filled = runtime.repairs.iter().any(|repair| repair.rule == RepairRule::FillConfidence);
    let has_probabilities = runtime.evidence.as_ref().is_some_and(|evidence| evidence.logprob.is_some());
    match envelope.meta.confidence {
        Some(confidence) if has_probabilities || !is_filled => confidence,
        _ => 1.0,
    }
}
