//! Adds to a complete reply what is not in its text, before it is checked.

use std::sync::Arc;

use cog_answer::PendingReply;
use cog_spec::ErrorBody;

use super::Driver;
use crate::media::GeneratedMedia;

impl Driver {
    /// Adds generated media to the answer, and to its rules the media that its citations name.
    pub(super) async fn complete(
        &mut self,
        pending: &mut PendingReply,
        generated: Vec<GeneratedMedia>,
    ) -> Result<(), ErrorBody> {
        let (sink, cited) = (Arc::clone(&self.run.media_sink), self.cited.clone());
        self.within_deadline(async {
            sink.add_to(pending, generated).await?;
            if let Some(cited) = cited {
                cited.add_to(pending).await;
            }
            Ok(())
        })
        .await
    }
}
