use serde_json::{Value, json};

use super::{BatchStep, Batches, Form, Request, count, id_of, lines, number, page};
use crate::{Reply, Wire};

const FORM: Form = Form {
    wire: |_| Wire::Anthropic,
    id: |entry| entry["custom_id"].as_str().unwrap_or_default(),
    body: |entry| &entry["params"],
};

pub(super) fn respond(
    batches: &Batches,
    request: &Request<'_>,
    answer: &mut dyn FnMut(&Value) -> Reply,
) -> Option<(BatchStep, String)> {
    let path = request.path.strip_prefix("/v1/messages/batches")?;
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    Some(match (request.method, parts.as_slice()) {
        ("POST", []) => {
            let entries = request.body["requests"].as_array()?;
            (BatchStep::Create, batch(&batches.create(json!({}), entries)).to_string())
        }
        ("GET", []) => (BatchStep::List, list(batches, request).to_string()),
        ("GET", [id]) => {
            let job = batches.poll(request.job(batches, id)?, FORM, answer);
            (BatchStep::Status, batch(&job).to_string())
        }
        ("POST", [id, "cancel"]) => {
            let job = batches.cancel(request.job(batches, id)?, FORM);
            (BatchStep::Cancel, batch(&job).to_string())
        }
        ("GET", [id, "results"]) => {
            let job = request.job(batches, id)?;
            (BatchStep::Results, lines(job["results"].as_array()?.iter().map(line)))
        }
        _ => return None,
    })
}

fn list(batches: &Batches, request: &Request<'_>) -> Value {
    let limit = request.parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(20);
    let (jobs, has_more) = page(batches, request.parameter("after_id").and_then(number), limit);
    let data: Vec<Value> = jobs.iter().map(batch).collect();
    json!({ "first_id": id_of(data.first()), "last_id": id_of(data.last()), "has_more": has_more, "data": data })
}

fn batch(job: &Value) -> Value {
    let id = format!("msgbatch_mock_{}", job["number"]);
    let is_over = job["state"] != "running";
    let total = job["entries"].as_array().map_or(0, Vec::len);
    // The interface does not know the address of the mock. Clients of the vendor take a path too.
    let results_url = is_over.then(|| format!("/v1/messages/batches/{id}/results"));
    json!({
        "id": id, "type": "message_batch", "processing_status": if is_over { "ended" } else { "in_progress" },
        "request_counts": {
            "processing": if is_over { 0 } else { total },
            "succeeded": count(job, &["reply"]), "errored": count(job, &["error"]),
            "canceled": count(job, &["cancelled"]), "expired": count(job, &["expired"]),
        },
        "created_at": "2026-11-23T12:00:00Z", "expires_at": "2026-11-24T12:00:00Z",
        "ended_at": is_over.then_some("2026-11-23T13:00:00Z"), "cancel_initiated_at": null, "archived_at": null,
        "results_url": results_url,
    })
}

fn line(result: &Value) -> Value {
    let is_error = result["status"].as_u64().is_some_and(|status| status >= 300);
    let outcome = match result["kind"].as_str() {
        Some("reply") if is_error => json!({ "type": "errored", "error": result["body"] }),
        Some("reply") => json!({ "type": "succeeded", "message": result["body"] }),
        Some("expired") => json!({ "type": "expired" }),
        _ => json!({ "type": "canceled" }),
    };
    json!({ "custom_id": result["id"], "result": outcome })
}
