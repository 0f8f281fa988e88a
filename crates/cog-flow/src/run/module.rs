//! A composition as the runtime sees it.

use std::{sync::Arc, time::Duration};

use cog_run::composition::{ComposedModule, Parts, PartsFuture};

use super::{composed::Composed, execution::Execution};
use crate::Answer;

impl ComposedModule for Composed {
    fn uses_own_prompt(&self) -> bool {
        let plan = self.plan();
        plan.answer == Answer::OwnPrompt
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.plan().timeout)
    }

    fn run(self: Arc<Self>, parts: Parts) -> PartsFuture {
        Box::pin(Execution::new(self, parts).run())
    }
}
