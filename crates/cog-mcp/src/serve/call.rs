//! One call of a tool: a run of its module, with the questions to the client that the run needs.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use cog_run::{
    Caller, CancelReason, Cancellation, Chunk, ChunkStream, Code, Envelope, ErrorBody, Module, Outcome,
    RunInput, RunOptions, Runtime, Value,
    tools::{Approval, Decision},
};
use rmcp::{
    Peer, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, ErrorData, ProgressNotificationParam, ProgressToken,
        ProtocolVersion,
    },
    service::RequestContext,
};
use tokio::{sync::mpsc, task::JoinError};

use super::{
    CallSettings,
    confirmation::{Answer, Binding, Confirmations, answer, answer_in, halted_id, question},
    invalid_params, result,
};
use crate::verbatim;

/// The number of questions in one call. Otherwise a client that answers wrongly on its own would get questions without end.
const MAX_QUESTIONS: usize = 10;

/// A call of a tool.
pub(super) struct Call<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) confirmations: &'a Confirmations,
    pub(super) module: Arc<Module>,
    pub(super) settings: CallSettings,
    pub(super) context: RequestContext<RoleServer>,
    pub(super) progress: Option<Progress>,
}

/// What a run starts with.
enum Start {
    Input(Value),
    Decision(Approval),
}

/// How the client is asked for a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// The call ends, and the client repeats it with the answer: since 2026-07-28.
    InResult,
    /// The client answers a request during the call: before.
    InCall,
    /// The client has no form for a person.
    Nobody,
}

impl Call<'_> {
    /// Answers the call.
    ///
    /// # Errors
    /// A state that is not one of this server for this call.
    pub(super) async fn answer(self, params: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let mut start = match &params.request_state {
            Some(state) => match self.decision(state, &params).await? {
                Ok(approval) => Start::Decision(approval),
                Err(response) => return Ok(*response),
            },
            None => Start::Input(Value::null()),
        };
        let binding = (self.asking() == Asking::InResult).then(|| Binding::new(self.owner(), &params));
        if let Start::Input(input) = &mut start {
            let arguments = params.arguments.unwrap_or_default();
            let read = tokio::task::spawn_blocking(move || verbatim::called_with(arguments));
            let read = read.await.map_err(|error| task_failed(&error))?;
            *input = read.ok_or_else(|| ErrorData::invalid_params("arguments: nested too deeply", None))?;
        }
        let mut questions = 0;
        loop {
            let envelope = self.run(start).await;
            let Some(id) = halted_id(&envelope).map(str::to_owned) else { return Ok(self.end(envelope)) };
            if let Some(response) = binding.as_ref().and_then(|binding| self.ask_in_result(&id, binding)) {
                return Ok(response);
            }
            let decision = match self.asking() {
                Asking::InCall => self.ask_in_call(&id).await,
                _ => None,
            };
            let Some(decision) = decision.filter(|_| questions < MAX_QUESTIONS) else {
                return Ok(self.end(envelope));
            };
            questions += 1;
            start = Start::Decision(Approval { id, decision });
        }
    }

    /// Returns the decision of a repeated call, or the response if there is none.
    async fn decision(
        &self,
        state: &str,
        params: &CallToolRequestParams,
    ) -> Result<Result<Approval, Box<CallToolResponse>>, ErrorData> {
        let binding = Binding::new(self.owner(), params);
        let id = self.confirmations.open(state, &binding).map_err(|error| invalid_params(&error))?;
        let decision = match answer_in(params) {
            Answer::Decided(decision) => decision,
            Answer::Cancelled => {
                // Without a decision it stays halted.
                let decision = Decision::Approve(String::new());
                let envelope = self.run(Start::Decision(Approval { id, decision })).await;
                return Ok(Err(Box::new(self.end(envelope))));
            }
            Answer::Missing => {
                return Ok(Err(Box::new(match self.ask_in_result(&id, &binding) {
                    Some(question) => question,
                    None => self.end(self.unknown(&id)),
                })));
            }
        };
        Ok(Ok(Approval { id, decision }))
    }

    fn unknown(&self, id: &str) -> Envelope {
        let error = self.runtime.pending_approval(id, self.owner()).err();
        Envelope::failure(error.unwrap_or_else(|| CancelReason::Cancelled.error()))
    }

    fn owner(&self) -> Option<&str> {
        self.settings.options.owner.as_deref()
    }

    fn asking(&self) -> Asking {
        let can_ask = self.context.client_capabilities().and_then(|can| can.elicitation);
        // A client that names neither form nor URL has forms: the capability is older than the choice.
        let can_ask = can_ask.is_some_and(|forms| forms.form.is_some() || forms.url.is_none());
        let version = self.context.protocol_version();
        match version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()) {
            _ if !can_ask => Asking::Nobody,
            true => Asking::InResult,
            false => Asking::InCall,
        }
    }

    fn ask_in_result(&self, id: &str, binding: &Binding) -> Option<CallToolResponse> {
        let halted = self.runtime.pending_approval(id, self.owner()).ok()?;
        self.confirmations.request(&halted, binding).map(CallToolResponse::from)
    }

    /// Requests the confirmation from the client, and waits for the answer. None if the run stays halted.
    async fn ask_in_call(&self, id: &str) -> Option<Decision> {
        let halted = self.runtime.pending_approval(id, self.owner()).ok()?;
        let asked = self.context.peer.create_elicitation(question(&halted));
        let answered = tokio::select! {
            answered = asked => answered.ok()?,
            () = self.context.ct.cancelled() => return None,
            () = self.settings.shutdown.cancelled() => return None,
        };
        match answer(&answered) {
            Answer::Decided(decision) => Some(decision),
            Answer::Cancelled | Answer::Missing => None,
        }
    }

    /// Runs the module until it ends or is halted.
    async fn run(&self, start: Start) -> Envelope {
        let cancellation = Cancellation::default();
        let mut options = self.settings.options.clone();
        options.caller = Caller::Agent;
        options.cancellation = cancellation.clone();
        let input = match start {
            Start::Input(input) => input,
            Start::Decision(approval) => {
                options.approval = Some(approval);
                Value::null()
            }
        };
        let chunks = match self.start(input, options).await {
            Ok(chunks) => chunks,
            Err(refused) => return *refused,
        };
        let mut folding = pin!(self.fold(chunks));
        tokio::select! {
            envelope = &mut folding => return envelope,
            () = self.context.ct.cancelled() => cancellation.cancel(CancelReason::Cancelled),
            () = self.settings.shutdown.cancelled() => cancellation.cancel(CancelReason::Shutdown),
        }
        folding.await
    }

    /// Starts a run on a thread that may block: an input may be large, and is checked before the run starts.
    async fn start(&self, input: Value, options: RunOptions) -> Result<ChunkStream, Box<Envelope>> {
        let runtime = self.runtime.clone();
        let module = Arc::clone(&self.module);
        let mut context = self.settings.context.clone();
        context.is_folded = self.progress.is_none();
        let started = tokio::task::spawn_blocking(move || {
            runtime.prepare(&module, RunInput::Json(input), options, context)
        });
        started.await.unwrap_or_else(|error| {
            let error = task_failed(&error).message;
            Err(Box::new(Envelope::failure(ErrorBody::new(Code::InternalError, error))))
        })
    }

    async fn fold(&self, chunks: ChunkStream) -> Envelope {
        let Some(progress) = &self.progress else { return chunks.fold().await };
        let (mut describer, sending) = progress.start();
        let folding = chunks.fold_with(move |chunk| describer.show(chunk));
        tokio::join!(folding, sending).0
    }

    fn end(&self, mut envelope: Envelope) -> CallToolResponse {
        let advice = self.settings.confirmation_advice.clone().filter(|_| halted_id(&envelope).is_some());
        if let (Some(advice), Outcome::Failure { error, .. }) = (advice, &mut envelope.outcome) {
            error.suggestion = Some(advice);
        }
        result(Some(&self.module), &envelope).into()
    }
}

/// Returns the error of work that panicked. The panic's message goes to the log only: it can contain anything.
pub(super) fn task_failed(error: &JoinError) -> ErrorData {
    tracing::error!(%error, "the work for a message failed");
    ErrorData::internal_error("internal server error", None)
}

// The chunks of a run as progress notifications.

/// The number of notifications that wait for a slow client. Further ones are dropped, so that no run waits.
const MAX_WAITING: usize = 64;

/// The progress of a call, for a client that asks for it.
pub(super) struct Progress {
    token: ProgressToken,
    peer: Peer<RoleServer>,
    /// The number of notifications so far. It grows over all runs of the call.
    sent: AtomicU32,
}

/// Describes the chunks of one run.
pub(super) struct Describer {
    messages: mpsc::Sender<String>,
    /// The field whose text arrives.
    field: String,
}

impl Progress {
    pub(super) fn new(token: ProgressToken, peer: Peer<RoleServer>) -> Self {
        Self { token, peer, sent: AtomicU32::new(0) }
    }

    /// Returns the describer of a run, and the future that sends its notifications until the describer is dropped.
    pub(super) fn start(&self) -> (Describer, impl Future<Output = ()> + '_) {
        let (messages, waiting) = mpsc::channel(MAX_WAITING);
        (Describer { messages, field: String::new() }, self.send(waiting))
    }

    async fn send(&self, mut waiting: mpsc::Receiver<String>) {
        while let Some(message) = waiting.recv().await {
            let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
            let progress = ProgressNotificationParam::new(self.token.clone(), f64::from(number));
            // A client that is gone is noticed by its transport.
            drop(self.peer.notify_progress(progress.with_message(message)).await);
        }
    }
}

impl Describer {
    /// Sends what a chunk says, if it is new.
    pub(super) fn show(&mut self, chunk: &Chunk) {
        let message = match chunk {
            Chunk::Meta { .. } => Some("the run has started".to_owned()),
            Chunk::Progress(progress) => progress.description(),
            Chunk::Delta { field, .. } if *field != self.field => {
                self.field.clone_from(field);
                Some(format!("writing {field}"))
            }
            Chunk::Snapshot { field: Some(field), .. } => Some(format!("{field} is complete")),
            _ => None,
        };
        if let Some(message) = message {
            drop(self.messages.try_send(message));
        }
    }
}
