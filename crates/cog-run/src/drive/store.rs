//! Stores what a successful answer leaves for later runs.

use cog_spec::Chunk;

use super::Driver;

impl Driver {
    /// Stores the emitted context of a successful answer, before a reader sees the answer: its next run may read the context.
    pub(super) async fn store(&mut self, last: &mut [Chunk]) {
        let Some(Chunk::Final { data, emitted_context, warnings, .. }) = last.last_mut() else { return };
        let Some(sink) = self.run.context.take().filter(|sink| sink.is_needed()) else { return };
        let (emitted, data) = (emitted_context.clone(), data.clone());
        let stored = tokio::task::spawn_blocking(move || sink.add(emitted.as_ref(), &data)).await;
        warnings.extend(stored.unwrap_or_default());
    }
}
