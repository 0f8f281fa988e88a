//! `cog cite check` on answers and sources.

use serde_json::json;

use crate::{
    media_read::document,
    support::{Place, json, snapshot, with_stdin},
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
        (strict.status.code(), json(&strict)["citations"][0]["score"].clone()),
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
    let findings = json(&output)["findings"].clone();
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
