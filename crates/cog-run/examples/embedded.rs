//! Runs a module that is embedded in the program: `cargo run -p cog-run --example embedded`.
#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use std::{error::Error, sync::Arc};

use cog_run::{ModuleFiles, RunInput, RunOptions, Runtime};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Ticket<'a> {
    text: &'a str,
}

#[derive(Debug, Deserialize)]
struct Route {
    queue: String,
}

async fn route(text: &str) -> Result<Route, Box<dyn Error>> {
    let module = ModuleFiles::default()
        .with("module.yaml", include_str!("embedded/module.yaml"))
        .with("prompt.md", include_str!("embedded/prompt.md"))
        .with("schema.json", include_str!("embedded/schema.json"))
        .with("tests/refund.input.json", r#"{"text": "I want my money back."}"#)
        .with("tests/refund.expected.json", r#"{"queue": "billing", "rationale": "It is about money."}"#)
        .load()?;
    let runtime = Runtime::offline();
    let envelope =
        runtime.run(&Arc::new(module), RunInput::json(&Ticket { text })?, RunOptions::default()).await;
    Ok(envelope.data_as()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", route("I want my money back.").await?.queue);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn golden_answer_of_the_embedded_module_is_returned() {
        assert_eq!(super::route("I want my money back.").await.unwrap().queue, "billing");
    }
}
