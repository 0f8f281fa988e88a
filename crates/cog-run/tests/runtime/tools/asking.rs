//! Tools that ask the model of the run, and that report their progress.

use cog_run::{
    Budget, BudgetLimits, Generation, RunOptions,
    provider::{Conversation, FinishReason, Message, ModelEvent, Usage},
    tools::{ToolContext, ToolError},
};
use cog_spec::{Chunk, Progress};
use futures_util::StreamExt as _;
use serde_json::json;

use super::script::{Setup, answer, calls, info, results};
use crate::support::code;

/// Returns a reply with its tokens.
fn reply(text: &str, input_tokens: u64) -> Vec<ModelEvent> {
    let usage = Usage { input_tokens, output_tokens: 1, ..Usage::default() };
    let text = ModelEvent::Text(text.to_owned());
    vec![text, ModelEvent::Usage(usage), ModelEvent::Finished(FinishReason::Stop)]
}

/// Asks the model so often, and returns its last answer.
async fn ask(context: &ToolContext, times: usize) -> Result<String, ToolError> {
    let model = context.model.as_ref().unwrap();
    let mut last = String::new();
    for _ in 0..times {
        let messages = Conversation::new([Message::user("How many?")]);
        let generation = Generation { max_tokens: Some(5), ..Generation::default() };
        last = model.ask(messages, generation).await?.text;
    }
    Ok(last)
}

fn asking(times: usize, replies: usize) -> Setup {
    let mut requested = calls(&[("c", "again", "{}")]);
    requested.insert(0, ModelEvent::Usage(Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() }));
    let answers = (0..replies).map(|_| reply("seven", 100));
    let replies = [requested].into_iter().chain(answers).chain([answer()]);
    let tool = info("again").function(move |_, context| async move { ask(&context, times).await });
    Setup::new(&["again"], replies).tool(tool)
}

#[tokio::test]
async fn model_of_the_run_answers_and_its_tokens_count() {
    let setup = asking(2, 2);
    let envelope = setup.run().await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(results(&setup)[0].1, json!({ "status": "success", "result": "seven" }));
    let requests = setup.provider.requests();
    assert_eq!(requests[1].messages.messages(), [Message::user("How many?")], "nothing of the run is in it");
    assert!(requests[1].tools.is_none() && requests[1].output.is_none());
    assert_eq!(requests[1].generation.max_tokens, Some(5));
    assert_eq!(envelope.meta.runtime.usage.unwrap().input_tokens, 210);
}

#[tokio::test]
async fn questions_of_a_call_have_a_limit() {
    let setup = asking(11, 10);
    let envelope = setup.run().await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let result = &results(&setup)[0].1;
    assert_eq!((&result["code"], setup.provider.requests().len()), (&json!("E2003"), 12), "{result}");
    assert_eq!(envelope.meta.runtime.usage.unwrap().input_tokens, 1_010, "tokens of a call that fails count");
}

#[tokio::test]
async fn questions_are_within_the_budgets_of_the_run() {
    let mut setup = asking(2, 2);
    let budget = Budget::new("test", BudgetLimits { max_calls: Some(2), ..BudgetLimits::default() });
    let options = RunOptions { budgets: vec![budget], ..RunOptions::default() };
    let envelope = setup.run_with(options).await;
    assert_eq!(code(&envelope), Some("E4002"));
    assert_eq!(setup.provider.requests().len(), 2, "the round and one question");
    setup = asking(2, 1);
    setup.limits.max_tokens = Some(50);
    let envelope = setup.run().await;
    assert_eq!(setup.provider.requests().len(), 3, "one question spends what is allowed: {envelope:?}");
}

#[tokio::test]
async fn reports_of_a_call_are_progress_of_the_run() {
    let tool = info("again").function(async |_, context: ToolContext| {
        (0..1_000).for_each(|number| context.progress.report(&format!("{number}\u{1b} of 1000")));
        Ok("done")
    });
    let requested = calls(&[("c", "again", "{}")]);
    let setup = Setup::new(&["again"], [requested, answer()]).tool(tool);
    let chunks: Vec<Chunk> = setup.stream(RunOptions::default()).collect().await;
    let reports = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Progress(Progress { stage, message: Some(message), tool: Some(tool), .. })
            if stage.as_deref() == Some("tool_call") =>
        {
            Some((tool.as_str(), message.as_str()))
        }
        _ => None,
    });
    let reports: Vec<_> = reports.collect();
    assert_eq!(reports[0], ("again", "0 of 1000"));
    assert!(reports.len() < 100, "reports that follow each other too quickly are dropped: {}", reports.len());
}
