//! What servers ask their client: the model of the run (sampling), a person (elicitation), the directories that they may use (roots),
//! and to show how far a call is.
#![expect(deprecated, reason = "servers of older revisions still ask for sampling and roots")]

use std::sync::Arc;

use cog_run::{
    Generation,
    provider::{Conversation, Message, Part},
    tools::{ToolContext, ToolProgress, media_type_of_base64},
};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationSchema, ErrorCode, ListRootsResult, ProgressNotificationParam, Role,
        Root, SamplingMessage, SamplingMessageContentBlock,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
};

use crate::{
    calls::Asked,
    person::{Field, FieldKind, Person},
    server::excerpt,
    shared::Shared,
};

/// The side of the client in a connection.
pub(crate) struct Client {
    pub(crate) config: ClientConfig,
    pub(crate) server: String,
    pub(crate) roots: Vec<Root>,
    pub(crate) sampling: bool,
    pub(crate) person: Option<Arc<dyn Person>>,
    pub(crate) shared: Arc<Shared>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.sampling {
            let message = "sampling is not allowed: the settings of this server have no `sampling = true`";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
        }
        let call =
            self.shared.calls.only().ok_or_else(|| {
                refused("sampling needs exactly one call in progress, whose run pays for it")
            })?;
        let (answer, answered) = oneshot::channel();
        let ended = |_| refused("the call that asks has ended");
        call.send(Asked::Model(Box::new(params), answer)).await.map_err(|_| ended(()))?;
        answered.await.map_err(|_| ended(()))?
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(self.roots.clone()))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let Some(person) = self.person.clone() else {
            tracing::warn!(
                server = self.server,
                "the server asks for input, and there is no terminal: declined"
            );
            return Ok(declined);
        };
        // An address that a server names is never opened.
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = params else {
            return Ok(declined);
        };
        let server = self.server.clone();
        let fields = fields(&requested_schema);
        let asked = spawn_blocking(move || person.ask(&server, &excerpt(&message), &fields)).await;
        Ok(match asked.ok().flatten() {
            Some(values) => ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values)),
            None => declined,
        })
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(call) = self.shared.calls.only() {
            let _ = call.try_send(Asked::Progress(progress)); // a report may be lost
        }
    }
}

fn refused(message: impl Into<String>) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, message.into(), None)
}

/// Returns the fields of a form.
fn fields(schema: &ElicitationSchema) -> Vec<Field> {
    let Ok(Value::Object(document)) = serde_json::to_value(schema) else { return Vec::new() };
    let required: Vec<&str> = document
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = document.get("properties").and_then(Value::as_object).into_iter().flatten();
    let fields = properties.map(|(name, member)| {
        let text = |key: &str| member.get(key).and_then(Value::as_str).unwrap_or_default();
        let description = if text("description").is_empty() { text("title") } else { text("description") };
        Field::new(name, excerpt(description), kind(member), required.contains(&name.as_str()))
    });
    fields.collect()
}

fn kind(member: &Value) -> FieldKind {
    let listed = member.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let titled = member.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let titled = titled.filter_map(|choice| choice.get("const").and_then(Value::as_str));
    let choices: Vec<String> = listed.chain(titled).map(str::to_owned).collect();
    match member.get("type").and_then(Value::as_str) {
        _ if !choices.is_empty() => FieldKind::Choice(choices),
        Some("number") => FieldKind::Number,
        Some("integer") => FieldKind::Integer,
        Some("boolean") => FieldKind::Boolean,
        _ => FieldKind::Text,
    }
}

// What belongs to one call.

/// Waits for the end of a call, and answers what the server asks meanwhile, in the task of the run.
pub(crate) async fn answering<T>(
    reply: impl Future<Output = T>,
    mut asked: mpsc::Receiver<Asked>,
    context: &ToolContext,
) -> T {
    let mut reply = std::pin::pin!(reply);
    loop {
        tokio::select! {
            reply = &mut reply => return reply,
            Some(asked) = asked.recv() => match asked {
                Asked::Progress(progress) => show(&progress, &context.progress),
                Asked::Model(params, answer) => {
                    let answered = ask_model(*params, context);
                    tokio::select! {
                        reply = &mut reply => return reply,
                        answered = answered => { let _ = answer.send(answered); }
                    }
                }
            },
        }
    }
}

fn show(progress: &ProgressNotificationParam, shown: &ToolProgress) {
    let ProgressNotificationParam { progress: done, total, message, .. } = progress;
    let count = match total {
        Some(total) => format!("{done} of {total}"),
        None => done.to_string(),
    };
    shown.report(&match message {
        Some(message) => format!("{count}: {message}"),
        None => count,
    });
}

/// Asks the model of the run what a server wants to know.
async fn ask_model(
    params: CreateMessageRequestParams,
    context: &ToolContext,
) -> Result<CreateMessageResult, ErrorData> {
    let model = context.model.as_ref().ok_or_else(|| refused("the run has no model"))?;
    if params.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err(refused("sampling with tools is not supported"));
    }
    let system = params.system_prompt.map(Message::system);
    let mut messages: Vec<Message> = system.into_iter().collect();
    for message in params.messages {
        messages.push(converted(message)?);
    }
    let generation = Generation {
        max_tokens: Some(u64::from(params.max_tokens)),
        temperature: params.temperature.map(f64::from),
        stop: params.stop_sequences.unwrap_or_default(),
        ..Generation::default()
    };
    tracing::info!(target: "cog::tools", session = context.session_id, call = context.call_id, "a tool asks the model");
    let answer = model.ask(Conversation::new(messages), generation).await;
    let answer = answer.map_err(|error| refused(format!("{}: {}", error.code, error.message)))?;
    let stop_reason = match answer.is_truncated {
        true => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        false => CreateMessageResult::STOP_REASON_END_TURN,
    };
    let message = SamplingMessage::new(Role::Assistant, SamplingMessageContentBlock::text(answer.text));
    Ok(CreateMessageResult::new(message, answer.model).with_stop_reason(stop_reason))
}

fn converted(message: SamplingMessage) -> Result<Message, ErrorData> {
    let mut parts = Vec::new();
    for block in message.content.into_vec() {
        parts.push(match block {
            SamplingMessageContentBlock::Text(text) => Part::text(text.text),
            SamplingMessageContentBlock::Image(image) => media(image.data)?,
            SamplingMessageContentBlock::Audio(audio) => media(audio.data)?,
            _ => return Err(refused("sampling with tools is not supported")),
        });
    }
    Ok(match message.role {
        Role::User => Message::new(cog_run::provider::Role::User, parts),
        Role::Assistant => Message::new(cog_run::provider::Role::Assistant, parts),
    })
}

/// Returns media with the type of their content, whatever the server says.
fn media(data: String) -> Result<Part, ErrorData> {
    let kind = media_type_of_base64(&data).ok_or_else(|| refused("media of an unknown type"))?;
    Ok(Part::media(kind, data))
}
