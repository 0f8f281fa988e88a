use super::*;

fn read(variables: &[(&str, &str)]) -> Found {
    TelemetrySettings::read(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

fn urls(variables: &[(&str, &str)]) -> (Option<String>, Option<String>) {
    let settings = read(variables).settings.unwrap();
    (settings.traces.map(|to| to.url), settings.metrics.map(|to| to.url))
}

const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");

#[test]
fn nothing_is_exported_by_default() {
    let on = [BASE];
    assert!(read(&on).settings.is_some());
    for off in [
        &[][..],
        &[("OTEL_SERVICE_NAME", "x")],
        &[BASE, ("OTEL_SDK_DISABLED", "TRUE")],
        &[BASE, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "  ")],
    ] {
        assert_eq!(read(off), Found::default(), "{off:?}");
    }
}

#[test]
fn endpoints_are_those_of_the_specification() {
    let url = |text: &str| Some(text.to_owned());
    let traces = "http://collector:4318/v1/traces";
    let metrics = "http://collector:4318/v1/metrics";
    assert_eq!(urls(&[BASE]), (url(traces), url(metrics)));
    assert_eq!(
        urls(&[BASE, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://other/as/it/is")]),
        (url("https://other/as/it/is"), url(metrics))
    );
    assert_eq!(urls(&[("OTEL_TRACES_EXPORTER", "otlp")]), (url("http://localhost:4318/v1/traces"), None));
    assert_eq!(urls(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m/x")]), (None, url("http://m/x")));
    assert_eq!(urls(&[BASE, ("OTEL_METRICS_EXPORTER", "none")]), (url(traces), None));
}

#[test]
fn what_is_not_supported_is_noted() {
    for (off, name) in [
        (("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), "use http/protobuf"),
        (("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"), "use http/protobuf"),
        (("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"), "is not a URL"),
    ] {
        let found = read(&[off, BASE]);
        assert_eq!(found.settings, None, "{off:?}");
        assert!(found.notes[0].contains(name), "{:?}", found.notes);
    }
    for (name, value) in [
        ("OTEL_TRACES_EXPORTER", "console"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "x.pem"),
        ("OTEL_TRACES_SAMPLER", "xray"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "none"),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "event_only"),
        ("OTEL_RESOURCE_ATTRIBUTES", "novalue"),
    ] {
        let found = read(&[BASE, (name, value)]);
        assert!(found.settings.is_some() && found.notes.len() == 1, "{name}: {:?}", found.notes);
        assert!(found.notes[0].contains(name), "{:?}", found.notes);
    }
}

#[test]
fn headers_are_decoded_and_hidden() {
    let found = read(&[
        BASE,
        ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20c2stY2FuYXJ5, x-a=1,broken-canary"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-b=2"),
    ]);
    let settings = found.settings.unwrap();
    let headers = |endpoint: &Option<Endpoint>| endpoint.as_ref().unwrap().headers();
    let traces = headers(&settings.traces);
    assert_eq!(traces[0], ("authorization".to_owned(), "Basic c2stY2FuYXJ5".to_owned()));
    assert_eq!(traces[1], ("x-a".to_owned(), "1".to_owned()));
    assert_eq!(headers(&settings.metrics)[0], ("x-b".to_owned(), "2".to_owned()));
    let shown = format!("{settings:?} {:?}", found.notes);
    assert!(!shown.contains("c2stY2FuYXJ5") && !shown.contains("canary"), "{shown}");
}

#[test]
fn resource_has_a_name_and_an_instance() {
    let resource = |variables: &[(&str, &str)]| read(variables).settings.unwrap().resource;
    let get = |resource: &[(String, String)], key: &str| {
        resource.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()).unwrap()
    };
    let default = resource(&[BASE]);
    assert_eq!(get(&default, "service.name"), "cog");
    let instance = get(&default, "service.instance.id");
    assert!(instance.len() == 36 && instance.as_bytes()[14] == b'4', "{instance}");
    assert_ne!(instance, get(&resource(&[BASE]), "service.instance.id"));
    let set = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,deployment.environment.name=x%20y");
    assert_eq!(get(&resource(&[BASE, set]), "deployment.environment.name"), "x y");
    assert_eq!(get(&resource(&[BASE, set]), "service.name"), "a");
    assert_eq!(get(&resource(&[BASE, set, ("OTEL_SERVICE_NAME", "b")]), "service.name"), "b");
}

#[test]
fn content_is_recorded_only_on_request() {
    const NAME: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    let records = |variables: &[(&str, &str)]| read(variables).settings.unwrap().records_content;
    assert!(!records(&[BASE]));
    for (value, expected) in [
        ("true", true),
        ("SPAN_ONLY", true),
        ("span_and_event", true),
        ("false", false),
        ("NO_CONTENT", false),
    ] {
        assert_eq!(records(&[BASE, (NAME, value)]), expected, "{value}");
    }
}

fn trace(low: u64) -> [u8; 16] {
    (u128::from(low) | 1 << 100).to_be_bytes()
}

#[test]
fn ratio_selects_by_the_trace() {
    let half = Sampler::read("traceidratio", Some("0.5")).unwrap();
    assert!(half.is_sampled(None, trace(0)) && half.is_sampled(None, trace(u64::MAX / 2 - 10_000)));
    assert!(!half.is_sampled(None, trace(u64::MAX)) && !half.is_sampled(None, trace(u64::MAX / 2 + 2)));
    let on = Sampler::read("always_on", None).unwrap();
    let off = Sampler::read("always_off", None).unwrap();
    assert!(on.is_sampled(None, trace(u64::MAX)) && !off.is_sampled(None, trace(0)));
}

#[test]
fn parent_decides_if_asked() {
    let parent = |is_sampled| SpanContext { trace_id: trace(1), span_id: [1; 8], is_sampled, state: None };
    let based = Sampler::default();
    let plain = Sampler { parent_based: false, ..Sampler::default() };
    assert!(
        !based.is_sampled(Some(&parent(false)), trace(1)) && plain.is_sampled(Some(&parent(false)), trace(1))
    );
    let never = Sampler::read("parentbased_always_off", None).unwrap();
    assert!(never.is_sampled(Some(&parent(true)), trace(1)) && !never.is_sampled(None, trace(1)));
}

#[test]
fn unknown_samplers_are_refused() {
    for (name, argument) in
        [("jaeger_remote", None), ("traceidratio", Some("2")), ("traceidratio", Some("x"))]
    {
        assert_eq!(Sampler::read(name, argument), None);
    }
}
