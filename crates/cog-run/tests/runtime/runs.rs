//! Single runs, from the input to the envelope.

use std::{sync::Arc, time::Duration};

use cog_run::{Caller, RunInput, RunOptions, Runtime};
use cog_spec::{Chunk, Code, FinishReason, ModelEvent};
use futures_util::StreamExt as _;

use crate::support::{ANSWER, Scripted, asking, code, directory, input, write};

#[tokio::test]
async fn execute_gives_the_checked_envelope() {
    let directory = directory("Answer $query.", &[]);
    let (provider, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    let envelope = runtime.execute(&module, input(r#"{"query": "why?"}"#), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.data().unwrap().get("result").unwrap().as_str(), Some("fine"));
    assert_eq!(envelope.meta.runtime.model.as_deref(), Some("scripted/one"));
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn the_stream_folded_is_what_execute_gives() {
    let directory = directory("Answer.", &[]);
    let (_, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    let question = || input(r#"{"query": "why?"}"#);
    let sync = runtime.execute(&module, question(), RunOptions::default()).await;
    let stream = runtime.execute_stream(&module, question(), RunOptions::default()).unwrap();
    let session = stream.session_id().to_owned();
    let chunks: Vec<Chunk> = stream.collect().await;
    assert!(matches!(&chunks[0], Chunk::Meta { session_id, .. } if *session_id == session));
    assert_eq!(chunks.iter().filter(|chunk| chunk.is_end()).count(), 1);
    assert!(chunks.last().unwrap().is_end());
    let mut folded = cog_answer::fold(chunks);
    folded.meta.runtime.processing_time_ms = sync.meta.runtime.processing_time_ms;
    assert_eq!(folded, sync);
}

#[tokio::test]
async fn an_input_that_does_not_fit_never_reaches_the_model() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    let envelope =
        runtime.execute(&module, input(r#"{"query": 1, "count": "x"}"#), RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E1003"));
    let details = envelope.error().unwrap().details.as_ref().unwrap();
    assert_eq!(details.get("violations").unwrap().len(), 2);
    assert_eq!(provider.requests(), []);
}

#[tokio::test]
async fn two_equal_calls_see_the_same_prompt() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    for _ in 0..2 {
        runtime.execute(&module, input(r#"{"query": "why?"}"#), RunOptions::default()).await;
    }
    let requests = provider.requests();
    assert_eq!(requests[0], requests[1]);
}

#[tokio::test]
async fn placeholders_within_an_input_stay_text() {
    let directory = directory("Say $ARGUMENTS to $INPUT.", &[]);
    let (provider, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    runtime
        .execute(&module, RunInput::Args("$INPUT $MEDIA_INPUTS @call:x".to_owned()), RunOptions::default())
        .await;
    let system = provider.requests()[0].messages.messages()[0].text();
    assert!(system.starts_with("Say $INPUT $MEDIA_INPUTS @call:x to {\"query\":"), "{system}");
}

#[tokio::test]
async fn a_prompt_that_places_a_large_input_without_end_is_refused() {
    let directory = directory(&"$INPUT $ARGUMENTS ".repeat(50_000), &[]);
    let (provider, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    let large = RunInput::Args("x".repeat(1_000_000));
    let refused = runtime.execute(&module, large, RunOptions::default()).await;
    assert_eq!(code(&refused), Some("E1005"));
    assert_eq!(provider.requests(), []);
}

#[tokio::test]
async fn what_the_prompt_did_not_place_follows_as_json() {
    let directory = directory("Say $ARGUMENTS.", &[]);
    let (provider, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    runtime.execute(&module, input(r#"{"query": "hello", "count": 2}"#), RunOptions::default()).await;
    let requests = provider.requests();
    let messages = requests[0].messages.messages();
    assert!(messages[0].text().starts_with("Say hello."));
    assert_eq!(messages[1].text(), r#"{"count":2}"#);
}

#[tokio::test]
async fn a_module_that_people_may_not_run_says_so() {
    let directory = directory("Answer.", &["invocation:", "  user_invocable: false"]);
    let (_, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    let refused = runtime.execute(&module, input(r#"{"query": "why?"}"#), RunOptions::default()).await;
    assert_eq!(code(&refused), Some("E4007"));
    let options = RunOptions::new().caller(Caller::Agent);
    assert!(runtime.execute(&module, input(r#"{"query": "why?"}"#), options).await.is_ok());
}

#[tokio::test]
async fn an_input_longer_than_the_module_takes_is_refused() {
    let directory = directory("Answer.", &["runtime_requirements:", "  max_input_tokens: 10"]);
    let (provider, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    let envelope = runtime.execute(&module, RunInput::Args("x".repeat(200)), RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E1005"));
    assert_eq!(provider.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_e2011_in_a_stream_and_e2002_folded() {
    let directory = directory("Answer.", &[]);
    let runtime =
        Runtime::builder().provider(Arc::new(Scripted::hanging(r#"{"ok": true, "meta": "#))).build();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let options = || RunOptions::new().timeout(Duration::from_secs(5));
    let question = || input(r#"{"query": "why?"}"#);
    let chunks: Vec<_> = runtime.execute_stream(&module, question(), options()).unwrap().collect().await;
    let Some(Chunk::Error { error, .. }) = chunks.last() else { panic!("{chunks:?}") };
    assert_eq!(error.code.as_str(), Code::StreamTimeout.as_str());
    assert_eq!(code(&runtime.execute(&module, question(), options()).await), Some("E2002"));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_cancels_the_call() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = asking(Scripted::hanging(r#"{"ok": true, "#), &directory);
    let mut stream =
        runtime.execute_stream(&module, input(r#"{"query": "why?"}"#), RunOptions::default()).unwrap();
    stream.next().await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(1), stream.next()).await.is_err(), "the provider hangs");
    assert_eq!(provider.open_replies(), 1);
    drop(stream);
    assert_eq!(provider.open_replies(), 0);
}

#[tokio::test]
async fn a_violation_is_asked_again_where_the_module_allows_it() {
    let directory = directory("Answer.", &["response:", "  on_violation: retry", "  max_attempts: 2"]);
    let wrong = ANSWER.replace("\"fine\"", "1");
    let (provider, runtime, module) = asking(Scripted::saying_in_turn([&wrong, ANSWER]), &directory);
    let envelope = runtime.execute(&module, input(r#"{"query": "why?"}"#), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.meta.runtime.attempts, Some(2));
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn a_reply_cut_by_length_is_never_ok() {
    let directory = directory("Answer.", &[]);
    let cut = Scripted::new([vec![
        ModelEvent::Text(r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"result": "fi"#.to_owned()),
        ModelEvent::Finished(FinishReason::Length),
    ]]);
    let (_, runtime, module) = asking(cut, &directory);
    let envelope = runtime.execute(&module, input(r#"{"query": "why?"}"#), RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E2003"));
    let cog_spec::Outcome::Failure { partial_data: Some(partial), .. } = &envelope.outcome else {
        panic!("{envelope:?}")
    };
    assert_eq!(partial.get("result").unwrap().as_str(), Some("fi"));
}

#[tokio::test]
async fn a_module_is_compiled_once_until_its_files_change() {
    let directory = directory("Answer.", &[]);
    let runtime = Runtime::builder().recheck(Duration::ZERO).build();
    let load = || runtime.load(directory.path().to_str().unwrap()).unwrap();
    let first = load();
    assert!(Arc::ptr_eq(&first, &load()));
    write(&directory, "prompt.md", "Answer at length.");
    let second = load();
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(second.prompt.text(), "Answer at length.");
}

#[tokio::test]
async fn a_module_is_taken_as_it_was_found_for_a_while() {
    let directory = directory("Answer.", &[]);
    let runtime = Runtime::builder().recheck(Duration::from_secs(3600)).build();
    let load = || runtime.load(directory.path().to_str().unwrap()).unwrap();
    let first = load();
    write(&directory, "prompt.md", "Answer at length.");
    assert!(Arc::ptr_eq(&first, &load()));
}

#[tokio::test]
async fn offline_a_sample_says_that_no_model_was_asked() {
    let directory = directory("Answer.", &[]);
    let runtime = Runtime::builder().build();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.execute(&module, input(r#"{"query": "why?"}"#), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.meta.confidence, Some(0.0));
    assert_eq!(envelope.meta.runtime.model.as_deref(), Some("offline/sample"));
    assert_eq!(envelope.warnings[0].code.as_str(), "W4001");
}

#[tokio::test]
async fn rendering_sends_nothing() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = asking(Scripted::saying(ANSWER), &directory);
    let rendered =
        runtime.render(&module, input(r#"{"query": "why?"}"#), RunOptions::default()).await.unwrap();
    assert_eq!(rendered.messages.messages().len(), 2);
    assert_eq!(provider.requests(), []);
}

#[test]
fn names_that_lead_nowhere_have_their_codes() {
    let runtime = Runtime::builder().build();
    let code = |name| runtime.load(name).unwrap_err().code.to_string();
    assert_eq!(code("no-such-module"), "E4006");
    assert_eq!(code("../../etc"), "E4007");
    let directory = directory("Answer.", &[]);
    let by_name = |name| runtime.load_name(name).map(|module| module.manifest.name.clone());
    assert_eq!(by_name("code-reviewer").unwrap(), "code-reviewer");
    assert!(by_name(directory.path().to_str().unwrap()).is_err(), "a path is no name");
}
