//! A program outside this workspace: its own module, its own provider, its own types, and those of `cog types`.
//! `cargo xtask outside` runs it.

mod modules;

use std::{error::Error, sync::Arc};

use cog_run::provider::{ModelRequest, ProviderError, from_fn};
use cog_run::{Module, RunInput, RunOptions, Runtime};
use modules::text_writer;
use serde::{Deserialize, Serialize};

const MANIFEST: &str = "name: router\nversion: 1.0.0\nresponsibility: Routes a ticket\ntier: exploration\n";
const SCHEMA: &str = r#"{"input": {"required": ["text"], "properties": {"text": {"type": "string"}}}, "meta": {},
    "data": {"required": ["queue", "rationale"], "properties": {"queue": {"enum": ["billing", "other"]}}}}"#;
#[derive(Serialize)]
struct Ticket<'a> {
    text: &'a str,
}

#[derive(Deserialize)]
struct Route {
    queue: String,
}

/// A model that looks for one word.
async fn keyword(request: ModelRequest) -> Result<String, ProviderError> {
    let found = request.messages.messages().iter().any(|message| message.text().contains("refund"));
    let queue = if found { "billing" } else { "other" };
    let meta = r#"{"confidence": 1, "risk": "none", "explain": "By keyword."}"#;
    let data = format!(r#"{{"queue": "{queue}", "rationale": "The keyword is refund."}}"#);
    Ok(format!(r#"{{"ok": true, "meta": {meta}, "data": {data}}}"#))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder().provider(from_fn("keyword", "refund", keyword)).build()?;
    let module = Arc::new(Module::from_parts(MANIFEST, "Choose a queue for: $INPUT", SCHEMA)?);
    let input = RunInput::json(&Ticket { text: "I want a refund." })?;
    let route: Route = runtime.run(&module, input, RunOptions::default()).await.data_as()?;
    println!("{}", route.queue);

    // Offline, the answer is a sample.
    let input = text_writer::Input { brief: "We close at six.".to_owned(), draft: None, problems: None };
    let answer = text_writer::run(&Runtime::offline(), &input, RunOptions::default()).await?;
    assert!(!answer.rationale.is_empty());
    Ok(println!("written"))
}
