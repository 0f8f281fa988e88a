//! Runs a module on a custom provider: `cargo run -p cog-run --example provider`.
#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use std::{error::Error, sync::Arc};

use cog_run::provider::{
    FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo, WireRequest,
    reply,
};
use cog_run::{Envelope, RunInput, RunOptions, Runtime};

/// Approves every input.
struct Approver(ProviderInfo);

const ANSWER: &str = r#"{"ok": true,
    "meta": {"confidence": 0.95, "risk": "none", "explain": "It is fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "Nothing to change."}}"#;

impl Provider for Approver {
    fn info(&self) -> &ProviderInfo {
        &self.0
    }
    fn render(&self, _: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        Ok(None)
    }
    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async {
            Ok(reply([ModelEvent::Text(ANSWER.to_owned()), ModelEvent::Finished(FinishReason::Stop)]))
        })
    }
}

async fn review() -> Result<Envelope, Box<dyn Error>> {
    let approver = Approver(ProviderInfo::new("approver", "approver-1"));
    let runtime = Runtime::builder().provider(Arc::new(approver)).build();
    let module = runtime.load("code-reviewer")?;
    Ok(runtime.execute(&module, RunInput::text("fn main() {}"), RunOptions::new()).await.into_result()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let envelope = review().await?;
    println!("{}: {:?}", envelope.meta.explain, envelope.meta.runtime.model);
    Ok(())
}

#[tokio::test]
async fn envelope_names_the_provider_and_its_model() {
    assert_eq!(review().await.unwrap().meta.runtime.model.as_deref(), Some("approver/approver-1"));
}
