//! A program outside this workspace: its own module, its own provider, its own types. `cargo xtask outside` runs it.

use std::{error::Error, sync::Arc};

use cog_run::provider::{
    Dialect, FinishReason, Modality, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderError,
    WireRequest, reply,
};
use cog_run::{Module, RunInput, RunOptions, Runtime};
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

struct Keyword(&'static str);

impl Provider for Keyword {
    fn name(&self) -> &str {
        "keyword"
    }
    fn model(&self) -> &str {
        self.0
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
    fn ask<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let found = request.messages.messages().iter().any(|message| message.text().contains(self.0));
        let queue = if found { "billing" } else { "other" };
        let meta = r#"{"confidence": 1, "risk": "none", "explain": "By keyword."}"#;
        let data = format!(r#"{{"queue": "{queue}", "rationale": "The keyword is {}."}}"#, self.0);
        let text = format!(r#"{{"ok": true, "meta": {meta}, "data": {data}}}"#);
        Box::pin(async { Ok(reply([ModelEvent::Text(text), ModelEvent::Finished(FinishReason::Stop)])) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder().provider(Arc::new(Keyword("refund"))).build();
    let module = Arc::new(Module::from_parts(MANIFEST, "Choose a queue for: $INPUT", SCHEMA)?);
    let input = RunInput::json(&Ticket { text: "I want a refund." })?;
    let route: Route = runtime.execute(&module, input, RunOptions::new()).await.data_as()?;
    Ok(println!("{}", route.queue))
}
