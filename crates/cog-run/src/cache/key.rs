use cog_json::ToJson as _;
use cog_module::Module;
use cog_provider::{ModelRequest, Provider};
use cog_spec::Modality;
use sha2::{Digest as _, Sha256};

use crate::{RunOptions, input::CheckedInput};

/// The form of keys. Another version of this program may check answers in another way.
const VERSION: &str = concat!("cog-cache-1 ", env!("CARGO_PKG_VERSION"));

/// Returns the key of the answer to a request: the hash of the module, the input with its context, the messages, the provider
/// with its URL, the model, the settings, and who runs the module. None if the answer must not be cached.
pub(super) fn cache_key(
    module: &Module,
    input: &CheckedInput,
    (provider, request): (&dyn Provider, &ModelRequest),
    options: &RunOptions,
) -> Option<String> {
    if !is_cacheable(module, input, request, options) {
        return None;
    }
    let info = provider.info();
    let (url, body) = match provider.render(request).ok()? {
        Some(wire) => (wire.url, String::from_utf8_lossy(&wire.body).into_owned()),
        None => Default::default(),
    };
    let schema = request.output.as_ref().and_then(|output| output.schema.as_ref());
    Some(hash(&[
        VERSION.to_owned(),
        info.name.clone().into_owned(),
        info.model_or_default(&request.model).to_owned(),
        url,
        body,
        format!("{:?}", module.manifest),
        module.schema.to_string(),
        input.node().to_json(),
        request.messages.to_json(),
        schema.map(ToString::to_string).unwrap_or_default(),
        format!("{:?}", request.generation),
        settings(options),
    ]))
}

/// Returns the options that decide about an answer and are not part of the request.
fn settings(options: &RunOptions) -> String {
    let rules = (options.strict, options.risk, options.on_violation, options.max_attempts);
    format!("{:?}", (rules, &options.handoff_to, options.caller, &options.owner))
}

/// Whether an answer depends only on what a key contains, and may be used again.
fn is_cacheable(module: &Module, input: &CheckedInput, request: &ModelRequest, options: &RunOptions) -> bool {
    let manifest = &module.manifest;
    let is_allowed = manifest.may_be_cached() && !options.is_uncached;
    let makes_media = manifest.modalities.output.iter().any(|kind| *kind != Modality::Text);
    let is_new = options.continuation.is_none() && options.resume_from.is_none();
    let opens_files = !input.media().is_empty() || !input.text_artifacts().is_empty();
    is_allowed && is_new && !makes_media && !opens_files && request.tools.is_none()
}

/// Returns the SHA-256 of texts and their lengths in hexadecimal.
pub(super) fn hash<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
