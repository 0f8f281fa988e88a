//! The chunks of a composition.

use cog_json::ToJson as _;
use cog_run::RunOptions;
use cog_spec::{Chunk, Envelope, PartProgress, PartStatus};

use super::support::{Bench, answer, result};

fn progress(chunks: &[Chunk]) -> Vec<&PartProgress> {
    let parts = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Progress(progress) => progress.part.as_deref(),
        _ => None,
    });
    parts.collect()
}

fn comparable(mut envelope: Envelope) -> String {
    envelope.meta.runtime.processing_time_ms = None;
    envelope.meta.runtime.parts.iter_mut().for_each(|part| part.time_ms = None);
    envelope.to_json()
}

#[tokio::test]
async fn chunks_of_parts_are_progress_and_the_answer_has_its_own_fields() {
    let bench = Bench::two(&[("two", &[result("the end")])]);
    let chunks = bench.stream(RunOptions::default()).await;
    let parts = progress(&chunks);
    let statuses: Vec<String> =
        parts.iter().filter_map(|part| Some(format!("{} {}", part.path, part.status?))).collect();
    let expected = ["one waiting", "two waiting", "one running", "one done", "two running", "two done"];
    assert_eq!(statuses, expected);
    let text: String = parts
        .iter()
        .filter(|part| part.path == "two" && part.field.as_deref() == Some("data.result"))
        .filter_map(|part| part.delta.as_deref())
        .collect();
    assert_eq!(text, "the end");
    let done = parts.iter().find(|part| part.status == Some(PartStatus::Done)).unwrap();
    assert_eq!(done.report.as_ref().unwrap().confidence, Some(0.9));
    assert_eq!(done.answer, None, "only a session records answers");
    let seqs: Vec<u64> = chunks.iter().filter_map(Chunk::seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert!(chunks.iter().any(|chunk| matches!(chunk, Chunk::Delta { field, .. } if field == "data.result")));
    assert!(matches!((&chunks[0], chunks.last().unwrap()), (Chunk::Meta { .. }, Chunk::Final { .. })));
}

#[tokio::test]
async fn folded_chunks_equal_the_sync_answer() {
    let bench = Bench::two(&[("two", &[result("the end")])]);
    let folded = cog_answer::fold(bench.stream(RunOptions::default()).await);
    assert_eq!(answer(&folded), "the end");
    assert_eq!(comparable(folded), comparable(bench.run_with(RunOptions::default()).await));
}

#[tokio::test]
async fn progress_of_nested_parts_has_their_complete_path() {
    let bench = Bench::new("", "Whole: @call:middle", &["leaf"], &[]);
    bench.module("middle", "", "Middle: @call:leaf");
    let chunks = bench.stream(RunOptions::default()).await;
    let parts = progress(&chunks);
    let done: Vec<&str> = parts
        .iter()
        .filter(|part| part.status == Some(PartStatus::Done))
        .map(|part| part.path.as_str())
        .collect();
    assert_eq!(done, ["middle/leaf", "middle"]);
    let reports = parts.iter().filter_map(|part| part.report.as_ref());
    assert_eq!(reports.map(|report| report.path.as_str()).collect::<Vec<_>>(), done);
}
