use cog_json::{Array, ToJson, Writer};
use cog_provider::ListedModel;

/// The models that a provider lists, and the one that runs call.
pub(super) struct Models {
    /// The name of the model that runs call; empty if there is none.
    called: String,
    listed: Vec<ListedModel>,
}

impl Models {
    pub(super) fn new(called: &str, listed: Vec<ListedModel>) -> Self {
        Self { called: called.to_owned(), listed }
    }

    /// Returns the number of models, and whether the called one is missing, for the table.
    pub(super) fn status(&self) -> String {
        let count = match self.listed.len() {
            1 => "1 model".to_owned(),
            count => format!("{count} models"),
        };
        if self.is_missing() {
            format!("ok, {count}, but not {}", self.called)
        } else {
            format!("ok, {count}")
        }
    }

    /// Returns the names, for one line.
    pub(super) fn names(&self) -> String {
        self.listed.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Returns what the list contains about the called model and about models that will be shut down, one per line.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if self.is_missing() {
            facts.push(format!(
                "{} is not in the provider's list; choose a model with --model or LLM_MODEL",
                self.called
            ));
        }
        facts.extend(self.called().and_then(facts_of));
        let retiring = self.retiring();
        if !retiring.is_empty() {
            let lines = retiring.iter().map(|(name, date)| format!("{name} ({date})"));
            facts.push(format!("retiring: {}", lines.collect::<Vec<_>>().join(", ")));
        }
        facts
    }

    fn called(&self) -> Option<&ListedModel> {
        self.listed.iter().find(|model| model.name == self.called).or_else(|| {
            let mut named = self.listed.iter().filter(|model| model.is_named(&self.called));
            named.next().filter(|_| !self.called.is_empty())
        })
    }

    /// Returns whether the provider lists models, but not the called one.
    fn is_missing(&self) -> bool {
        !self.called.is_empty() && !self.listed.is_empty() && self.called().is_none()
    }

    /// Returns the models with a date from which they are not available, the earliest first.
    fn retiring(&self) -> Vec<(&str, &str)> {
        let dated =
            self.listed.iter().filter_map(|model| Some((model.name.as_str(), model.retires_at.as_deref()?)));
        let mut dated: Vec<_> = dated.collect();
        dated.sort_by_key(|(_, date)| *date);
        dated
    }
}

/// Returns the facts about the called model in one line, if there are any.
fn facts_of(model: &ListedModel) -> Option<String> {
    let supported =
        (!model.capabilities.is_empty()).then(|| format!("supports {}", model.capabilities.join(", ")));
    let facts = [
        model.max_input_tokens.map(|count| format!("{count} input tokens")),
        model.max_output_tokens.map(|count| format!("{count} output tokens")),
        model.lifecycle.clone(),
        model.retires_at.as_ref().map(|date| format!("not available from {date}")),
        supported,
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| format!("{}: {}", model.name, facts.join("; ")))
}

impl Models {
    /// Writes the members for JSON.
    pub(super) fn write_members(&self, w: &mut Writer<'_>) {
        let names: Vec<&str> = self.listed.iter().map(|model| model.name.as_str()).collect();
        w.field("models", &Array(&names));
        w.field("model_listed", &!self.is_missing());
        w.optional("model_facts", &self.called().map(Facts));
        let retiring: Vec<&ListedModel> =
            self.listed.iter().filter(|model| model.retires_at.is_some()).collect();
        let retiring: Vec<Facts<'_>> = retiring.into_iter().map(Facts).collect();
        w.field("retiring", &Array(&retiring));
    }
}

/// A model as JSON.
struct Facts<'a>(&'a ListedModel);

/// Written by hand: the type is not serializable.
impl ToJson for Facts<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let model = self.0;
        w.object(|w| {
            w.field("name", &model.name);
            w.optional("max_input_tokens", &model.max_input_tokens);
            w.optional("max_output_tokens", &model.max_output_tokens);
            w.optional("lifecycle", &model.lifecycle);
            w.optional("retires_at", &model.retires_at);
            w.field("capabilities", &model.capabilities);
        });
    }
}
