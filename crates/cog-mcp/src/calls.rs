//! The calls in progress of a server, to which its requests belong.
#![expect(deprecated, reason = "servers of older revisions still ask for sampling")]

use std::sync::{Mutex, PoisonError};

use rmcp::{
    ErrorData,
    model::{CreateMessageRequestParams, CreateMessageResult, ProgressNotificationParam},
};
use tokio::sync::{mpsc, oneshot};

/// What a server asks during a call.
pub(crate) enum Asked {
    Progress(ProgressNotificationParam),
    Model(Box<CreateMessageRequestParams>, oneshot::Sender<Result<CreateMessageResult, ErrorData>>),
}

/// How many reports of a call may wait.
const WAITING: usize = 16;

/// The calls in progress. The protocol does not say to which call a request of the server belongs, so only a single call gets them.
#[derive(Default)]
pub(crate) struct OpenCalls(Mutex<Vec<mpsc::Sender<Asked>>>);

impl OpenCalls {
    /// Adds a call, until what it returns is dropped.
    pub(crate) fn add(&self) -> mpsc::Receiver<Asked> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|call| !call.is_closed());
        calls.push(sender);
        receiver
    }

    /// Returns the call in progress, if there is exactly one.
    pub(crate) fn only(&self) -> Option<mpsc::Sender<Asked>> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|call| !call.is_closed());
        match calls.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    }
}
