use cog_harmony::Conversation;
use cog_json::{ToJson, Writer};
use cog_provider::WireRequest;
use cog_schema::Loss;
use cog_spec::{Dialect, ErrorBody};

use crate::{drive::Plan, pipeline::Prepared};

/// What a run would send.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// Who would be asked.
    pub provider: String,
    /// The dialect the schema is told in.
    pub dialect: Dialect,
    /// What that dialect cannot say; all of it is enforced when the answer is checked.
    pub lost: Vec<Loss>,
    /// The messages, in Harmony's form.
    pub messages: Conversation,
    /// The request in the vendor's form, without the key; none where no vendor is asked.
    pub request: Option<WireRequest>,
}

impl Prepared {
    /// What this run would send.
    pub(crate) async fn render(self) -> Result<Rendered, ErrorBody> {
        let mut plan = self.plan;
        if let Some(sources) = plan.media.take() {
            let media = sources.collect().await?;
            plan.show(&sources, &sources.prepare(media).await?)?;
        }
        let Plan { provider, question, request, .. } = plan;
        let wire = provider.render(&request).map_err(|error| ErrorBody::from(&error))?;
        Ok(Rendered {
            provider: provider.name().to_owned(),
            dialect: self.rules.asked,
            lost: question.lost(provider.as_ref()),
            messages: request.messages,
            request: wire,
        })
    }
}

impl ToJson for Rendered {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("provider", &self.provider);
            w.field("dialect", self.dialect.as_str());
            w.field("lost", &self.lost);
            w.field("messages", &self.messages);
            w.optional("request", &self.request);
        });
    }
}
