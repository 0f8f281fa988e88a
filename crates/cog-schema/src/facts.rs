use crate::contract::{Contract, Part};
use crate::shape::Id;

/// What the checks ask of the schemas again and again, found out once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    /// An answer without a rationale fails (ruling R30).
    pub(crate) requires_rationale: bool,
    /// The schema of the data names the rationale.
    pub(crate) names_rationale: bool,
    /// The schema of the data names `extensions`.
    pub(crate) names_extensions: bool,
    /// It names `extensions.insights`, and so is to see them.
    pub(crate) names_insights: bool,
    /// The schema of the meta names `risk`, and so decides which words there are.
    pub(crate) names_risk: bool,
}

impl Contract {
    /// Whether the data have a rationale: because it is due, or because the schema names it.
    pub fn takes_rationale(&self) -> bool {
        self.facts.requires_rationale || self.facts.names_rationale
    }
}

impl Facts {
    pub(crate) fn new(contract: &Contract) -> Self {
        let named = |part: &Option<Part>, key: &str| -> Vec<Id> {
            let shape = part.as_ref().map(|part| part.shape);
            shape.map(|id| contract.shapes.members(id, key)).unwrap_or_default()
        };
        let data = contract.data.as_ref().map(|part| part.shape);
        let is_due = contract.rules.format.asks_for_envelope() || contract.rules.require_rationale;
        let extensions = named(&contract.data, "extensions");
        Self {
            requires_rationale: is_due || data.is_some_and(|data| contract.requires(data, "rationale")),
            names_rationale: !named(&contract.data, "rationale").is_empty(),
            names_insights: extensions.iter().any(|id| !contract.shapes.members(*id, "insights").is_empty()),
            names_extensions: !extensions.is_empty(),
            names_risk: !named(&contract.meta, "risk").is_empty(),
        }
    }
}
