use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{BatchStep, Batches, Form, Request, count, lines, number, page};
use crate::{Reply, Wire};

/// The path to which files are sent.
const UPLOAD: &str = "/upload/v1beta/files";

const FORM: Form = Form {
    wire: |_| Wire::Gemini,
    id: |entry| entry["metadata"]["key"].as_str().unwrap_or_default(),
    body: |entry| &entry["request"],
};

pub(super) fn respond(
    batches: &Batches,
    request: &Request<'_>,
    answer: &mut dyn FnMut(&Value) -> Reply,
) -> Option<(BatchStep, String)> {
    if request.path == UPLOAD {
        return Some((BatchStep::Upload, upload(batches, request)?.to_string()));
    }
    let path = request.path.strip_prefix("/v1beta/")?;
    Some(match (request.method, path.split('/').collect::<Vec<_>>().as_slice()) {
        ("POST", ["models", model]) => {
            let model = model.strip_suffix(":batchGenerateContent")?;
            let batch = &request.body["batch"];
            let config = &batch["inputConfig"];
            let entries = match config["fileName"].as_str() {
                Some(file) => entries(batches, file)?,
                None => config.pointer("/requests/requests")?.as_array()?.clone(),
            };
            let job = json!({ "name": batch["displayName"], "model": model, "file": config["fileName"] });
            (BatchStep::Create, operation(&batches.create(job, &entries)).to_string())
        }
        ("GET", ["files", file]) => {
            let job = request.job(batches, file.strip_suffix(":download")?)?;
            let results = job["results"].as_array()?;
            (BatchStep::Results, lines(results.iter().map(line)))
        }
        ("GET", ["batches"]) => (BatchStep::List, list(batches, request).to_string()),
        ("GET", ["batches", id]) => {
            let job = request.job(batches, id)?;
            let is_over = job["state"] != "running";
            let step = if is_over { BatchStep::Results } else { BatchStep::Status };
            (step, operation(&batches.poll(job, FORM, answer)).to_string())
        }
        ("POST", ["batches", id]) => {
            batches.cancel(request.job(batches, id.strip_suffix(":cancel")?)?, FORM);
            (BatchStep::Cancel, "{}".to_owned())
        }
        _ => return None,
    })
}

/// Returns the URL to which the content of a file is sent, at the host of the vendor.
pub(super) fn upload_url(request: &Request<'_>) -> Option<String> {
    let is_start = request.path == UPLOAD && request.query.is_empty();
    is_start.then(|| {
        format!("https://generativelanguage.googleapis.com{UPLOAD}?upload_id=1&upload_protocol=resumable")
    })
}

/// Begins an upload, or stores the content of a file.
fn upload(batches: &Batches, request: &Request<'_>) -> Option<Value> {
    if request.query.is_empty() {
        return Some(json!({}));
    }
    let number = (1..).find(|number| !file(batches, *number).exists())?;
    fs::create_dir_all(&batches.directory).ok()?;
    fs::write(file(batches, number), request.bytes).ok()?;
    Some(json!({ "file": {
        "name": format!("files/mock-{number}"), "mimeType": "application/jsonl",
        "sizeBytes": request.bytes.len().to_string(), "state": "ACTIVE", "source": "UPLOADED",
    } }))
}

fn file(batches: &Batches, number: u64) -> PathBuf {
    batches.directory.join(format!("file-{number}.jsonl"))
}

/// Returns the entries of a file, in the form in which a request contains them.
fn entries(batches: &Batches, name: &str) -> Option<Vec<Value>> {
    let text = fs::read_to_string(file(batches, number(name.strip_prefix("files/")?)?)).ok()?;
    text.lines().map(entry).collect()
}

fn entry(line: &str) -> Option<Value> {
    let line: Value = serde_json::from_str(line).ok()?;
    Some(json!({ "request": line["request"], "metadata": { "key": line["key"].as_str()? } }))
}

/// Returns a result as the line of a file.
fn line(result: &Value) -> Value {
    let mut line = response(result);
    line["key"] = line["metadata"]["key"].take();
    if let Some(line) = line.as_object_mut() {
        line.remove("metadata");
    }
    line
}

fn list(batches: &Batches, request: &Request<'_>) -> Value {
    let limit = request.parameter("pageSize").and_then(|limit| limit.parse().ok()).unwrap_or(20);
    let (jobs, has_more) = page(batches, request.parameter("pageToken").and_then(number), limit);
    let token = jobs.last().filter(|_| has_more).map(|job| format!("after-{}", job["number"]));
    json!({ "operations": jobs.iter().map(operation).collect::<Vec<_>>(), "nextPageToken": token })
}

fn operation(job: &Value) -> Value {
    let name = format!("batches/mock-{}", job["number"]);
    let state = match job["state"].as_str() {
        Some("ended") => "BATCH_STATE_SUCCEEDED",
        Some("cancelled") => "BATCH_STATE_CANCELLED",
        _ => "BATCH_STATE_RUNNING",
    };
    let mut operation = json!({
        "name": name,
        "metadata": {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": format!("models/{}", job["model"].as_str().unwrap_or_default()),
            "displayName": job["name"], "state": state, "name": name,
            "createTime": "2026-11-23T12:00:00Z", "updateTime": "2026-11-23T12:30:00Z",
            "batchStats": {
                "requestCount": job["entries"].as_array().map_or(0, Vec::len).to_string(),
                "successfulRequestCount": count(job, &["reply"]).to_string(),
                "failedRequestCount": count(job, &["error", "expired", "cancelled"]).to_string(),
            },
        },
    });
    if let Some(results) = job["results"].as_array() {
        let response = match job["file"].is_string() {
            true => json!({ "responsesFile": format!("files/batch-{}", job["number"]) }),
            false => {
                let responses: Vec<_> = results.iter().map(response).collect();
                json!({ "inlinedResponses": { "inlinedResponses": responses } })
            }
        };
        operation["done"] = json!(true);
        operation["metadata"]["output"] = response.clone();
        operation["response"] = response;
    }
    operation
}

fn response(result: &Value) -> Value {
    let metadata = json!({ "key": result["id"] });
    match (result["kind"].as_str(), result["status"].as_u64()) {
        (Some("reply"), Some(200)) => json!({ "response": result["body"], "metadata": metadata }),
        (Some("reply"), status) => {
            let code = if status == Some(429) { 8 } else { 3 };
            let message = &result["body"]["error"]["message"];
            json!({ "error": { "code": code, "message": message }, "metadata": metadata })
        }
        (Some("expired"), _) => {
            json!({ "error": { "code": 4, "message": "Deadline exceeded." }, "metadata": metadata })
        }
        _ => json!({ "error": { "code": 1, "message": "Cancelled." }, "metadata": metadata }),
    }
}
