//! The life of a run: cancelled, or resumed.

use std::{sync::Arc, time::Duration};

use cog_json::ToJson as _;
use cog_run::{CancelReason, Cancellation, RecoveryOffer, RunContext, RunOptions};
use cog_spec::Chunk;
use futures_util::StreamExt as _;

use crate::support::{ANSWER, Scripted, directory, runtime_with, sample_input};

/// Returns the last chunk as JSON, and checks that it is an error.
fn error(chunks: &[Chunk]) -> serde_json::Value {
    assert_eq!(chunks.iter().filter(|chunk| chunk.is_end()).count(), 1);
    let last: serde_json::Value = serde_json::from_str(&chunks.last().unwrap().to_json()).unwrap();
    assert_eq!(last["ok"], false, "{last}");
    last
}

/// Returns the chunks of a run that is cancelled one second after its first data.
async fn stopped(reason: CancelReason, recovery: Option<RecoveryOffer>) -> (Vec<Chunk>, Arc<Scripted>) {
    let directory = directory("Answer.", &[]);
    let text =
        r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"result": "fi"#;
    let (provider, runtime, module) = runtime_with(Scripted::hanging(text), &directory);
    let cancellation = Cancellation::default();
    let options = RunOptions { cancellation: cancellation.clone(), ..RunOptions::default() };
    let mut context = RunContext::default();
    context.recovery = recovery;
    let chunks = runtime.prepare(&module, sample_input(), options, context).unwrap().collect::<Vec<_>>();
    let later = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancellation.cancel(reason);
    };
    (tokio::join!(chunks, later).0, provider)
}

#[tokio::test(start_paused = true)]
async fn cancelled_run_ends_with_e2010_and_drops_the_call() {
    for reason in [CancelReason::Cancelled, CancelReason::ClientGone, CancelReason::Shutdown] {
        let (chunks, provider) = stopped(reason, None).await;
        let end = error(&chunks);
        assert_eq!(end["error"]["code"], "E2010");
        assert_eq!(end["error"]["details"]["reason"], reason.as_str());
        assert_eq!(end["partial_data"]["result"], "fi");
        assert_eq!(end["error"].get("recovery"), None);
        assert_eq!(provider.open_replies(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_run_offers_recovery() {
    let offer = RecoveryOffer { retry_after_ms: 250, max_retries: 4 };
    let (chunks, _) = stopped(CancelReason::Shutdown, Some(offer)).await;
    let last_seq = chunks.iter().filter_map(Chunk::seq).max().unwrap();
    let recovery = &error(&chunks)["error"]["recovery"];
    assert_eq!(recovery["last_seq"], last_seq);
    assert_eq!((&recovery["retry_after_ms"], &recovery["max_retries"]), (&250.into(), &4.into()));
    let (chunks, _) = stopped(CancelReason::Cancelled, Some(offer)).await;
    assert_eq!(error(&chunks)["error"].get("recovery"), None);
}

#[tokio::test]
async fn cancelled_run_makes_no_call() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    let cancellation = Cancellation::default();
    cancellation.cancel(CancelReason::Cancelled);
    let options = RunOptions { cancellation, ..RunOptions::default() };
    let envelope = runtime.run(&module, sample_input(), options).await;
    assert_eq!(envelope.error().unwrap().code.as_str(), "E2010");
    assert_eq!(provider.requests(), []);
}

#[tokio::test]
async fn resumed_run_retracts_the_data_and_continues_seq() {
    let directory = directory("Answer.", &[]);
    let (_, runtime, module) = runtime_with(Scripted::replying(ANSWER), &directory);
    let mut context = RunContext::default();
    context.session_id = Some("sess_1".to_owned());
    context.resume_from = Some(7);
    let stream = runtime.prepare(&module, sample_input(), RunOptions::default(), context).unwrap();
    let chunks: Vec<Chunk> = stream.collect().await;
    let first: serde_json::Value = serde_json::from_str(&chunks[0].to_json()).unwrap();
    assert_eq!(first["session_id"], "sess_1");
    assert_eq!((&first["resumed"], &first["resume_from_seq"]), (&true.into(), &7.into()));
    assert_eq!(chunks[1].to_json(), r#"{"chunk":{"seq":8,"type":"snapshot","data":{}}}"#);
    let numbers: Vec<u64> = chunks.iter().filter_map(Chunk::seq).collect();
    assert_eq!(numbers, (8..8 + numbers.len() as u64).collect::<Vec<_>>());
    let lines: Vec<String> = chunks.iter().map(|chunk| chunk.to_json()).collect();
    let verdict = cog_answer::verify::verify(&lines.join("\n"), None, None);
    assert!(verdict.valid, "{:?}", verdict.violations);
    assert!(cog_answer::fold(chunks).is_ok());
}
