//! A run that is ready to be asked.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use cog_answer::AnswerRules;
use cog_media::Processed;
use cog_provider::{ModelRequest, Provider};
use cog_spec::ErrorBody;

use crate::{
    Cancellation, error,
    input::CheckedInput,
    media::{self, MediaSink, Sources},
    prompt,
    request::RequestSpec,
};

/// A run that nothing stands in the way of any more, but for the model.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    /// What the answer is held to.
    pub(crate) rules: AnswerRules,
}

/// Whom to ask, what, and for how long.
pub(crate) struct Plan {
    /// Who is asked first.
    pub(crate) provider: Arc<dyn Provider>,
    /// Who is asked where that one gives no answer, in order.
    pub(crate) others: VecDeque<Arc<dyn Provider>>,
    pub(crate) question: RequestSpec,
    /// The question, as the provider is asked it.
    pub(crate) request: ModelRequest,
    /// What is to be opened before anybody is asked.
    pub(crate) media: Option<Sources>,
    /// What becomes of media that the model makes.
    pub(crate) makes: Arc<MediaSink>,
    pub(crate) timeout: Duration,
    pub(crate) stop: Cancellation,
}

impl Plan {
    /// Puts the media of the input into the question.
    ///
    /// # Errors
    /// What the provider cannot take.
    pub(crate) async fn show(
        &mut self,
        input: &CheckedInput,
        all: Vec<Processed>,
    ) -> Result<Vec<Processed>, ErrorBody> {
        let encode = move || (media::parts_of(&all), all);
        let encoded = tokio::task::spawn_blocking(encode).await;
        let (parts, all) = encoded.map_err(|error| error::of_task(&error))?;
        let parts = parts.map_err(|error| ErrorBody::from(&error))?;
        let RequestSpec { module, compiled, .. } = &self.question;
        self.request.messages = prompt::conversation(module, compiled, input, parts)?;
        self.provider.check(&self.request).map_err(|error| ErrorBody::from(&error))?;
        Ok(all)
    }
}
