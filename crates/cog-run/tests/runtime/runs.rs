//! Single runs, from the input to the envelope.

use std::{sync::Arc, time::Duration};

use cog_run::provider::{ModelRequest, Provider, ProviderError, from_fn, reply};
use cog_run::{Caller, ErrorBody, ModuleRef, Providers, RunInput, RunOptions, Runtime};
use cog_spec::{Chunk, Code, FinishReason, ModelEvent};
use futures_util::{Stream as _, StreamExt as _};

use crate::support::{ANSWER, Scripted, code, directory, input, runtime_with, sample_input, write};

#[tokio::test]
async fn execute_returns_the_checked_envelope() {
    let directory = directory("Answer $query.", &[]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.data().unwrap().get("result").unwrap().as_str(), Some("fine"));
    assert_eq!(envelope.meta.runtime.model.as_deref(), Some("scripted/one"));
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn folded_stream_equals_the_envelope() {
    let directory = directory("Answer.", &[]);
    let (_, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    let sync = runtime.run(&module, sample_input(), RunOptions::default()).await;
    let stream = runtime.stream(&module, sample_input(), RunOptions::default()).unwrap();
    let chunks: Vec<Chunk> = stream.collect().await;
    assert!(matches!(&chunks[0], Chunk::Meta { session_id, .. } if session_id.starts_with("sess_")));
    assert_eq!(chunks.iter().filter(|chunk| chunk.is_end()).count(), 1);
    assert!(chunks.last().unwrap().is_end());
    let mut folded = cog_answer::fold(chunks);
    folded.meta.runtime.processing_time_ms = sync.meta.runtime.processing_time_ms;
    assert_eq!(folded, sync);
}

#[tokio::test]
async fn waiting_chunks_of_a_long_reply_are_bounded() {
    let directory = directory("Answer.", &[]);
    let values = vec!["1"; 50_000].join(",");
    let reply = ANSWER.replace("\"because\"", &format!("\"because\", \"values\": [{values}]"));
    let events = |size: usize| {
        let parts = reply.as_bytes().chunks(size).map(|part| String::from_utf8(part.to_vec()).unwrap());
        parts.map(ModelEvent::Text).chain([ModelEvent::Finished(FinishReason::Stop)]).collect::<Vec<_>>()
    };
    for size in [reply.len(), 100] {
        let (_, runtime, module) = runtime_with(Scripted::new([events(size)]), &directory);
        let mut stream = runtime.stream(&module, sample_input(), RunOptions::default()).unwrap();
        let (mut waiting, mut count) = (0, 0);
        while let Some(chunk) = stream.next().await {
            waiting = waiting.max(stream.size_hint().0);
            count += 1;
            assert!(!matches!(chunk, Chunk::Error { .. }), "{chunk:?}");
        }
        assert!(count > 50_000 && waiting < 6_000, "{count} chunks, {waiting} waiting");
    }
}

#[tokio::test]
async fn invalid_input_makes_no_call() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    let envelope = runtime.run(&module, input(r#"{"query": 1, "count": "x"}"#), RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E1003"));
    let details = envelope.error().unwrap().details.as_ref().unwrap();
    assert_eq!(details.get("violations").unwrap().len(), 2);
    assert_eq!(provider.requests(), []);
}

#[tokio::test]
async fn equal_inputs_have_equal_prompts() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    for _ in 0..2 {
        runtime.run(&module, sample_input(), RunOptions::default()).await;
    }
    let requests = provider.requests();
    assert_eq!(requests[0], requests[1]);
}

#[tokio::test]
async fn placeholders_in_the_input_are_not_expanded() {
    let directory = directory("Say $ARGUMENTS to $INPUT.", &[]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    runtime
        .run(&module, RunInput::Args("$INPUT $MEDIA_INPUTS @call:x".to_owned()), RunOptions::default())
        .await;
    let system = provider.requests()[0].messages.messages()[0].text();
    assert!(system.starts_with("Say $INPUT $MEDIA_INPUTS @call:x to {\"query\":"), "{system}");
}

#[tokio::test]
async fn prompt_over_the_size_limit_returns_e1005() {
    let directory = directory(&"$INPUT $ARGUMENTS ".repeat(50_000), &[]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    let large = RunInput::Args("x".repeat(1_000_000));
    let refused = runtime.run(&module, large, RunOptions::default()).await;
    assert_eq!(code(&refused), Some("E1005"));
    assert_eq!(provider.requests(), []);
}

#[tokio::test]
async fn unused_input_follows_as_json() {
    let directory = directory("Say $ARGUMENTS.", &[]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    runtime.run(&module, input(r#"{"query": "hello", "count": 2}"#), RunOptions::default()).await;
    let requests = provider.requests();
    let messages = requests[0].messages.messages();
    assert!(messages[0].text().starts_with("Say hello."));
    assert_eq!(messages[1].text(), r#"{"count":2}"#);
}

#[tokio::test]
async fn module_for_agents_rejects_users() {
    let directory = directory("Answer.", &["invocation:", "  user_invocable: false"]);
    let (_, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    let refused = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(code(&refused), Some("E4007"));
    let options = RunOptions { caller: Caller::Agent, ..RunOptions::default() };
    assert!(runtime.run(&module, sample_input(), options).await.is_ok());
}

#[tokio::test]
async fn input_over_the_token_limit_returns_e1005() {
    let directory = directory("Answer.", &["runtime_requirements:", "  max_input_tokens: 10"]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    let envelope = runtime.run(&module, RunInput::Args("x".repeat(200)), RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E1005"));
    assert_eq!(provider.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn timeout_is_e2011_in_a_stream_and_e2002_folded() {
    let directory = directory("Answer.", &[]);
    let runtime =
        Runtime::builder().provider(Arc::new(Scripted::hanging(r#"{"ok": true, "meta": "#))).build().unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let options = || RunOptions { timeout: Some(Duration::from_secs(5)), ..RunOptions::default() };
    let chunks: Vec<_> = runtime.stream(&module, sample_input(), options()).unwrap().collect().await;
    let Some(Chunk::Error { error, .. }) = chunks.last() else { panic!("{chunks:?}") };
    assert_eq!(error.code.as_str(), Code::StreamTimeout.as_str());
    assert_eq!(code(&runtime.run(&module, sample_input(), options()).await), Some("E2002"));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_cancels_the_call() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = runtime_with(Scripted::hanging(r#"{"ok": true, "#), &directory);
    let mut stream = runtime.stream(&module, sample_input(), RunOptions::default()).unwrap();
    stream.next().await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(1), stream.next()).await.is_err(), "the provider hangs");
    assert_eq!(provider.open_replies(), 1);
    drop(stream);
    assert_eq!(provider.open_replies(), 0);
}

#[tokio::test]
async fn violation_is_retried_if_the_module_allows_it() {
    let directory = directory("Answer.", &["response:", "  on_violation: retry", "  max_attempts: 2"]);
    let wrong = ANSWER.replace("\"fine\"", "1");
    let (provider, runtime, module) = runtime_with(Scripted::replying_in_turn([&wrong, ANSWER]), &directory);
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.meta.runtime.attempts, Some(2));
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn truncated_reply_is_never_ok() {
    let directory = directory("Answer.", &[]);
    let cut = Scripted::new([vec![
        ModelEvent::Text(r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"result": "fi"#.to_owned()),
        ModelEvent::Finished(FinishReason::Length),
    ]]);
    let (_, runtime, module) = runtime_with(cut, &directory);
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E2003"));
    let cog_spec::Outcome::Failure { partial_data: Some(partial), .. } = &envelope.outcome else {
        panic!("{envelope:?}")
    };
    assert_eq!(partial.get("result").unwrap().as_str(), Some("fi"));
}

#[tokio::test]
async fn module_is_reloaded_when_its_files_change() {
    let directory = directory("Answer.", &[]);
    let runtime =
        Runtime::builder().providers(Providers::offline()).reload_interval(Duration::ZERO).build().unwrap();
    let load = || runtime.load(directory.path().to_str().unwrap()).unwrap();
    let first = load();
    assert!(Arc::ptr_eq(&first, &load()));
    write(&directory, "prompt.md", "Answer at length.");
    let second = load();
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(second.prompt.text(), "Answer at length.");
}

#[tokio::test]
async fn module_is_cached_for_the_reload_interval() {
    let directory = directory("Answer.", &[]);
    let runtime = Runtime::builder()
        .providers(Providers::offline())
        .reload_interval(Duration::from_secs(3600))
        .build()
        .unwrap();
    let load = || runtime.load(directory.path().to_str().unwrap()).unwrap();
    let first = load();
    write(&directory, "prompt.md", "Answer at length.");
    assert!(Arc::ptr_eq(&first, &load()));
}

#[tokio::test]
async fn load_async_finds_what_load_finds() {
    let directory = directory("Answer.", &[]);
    let runtime = Runtime::builder()
        .providers(Providers::offline())
        .reload_interval(Duration::from_secs(3600))
        .build()
        .unwrap();
    let path = directory.path().to_str().unwrap();
    let first = runtime.load_async(path).await.unwrap();
    assert!(Arc::ptr_eq(&first, &runtime.load(path).unwrap()));
    assert!(Arc::ptr_eq(&first, &runtime.load_async(path).await.unwrap()));
    assert_eq!(
        runtime.load_async(ModuleRef::Name(path)).await.unwrap_err().code,
        Code::ModuleNotFound.into()
    );
    assert_eq!(runtime.load_async("no-such-module").await.unwrap_err().code, Code::ModuleNotFound.into());
}

#[tokio::test]
async fn offline_sample_has_warning_w4001() {
    let directory = directory("Answer.", &[]);
    let runtime = Runtime::offline();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.meta.confidence, Some(0.0));
    assert_eq!(envelope.meta.runtime.model.as_deref(), Some("offline/sample"));
    assert_eq!(envelope.warnings[0].code.as_str(), "W4001");
}

#[tokio::test]
async fn runtime_without_a_provider_is_not_built() {
    let no_default = Providers::new(Vec::new(), |name| Err(ErrorBody::new(Code::UnsupportedValue, name)));
    for builder in [Runtime::builder(), Runtime::builder().providers(no_default)] {
        let error = builder.build().err().unwrap();
        assert_eq!((error.code, error.recoverable), (Code::ProviderUnavailable.into(), Some(false)));
        assert!(error.suggestion.unwrap().contains("`RuntimeBuilder::provider`"));
    }
    let last_wins =
        Runtime::builder()
            .providers(Providers::offline())
            .provider(from_fn("own", "m", async |_| Ok(ANSWER)));
    assert_eq!(last_wins.build().unwrap().providers().default_order().len(), 1);
}

#[tokio::test]
async fn function_is_a_provider() {
    let directory = directory("Answer.", &[]);
    let path = directory.path().to_str().unwrap();
    let run = async |provider: Arc<dyn Provider>| {
        let runtime = Runtime::builder().provider(provider).build().unwrap();
        let module = runtime.load(path).unwrap();
        runtime.run(&module, sample_input(), RunOptions::default()).await
    };
    let owned = run(from_fn(String::from("own"), "m", async |_| Ok(ANSWER.to_owned()))).await;
    assert_eq!(owned.meta.runtime.model.as_deref(), Some("own/m"));
    let cut = run(from_fn("own", "m", async |_| Ok(reply([ModelEvent::Text("{".to_owned())])))).await;
    assert_eq!(cut.error().unwrap().code, Code::StreamInterrupted.into());
    let failure = async |_: ModelRequest| Err::<&str, _>(ProviderError::TooLarge { vendor: "own", limit: 1 });
    assert!(!run(from_fn("own", "m", failure)).await.is_ok());
}

#[tokio::test]
async fn render_makes_no_call() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    let rendered = runtime.render(&module, sample_input(), RunOptions::default()).await.unwrap();
    assert_eq!(rendered.messages.messages().len(), 2);
    assert_eq!(provider.requests(), []);
}

#[test]
fn unknown_module_and_path_return_codes() {
    let runtime = Runtime::offline();
    let code = |name: &str| runtime.load(name).unwrap_err().code.to_string();
    assert_eq!(code("no-such-module"), "E4006");
    assert_eq!(code("../../etc"), "E4007");
    let directory = directory("Answer.", &[]);
    let by_name = |name| runtime.load(ModuleRef::Name(name)).map(|module| module.manifest.name.clone());
    assert_eq!(by_name("code-reviewer").unwrap(), "code-reviewer");
    assert!(by_name(directory.path().to_str().unwrap()).is_err(), "a path is no name");
}
