//! Checks of the program, and messages before the input.

use std::sync::Arc;

use cog_harmony::{Message, Role};
use cog_json::Value;
use cog_run::{AnswerCheck, CheckFuture, CheckViolation, Code, Envelope, ErrorBody, RunOptions, ToJson as _};

use super::support::{ANSWER, Scripted, code, directory, runtime_with, sample_input};

const SHORT: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
    "data": {"result": "no", "rationale": "because"}, "error": null}"#;

/// Requires a result of so many letters; a longer one than 5 is an error of the check itself.
struct Length(usize);

impl AnswerCheck for Length {
    fn check<'a>(&'a self, data: &'a Value) -> CheckFuture<'a> {
        Box::pin(async move {
            let result = data.get("result").and_then(|result| result.as_str()).unwrap_or_default();
            if self.0 > 5 {
                return Err(ErrorBody::new(Code::InternalError, "the check failed"));
            }
            let violation = CheckViolation {
                path: "data.result".to_owned(),
                message: format!("`{result}` needs {} letters", self.0),
            };
            Ok((result.len() != self.0).then_some(violation).into_iter().collect())
        })
    }
}

async fn run(
    replies: &[&str],
    length: usize,
    options: RunOptions,
) -> (Envelope, Vec<cog_provider::ModelRequest>) {
    let directory = directory("Answer.", &[]);
    let provider = Scripted::replying_in_turn(replies.iter().copied());
    let (provider, runtime, module) = runtime_with(provider, &directory);
    let options = RunOptions { checks: vec![Arc::new(Length(length))], ..options };
    let envelope = runtime.run(&module, sample_input(), options).await;
    let requests = provider.requests();
    (envelope, requests)
}

#[tokio::test]
async fn rejected_answer_is_requested_again_with_the_reason() {
    let (envelope, requests) = run(&[SHORT, ANSWER], 4, RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.meta.runtime.attempts, Some(2));
    let feedback = requests[1].messages.messages().last().unwrap().text();
    assert!(feedback.contains("- `data.result` (check): `no` needs 4 letters"), "{feedback}");
}

#[tokio::test]
async fn last_answer_fails_with_the_reason_and_its_data() {
    let (envelope, requests) = run(&[SHORT], 4, RunOptions::default()).await;
    assert_eq!((code(&envelope), requests.len()), (Some("E3006"), 2));
    let text = envelope.to_json();
    assert!(
        text.contains("`no` needs 4 letters") && text.contains(r#""partial_data":{"result":"no""#),
        "{text}"
    );
    let once = RunOptions { max_attempts: Some(1), ..RunOptions::default() };
    assert_eq!(run(&[SHORT], 4, once).await.1.len(), 1);
}

#[tokio::test]
async fn check_that_fails_ends_the_run() {
    let (envelope, requests) = run(&[ANSWER], 6, RunOptions::default()).await;
    assert_eq!((code(&envelope), requests.len()), (Some("E4000"), 1));
}

#[tokio::test]
async fn messages_stand_between_the_prompt_and_the_input() {
    let messages = vec![Message::user("2 + 2"), Message::assistant("4")];
    let (_, requests) = run(&[ANSWER], 4, RunOptions { messages, ..RunOptions::default() }).await;
    let roles: Vec<Role> = requests[0].messages.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    assert_eq!(requests[0].messages.messages()[1].text(), "2 + 2");
}
