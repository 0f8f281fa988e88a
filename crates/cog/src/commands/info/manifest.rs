//! A manifest as JSON, with the keys of `module.yaml` and all defaults resolved.

use cog_json::{ToJson, Writer};
use cog_spec::{
    AcceptedContext, Ask, Constraints, ContextRule, EmittedContext, Enums, Generation, Manifest,
    MediaConstraints, Modalities, Overflow, Policies, Response, Tier,
};

use super::composition::composition;

/// The JSON form of a manifest.
pub(super) struct ManifestJson<'a>(pub(super) &'a Manifest);

/// Written by hand: sections with defaults are not written.
impl ToJson for ManifestJson<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let manifest = self.0;
        w.object(|w| {
            w.field("name", &manifest.name);
            w.field("version", &manifest.version);
            w.field("responsibility", &manifest.responsibility);
            w.field("format", manifest.format.as_str());
            w.optional("tier", &manifest.tier.map(|tier| tier.as_str()));
            w.field("schema_strictness", manifest.strictness.as_str());
            w.field("excludes", &manifest.excludes);
            section(w, "policies", &manifest.policies, policies);
            section(w, "overflow", &manifest.overflow, overflow);
            section(w, "enums", &manifest.enums, enums);
            write_rules(w, manifest);
            section(w, "constraints", &manifest.constraints, constraints);
            section(w, "generation", &manifest.generation, generation);
            context(w.key("context"), &manifest.context);
            if let Some(composed) = &manifest.composition {
                section(w, "composition", composed, composition);
            }
            w.key("response").object(|w| response(w, &manifest.response, manifest.tier));
            section(w, "modalities", &manifest.modalities, modalities);
            write_error_codes(w, manifest);
        });
    }
}

/// Writes a section of the manifest as an object.
fn section<T>(w: &mut Writer<'_>, key: &str, value: &T, write: fn(&mut Writer<'_>, &T)) {
    w.key(key).object(|w| write(w, value));
}

/// Writes the context as a manifest does: a word, or an object with what the module reads and emits.
fn context(w: &mut Writer<'_>, rule: &ContextRule) {
    let mode = if rule.fork { "fork" } else { "main" };
    if rule.accepts.is_empty() && rule.emits.is_empty() {
        return mode.write_json(w);
    }
    w.object(|w| {
        w.field("mode", mode);
        w.key("accepts").array(|w| {
            rule.accepts.iter().for_each(|accepted| w.object(|w| write_accepted(w, accepted)));
        });
        w.key("emits")
            .array(|w| rule.emits.iter().for_each(|emitted| w.object(|w| write_emitted(w, emitted))));
    });
}

fn write_accepted(w: &mut Writer<'_>, accepted: &AcceptedContext) {
    w.field("type", &accepted.name);
    w.field("required", &accepted.required);
    w.optional("max_turns", &accepted.max_turns);
    w.optional("fields", &accepted.fields);
    w.optional("schema", &accepted.schema);
    w.optional("ttl", &accepted.ttl);
    w.optional("from_module", &accepted.from_module);
}

fn write_emitted(w: &mut Writer<'_>, emitted: &EmittedContext) {
    w.field("type", &emitted.name);
    w.field("ttl", &emitted.ttl.seconds());
    w.field("key_pattern", &emitted.key_pattern);
    w.optional("schema", &emitted.schema);
}

fn policies(w: &mut Writer<'_>, policies: &Policies) {
    w.field("tools_allowed", &policies.tools_allowed);
    w.field("network_allowed", &policies.network_allowed);
    w.field("filesystem_write_allowed", &policies.filesystem_write_allowed);
    w.field("side_effects_allowed", &policies.side_effects_allowed);
    w.field("code_execution_allowed", &policies.code_execution_allowed);
}

fn overflow(w: &mut Writer<'_>, overflow: &Overflow) {
    w.field("enabled", &overflow.enabled);
    w.field("recoverable", &overflow.recoverable);
    w.field("max_items", &overflow.max_items);
    w.field("require_suggested_mapping", &overflow.require_suggested_mapping);
}

fn enums(w: &mut Writer<'_>, enums: &Enums) {
    w.field("strategy", enums.strategy.as_str());
    w.field("unknown_tag", &enums.unknown_tag);
}

/// Writes the small sections: tools, failure, requirements, compat, meta, invocation.
fn write_rules(w: &mut Writer<'_>, manifest: &Manifest) {
    w.key("tools").object(|w| {
        let by_default = if manifest.tools.allow_by_default { "allow_by_default" } else { "deny_by_default" };
        w.field("policy", by_default);
        w.field("allowed", &manifest.tools.allowed);
        w.field("denied", &manifest.tools.denied);
    });
    w.key("failure").object(|w| {
        w.field("partial_allowed", &manifest.failure.partial_allowed);
        w.field("must_return_error_schema", &manifest.failure.must_return_error_schema);
    });
    w.key("runtime_requirements").object(|w| {
        w.field("structured_output", &manifest.requirements.structured_output);
        w.optional("max_input_tokens", &manifest.requirements.max_input_tokens);
        w.field("preferred_capabilities", &manifest.requirements.preferred_capabilities);
    });
    w.key("compat").object(|w| {
        w.field("accepts_v21_payload", &manifest.compat.accepts_v21_payload);
        w.field("accepts_v22_payload", &manifest.compat.accepts_v22_payload);
        w.field("runtime_auto_wrap", &manifest.compat.runtime_auto_wrap);
        w.field("schema_output_alias", &manifest.compat.schema_output_alias);
    });
    w.key("meta").object(|w| {
        w.field("risk_rule", manifest.risk_rule.as_str());
    });
    w.key("invocation").object(|w| {
        w.field("user_invocable", &manifest.invocation.user_invocable);
        w.field("agent_invocable", &manifest.invocation.agent_invocable);
    });
}

fn constraints(w: &mut Writer<'_>, constraints: &Constraints) {
    w.field("no_network", &constraints.no_network);
    w.field("no_side_effects", &constraints.no_side_effects);
    w.field("no_inventing_data", &constraints.no_inventing_data);
    w.field("require_confidence", &constraints.require_confidence);
    w.field("require_rationale", &constraints.require_rationale);
    w.optional(
        "behavior_equivalence_false_max_confidence",
        &constraints.behavior_equivalence_false_max_confidence,
    );
}

fn generation(w: &mut Writer<'_>, generation: &Generation) {
    w.optional("temperature", &generation.temperature);
    w.optional("max_tokens", &generation.max_tokens);
    w.optional("seed", &generation.seed);
    w.field("stop", &generation.stop);
    w.optional("effort", &generation.effort);
    w.optional("verbosity", &generation.verbosity);
    w.optional("service_tier", &generation.service_tier);
    w.optional("ask", &generation.ask.map(Ask::as_str));
}

fn response(w: &mut Writer<'_>, response: &Response, tier: Option<Tier>) {
    w.field("mode", response.mode.as_str());
    w.field("chunk_type", response.chunk_type.as_str());
    w.field("buffer_size", &response.buffer_size);
    w.optional("on_violation", &response.on_violation.map(|it| it.as_str()));
    w.field("max_attempts", &response.attempts(tier));
}

fn modalities(w: &mut Writer<'_>, modalities: &Modalities) {
    w.field("input", &modalities.input);
    w.field("output", &modalities.output);
    section(w, "constraints", &modalities.constraints, media);
}

fn media(w: &mut Writer<'_>, media: &MediaConstraints) {
    w.optional("max_size_mb", &media.max_size_mb);
    w.optional("max_dimension", &media.max_dimension);
    w.optional("min_dimension", &media.min_dimension);
    w.optional("max_pixels", &media.max_pixels);
    w.optional("max_duration_s", &media.max_duration_s);
    w.optional("max_items", &media.max_items);
    w.field("strip_metadata", &media.strip_metadata);
}

fn write_error_codes(w: &mut Writer<'_>, manifest: &Manifest) {
    if manifest.error_codes.is_empty() {
        return;
    }
    w.key("error_codes").object(|w| {
        for (code, meaning) in &manifest.error_codes {
            w.field(code, meaning);
        }
    });
}
