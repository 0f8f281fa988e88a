//! The confirmation of a halted call (docs/tools.md): the question, the answer, and the state in between.

use std::{collections::BTreeMap, time::Duration};

use cog_run::{
    Code, Envelope, ErrorBody,
    tools::{CONFIRMATION_REQUIRED, Decision, PendingApproval},
};
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, PrimitiveSchemaDefinition, RequestStateCodec,
    RequestStateError, SealOptions, StringSchema,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::verbatim;

/// The name of the question in `inputRequests` and `inputResponses`.
const QUESTION: &str = "confirmation";
/// The member of its answer.
const ANSWER: &str = "confirm";
/// How long an answer is accepted.
const TIME_TO_ANSWER: Duration = Duration::from_secs(24 * 3600);
/// The maximum number of characters of arguments in a question.
const MAX_ARGUMENTS: usize = 4_000;

/// Signs the states that clients return with their answers. The key ends with the process.
pub(super) struct Confirmations(Option<RequestStateCodec>);

/// The answer of a client to a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The person decided.
    Decided(Decision),
    /// The person closed the question: the run stays halted.
    Cancelled,
    /// There is no answer of the right form.
    Missing,
}

impl Confirmations {
    pub(super) fn new() -> Self {
        let mut key = [0; RequestStateCodec::MIN_KEY_LENGTH];
        let filled = getrandom::fill(&mut key);
        Self(filled.ok().and_then(|()| RequestStateCodec::try_new(key).ok()))
    }

    /// Returns the result that asks for the confirmation of a halted run; none if states cannot be signed.
    pub(super) fn request(&self, halted: &PendingApproval, call: &Binding) -> Option<InputRequiredResult> {
        let options = SealOptions::new().associated_data(&call.0).ttl(TIME_TO_ANSWER);
        let state = self.0.as_ref()?.seal_with(halted.id.as_bytes(), &options);
        let question = InputRequest::Elicitation(ElicitRequest::new(question(halted)));
        Some(InputRequiredResult::new(Some(BTreeMap::from([(QUESTION.to_owned(), question)])), Some(state)))
    }

    /// Returns the id of the halted run that a state names.
    ///
    /// # Errors
    /// E4013 for a state that is too old, E4014 for one that was changed, or belongs to another client or call.
    pub(super) fn open(&self, state: &str, call: &Binding) -> Result<String, ErrorBody> {
        let opened = self.0.as_ref().ok_or_else(invalid_state)?.open_with(state, &call.0);
        let id = opened.map_err(|error| match error {
            RequestStateError::Expired => {
                ErrorBody::new(Code::SessionExpired, "requestState: the time to answer is over")
                    .suggest("Send the call again without requestState.")
            }
            _ => invalid_state(),
        })?;
        String::from_utf8(id).map_err(|_| invalid_state())
    }
}

fn invalid_state() -> ErrorBody {
    ErrorBody::new(
        Code::CheckpointInvalid,
        "requestState: not a state of this server for this client, tool and arguments",
    )
    .suggest("Send the call again without requestState, or send the state with the unchanged call.")
}

/// The call that a state belongs to: its client, tool and arguments.
pub(super) struct Binding(Vec<u8>);

impl Binding {
    pub(super) fn new(owner: Option<&str>, params: &CallToolRequestParams) -> Self {
        let arguments = verbatim::called_with(params.arguments.clone().unwrap_or_default());
        // A client may send the members in another order.
        let arguments = arguments.map(|arguments| arguments.node().to_sorted_json()).unwrap_or_default();
        let call = serde_json::json!([owner, params.name, arguments]);
        Self(Sha256::digest(call.to_string()).to_vec())
    }
}

/// Returns the id of a run that waits for a confirmation.
pub(super) fn halted_id(envelope: &Envelope) -> Option<&str> {
    let error = envelope.error()?;
    let reason = error.detail("reason").and_then(|reason| reason.as_str());
    let id = error.detail("halted").and_then(|halted| halted.get("id")).and_then(|id| id.as_str());
    id.filter(|_| reason == Some(CONFIRMATION_REQUIRED))
}

/// Returns the question of a halted run.
pub(super) fn question(halted: &PendingApproval) -> ElicitRequestParams {
    let arguments: String = halted.arguments.to_string().chars().take(MAX_ARGUMENTS).collect();
    let message = format!(
        "`{}` needs a confirmation before it is executed. Only the text YES, in capital letters, executes it. \
         Its arguments: {arguments}",
        halted.tool
    );
    let answer = StringSchema::new()
        .title("Confirmation")
        .description("Only YES executes the call. Decline, and it is not executed.");
    let properties = BTreeMap::from([(ANSWER.to_owned(), PrimitiveSchemaDefinition::String(answer))]);
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: ElicitationSchema::new(properties).with_required(vec![ANSWER.to_owned()]),
    }
}

/// Returns the answer in a repeated call.
pub(super) fn answer_in(params: &CallToolRequestParams) -> Answer {
    let response = params.input_responses.as_ref().and_then(|responses| responses.get(QUESTION));
    let response = response.and_then(|response| serde_json::from_value(response.clone()).ok());
    response.map_or(Answer::Missing, |response| answer(&response))
}

/// Returns the decision of a person.
pub(super) fn answer(response: &ElicitResult) -> Answer {
    let text = response.content.as_ref().and_then(|content| content.get(ANSWER)).and_then(Value::as_str);
    match (&response.action, text) {
        (ElicitationAction::Accept, Some(text)) => Answer::Decided(Decision::Approve(text.to_owned())),
        (ElicitationAction::Accept, None) => Answer::Missing,
        (ElicitationAction::Decline, _) => Answer::Decided(Decision::Deny),
        _ => Answer::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: Value) -> CallToolRequestParams {
        CallToolRequestParams::new("m").with_arguments(arguments.as_object().unwrap().clone())
    }

    fn state(confirmations: &Confirmations, binding: &Binding) -> String {
        let options = SealOptions::new().associated_data(&binding.0).ttl(TIME_TO_ANSWER);
        confirmations.0.as_ref().unwrap().seal_with(b"halt_1", &options)
    }

    #[test]
    fn state_belongs_to_client_tool_and_arguments() {
        let confirmations = Confirmations::new();
        let params = call(json!({ "a": 1, "b": { "c": 2, "d": 3 } }));
        let binding = Binding::new(Some("token:x"), &params);
        let state = state(&confirmations, &binding);
        assert_eq!(confirmations.open(&state, &binding).unwrap(), "halt_1");
        let reordered = call(json!({ "b": { "d": 3, "c": 2 }, "a": 1 }));
        assert_eq!(confirmations.open(&state, &Binding::new(Some("token:x"), &reordered)).unwrap(), "halt_1");
        let others = [
            Binding::new(Some("token:y"), &params),
            Binding::new(None, &params),
            Binding::new(Some("token:x"), &call(json!({ "a": 2, "b": { "c": 2, "d": 3 } }))),
        ];
        for other in others {
            assert_eq!(confirmations.open(&state, &other).unwrap_err().code, Code::CheckpointInvalid.into());
        }
        assert!(Confirmations::new().open(&state, &binding).is_err(), "another server's key");
    }

    #[test]
    fn changed_state_is_refused() {
        let confirmations = Confirmations::new();
        let binding = Binding::new(None, &call(json!({})));
        let state = state(&confirmations, &binding);
        for index in 0..state.len() {
            let mut changed = state.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let opened = confirmations.open(&changed, &binding);
            // The last character of base64url has bits that mean nothing.
            assert!(opened.is_err() || opened.unwrap() == "halt_1" && index + 1 == state.len(), "{index}");
        }
        for text in ["", "rs1", "rs1..", "\u{0}", &"A".repeat(100_000)] {
            assert!(confirmations.open(text, &binding).is_err());
        }
    }

    #[test]
    fn only_a_text_confirms() {
        let read = |response: Value| {
            answer_in(
                &CallToolRequestParams::new("m")
                    .with_input_responses(BTreeMap::from([(QUESTION.to_owned(), response)])),
            )
        };
        let yes = read(json!({ "action": "accept", "content": { "confirm": "YES" } }));
        assert_eq!(yes, Answer::Decided(Decision::yes()));
        assert_eq!(read(json!({ "action": "decline" })), Answer::Decided(Decision::Deny));
        assert_eq!(read(json!({ "action": "cancel" })), Answer::Cancelled);
        for missing in [
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "confirm": true } }),
            json!("YES"),
            json!({}),
            json!({ "action": "yes" }),
        ] {
            assert_eq!(read(missing.clone()), Answer::Missing, "{missing}");
        }
        assert_eq!(answer_in(&CallToolRequestParams::new("m")), Answer::Missing);
    }
}
