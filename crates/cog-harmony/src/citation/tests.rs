use cog_json::Value;

use super::*;

fn run(text: &str, sources: &Sources) -> CitationReport {
    check(Value::parse(text).unwrap().node(), sources, 1.0)
}

/// The findings, each as `path rule`.
fn findings(report: &CitationReport) -> Vec<String> {
    report.findings.iter().map(|finding| format!("{} {}", finding.path, finding.rule)).collect()
}

fn found(text: &str) -> Vec<String> {
    findings(&run(text, &Sources::new()))
}

const MAP: &str = r#""citation_map": {"a": {"source_type": "pdf_document", "source_id": "doc"}}"#;

#[test]
fn accepts_the_example_of_the_appendix() {
    let text = r#"{"text": "Revenue grew <cite id=\"cit_01\"/>, and so did cloud <cite id=\"cit_02\"/>.",
        "citation_map": {
            "cit_01": {"source_type": "pdf_document", "source_id": "doc_fin_report_2023",
                "source_name": "2023_Financial_Report.pdf",
                "location": {"page_number": 42, "bbox": [100, 200, 500, 600],
                    "text_snippet": "Revenue increased by 20% YoY."}, "score": 0.89},
            "cit_02": {"source_type": "web_search", "url": "https://wikipedia.org/wiki/Cloud",
                "access_date": "2024-03-20"}}}"#;
    let report = run(text, &Sources::new());
    assert_eq!((report.anchors, findings(&report)), (2, vec![]));
    let used: Vec<_> =
        report.citations.iter().map(|one| (one.id.as_str(), one.anchors, one.checked)).collect();
    assert_eq!(used, [("cit_01", 1, false), ("cit_02", 1, false)]);
}

#[test]
fn anchors_are_found_in_every_string() {
    let text = format!(r#"{{"a": ["x", {{"b": "<cite id=\"nope\"/>"}}], "c": "<cite id=\"a\"/>", {MAP}}}"#);
    assert_eq!(found(&text), ["a[1].b unresolved"]);
    let text = format!(r#"{{"c": "<cite id=\"a\"/><cite>", {MAP}}}"#);
    assert_eq!(found(&text), ["c anchor"]);
}

#[test]
fn every_citation_is_used() {
    assert_eq!(found(&format!("{{{MAP}}}")), ["citation_map.a unused"]);
}

#[test]
fn snippets_in_the_map_are_not_searched_for_anchors() {
    let text = r#"{"t": "<cite id=\"a\"/>", "citation_map": {"a": {"source_type": "t", "source_id": "s",
        "location": {"text_snippet": "write <cite id=\"b\"/>"}}}}"#;
    assert_eq!(found(text), [""; 0]);
}

#[test]
fn map_is_in_metadata_or_a_context_block() {
    let anchor = r#""content": "x <cite id=\"a\"/>""#;
    for block in ["metadata", "context_block"] {
        assert_eq!(found(&format!(r#"{{{anchor}, "{block}": {{{MAP}}}}}"#)), [""; 0], "{block}");
        assert_eq!(found(&format!(r#"{{"ok": true, "data": {{{anchor}, "{block}": {{{MAP}}}}}}}"#)), [""; 0]);
    }
    let messages = format!(
        r#"[{{"role": "user", "content": "hi"}}, {{"role": "assistant", {anchor}}},
        {{"role": "assistant", {anchor}, "metadata": {{{MAP}}}}}]"#
    );
    assert_eq!(found(&messages), ["[1].content unresolved"]);
}

#[test]
fn data_without_a_map_have_no_citations() {
    let data = Value::parse(r#"{"t": "<cite id=\"a\"/>"}"#).unwrap();
    assert_eq!(check_data(data.node(), None, &Sources::new()), []);
    let data = Value::parse(r#"{"t": "<cite id=\"a\"/>", "citation_map": {}}"#).unwrap();
    assert_eq!(check_data(data.node(), None, &Sources::new())[0].path, "data.t");
}

#[test]
fn snippets_are_compared_with_the_texts_of_the_input() {
    let input = r#"{"report": "Revenue increased by 20%.", "documents": [
        {"id": "a", "title": "A", "text": "Costs fell."}, {"source_id": "b", "content": "Sales rose."}]}"#;
    let input = Value::parse(input).unwrap();
    let others = Sources::from([("paper".to_owned(), Source::from_text("Prices doubled."))]);
    let found = |source: &str, snippet: &str| {
        let data = format!(
            r#"{{"t": "<cite id=\"x\"/>", "citation_map": {{"x": {{"source_type": "text", "source_id": "{source}",
                "location": {{"text_snippet": "{snippet}"}}}}}}}}"#
        );
        let findings = check_data(Value::parse(&data).unwrap().node(), Some(input.node()), &others);
        findings.into_iter().map(|finding| finding.rule).collect::<Vec<_>>()
    };
    for (source, snippet) in [
        ("report", "increased by 20%"),
        ("a", "Costs fell"),
        ("b", "Sales rose"),
        ("paper", "Prices doubled"),
    ] {
        assert_eq!(found(source, snippet), [""; 0], "{source}");
        assert_eq!(found(source, "Something different happened"), ["text_snippet"], "{source}");
    }
    assert_eq!(
        found("elsewhere", "Something different happened"),
        [""; 0],
        "this source is not in the input"
    );
}

#[test]
fn names_each_rule_of_a_citation() {
    let entry = |entry: &str| {
        let text = format!(r#"{{"t": "<cite id=\"a\"/>", "citation_map": {{"a": {entry}}}}}"#);
        found(&text).into_iter().map(|one| one.replace("citation_map.a", "~")).collect::<Vec<_>>()
    };
    assert_eq!(entry("1"), ["~ type"]);
    assert_eq!(entry("{}"), ["~.source_type required", "~.source_id required"]);
    assert_eq!(entry(r#"{"source_type": "web_search"}"#), ["~.url required"]);
    let web =
        |rest: &str| entry(&format!(r#"{{"source_type": "web_search", "url": "https://e.org", {rest}}}"#));
    assert_eq!(web(r#""access_date": "20 March""#), ["~.access_date access_date"]);
    assert_eq!(web(r#""score": 1.01"#), ["~.score score"]);
    assert_eq!(web(r#""score": "0.5""#), ["~.score score"]);
    assert_eq!(web(r#""score": 1, "location": null"#), [""; 0]);
    assert_eq!(web(r#""url": "javascript:alert(1)""#), ["~.url url"]);
    let location = |rest: &str| web(&format!(r#""location": {{{rest}}}"#));
    assert_eq!(location(r#""page_number": 0"#), ["~.location.page_number page_number"]);
    assert_eq!(location(r#""text_snippet": " ""#), ["~.location.text_snippet type"]);
    for bbox in [
        "[1, 2, 3]",
        "[3, 0, 1, 1]",
        "[1, 0, 1, 1]",
        "[0, 0, 1, 0]",
        "[-1, 0, 1, 1]",
        "[0, 0, \"1\", 1]",
        "{}",
    ] {
        assert_eq!(location(&format!(r#""bbox": {bbox}"#)), ["~.location.bbox bbox"], "{bbox}");
    }
    assert_eq!(location(r#""timestamp_sec": -1"#), ["~.location.timestamp_sec timestamp_sec"]);
    assert_eq!(location(r#""timestamp_sec": 2, "end_sec": 1"#), ["~.location.end_sec end_sec"]);
    assert_eq!(location(r#""timestamp_sec": 2, "end_sec": 2"#), [""; 0]);
    assert_eq!(location(r#""end_sec": 1"#), ["~.location.end_sec end_sec"]);
    assert_eq!(entry(r#"{"source_type": "x", "source_id": "y", "location": []}"#), ["~.location type"]);
}

#[test]
fn map_is_an_object() {
    assert_eq!(found(r#"{"citation_map": []}"#), ["citation_map type"]);
}

fn grounded(location: &str, source: Source) -> CitationReport {
    let text = format!(
        r#"{{"t": "<cite id=\"a\"/>", "citation_map":
            {{"a": {{"source_type": "x", "source_id": "s", "location": {location}}}}}}}"#
    );
    run(&text, &Sources::from([("s".to_owned(), source)]))
}

fn document() -> Source {
    let page = |number, text: &str| SourcePage { number, text: text.to_owned(), size: Some((600.0, 800.0)) };
    Source::from_pages([page(1, "Costs fell by 5%. It ends"), page(2, "here. Revenue increased by 20% YoY.")])
}

#[test]
fn snippet_is_on_its_page() {
    let report = grounded(r#"{"page_number": 2, "text_snippet": "Revenue increased by 20%"}"#, document());
    assert_eq!((findings(&report), report.citations[0].score), (vec![], Some(1.0)));
    let report = grounded(r#"{"text_snippet": "Revenue increased by 20%"}"#, document());
    assert_eq!(report.citations[0].page, Some(2));
    let report = grounded(r#"{"page_number": 1, "text_snippet": "It ends here"}"#, document());
    assert_eq!(findings(&report), [""; 0]);
}

#[test]
fn snippet_on_another_page_is_a_finding_with_that_page() {
    let report = grounded(r#"{"page_number": 1, "text_snippet": "Revenue increased"}"#, document());
    assert_eq!(findings(&report), ["citation_map.a.location.page_number page_number"]);
    assert_eq!(report.citations[0].page, Some(2));
}

#[test]
fn altered_snippet_is_a_finding_with_its_score() {
    let location = r#"{"text_snippet": "Revenue increased by 30% YoY"}"#;
    let report = grounded(location, document());
    assert_eq!(findings(&report), ["citation_map.a.location.text_snippet text_snippet"]);
    assert_eq!(report.citations[0].score, Some(0.6));
    let text = format!(
        r#"{{"t": "<cite id=\"a\"/>", "citation_map":
        {{"a": {{"source_type": "x", "source_id": "s", "location": {location}}}}}}}"#
    );
    let sources = Sources::from([("s".to_owned(), document())]);
    assert_eq!(check(Value::parse(&text).unwrap().node(), &sources, 0.6).findings, []);
}

#[test]
fn snippet_is_compared_although_another_field_is_wrong() {
    let text = r#"{"t": "<cite id=\"a\"/>", "citation_map": {"a": {"source_type": "x", "source_id": "s", "score": 3,
        "location": {"text_snippet": "Revenue increased by 30% YoY"}}}}"#;
    let report = run(text, &Sources::from([("s".to_owned(), document())]));
    assert_eq!(
        findings(&report),
        ["citation_map.a.score score", "citation_map.a.location.text_snippet text_snippet"]
    );
}

#[test]
fn box_page_and_time_are_within_the_source() {
    let inside = grounded(r#"{"page_number": 2, "bbox": [0, 0, 600, 800]}"#, document());
    assert_eq!(findings(&inside), [""; 0]);
    for bbox in ["[0, 0, 601, 800]", "[0, 0, 600, 801]"] {
        let outside = grounded(&format!(r#"{{"page_number": 2, "bbox": {bbox}}}"#), document());
        assert_eq!(findings(&outside), ["citation_map.a.location.bbox bbox"], "{bbox}");
    }
    let missing = grounded(r#"{"page_number": 3}"#, document());
    assert_eq!(findings(&missing), ["citation_map.a.location.page_number page_number"]);
    let recording = || Source::from_recording(10.0);
    assert_eq!(findings(&grounded(r#"{"timestamp_sec": 9.5, "end_sec": 10}"#, recording())), [""; 0]);
    let late = grounded(r#"{"timestamp_sec": 9.5, "end_sec": 10.5}"#, recording());
    assert_eq!(findings(&late), ["citation_map.a.location.end_sec timestamp_sec"]);
    let image = grounded(r#"{"bbox": [0, 0, 5, 3]}"#, Source::from_image((4.0, 4.0)));
    assert_eq!(findings(&image), ["citation_map.a.location.bbox bbox"]);
}

#[test]
fn unreadable_source_is_a_finding() {
    let report = grounded(r#"{"text_snippet": "x"}"#, Source::unreadable("it is encrypted"));
    assert_eq!(findings(&report), ["citation_map.a.source_id source"]);
    assert_eq!(report.citations[0].score, None);
}

#[test]
fn hundred_thousand_anchors_are_counted() {
    let text =
        format!(r#"{{"t": "{}", {MAP}}}"#, "<cite id=\\\"a\\\"/> <cite id=\\\"b\\\"/> ".repeat(50_000));
    let report = run(&text, &Sources::new());
    assert_eq!(
        (report.anchors, report.citations[0].anchors, report.findings.len()),
        (100_000, 50_000, 50_000)
    );
}

#[test]
fn cited_sources_have_an_identifier_or_a_url() {
    let text =
        r#"{"citation_map": {"a": {"source_id": "doc", "url": 1}, "b": {"url": "https://e.org"}, "c": 1}}"#;
    assert_eq!(source_ids(Value::parse(text).unwrap().node()), HashSet::from(["doc", "https://e.org"]));
}

#[test]
fn reads_anchors_in_order() {
    let text = "a <cite id=\"x\"/> b <cite  id = 'y' /><cited><CITED><citë";
    assert_eq!(anchors(text).collect::<Vec<_>>(), [Anchor::Id("x"), Anchor::Id("y")]);
}

#[test]
fn names_what_is_wrong_with_an_anchor() {
    for (text, part) in [
        ("<cite", "no `>`"),
        ("<cite id=\"a\"", "no `>`"),
        ("<cite id=\"a\">", "end with `/>`"),
        ("<cite/>", "no `id"),
        ("<cite id=\"\"/>", "no `id"),
        ("<cite id=a/>", "no `id"),
        ("<cite id=\"a\" page=\"2\"/>", "more than that"),
        ("<cite <cite id=\"a\"/>", "inside it"),
        ("<CITE id=\"a\"/>", "small letters"),
        ("<Cite/>", "small letters"),
    ] {
        let Some(Anchor::Malformed(what)) = anchors(text).next() else { panic!("{text}") };
        assert!(what.contains(part), "{text}: {what}");
    }
    let id = "x".repeat(MAX_ANCHOR - "<cite id=\"\"/>".len());
    assert_eq!(anchors(&format!("<cite id=\"{id}\"/>")).next(), Some(Anchor::Id(&id)));
    let long = format!("<cite id=\"{id}x\"/>");
    assert_eq!(anchors(&long).next(), Some(Anchor::Malformed("it has no `>`")));
}

#[test]
fn inner_anchor_of_a_malformed_one_counts() {
    let found: Vec<_> = anchors("<cite <cite id=\"a\"/>").collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[1], Anchor::Id("a"));
}

#[test]
fn every_prefix_of_an_anchor_is_unfinished() {
    let anchor = "<cite id=\"cit_01\"/>";
    for end in 1..anchor.len() {
        assert_eq!(unfinished_anchor(&format!("é{}", &anchor[..end])), 2, "{end}");
    }
    assert_eq!(unfinished_anchor(anchor), anchor.len());
}

#[test]
fn other_text_is_not_unfinished() {
    for text in ["", "a", "<b", "<cited", "a <c> b", "1 < 2", "</cite"] {
        assert_eq!(unfinished_anchor(text), text.len(), "{text}");
    }
}

#[test]
fn holds_back_at_most_the_length_of_an_anchor() {
    let text = format!("é<cite {}", "ü".repeat(MAX_ANCHOR));
    assert_eq!(unfinished_anchor(&text), text.len());
}
