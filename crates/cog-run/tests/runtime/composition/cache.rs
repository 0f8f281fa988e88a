//! Answers of parts from the cache.

use std::time::Duration;

use cog_run::{AnswerCache, RunOptions, Runtime};

use super::support::{Bench, MAP, answer};

fn composition() -> String {
    format!(
        "composition:
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: one}}
    - {{from: one.output, to: two, mapping: {{query: $.data.result}}}}
    - {{from: two.output, to: output, {MAP}}}"
    )
}

/// Returns a runtime with a cache in the directory of the modules.
fn cached(bench: &Bench) -> Runtime {
    bench
        .builder()
        .cache(AnswerCache::in_directory(
            bench.directory.path().join("answers"),
            Duration::from_secs(60),
            1 << 20,
        ))
        .build()
        .unwrap()
}

#[tokio::test]
async fn stored_answer_of_a_part_is_told_in_its_report() {
    let bench = Bench::new(&composition(), "", &["one", "two"], &[]);
    let runtime = cached(&bench);
    for (calls, hits) in [(2, [None, None]), (2, [Some(true), Some(true)])] {
        let envelope = bench.run_in(&runtime, RunOptions::default()).await;
        assert_eq!((answer(&envelope).as_str(), bench.provider.called().len()), ("two", calls));
        let parts = envelope.meta.runtime.parts.iter();
        assert_eq!(parts.map(|part| part.cache.map(|cache| cache.hit)).collect::<Vec<_>>(), hits);
    }
}

#[tokio::test]
async fn answer_of_tier_exec_is_not_put_together_from_stored_ones() {
    let bench = Bench::new("", "", &["one", "two"], &[]);
    let runtime = cached(&bench);
    for (manifest, calls) in [("", [2, 4]), ("cache: deny\n", [6, 8]), ("cache: allow\n", [10, 10])] {
        bench.module_of("exec", "whole", &format!("{manifest}{}", composition()), "");
        for calls in calls {
            assert_eq!(answer(&bench.run_in(&runtime, RunOptions::default()).await), "two");
            assert_eq!(bench.provider.called().len(), calls, "{manifest}");
        }
    }
}
