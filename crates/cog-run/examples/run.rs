//! Runs a module and reads its answer into a struct: `cargo run -p cog-run --example run`.
#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use std::error::Error;

use cog_run::{RunInput, RunOptions, Runtime};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Review {
    verdict: String,
    rationale: String,
}

async fn review(code: &str) -> Result<Review, Box<dyn Error>> {
    // Offline, a run returns a golden answer or a sample of the schema.
    let runtime = Runtime::offline();
    let module = runtime.load("code-reviewer")?;
    let envelope = runtime.run(&module, RunInput::text(code), RunOptions::default()).await;
    Ok(envelope.data_as()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let review = review("fn main() {}").await?;
    println!("{}: {}", review.verdict, review.rationale);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn answer_has_a_verdict_and_a_rationale() {
        let review = super::review("fn main() {}").await.unwrap();
        assert!(!review.verdict.is_empty() && !review.rationale.is_empty(), "{review:?}");
    }
}
