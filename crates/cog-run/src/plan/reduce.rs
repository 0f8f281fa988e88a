//! Sends a request again without a part that the provider rejected.

use std::sync::Arc;

use cog_provider::{OptionalPart, ProviderError, RejectedPart};
use cog_spec::{Dialect, Warning, WarningCode};

use crate::{
    plan::Plan,
    request::{self, instructions},
};

impl Plan {
    /// Removes the part of the request that the provider rejected, and returns the warning about it. None if the request
    /// has no such part, or if the caller chose it. Each call removes something, so that the calls end.
    pub(crate) fn reduce(&mut self, error: &ProviderError) -> Option<Warning> {
        let ProviderError::Rejected { part: Some(part), .. } = error else { return None };
        let change = match part {
            RejectedPart::Field { name, part } if self.may_omit(*part) && self.request.remove(*part) => {
                format!("without `{name}`")
            }
            RejectedPart::Schema => self.weaken()?.to_owned(),
            _ => return None,
        };
        tracing::warn!(change, error = error.outline(), "repeating the request");
        Some(Warning::new(
            WarningCode::RequestReduced,
            format!("the request was sent again {change}: {error}"),
        ))
    }

    fn may_omit(&self, part: OptionalPart) -> bool {
        match part {
            OptionalPart::Setting(name) => self.spec.is_only_preferred(name),
            OptionalPart::Cache | OptionalPart::StreamOptions => true,
        }
    }

    /// Sends the schema in the next weaker form: as "a JSON object", then only as text. Returns a description.
    fn weaken(&mut self) -> Option<&'static str> {
        if self.spec.module.manifest.requirements.structured_output {
            return None;
        }
        let (weaker, change) = match self.request.output.as_ref()?.dialect {
            Dialect::Prompt => return None,
            Dialect::JsonObject => (Dialect::Prompt, "without a response format"),
            _ => (Dialect::JsonObject, "without the schema, as a request for a JSON object"),
        };
        let projected = self.spec.compiled.projected(&self.spec.module, weaker)?;
        let (old, new) = (self.request.output.as_deref(), Some(&*projected.output));
        request::replace_instructions(&mut self.request.messages, instructions(old), instructions(new));
        self.request.output = Some(Arc::clone(&projected.output));
        Some(change)
    }
}
