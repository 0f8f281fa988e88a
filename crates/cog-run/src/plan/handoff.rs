//! The packet that a run received, and the agent that it hands over to (docs/handoff.md).

use cog_answer::{HandoffRules, HandoffTarget};
use cog_harmony::handoff::Handoff;
use cog_module::Module;
use cog_spec::{Code, ErrorBody};

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
