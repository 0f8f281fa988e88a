use std::fs;

use serde_json::{Value, json};

use super::{BatchStep, Batches, CREATED, Form, Request, count, id_of, lines, number, page};
use crate::{Reply, Wire};

const FORM: Form = Form {
    wire: |job| Wire::from_path(job["endpoint"].as_str().unwrap_or_default()).unwrap_or(Wire::OpenAi),
    id: |entry| entry["custom_id"].as_str().unwrap_or_default(),
    body: |entry| &entry["body"],
};

pub(super) fn respond(
    batches: &Batches,
    request: &Request<'_>,
    answer: &mut dyn FnMut(&Value) -> Reply,
) -> Option<(BatchStep, String)> {
    let path = request.path.strip_prefix("/v1/")?;
    let parts: Vec<&str> = path.split('/').collect();
    Some(match (request.method, parts.as_slice()) {
        ("POST", ["files"]) => (BatchStep::Upload, upload(batches, request.bytes)?.to_string()),
        ("GET", ["files", id, "content"]) => (BatchStep::Results, results(batches, request, id)?),
        ("DELETE", ["files", id]) => (BatchStep::Cancel, delete(batches, id)?.to_string()),
        ("POST", ["batches"]) => (BatchStep::Create, create(batches, request.body)?.to_string()),
        ("GET", ["batches"]) => (BatchStep::List, list(batches, request).to_string()),
        ("GET", ["batches", id]) => {
            let job = batches.poll(request.job(batches, id)?, FORM, answer);
            (BatchStep::Status, batch(&job).to_string())
        }
        ("POST", ["batches", id, "cancel"]) => {
            let job = batches.cancel(request.job(batches, id)?, FORM);
            (BatchStep::Cancel, batch(&job).to_string())
        }
        _ => return None,
    })
}

/// Stores the file in a request of multipart/form-data.
fn upload(batches: &Batches, bytes: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(bytes);
    let boundary = text.lines().next()?;
    let part = text.split(boundary).find(|part| part.contains("name=\"file\""))?;
    let (_, content) = part.split_once("\r\n\r\n")?;
    let content = content.strip_suffix("\r\n").unwrap_or(content);
    text.contains("\r\n\r\nbatch\r\n").then_some(())?;
    let number = (1..).find(|number| !file(batches, *number).exists())?;
    fs::create_dir_all(&batches.directory).ok()?;
    fs::write(file(batches, number), content).ok()?;
    Some(json!({
        "id": format!("file-mock-{number}"), "object": "file", "bytes": content.len(), "created_at": CREATED,
        "filename": "batch.jsonl", "purpose": "batch", "status": "processed",
    }))
}

fn file(batches: &Batches, number: u64) -> std::path::PathBuf {
    batches.directory.join(format!("file-{number}.jsonl"))
}

fn delete(batches: &Batches, id: &str) -> Option<Value> {
    let deleted = batches.deleted().into_iter().chain([id.to_owned()]).collect::<Vec<_>>();
    fs::write(batches.directory.join("deleted"), deleted.join("\n")).ok()?;
    Some(json!({ "id": id, "object": "file", "deleted": true }))
}

fn create(batches: &Batches, body: &Value) -> Option<Value> {
    let id = body["input_file_id"].as_str()?;
    let text = fs::read_to_string(file(batches, number(id)?)).ok()?;
    let entries: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
    let endpoint = body["endpoint"].as_str()?;
    if body["completion_window"] != "24h" || entries.iter().any(|entry| entry["url"] != endpoint) {
        return None;
    }
    let job = json!({ "file": id, "endpoint": endpoint, "metadata": body["metadata"] });
    Some(batch(&batches.create(job, &entries)))
}

fn list(batches: &Batches, request: &Request<'_>) -> Value {
    let limit = request.parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(20);
    let (jobs, has_more) = page(batches, request.parameter("after").and_then(number), limit);
    let data: Vec<Value> = jobs.iter().map(batch).collect();
    json!({
        "object": "list", "first_id": id_of(data.first()), "last_id": id_of(data.last()), "has_more": has_more, "data": data,
    })
}

fn batch(job: &Value) -> Value {
    let number = job["number"].as_u64().unwrap_or_default();
    let status = match job["state"].as_str() {
        Some("ended") => "completed",
        Some("cancelled") => "cancelled",
        Some("refused") => "failed",
        _ => "in_progress",
    };
    let errors = (status == "failed").then(|| {
        json!({ "object": "list", "data": [{ "code": "token_limit_exceeded", "line": null, "param": null,
            "message": "Enqueued token limit reached for the model. Please try again once some batches have been completed." }] })
    });
    let is_over = status != "in_progress";
    let has_output = is_over && count(job, &["reply"]) > 0;
    let has_errors = is_over && count(job, FAILED) > 0;
    json!({
        "id": format!("batch_mock_{number}"), "object": "batch", "endpoint": job["endpoint"], "errors": errors,
        "input_file_id": job["file"], "completion_window": "24h", "status": status,
        "output_file_id": has_output.then(|| format!("file-output-{number}")),
        "error_file_id": has_errors.then(|| format!("file-error-{number}")),
        "created_at": CREATED + number, "expires_at": CREATED + number + 86_400, "metadata": job["metadata"],
        "request_counts": {
            "total": job["entries"].as_array().map_or(0, Vec::len),
            "completed": count(job, &["reply"]), "failed": count(job, FAILED),
        },
    })
}

const FAILED: &[&str] = &["error", "expired", "cancelled"];

fn results(batches: &Batches, request: &Request<'_>, id: &str) -> Option<String> {
    let job = request.job(batches, id)?;
    let is_output = id.starts_with("file-output-");
    let found = job["results"].as_array()?.iter().filter(|result| (result["status"] == 200) == is_output);
    Some(lines(found.map(line)))
}

fn line(result: &Value) -> Value {
    let (response, error) = match result["kind"].as_str() {
        Some("reply") => {
            let response = json!({
                "status_code": result["status"], "request_id": "req_mock", "body": result["body"],
            });
            (response, Value::Null)
        }
        Some("expired") => (
            Value::Null,
            json!({
                "code": "batch_expired",
                "message": "This request could not be executed before the completion window expired.",
            }),
        ),
        _ => (Value::Null, json!({ "code": "batch_cancelled", "message": "This batch was cancelled." })),
    };
    json!({ "id": "batch_req_mock", "custom_id": result["id"], "response": response, "error": error })
}
