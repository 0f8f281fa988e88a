use cog_module::calibration::CalibrationKey;
use cog_spec::{Ask, Code, ErrorBody, EvidenceRequest, Form};

use crate::{
    confidence, form,
    plan::PreparedRun,
    provider,
    request::{self, form_of},
};

/// The forms in which a module can be asked by a provider, for a comparison on its golden tests (ruling R91).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AskedForms {
    /// The name of the provider.
    pub provider: String,
    /// The name of the model.
    pub model: String,
    /// The form in which a run without an option asks.
    pub in_use: &'static Form,
    /// Why this form is in use.
    pub reason: String,
    /// Whether the manifest or a setting names the form in use, so that no measurement changes it.
    pub is_named: bool,
    /// Every form, in the order of [`Form::ALL`].
    pub forms: Vec<AskedForm>,
}

/// A form in which a module can be asked, or why it cannot be compared with the others.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AskedForm {
    /// The form.
    pub form: &'static Form,
    /// Why golden tests say nothing about it; none if they do.
    pub obstacle: Option<&'static str>,
}

impl PreparedRun {
    /// Returns what a calibration of the model of this run, which collects this evidence, is stored by.
    pub(crate) fn calibration_key(&self, evidence: EvidenceRequest) -> Result<CalibrationKey, ErrorBody> {
        self.check_own_model("a sample says nothing about a confidence", "Calibrate each part.")?;
        Ok(confidence::key_of(self.plan.provider.as_ref(), &self.plan.request, evidence))
    }

    /// Checks that a model gives the answer itself.
    fn check_own_model(&self, why_sample: &str, why_parts: &str) -> Result<(), ErrorBody> {
        let plan = &self.plan;
        let name = &plan.spec.module.manifest.name;
        if plan.parts.as_ref().is_some_and(|parts| !parts.uses_own_prompt()) {
            let message = format!("the parts of {name} give its answer, so it is asked in no form");
            return Err(ErrorBody::new(Code::InvalidInput, message).suggest(why_parts));
        }
        if !provider::calls_model(plan.provider.as_ref()) {
            let message = format!("no model is called, and {why_sample}");
            return Err(ErrorBody::new(Code::ProviderUnavailable, message)
                .with_recoverable(false)
                .suggest("Name a provider with --provider; `cog doctor --all` lists them."));
        }
        Ok(())
    }

    /// Returns the forms in which the model of this run could be asked.
    pub(crate) fn forms(&self) -> Result<AskedForms, ErrorBody> {
        self.check_own_model("a sample says nothing about forms", "Compare the forms of each part.")?;
        let plan = &self.plan;
        let module = &plan.spec.module;
        let provider = plan.provider.as_ref();
        let compiled = &plan.spec.compiled;
        let examples = compiled.examples(module);
        let forms = Form::ALL.iter().copied().map(|form| AskedForm {
            form,
            obstacle: form::why_unmeasurable(form, module, compiled.obstacles(), examples),
        });
        Ok(AskedForms {
            provider: provider.info().name.clone().into_owned(),
            model: request::model_of(&plan.request, provider).to_owned(),
            in_use: form_of(&plan.request),
            reason: plan.spec.form_choice(provider, &plan.request.model).reason.to_string(),
            is_named: plan.spec.ask() != Ask::Auto,
            forms: forms.collect(),
        })
    }
}
