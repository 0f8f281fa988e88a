//! Runs a module on a custom provider: `cargo run -p cog-run --example provider`.
#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use std::error::Error;

use cog_run::{Envelope, RunInput, RunOptions, Runtime, provider};

const ANSWER: &str = r#"{"ok": true,
    "meta": {"confidence": 0.95, "risk": "none", "explain": "It is fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "Nothing to change."}}"#;

async fn review() -> Result<Envelope, Box<dyn Error>> {
    let approver = provider::from_fn("approver", "approver-1", async |_| Ok(ANSWER));
    let runtime = Runtime::builder().provider(approver).build()?;
    let module = runtime.load("code-reviewer")?;
    Ok(runtime.run(&module, RunInput::text("fn main() {}"), RunOptions::default()).await.into_result()?)
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
