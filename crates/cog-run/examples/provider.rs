//! Runs a module on a custom provider: `cargo run -p cog-run --example provider`.
#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use std::{error::Error, sync::Arc};

use cog_run::provider::{
    Dialect, FinishReason, Modality, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderError,
    WireRequest, reply,
};
use cog_run::{Envelope, RunInput, RunOptions, Runtime};

/// Approves every input.
struct Approver;

const ANSWER: &str = r#"{"ok": true,
    "meta": {"confidence": 0.95, "risk": "none", "explain": "It is fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "Nothing to change."}}"#;

impl Provider for Approver {
    fn name(&self) -> &str {
        "approver"
    }
    fn model(&self) -> &str {
        "approver-1"
    }
    fn dialect(&self) -> Dialect {
        Dialect::Prompt
    }
    fn modalities(&self) -> &[Modality] {
        &[Modality::Text]
    }
    fn render(&self, _: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        Ok(None)
    }
    fn ask<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async {
            Ok(reply([ModelEvent::Text(ANSWER.to_owned()), ModelEvent::Finished(FinishReason::Stop)]))
        })
    }
}

async fn review() -> Result<Envelope, Box<dyn Error>> {
    let runtime = Runtime::builder().provider(Arc::new(Approver)).build();
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
