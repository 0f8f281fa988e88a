use cog_json::Node;

/// A model in a vendor's list, with the facts that the list contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name, as requests contain it.
    pub name: String,
    /// The maximum number of input tokens.
    pub max_input_tokens: Option<u64>,
    /// The maximum number of output tokens.
    pub max_output_tokens: Option<u64>,
    /// The vendor's name for its state: `active`, `deprecated`, `retired`.
    pub lifecycle: Option<String>,
    /// The date from which it is not available, `2026-12-11`: from the list, otherwise from the vendor's row.
    pub retires_at: Option<String>,
    /// What it supports, as the vendor names it: `image_input`, `structured_outputs`. Empty if the list does not say.
    pub capabilities: Vec<String>,
}

impl ListedModel {
    /// Creates a model of which only the name is known.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Reads a model of Anthropic's list.
    pub(crate) fn from_anthropic(model: Node<'_>) -> Option<Self> {
        let text = |key| model.get(key).and_then(Node::as_str);
        let capabilities = model.get("capabilities").into_iter().flat_map(Node::members);
        let is_supported = |value: Node<'_>| value.get("supported").and_then(Node::as_bool) == Some(true);
        let supported = capabilities.filter(|(_, value)| is_supported(*value));
        Some(Self {
            max_input_tokens: model.get("max_input_tokens").and_then(Node::as_u64),
            max_output_tokens: model.get("max_tokens").and_then(Node::as_u64),
            lifecycle: text("lifecycle").map(str::to_owned),
            retires_at: text("retires_at").and_then(|at| at.get(..DATE_LENGTH)).map(str::to_owned),
            capabilities: supported.map(|(name, _)| name.to_owned()).collect(),
            ..Self::named(text("id")?)
        })
    }

    /// Returns whether a name means this model: its name, without a tag, a version or the part before a slash.
    pub fn is_named(&self, name: &str) -> bool {
        let rest = self.name.strip_prefix(name);
        let is_version = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '-', '@']));
        is_version || self.name.rsplit('/').next() == Some(name)
    }
}

/// The length of a date, `2026-12-11`.
const DATE_LENGTH: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_with_tags_versions_and_owners() {
        let is_named = |listed: &str, name: &str| ListedModel::named(listed).is_named(name);
        assert!(
            is_named("qwen3:latest", "qwen3") && is_named("claude-sonnet-5-5-20260901", "claude-sonnet-5-5")
        );
        assert!(is_named("gpt-6-luna", "gpt-6-luna") && is_named("openai/gpt-6-luna", "gpt-6-luna"));
        assert!(
            !is_named("gpt-6-luna", "gpt-6-lun")
                && !is_named("qwen", "qwen3")
                && !is_named("qwen30", "qwen3")
        );
    }

    #[test]
    fn reads_what_anthropic_lists() {
        let text = r#"{"id": "claude-x", "max_input_tokens": 200000, "max_tokens": 64000, "lifecycle": "deprecated",
            "retires_at": "2027-02-01T00:00:00Z", "capabilities": {"image_input": {"supported": true},
            "pdf_input": {"supported": false}, "effort": {"supported": true, "low": {"supported": true}}}}"#;
        let model = ListedModel::from_anthropic(cog_json::Value::parse(text).unwrap().node()).unwrap();
        assert_eq!((model.max_input_tokens, model.max_output_tokens), (Some(200_000), Some(64_000)));
        assert_eq!(
            (model.lifecycle.as_deref(), model.retires_at.as_deref()),
            (Some("deprecated"), Some("2027-02-01"))
        );
        assert_eq!(model.capabilities, ["image_input", "effort"]);
    }
}
