//! `cog cite check` on answers and sources.

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::{
    media_read::document,
    support::{Place, json as parsed, snapshot, with_stdin},
};

fn answer() -> serde_json::Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "x" },
        "data": {
            "answer": "First <cite id=\"a\"/>, then <cite id=\"b\"/> <cite id=\"gone\"/> <cite id=\"c\">.",
            "citation_map": {
                "a": { "source_type": "pdf_document", "source_id": "pdf",
                    "location": { "page_number": 3, "text_snippet": "Three", "bbox": [72, 700, 300, 792] } },
                "b": { "source_type": "pdf_document", "source_id": "pdf",
                    "location": { "page_number": 1, "text_snippet": "Three", "bbox": [72, 700, 300, 793] } },
                "c": { "source_type": "text", "source_id": "notes", "score": 2 },
                "d": { "source_type": "text", "source_id": "notes",
                    "location": { "text_snippet": "Costs fell by 20% in the last year." } },
                "e": { "source_type": "text", "source_id": "lost" },
            },
        },
    })
}

fn place() -> Place {
    let place = Place::new();
    let sized = document().replace("/Count 3", "/Count 3 /MediaBox [0 0 612 792]");
    place.write("answer.json", answer().to_string()).write("a.pdf", sized);
    place.write("notes.txt", "Costs fell by 2%\nin the last year.");
    place
}

const SOURCES: [&str; 6] =
    ["--source", "pdf=a.pdf", "--source", "notes=notes.txt", "--source", "lost=missing.txt"];

#[test]
fn every_finding_is_listed() {
    let arguments = ["cite", "check", "answer.json", "--format", "human"];
    snapshot!(place().cog(arguments.into_iter().chain(SOURCES)));
}

#[test]
fn report_as_json() {
    snapshot!(place().cog(["cite", "check", "answer.json"].into_iter().chain(SOURCES)));
}

#[test]
fn score_below_the_minimum_fails() {
    let place = place();
    let data =
        json!({ "t": "<cite id=\"d\"/>", "citation_map": { "d": answer()["data"]["citation_map"]["d"] } });
    let check = |score: &str| {
        let command = place.cog(["cite", "check", "-", "--source", "notes=notes.txt", "--min-score", score]);
        with_stdin(command, &data.to_string())
    };
    let strict = check("1");
    assert_eq!(
        (strict.status.code(), parsed(&strict)["citations"][0]["score"].clone()),
        (Some(1), json!(0.75))
    );
    assert_eq!(check("0.7").status.code(), Some(0));
    assert_eq!(check("1.5").status.code(), Some(2));
}

#[test]
fn encrypted_source_is_a_finding() {
    let place = place();
    let encrypted =
        document().replace("/Root 1 0 R", "/Root 1 0 R /Encrypt << /Filter /Standard /V 1 /R 2 >>");
    place.write("a.pdf", encrypted);
    let output = place.cog(["cite", "check", "answer.json", "--source", "pdf=a.pdf"]).output().unwrap();
    let findings = parsed(&output)["findings"].clone();
    let rules: Vec<_> = findings.as_array().unwrap().iter().map(|finding| &finding["rule"]).collect();
    assert_eq!(rules.iter().filter(|rule| **rule == "source").count(), 2, "{findings}");
}

#[test]
fn source_that_no_citation_names_is_reported() {
    snapshot!(place().cog([
        "cite",
        "check",
        "answer.json",
        "--source",
        "other=notes.txt",
        "--format",
        "human"
    ]));
}

/// Runs a module with a PDF as its input and an answer that cites it. Returns the envelope.
fn run(tier: &str, source: &str, page: u32, snippet: &str) -> Value {
    let place = Place::new();
    let manifest = format!("name: m\nversion: 1.0.0\nresponsibility: Read\ntier: {tier}\nexcludes: []\n");
    let media = "modalities: {input: [text, document], output: [text]}\n";
    let schema = r##"{"input": {"properties": {"paper": {"$ref": "#/$defs/MediaInput"}}},
        "data": {"properties": {"t": {}, "rationale": {}, "citation_map": {}}}}"##;
    place.write("a.pdf", document()).write("m/prompt.md", "Read $MEDIA_INPUTS");
    place.write("m/module.yaml", manifest + media).write("m/schema.json", schema);
    let location = json!({ "page_number": page, "text_snippet": snippet });
    let entry = json!({ "source_type": "pdf_document", "source_id": source, "location": location });
    let data = json!({ "t": "So <cite id=\"a\"/>.", "rationale": "r", "citation_map": { "a": entry } });
    let meta = json!({ "confidence": 0.95, "risk": "low", "explain": "x" });
    let mock = Mock::start([Reply::text(json!({ "ok": true, "meta": meta, "data": data }).to_string())]);
    let mut command = place.cog(["run", "./m", "--pdf", "a.pdf", "--provider", "anthropic"]);
    command.env("ANTHROPIC_API_KEY", "k").env("ANTHROPIC_BASE_URL", mock.base_url(Wire::Anthropic));
    parsed(&command.output().unwrap())
}

#[test]
fn run_compares_citations_with_the_pages_of_a_pdf() {
    for (source, page, snippet, expected) in [
        ("paper", 3, "Three", ""),
        ("media 1", 3, "Three", ""),
        ("a.pdf", 1, "One", ""),
        ("elsewhere", 1, "Three", ""),
        ("paper", 1, "Three", "location.page_number`: the snippet is on page 3"),
        ("paper", 4, "Three", "location.page_number`: the source has no page 4"),
        ("media 1", 3, "Four hundred", "location.text_snippet`: the snippet is not in the source"),
    ] {
        let envelope = run("decision", source, page, snippet);
        let warnings = envelope["_warnings"].as_array().into_iter().flatten();
        let found: Vec<_> = warnings.filter(|warning| warning["code"] == "W3006").collect();
        let text = found.first().map_or("", |warning| warning["message"].as_str().unwrap());
        assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{source}: {envelope}");
    }
}

#[test]
fn run_in_tier_exec_fails_if_a_snippet_is_not_in_the_pdf() {
    assert_eq!(run("exec", "paper", 3, "Three")["ok"], true);
    let failed = run("exec", "paper", 3, "Four hundred");
    assert_eq!(failed["error"]["code"], "E3006", "{failed}");
    let citations = &failed["error"]["details"]["citations"];
    assert_eq!(citations[0]["path"], "data.citation_map.a.location.text_snippet");
    assert_eq!(failed["partial_data"]["t"], "So <cite id=\"a\"/>.");
}
