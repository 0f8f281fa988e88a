//! The calls in flight: they start within the limits, end, and are cancelled.

use std::{sync::Arc, time::Duration};

use cog_run::CancelReason;
use cog_spec::{PartReport, PartStatus};
use futures_util::StreamExt as _;
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::Execution;
use crate::{
    Plan,
    run::call::{Call, Ended},
};

/// The maximum time in which cancelled calls report their tokens. They end at once, unless they are writing a file.
const STOP_TIME: Duration = Duration::from_secs(1);

impl Execution {
    /// Starts the calls of the queue within the limits, and returns the next call that ends; none if none runs.
    pub(super) async fn next_ended(&mut self) -> Option<Ended> {
        loop {
            self.fill();
            if self.next_call().is_none() {
                return self.running.next().await;
            }
            let slots = Arc::clone(&self.context.slots);
            tokio::select! {
                biased;
                Some(ended) = self.running.next() => return Some(ended),
                slot = slots.acquire_owned() => self.start_next(slot.ok()),
            }
        }
    }

    /// Starts calls until one has to wait for a slot.
    fn fill(&mut self) {
        while let Some(call) = self.next_call() {
            let slot = match self.context.needs_slot(call) {
                true => match Arc::clone(&self.context.slots).try_acquire_owned() {
                    Ok(slot) => Some(slot),
                    Err(_) => return,
                },
                false => None,
            };
            self.start_next(slot);
        }
    }

    /// Returns the next call of the queue, unless too many run. Once a part waits for a confirmation, no other one starts.
    fn next_call(&self) -> Option<&Call> {
        let may_start = self.halted.is_empty() && self.running.len() < self.context.composed.max_parallel();
        self.queue.front().filter(|_| may_start)
    }

    fn start_next(&mut self, slot: Option<OwnedSemaphorePermit>) {
        let Some(call) = self.queue.pop_front() else { return };
        let mut report = PartReport::new(&call.path, &call.name, PartStatus::Running);
        report.version = call.module.as_ref().map(|module| module.manifest.version.clone());
        self.reports.start(report);
        self.send_status(&call.path, PartStatus::Running);
        let context = Arc::clone(&self.context);
        self.running.push(Box::pin(async move {
            let _slot = slot;
            context.run(call).await
        }));
    }

    /// Cancels the calls that run, and waits until they have reported their tokens.
    pub(super) async fn stop(&mut self, plan: &Plan, reason: CancelReason) {
        self.context.parts.cancellation.cancel(reason);
        let ended = async {
            while let Some(ended) = self.running.next().await {
                self.record(plan, &ended);
                self.keep(ended);
            }
        };
        let _ = timeout(STOP_TIME, ended).await;
        self.running.clear();
    }
}
