//! `--via`: the rows are jobs at a vendor.

use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

use cog_testkit::{BatchStep, Batches, Mock, Received, Reply, Wire};
use serde_json::Value;

use super::{ANSWER, codes, place};
use crate::support::{Place, stderr, stdout};

const WIRES: [Wire; 3] = [Wire::OpenAi, Wire::Anthropic, Wire::Gemini];
const FIVE: &str = "\"row one\"\n\"row two\"\n\"row three\"\n\"row four\"\n\"row five\"\n";

fn jobs(place: &Place) -> Batches {
    Batches::new(place.path().join("vendor"))
}

fn vendor(batches: &Batches) -> Mock {
    let replies = [Reply::text(ANSWER).usage(12, 34), Reply::error(400, "the prompt is wrong").when("bad")];
    Mock::with_batches(replies, batches.clone()).unwrap()
}

fn cog(place: &Place, wire: Wire, mock: &Mock, args: &str) -> Command {
    let name = wire.provider().to_uppercase();
    let mut command = place.cog(args.split_whitespace());
    command.env(format!("{name}_API_KEY"), "none").env(format!("{name}_BASE_URL"), mock.base_url(wire));
    command
}

fn via(place: &Place, wire: Wire, mock: &Mock, args: &str) -> Command {
    let line = format!("batch ./m rows.jsonl -o out.jsonl --via {} --poll 10ms {args}", wire.provider());
    cog(place, wire, mock, &line)
}

fn rows(place: &Place) -> Vec<Value> {
    place.read("out.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn exit(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn results_of_jobs_are_checked_like_live_answers() {
    for wire in WIRES {
        let place = place();
        let mock = vendor(&jobs(&place));
        let lines = [
            "\"one\"",
            "\"MOCK-EXPIRED\"",
            "\"MOCK-CANCELLED\"",
            "\"MOCK-LOST\"",
            "\"MOCK-TWICE\"",
            "\"MOCK-DIFFER\"",
            "\"MOCK-STRANGER\"",
            "\"bad\"",
            "{\"texts\": \"x\"}",
            "no JSON",
        ];
        place.write("rows.jsonl", lines.join("\n"));
        let output = via(&place, wire, &mock, "").output().unwrap();
        let found = rows(&place);
        let expected = ["ok", "E2002", "E2010", "E2010", "ok", "E2010", "ok", "E4001", "E1001", "E1000"];
        assert_eq!(codes(&found), expected, "{wire:?}: {}", stderr(&output));
        assert_eq!(exit(&output), Some(1));
        assert_eq!(found[0]["data"]["label"], "a");
        assert_eq!(found[0]["meta"]["usage"]["service_tier"], "batch", "{}", found[0]);
        assert!(stderr(&output).contains("1 results of the jobs belong to no row"), "{}", stderr(&output));
        assert!(
            !place.path().join("out.jsonl.jobs").exists() && !place.path().join("out.jsonl.jobs-0").exists()
        );
    }
}

/// Each step is held, so that the process is certainly killed in it.
#[test]
fn batch_that_is_killed_in_any_step_sends_no_row_twice() {
    for wire in WIRES {
        let steps = [
            (BatchStep::Upload, is_upload as fn(&Received) -> bool),
            (BatchStep::List, |request| request.method == "GET" && request.path.contains("batches?")),
            (BatchStep::Create, is_create),
            (BatchStep::Status, |request| request.method == "GET" && request.path.contains("mock")),
            (BatchStep::Results, |request| {
                request.path.ends_with("/content") || request.path.ends_with("/results")
            }),
        ];
        for (step, reaches) in steps {
            let place = place();
            place.write("rows.jsonl", FIVE);
            let is_taken = match step {
                BatchStep::Upload => wire == Wire::OpenAi,
                BatchStep::List => wire == Wire::Anthropic,
                BatchStep::Results => wire != Wire::Gemini,
                _ => true,
            };
            if !is_taken {
                continue;
            }
            kill(&place, wire, &jobs(&place).holds(step), reaches);
            let mock = vendor(&jobs(&place));
            let output = via(&place, wire, &mock, "--job-rows 2").output().unwrap();
            assert_eq!(exit(&output), Some(0), "{wire:?} {step:?}: {}", stderr(&output));
            let numbers: Vec<_> = rows(&place).iter().map(|row| row["row"].as_u64().unwrap()).collect();
            assert_eq!(numbers, [0, 1, 2, 3, 4], "{wire:?} {step:?}");
            assert_eq!(sent(&jobs(&place)), 5, "{wire:?} {step:?}");
        }
    }
}

fn is_upload(request: &Received) -> bool {
    request.method == "POST" && request.path.ends_with("/files")
}

fn is_create(request: &Received) -> bool {
    request.method == "POST"
        && (request.path.ends_with("/batches") || request.path.ends_with(":batchGenerateContent"))
}

/// Runs a batch until the vendor receives a request, and kills it.
fn kill(place: &Place, wire: Wire, batches: &Batches, reaches: fn(&Received) -> bool) {
    let mock = vendor(batches);
    let mut child = via(place, wire, &mock, "--job-rows 2").spawn().unwrap();
    let started = Instant::now();
    while !mock.requests().iter().any(reaches) {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", mock.requests());
        std::thread::sleep(Duration::from_millis(5));
    }
    // The mock executes a step before it holds it.
    std::thread::sleep(Duration::from_millis(50));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns the number of requests in all jobs.
fn sent(batches: &Batches) -> usize {
    batches.jobs().iter().map(|job| job["entries"].as_array().unwrap().len()).sum()
}

#[test]
fn other_processes_show_and_fetch_the_jobs() {
    for wire in WIRES {
        let place = place();
        let mock = vendor(&jobs(&place));
        place.write("rows.jsonl", FIVE);
        let output = via(&place, wire, &mock, "--no-wait --job-rows 3").output().unwrap();
        assert_eq!(exit(&output), Some(0), "{}", stderr(&output));
        assert!(
            !place.path().join("out.jsonl").exists() && stderr(&output).contains("cog batch fetch out.jsonl")
        );
        let status = cog(&place, wire, &mock, "batch status out.jsonl").output().unwrap();
        assert_eq!(stdout(&status).lines().count(), 3, "{}{}", stdout(&status), stderr(&status));
        let wait = cog(&place, wire, &mock, "batch wait out.jsonl").output().unwrap();
        assert_eq!(exit(&wait), Some(0), "{}", stderr(&wait));
        let fetch = cog(&place, wire, &mock, "batch fetch out.jsonl").output().unwrap();
        assert_eq!((exit(&fetch), rows(&place).len()), (Some(0), 5), "{}", stderr(&fetch));
        let none = cog(&place, wire, &mock, "batch wait out.jsonl").output().unwrap();
        assert_eq!(exit(&none), Some(2));
        assert!(stderr(&none).contains("no batch jobs"), "{}", stderr(&none));
    }
}

#[test]
fn cancelled_rows_are_errors_or_live_calls() {
    for (how, expected, status) in [("", "E2010", 1), ("--retry live", "ok", 0)] {
        for wire in WIRES {
            let place = place();
            let mock = vendor(&jobs(&place).polls(1_000_000));
            place.write("rows.jsonl", FIVE);
            via(&place, wire, &mock, &format!("--no-wait {how}")).output().unwrap();
            let cancel = cog(&place, wire, &mock, "batch cancel out.jsonl").output().unwrap();
            assert_eq!(exit(&cancel), Some(0), "{}", stderr(&cancel));
            let fetch = cog(&place, wire, &mock, "batch fetch out.jsonl").output().unwrap();
            assert_eq!(codes(&rows(&place)), [expected; 5], "{wire:?}: {}", stderr(&fetch));
            assert_eq!(exit(&fetch), Some(status));
        }
    }
}

#[test]
fn job_that_has_ended_does_not_keep_others_from_being_cancelled() {
    for wire in WIRES {
        let place = place();
        let mock = vendor(&jobs(&place).polls(1_000_000));
        place.write("rows.jsonl", FIVE);
        via(&place, wire, &mock, "--no-wait --job-rows 3").output().unwrap();
        let mut first = jobs(&place).jobs().remove(0);
        first["polls"] = 0.into();
        place.write("vendor/job-1.json", first.to_string());
        cog(&place, wire, &mock, "batch status out.jsonl").output().unwrap();
        let cancel = cog(&place, wire, &mock, "batch cancel out.jsonl").output().unwrap();
        assert_eq!(exit(&cancel), Some(0), "{wire:?}: {}", stderr(&cancel));
        let fetch = cog(&place, wire, &mock, "batch fetch out.jsonl").output().unwrap();
        assert_eq!(codes(&rows(&place)), ["ok", "ok", "ok", "E2010", "E2010"], "{}", stderr(&fetch));
    }
}

#[test]
fn results_that_arrive_in_part_are_read_again() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let place = place();
        let mock = vendor(&jobs(&place).cuts(2));
        place.write("rows.jsonl", FIVE);
        let output = via(&place, wire, &mock, "").output().unwrap();
        assert_eq!(codes(&rows(&place)), ["ok"; 5], "{wire:?}: {}", stderr(&output));
    }
}

#[test]
fn batch_may_have_more_jobs_than_a_process_may_open_files() {
    let place = place();
    let mock = vendor(&jobs(&place));
    place.write("rows.jsonl", "\"row\"\n".repeat(90));
    let command = via(&place, Wire::OpenAi, &mock, "--job-rows 1");
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 64; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    limited.env_clear().current_dir(command.get_current_dir().unwrap());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().unwrap();
    assert_eq!(exit(&output), Some(0), "{}", stderr(&output));
    assert_eq!(rows(&place).len(), 90);
}

#[test]
fn many_bytes_for_gemini_are_a_file_at_the_host_of_the_operator() {
    let place = place();
    let mock = vendor(&jobs(&place));
    let long = "x".repeat(7_000_000);
    place.write("rows.jsonl", format!("\"{long}\"\n\"short\"\n\"{long}\"\n\"bad\"\n\"{long}\"\n"));
    let output = via(&place, Wire::Gemini, &mock, "").output().unwrap();
    assert_eq!(codes(&rows(&place)), ["ok", "ok", "ok", "E4001", "ok"], "{}", stderr(&output));
    let requests = mock.requests();
    let [start, content, create, ..] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    let header = |request: &Received, name: &str| {
        request.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    };
    assert_eq!((start.path.as_str(), create.method.as_str()), ("/upload/v1beta/files", "POST"));
    assert_eq!(header(start, "x-goog-upload-command").as_deref(), Some("start"));
    assert_eq!(header(start, "x-goog-upload-header-content-length"), header(content, "content-length"));
    assert_eq!(header(start, "x-goog-api-key").as_deref(), Some("none"));
    // The reply named another host.
    assert!(content.path.contains("upload_id=1"), "{}", content.path);
    assert_eq!(header(content, "x-goog-upload-command").as_deref(), Some("upload, finalize"));
    assert_eq!(create.body["batch"]["inputConfig"]["fileName"], "files/mock-1");
}

#[test]
fn jobs_of_another_version_are_refused() {
    let place = place();
    let mock = vendor(&jobs(&place));
    place.write("rows.jsonl", FIVE);
    via(&place, Wire::OpenAi, &mock, "--no-wait").output().unwrap();
    let path = "out.jsonl.jobs";
    place.write(path, place.read(path).replace("\"version\": 1", "\"version\": 2"));
    let output = via(&place, Wire::OpenAi, &mock, "").output().unwrap();
    assert!(stderr(&output).contains("the jobs have version 2"), "{}", stderr(&output));
    assert_eq!(sent(&jobs(&place)), 5);
}

#[test]
fn changed_row_does_not_get_the_answer_of_another() {
    let place = place();
    let mock = vendor(&jobs(&place));
    place.write("rows.jsonl", FIVE);
    via(&place, Wire::OpenAi, &mock, "--no-wait").output().unwrap();
    place.write("rows.jsonl", FIVE.replace("two", "owt"));
    let output = via(&place, Wire::OpenAi, &mock, "").output().unwrap();
    assert_eq!(exit(&output), Some(2));
    assert!(stderr(&output).contains("row 1 of the input has changed"), "{}", stderr(&output));
}

#[test]
fn batch_of_another_vendor_or_model_is_refused() {
    let place = place();
    let mock = vendor(&jobs(&place));
    place.write("rows.jsonl", FIVE);
    via(&place, Wire::OpenAi, &mock, "--no-wait").output().unwrap();
    for (wire, args, text) in [
        (Wire::Anthropic, "", "the journal belongs to a different batch"),
        (Wire::OpenAi, "--model other", "the journal belongs to a different batch"),
    ] {
        let output = via(&place, wire, &mock, args).output().unwrap();
        assert_eq!(exit(&output), Some(2));
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
    }
    assert_eq!(sent(&jobs(&place)), 5);
}

#[test]
fn what_a_job_cannot_do_is_refused_before_anything_is_sent() {
    let place = place();
    let mock = vendor(&jobs(&place));
    place.write("rows.jsonl", FIVE);
    for (args, text) in [
        ("batch ./m rows.jsonl -o - --via openai", "--via needs files"),
        ("batch ./m rows.jsonl -o out.jsonl --via ollama", "invalid value 'ollama'"),
        ("batch ./m rows.jsonl -o out.jsonl --retry live", "--via"),
        ("batch ./m rows.jsonl -o out.jsonl --via openai --max-cost 1", "--max-cost"),
        ("batch fetch missing.jsonl", "no batch jobs"),
    ] {
        let output = cog(&place, Wire::OpenAi, &mock, args).output().unwrap();
        assert_eq!(exit(&output), Some(2), "{args}: {}", stderr(&output));
        assert!(stderr(&output).contains(text), "{args}: {}", stderr(&output));
    }
    assert!(mock.requests().is_empty());
}

#[test]
fn jobs_over_the_limit_of_the_queue_are_sent_when_one_ends() {
    let place = place();
    let batches = jobs(&place).room(1);
    let mock = vendor(&batches);
    place.write("rows.jsonl", FIVE);
    let output = via(&place, Wire::OpenAi, &mock, "--job-rows 2").output().unwrap();
    assert_eq!(exit(&output), Some(0), "{}", stderr(&output));
    assert_eq!(codes(&rows(&place)), ["ok"; 5]);
    let jobs = batches.jobs();
    let sent = |state: &str| jobs.iter().filter(|job| job["state"] == state).map(entries).sum::<usize>();
    assert_eq!(sent("ended"), 5, "each row is in one job that ran");
    assert!(sent("refused") > 0, "{jobs:?}");
}

#[test]
fn no_row_is_lost_when_jobs_are_refused_while_others_are_sent_again() {
    let place = place();
    let batches = jobs(&place).room(1);
    let mock = vendor(&batches);
    let rows: String = (0..20).map(|row| format!("\"row {row}\"\n")).collect();
    place.write("rows.jsonl", rows);
    let output = via(&place, Wire::OpenAi, &mock, "--job-rows 3").output().unwrap();
    assert_eq!((exit(&output), codes(&self::rows(&place))), (Some(0), vec!["ok"; 20]), "{}", stderr(&output));
    let ended: Vec<_> = batches.jobs().into_iter().filter(|job| job["state"] == "ended").collect();
    assert_eq!(ended.iter().map(entries).collect::<Vec<_>>(), [3, 3, 3, 3, 3, 3, 2]);
}

fn entries(job: &Value) -> usize {
    job["entries"].as_array().unwrap().len()
}

#[test]
fn job_that_finds_no_room_is_told_with_what_to_do() {
    let place = place();
    let mock = vendor(&jobs(&place).room(0));
    place.write("rows.jsonl", FIVE);
    let output = via(&place, Wire::OpenAi, &mock, "--job-rows 4").output().unwrap();
    assert_eq!(exit(&output), Some(4), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("no room for a job of 4 rows: Enqueued token limit"), "{said}");
    assert!(said.contains("--job-rows 2"), "{said}");
    // The same command with smaller jobs sends the rows, each once.
    let batches = jobs(&place);
    let mock = vendor(&batches);
    let output = via(&place, Wire::OpenAi, &mock, "--job-rows 2").output().unwrap();
    assert_eq!((exit(&output), codes(&rows(&place))), (Some(0), vec!["ok"; 5]), "{}", stderr(&output));
    let ended: Vec<_> = batches.jobs().into_iter().filter(|job| job["state"] == "ended").collect();
    assert_eq!(ended.iter().map(entries).collect::<Vec<_>>(), [2, 2, 1]);
}

#[test]
fn files_of_jobs_are_deleted_once_the_output_is_complete() {
    let place = place();
    let batches = jobs(&place);
    let mock = vendor(&batches);
    place.write("rows.jsonl", "\"one\"\n\"bad\"\n");
    via(&place, Wire::OpenAi, &mock, "--no-wait").output().unwrap();
    assert!(batches.deleted().is_empty());
    let output = via(&place, Wire::OpenAi, &mock, "").output().unwrap();
    assert_eq!(exit(&output), Some(1), "{}", stderr(&output));
    assert_eq!(batches.deleted(), ["file-mock-1", "file-output-1", "file-error-1"]);
}

#[test]
fn batch_is_found_from_any_directory_and_after_it_was_moved() {
    let place = place();
    let mock = vendor(&jobs(&place));
    place.write("rows.jsonl", FIVE).write("elsewhere/there", "");
    let live =
        cog(&place, Wire::OpenAi, &mock, "batch ./m rows.jsonl -o live.jsonl --sample 2").output().unwrap();
    assert_eq!(exit(&live), Some(0), "{}", stderr(&live));
    via(&place, Wire::OpenAi, &mock, "--no-wait").output().unwrap();
    let moved = place.path().join("moved");
    std::fs::create_dir(&moved).unwrap();
    for name in
        ["m", "rows.jsonl", "out.jsonl.jobs", "out.jsonl.journal", "out.jsonl.results", "live.jsonl.journal"]
    {
        std::fs::rename(place.path().join(name), moved.join(name)).unwrap();
    }
    let from = |args: &str| {
        let mut command = cog(&place, Wire::OpenAi, &mock, args);
        command.current_dir(place.path().join("elsewhere")).output().unwrap()
    };
    let status = from("batch status ../moved/live.jsonl --format json");
    let found: Value = serde_json::from_str(&stdout(&status)).unwrap();
    assert_eq!((&found["state"], &found["runs"]), (&"stopped".into(), &"live".into()), "{found}");
    assert_eq!(found["rows"], serde_json::json!({ "done": 2, "failed": 0 }));
    let status = from("batch status ../moved/out.jsonl --format json");
    let found: Value = serde_json::from_str(&stdout(&status)).unwrap();
    assert_eq!((&found["state"], &found["runs"]), (&"jobs".into(), &"openai".into()), "{found}");
    assert_eq!((&found["jobs"][0]["requests"], found["jobs"].as_array().unwrap().len()), (&5.into(), 1));
    let fetch = from("batch fetch ../moved/out.jsonl");
    assert_eq!(exit(&fetch), Some(0), "{}", stderr(&fetch));
    assert_eq!(place.read("moved/out.jsonl").lines().count(), 5);
    let complete = from("batch status ../moved/out.jsonl");
    assert_eq!((stdout(&complete).as_str(), exit(&complete)), ("state   complete\n", Some(0)));
    let none = from("batch status nothing.jsonl");
    assert_eq!(exit(&none), Some(2));
    assert!(stderr(&none).contains("no batch has the output nothing.jsonl"), "{}", stderr(&none));
}
