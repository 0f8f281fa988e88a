//! The packet that a run received, and the agent that it hands over to (docs/handoff.md).

use cog_answer::{HandoffRules, HandoffTarget};
use cog_harmony::handoff::Handoff;
use cog_module::Module;
use cog_spec::{Code, ErrorBody, Warning, WarningCode};

use crate::{RunOptions, clock};

/// Returns what the answer of a run must follow, and the agent that it hands over to.
///
/// # Errors
/// E1001 if the run hands over, and the module has no handoff.
pub(crate) fn handoff_rules(
    module: &Module,
    parent: Option<Handoff>,
    options: &RunOptions,
) -> Result<HandoffRules, ErrorBody> {
    let Some(agent) = options.handoff_to.clone() else { return Ok(HandoffRules { parent, target: None }) };
    if !module.contract.has_handoff() {
        let name = &module.manifest.name;
        let message = format!("{name} cannot hand over to `{agent}`: its data have no field `handoff`");
        return Err(ErrorBody::new(Code::InvalidInput, message).suggest(
            "Add `\"handoff\": {\"$ref\": \"#/$defs/Handoff\"}` to the data schema, or use another module.",
        ));
    }
    let target = HandoffTarget { agent, timestamp: clock::now_as_text() };
    Ok(HandoffRules { parent, target: Some(target) })
}

/// Returns the warning that the packet of the input is addressed to another agent. The name of an agent may be that of its
/// module with a suffix, such as `coder_v1`.
pub(crate) fn misaddressed(module: &Module, packet: Option<&Handoff>) -> Option<Warning> {
    let (agent, name) = (packet?.target_agent(), &module.manifest.name);
    let is_suffix = |rest: &str| !rest.starts_with(|first: char| first.is_alphanumeric());
    if agent.strip_prefix(name.as_str()).is_some_and(is_suffix) {
        return None;
    }
    let message = format!("the handoff packet is addressed to `{agent}`, but `{name}` runs it");
    Some(Warning::new(WarningCode::HandoffMisaddressed, message))
}
