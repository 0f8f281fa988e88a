//! Exports to a collector that accepts, refuses, or does not answer.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, UNIX_EPOCH},
};

use cog_run::{
    Providers, Runtime,
    events::{Span, SpanContext, ToolOutcome, ToolReport},
};
use cog_telemetry::{Telemetry, TelemetrySettings};

/// A collector that gives these responses in turn, and repeats the last one. An empty one is never sent.
struct Collector {
    url: String,
    /// The path and the size of each request.
    received: Arc<Mutex<Vec<(String, u64)>>>,
}

impl Collector {
    fn start(responses: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<_>>>::default();
        let (all, next) = (Arc::clone(&received), Arc::new(AtomicUsize::new(0)));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (all, next) = (Arc::clone(&all), Arc::clone(&next));
                thread::spawn(move || while answer(&stream, responses, &all, &next).is_some() {});
            }
        });
        Self { url, received }
    }

    fn paths(&self) -> Vec<String> {
        self.received.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

fn answer(
    mut stream: &TcpStream,
    responses: &[&str],
    all: &Mutex<Vec<(String, u64)>>,
    next: &AtomicUsize,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    reader.read_line(&mut head).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let size = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).ok()?;
    all.lock().unwrap().push((path, size));
    let number = next.fetch_add(1, Ordering::SeqCst).min(responses.len() - 1);
    let response = responses.get(number)?;
    if response.is_empty() {
        thread::park();
    }
    stream.write_all(response.as_bytes()).ok()
}

const ACCEPTED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
const REFUSED: &str = "HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n";
/// `partial_success { rejected_spans: 3 }`.
const PARTIAL: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\x0a\x02\x08\x03";

fn telemetry(url: &str, variables: &[(&str, &str)]) -> Telemetry {
    let found = TelemetrySettings::read(|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(url.to_owned()),
        _ => variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()),
    });
    assert_eq!(found.notes, Vec::<String>::new());
    Telemetry::new(found.settings.unwrap(), Arc::new(str::to_owned))
}

const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Ends this number of spans, as the runtime does.
fn end_spans(telemetry: &Telemetry, count: usize) {
    let events = telemetry.events();
    let mut context = SpanContext::parse(CONTEXT, None).unwrap();
    context.is_sampled = events.samples(None, context.trace_id);
    let (started, duration) = (UNIX_EPOCH, Duration::from_secs(1));
    let span = Some(Span { context: &context, parent: None, started, duration });
    let outcome = ToolOutcome::Returned;
    for _ in 0..count {
        events.tool_ended(&ToolReport {
            span,
            name: "t",
            call_id: "c",
            arguments_sha256: "",
            decision: None,
            outcome,
            arguments: None,
            result: None,
        });
    }
}

#[test]
fn what_is_left_is_exported_at_the_end() {
    let collector = Collector::start(&[ACCEPTED]);
    let telemetry = telemetry(&collector.url, &[]);
    end_spans(&telemetry, 3);
    assert_eq!(telemetry.close(Telemetry::CLOSE_TIMEOUT), Default::default());
    assert_eq!(collector.paths(), ["/v1/traces"]);
}

#[test]
fn nothing_starts_without_a_span() {
    let collector = Collector::start(&[ACCEPTED]);
    let telemetry = telemetry(&collector.url, &[]);
    let _runtime =
        Runtime::builder().providers(Providers::offline()).events(telemetry.events()).build().unwrap();
    telemetry.close(Telemetry::CLOSE_TIMEOUT);
    assert_eq!(collector.paths(), Vec::<String>::new());
}

#[test]
fn busy_collector_gets_the_same_spans_again() {
    let collector = Collector::start(&[BUSY, BUSY, ACCEPTED]);
    let telemetry = telemetry(&collector.url, &[("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")]);
    end_spans(&telemetry, 2);
    while collector.paths().len() < 3 {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(telemetry.close(Telemetry::CLOSE_TIMEOUT), Default::default());
    let received = collector.received.lock().unwrap().clone();
    assert_eq!((received[0].clone(), received[1].clone()), (received[1].clone(), received[2].clone()));
}

#[test]
fn refused_spans_are_counted() {
    for (response, lost) in [(&[REFUSED][..], 5), (&[PARTIAL], 3)] {
        let collector = Collector::start(if lost == 5 { &[REFUSED] } else { &[PARTIAL] });
        let telemetry = telemetry(&collector.url, &[("OTEL_METRICS_EXPORTER", "none")]);
        end_spans(&telemetry, 5);
        let undelivered = telemetry.close(Telemetry::CLOSE_TIMEOUT);
        assert_eq!(undelivered.spans, lost, "{response:?}");
        assert!(undelivered.reason.unwrap().contains(&collector.url));
    }
}

#[test]
fn full_queue_drops_and_counts() {
    let collector = Collector::start(&[""]);
    let variables = [("OTEL_BSP_MAX_QUEUE_SIZE", "10"), ("OTEL_METRICS_EXPORTER", "none")];
    let telemetry = telemetry(&collector.url, &variables);
    end_spans(&telemetry, 100);
    let undelivered = telemetry.close(Duration::from_millis(50));
    assert_eq!(undelivered.spans, 100, "{undelivered:?}");
    assert_eq!(telemetry.close(Duration::from_secs(60)), undelivered, "the end is not awaited twice");
}

#[test]
fn collector_that_is_gone_loses_everything_and_holds_up_nothing() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let telemetry = telemetry(&format!("http://{gone}"), &[]);
    end_spans(&telemetry, 7);
    let undelivered = telemetry.close(Duration::from_secs(60));
    assert_eq!((undelivered.spans, undelivered.exports), (7, 1));
}

#[test]
fn traces_that_are_not_sampled_are_not_exported() {
    let collector = Collector::start(&[ACCEPTED]);
    let telemetry = telemetry(&collector.url, &[("OTEL_TRACES_SAMPLER", "always_off")]);
    end_spans(&telemetry, 3);
    assert_eq!(telemetry.close(Telemetry::CLOSE_TIMEOUT), Default::default());
    assert_eq!(collector.paths(), Vec::<String>::new());
}
