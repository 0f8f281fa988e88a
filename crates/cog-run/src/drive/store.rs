//! Stores what a successful answer leaves for later runs.

use cog_spec::Chunk;

use super::Driver;
use crate::clock;

impl Driver {
    /// Stores the emitted context and the reply of a successful answer, before a reader sees the answer: its next run may use
    /// them.
    pub(super) async fn store(&mut self, last: &mut [Chunk]) {
        let Some(Chunk::Final { data, emitted_context, warnings, .. }) = last.last_mut() else { return };
        let sink = self.run.context.take().filter(|sink| sink.is_needed());
        let cache = self.run.cache.take();
        if sink.is_none() && cache.is_none() {
            return;
        }
        let (emitted, data) = (emitted_context.clone(), data.clone());
        let store = move || {
            let not_cached = cache.and_then(|cache| cache.store(clock::now()));
            let not_stored = sink.map(|sink| sink.add(emitted.as_ref(), &data));
            not_cached.into_iter().chain(not_stored.unwrap_or_default()).collect::<Vec<_>>()
        };
        let stored = tokio::task::spawn_blocking(store).await;
        warnings.extend(stored.unwrap_or_default());
    }
}
