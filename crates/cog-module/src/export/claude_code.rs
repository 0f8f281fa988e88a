//! A module as a skill of Claude Code.

use serde_json::Value;

use super::{
    ExportError, Skill,
    skill::{Parts, envelope, front_matter, inert, sentence},
};
use crate::Module;

/// Returns a module as a skill of Claude Code, for the directory `.claude/skills/NAME`.
///
/// It makes Claude run the module with `cog run` and use its envelope. No tool is allowed in advance, so that the
/// command needs the permission of the person, unless their settings allow it.
///
/// # Errors
/// If the name is not allowed for a skill, or a file cannot be read.
pub fn claude_code(module: &Module) -> Result<Skill, ExportError> {
    let parts = Parts::new(module)?;
    let mut front_matter = front_matter(module);
    front_matter.insert("argument-hint".to_owned(), Value::from("[text or file]"));
    let invocation = module.manifest.invocation;
    if !invocation.agent_invocable {
        front_matter.insert("disable-model-invocation".to_owned(), Value::from(true));
    }
    if !invocation.user_invocable {
        front_matter.insert("user-invocable".to_owned(), Value::from(false));
    }
    let body = body(module, parts.has_examples());
    Ok(parts.into_skill(front_matter, &body, None))
}

fn body(module: &Module, has_examples: bool) -> String {
    let name = &module.manifest.name;
    let examples =
        if has_examples { "; [references/examples.md](references/examples.md) has examples" } else { "" };
    format!(
        "# {name}\n\n{responsibility} Run the module, and use its answer: do not do the task yourself.\n\n\
         Request: $ARGUMENTS\n\n\
         ## Run\n\n\
         1. Write the input as JSON to a temporary file. It must match `input` in\n   \
            [references/schema.json](references/schema.json){examples}.\n\
         2. Run this with the path of that file:\n\n   \
            ```sh\n   cog run \"${{CLAUDE_SKILL_DIR}}/assets/{name}\" INPUT.json\n   ```\n\n\
         3. Show the person the answer, or the error with its suggestion.\n{envelope}",
        responsibility = inert(&sentence(&module.manifest.responsibility)),
        envelope = envelope(module),
    )
}
