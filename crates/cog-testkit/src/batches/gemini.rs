use serde_json::{Value, json};

use super::state::{BatchStep, Batches, Form, Request, count, number, page};
use crate::{Reply, Wire};

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
    let path = request.path.strip_prefix("/v1beta/")?;
    Some(match (request.method, path.split('/').collect::<Vec<_>>().as_slice()) {
        ("POST", ["models", model]) => {
            let model = model.strip_suffix(":batchGenerateContent")?;
            let batch = &request.body["batch"];
            let entries = batch.pointer("/inputConfig/requests/requests")?.as_array()?;
            let job = json!({ "name": batch["displayName"], "model": model });
            (BatchStep::Create, operation(&batches.create(job, entries)).to_string())
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
        let responses: Vec<Value> = results.iter().map(response).collect();
        let response = json!({ "inlinedResponses": { "inlinedResponses": responses } });
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
