//! The rules of an answer, from the module, the request and the options of the run.

use std::sync::Arc;

use cog_answer::AnswerRules;
use cog_module::Module;
use cog_provider::{ModelRequest, Provider};
use cog_spec::Response;

use crate::{RunOptions, media, request};

/// Returns the rules by which the answer to a request is checked.
pub(crate) fn answer_rules(
    module: &Module,
    request: &ModelRequest,
    provider: &dyn Provider,
    options: &RunOptions,
    session_id: String,
) -> AnswerRules {
    let own = module.manifest.response;
    let mut rules = AnswerRules::new(session_id, Arc::clone(&module.manifest), Arc::clone(&module.contract));
    rules.response = Response {
        on_violation: options.on_violation.or(own.on_violation),
        max_attempts: options.max_attempts.or(own.max_attempts),
        chunk_type: options.chunk_type.unwrap_or(own.chunk_type),
        buffer_size: options.buffer_size.unwrap_or(own.buffer_size),
        ..own
    };
    rules.provider = provider.info().name.clone().into_owned();
    rules.runtime.model = Some(format!("{}/{}", provider.info().name, request::model_of(request, provider)));
    rules.runtime.trace_id = options.trace_id.clone();
    rules.dialect = request::dialect_of(request, provider);
    rules.strict = options.strict;
    if rules.makes_media() {
        rules.limits = media::limits(rules.limits, module);
    }
    rules.warnings.clone_from(&options.warnings);
    rules.resume_from = options.resume_from;
    rules.recovery = options.recovery;
    rules
}
