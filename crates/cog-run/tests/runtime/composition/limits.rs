//! The number of parts that run at the same time.

use std::time::Duration;

use cog_run::RunOptions;

use super::support::{Bench, Says, answer, parts};

fn late(text: &str) -> [Says; 1] {
    [Says::Late(Duration::from_millis(50), text.to_owned())]
}

/// Returns a module that calls two others, each of which calls two others with two leaves.
fn tree() -> Bench {
    let names = ["whole", "left", "right", "inner", "leaf"];
    let replies = names.map(|name| (name, late(name)));
    let replies: Vec<(&str, &[Says])> = replies.iter().map(|(name, says)| (*name, says.as_slice())).collect();
    let calls = |names: [&str; 2]| names.map(|name| format!("@call:{name}[async]")).join(" ");
    let bench = Bench::new("", &calls(["left", "right"]), &["leaf", "other"], &replies);
    bench.module("left", "", &calls(["inner", "leaf"]));
    bench.module("right", "", &calls(["inner", "leaf"]));
    bench.module("inner", "", &calls(["leaf", "other"]));
    bench
}

#[tokio::test(start_paused = true)]
async fn limit_is_that_of_the_run_at_all_depths() {
    for limit in [1, 2, 3] {
        let bench = tree();
        let runtime = bench.builder().max_parallel_parts(limit).build().unwrap();
        let envelope = bench.run_in(&runtime, RunOptions::default()).await;
        assert_eq!(answer(&envelope), "whole");
        assert_eq!((bench.provider.max_open(), bench.provider.called().len()), (limit, 11), "{limit}");
        let statuses = parts(&envelope);
        assert!(statuses.iter().all(|part| part.ends_with(" done")) && statuses.len() == 10, "{statuses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_run_has_its_own_limit() {
    let bench = tree();
    let runtime = bench.builder().max_parallel_parts(1).build().unwrap();
    let run = || bench.run_in(&runtime, RunOptions::default());
    let (first, second) = tokio::join!(run(), run());
    assert_eq!((answer(&first).as_str(), answer(&second).as_str()), ("whole", "whole"));
    assert_eq!(bench.provider.max_open(), 2);
}

#[tokio::test(start_paused = true)]
async fn part_that_waits_for_a_slot_is_not_running() {
    let bench = tree();
    let runtime = bench.builder().max_parallel_parts(1).build().unwrap();
    let options = RunOptions { timeout: Some(Duration::from_millis(75)), ..RunOptions::default() };
    let statuses = parts(&bench.run_in(&runtime, options).await);
    let inner = ["left cancelled", "left/inner cancelled", "left/inner/leaf done", "left/inner/other done"];
    assert_eq!(statuses, inner, "the other leaf waits for the prompt of `inner`");
}
