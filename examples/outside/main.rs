//! A program outside this workspace: its own module, its own provider, its own types, and those of `cog types`.
//! `cargo xtask outside` runs it.

mod modules;

use std::{error::Error, sync::Arc};

use cog_run::provider::{
    FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo,
    WireRequest, reply,
};
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

struct Keyword(ProviderInfo);

impl Provider for Keyword {
    fn info(&self) -> &ProviderInfo {
        &self.0
    }
    fn render(&self, _: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        Ok(None)
    }
    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let keyword = &*self.0.model;
        let found = request.messages.messages().iter().any(|message| message.text().contains(keyword));
        let queue = if found { "billing" } else { "other" };
        let meta = r#"{"confidence": 1, "risk": "none", "explain": "By keyword."}"#;
        let data = format!(r#"{{"queue": "{queue}", "rationale": "The keyword is {keyword}."}}"#);
        let text = format!(r#"{{"ok": true, "meta": {meta}, "data": {data}}}"#);
        Box::pin(async { Ok(reply([ModelEvent::Text(text), ModelEvent::Finished(FinishReason::Stop)])) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder().provider(Arc::new(Keyword(ProviderInfo::new("keyword", "refund")))).build();
    let module = Arc::new(Module::from_parts(MANIFEST, "Choose a queue for: $INPUT", SCHEMA)?);
    let input = RunInput::json(&Ticket { text: "I want a refund." })?;
    let route: Route = runtime.execute(&module, input, RunOptions::new()).await.data_as()?;
    println!("{}", route.queue);

    // Without a provider, the answer is a sample.
    let input = text_writer::Input { brief: "We close at six.".to_owned(), draft: None, problems: None };
    let answer = text_writer::run(&Runtime::builder().build(), &input, RunOptions::new()).await?;
    assert!(!answer.rationale.is_empty());
    Ok(println!("written"))
}
