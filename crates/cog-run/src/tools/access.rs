//! Decides which tools a module may call: `tools` and `policies` of its manifest.

use cog_spec::Manifest;

use crate::tool::ToolInfo;

/// Returns why a module may not call a tool; none if it may.
pub(super) fn refusal(manifest: &Manifest, info: &ToolInfo) -> Option<String> {
    let rules = &manifest.tools;
    let policies = manifest.policies;
    let effects = info.effects;
    let is_named = |names: &[String]| names.contains(&info.name);
    if is_named(&rules.denied) {
        return Some("`tools.denied` names it".to_owned());
    }
    if !rules.allow_by_default && !is_named(&rules.allowed) {
        return Some("`tools.policy` is deny_by_default, and `tools.allowed` does not name it".to_owned());
    }
    let needed = [
        (effects.network, manifest.allows_network(), "network", "uses the network"),
        (effects.filesystem_write, policies.filesystem_write_allowed, "filesystem_write", "writes files"),
        (effects.side_effects, manifest.allows_side_effects(), "side_effects", "has side effects"),
        (effects.code_execution, policies.code_execution_allowed, "code_execution", "runs code"),
    ];
    let denied = needed.into_iter().find(|(is_needed, is_allowed, ..)| *is_needed && !is_allowed);
    denied.map(|(.., policy, effect)| format!("it {effect}, and {} denies that", key_of(manifest, policy)))
}

/// Returns the key of the manifest that denies a policy.
fn key_of(manifest: &Manifest, policy: &str) -> String {
    match policy {
        "network" if manifest.policies.network_allowed => "`constraints.no_network`".to_owned(),
        "side_effects" if manifest.policies.side_effects_allowed => {
            "`constraints.no_side_effects`".to_owned()
        }
        _ => format!("`policies.{policy}`"),
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::{Format, Tier};

    use super::*;
    use crate::tool::ToolEffects;

    fn info(effects: ToolEffects) -> ToolInfo {
        let parameters = Value::parse("{}").unwrap();
        ToolInfo::new("t", "Does it.", &parameters).unwrap().with_effects(effects)
    }

    #[test]
    fn names_decide_before_the_default() {
        let mut manifest = Manifest::with_defaults("m", Format::V25, Some(Tier::Decision));
        let tool = info(ToolEffects::default());
        assert!(refusal(&manifest, &tool).unwrap().contains("deny_by_default"));
        manifest.tools.allowed = vec!["t".to_owned()];
        assert_eq!(refusal(&manifest, &tool), None);
        manifest.tools.denied = vec!["t".to_owned()];
        assert!(refusal(&manifest, &tool).unwrap().contains("tools.denied"));
        manifest.tools = cog_spec::ToolRules { allow_by_default: true, ..Default::default() };
        assert_eq!(refusal(&manifest, &tool), None);
    }

    #[test]
    fn each_effect_needs_its_policy() {
        let mut manifest = Manifest::with_defaults("m", Format::V25, Some(Tier::Decision));
        manifest.tools.allow_by_default = true;
        let all = [
            (ToolEffects { network: true, ..Default::default() }, "policies.network"),
            (ToolEffects { filesystem_write: true, ..Default::default() }, "policies.filesystem_write"),
            (ToolEffects { side_effects: true, ..Default::default() }, "policies.side_effects"),
            (ToolEffects { code_execution: true, ..Default::default() }, "policies.code_execution"),
        ];
        for (effects, policy) in all {
            assert!(refusal(&manifest, &info(effects)).unwrap().contains(policy));
        }
        let policies = &mut manifest.policies;
        (policies.network_allowed, policies.filesystem_write_allowed) = (true, true);
        (policies.side_effects_allowed, policies.code_execution_allowed) = (true, true);
        for (effects, _) in all {
            assert_eq!(refusal(&manifest, &info(effects)), None);
        }
    }

    #[test]
    fn constraints_deny_what_a_policy_allows() {
        let mut manifest = Manifest::with_defaults("m", Format::V1, None);
        manifest.tools.allow_by_default = true;
        (manifest.policies.network_allowed, manifest.policies.side_effects_allowed) = (true, true);
        (manifest.constraints.no_network, manifest.constraints.no_side_effects) = (true, true);
        let network = ToolEffects { network: true, ..Default::default() };
        let effects = ToolEffects { side_effects: true, ..Default::default() };
        assert!(refusal(&manifest, &info(network)).unwrap().contains("`constraints.no_network`"));
        assert!(refusal(&manifest, &info(effects)).unwrap().contains("`constraints.no_side_effects`"));
    }
}
