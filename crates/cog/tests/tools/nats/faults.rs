//! Workers that are killed, and a server that goes away.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    time::Duration,
};

use cog_testkit::{Mock, Reply};

use super::{ANSWER, Client, Nats, Working, cog, eventually, place};

fn is_asked(mock: &Mock, count: usize) {
    eventually("the mock is not asked", || (mock.requests().len() >= count).then_some(()));
}

#[test]
fn job_of_a_killed_worker_is_run_by_another_one() {
    let (nats, place) = (Nats::start(), place());
    let mock =
        Mock::start([Reply::text(ANSWER).delay(Duration::from_secs(600)).when("lost"), Reply::text(ANSWER)]);
    let working = Mock::start([Reply::text(ANSWER)]);
    let client = Client::new(&nats);
    let mut killed = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    client.add("f.1", "lost");
    client.add("f.2", "kept");
    is_asked(&mock, 2);
    client.envelope("f.2");
    killed.child.kill().unwrap();
    let worker = Working::start(cog(place.path(), &working, &["worker", "--nats", &nats.url()]));
    assert_eq!(client.envelope("f.1")["ok"], true);
    client.all_done();
    worker.stop();
    assert_eq!((mock.requests().len(), working.requests().len()), (2, 1));
}

#[test]
fn long_run_is_not_delivered_to_another_worker() {
    let (nats, place) = (Nats::start(), place());
    // Longer than the time after which a job is delivered again.
    let mock = Mock::start([Reply::text(ANSWER).delay(Duration::from_secs(6))]);
    let client = Client::new(&nats);
    client.add("g.1", "long");
    let args = ["worker", "--nats", &nats.url()];
    let workers = [0, 1].map(|_| Working::start(cog(place.path(), &mock, &args)));
    assert_eq!(client.envelope("g.1")["ok"], true);
    client.all_done();
    workers.into_iter().for_each(|worker| drop(worker.stop()));
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn result_is_stored_once_the_server_is_back() {
    let (mut nats, place) = (Nats::start(), place());
    let mock = Mock::start([Reply::text(ANSWER).delay(Duration::from_secs(4))]);
    let client = Client::new(&nats);
    client.add("h.1", "patient");
    let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    is_asked(&mock, 1);
    nats.kill();
    nats.run();
    assert_eq!(client.envelope("h.1")["ok"], true);
    client.all_done();
    worker.stop();
    assert_eq!(mock.requests().len(), 1, "the job was paid twice");
}

#[test]
fn worker_goes_on_with_a_server_that_has_lost_everything() {
    let (mut nats, place) = (Nats::start(), place());
    let mock =
        Mock::start([Reply::text(ANSWER).delay(Duration::from_secs(2)).when("during"), Reply::text(ANSWER)]);
    let worker = {
        let client = Client::new(&nats);
        client.add("i.1", "during");
        let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
        is_asked(&mock, 1);
        nats.kill();
        nats.forget();
        nats.run();
        worker
    };
    let client = Client::new(&nats);
    client.add("i.2", "after");
    for id in ["i.1", "i.2"] {
        assert_eq!(client.envelope(id)["ok"], true, "{id}");
    }
    client.all_done();
    assert!(worker.stop().contains("2 jobs succeeded"));
    assert_eq!(mock.requests().len(), 2);
}

#[test]
fn outage_is_logged_when_it_begins_and_when_it_ends() {
    let (mut nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let worker = Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()]));
    nats.kill();
    // Several attempts to connect.
    std::thread::sleep(Duration::from_secs(3));
    nats.run();
    let client = Client::new(&nats);
    client.add("o.1", "after");
    client.envelope("o.1");
    client.all_done();
    let messages = worker.stop();
    let count = |text: &str| messages.matches(text).count();
    assert_eq!((count("NATS is lost"), count("NATS is back")), (1, 1), "{messages}");
    // A server that starts may end a connection before it is refused no more.
    assert!((1..=2).contains(&count("the connection to NATS has an error")), "{messages}");
}

#[test]
fn worker_ends_while_the_server_is_away() {
    let (mut nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let args = ["worker", "--nats", &nats.url(), "--shutdown-timeout", "1s"];
    let mut worker = Working::start(cog(place.path(), &mock, &args));
    nats.kill();
    worker.signal("TERM");
    let status = eventually("the worker does not end", || worker.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn worker_that_cannot_create_its_streams_says_what_to_do() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start([Reply::text(ANSWER)]));
    let mut command = cog(place.path(), &mock, &["worker", "--nats", &nats.url()]);
    command.env("COG_NATS_REPLICAS", "3").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.into_iter().find(|line| line.contains("trying again")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        line.contains("cannot create the stream cog-jobs") && line.contains("COG_NATS_REPLICAS"),
        "{line}"
    );
}

#[test]
fn credentials_are_required_and_not_shown() {
    let (nats, place) = (Nats::with(&["--user", "me", "--pass", "nats-canary"]), place());
    let mock = Mock::start([Reply::text(ANSWER)]);
    let args = ["worker", "--nats", &nats.url(), "-vv"];
    for (user, password) in [("me", "wrong-canary"), ("", "")] {
        let mut command = cog(place.path(), &mock, &args);
        let output = command.env("COG_NATS_USER", user).env("COG_NATS_PASSWORD", password).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(1) && text.contains("E4007") && !text.contains("canary"),
            "{text}"
        );
    }
    let mut command = cog(place.path(), &mock, &args);
    command.env("COG_NATS_USER", "me").env("COG_NATS_PASSWORD", "nats-canary");
    let messages = Working::start(command).stop();
    assert!(!messages.contains("canary"), "{messages}");
}
