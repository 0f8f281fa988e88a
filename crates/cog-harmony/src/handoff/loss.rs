//! What a handoff loses.

use std::collections::HashSet;

use serde::Serialize;

use super::{chain::shortened, draft::Draft, packet::Handoff};
use crate::{Conversation, FileSource, Message, Part, Role};

/// Something that the receiver of a packet will not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Where it was, such as `messages[3].content[1]`.
    pub path: String,
    /// The kind of the loss.
    pub kind: LossKind,
    /// A message with the content.
    pub message: String,
}

/// The kind of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// A message that no summary covers.
    History,
    /// A tool call without a result.
    OpenToolCall,
    /// A media part that is not among the artifacts.
    Media,
    /// A constraint of the packet before.
    Constraint,
    /// An artifact of the packet before.
    Artifact,
}

/// Lists what a packet would lose: of the packet before it, and of the history of the agent that hands over.
pub fn losses(draft: &Draft, parent: Option<&Handoff>, history: &Conversation) -> Vec<Loss> {
    let mut losses = Vec::new();
    if let Some(parent) = parent {
        let own: HashSet<&str> = draft.constraints.iter().map(String::as_str).collect();
        let dropped = parent.constraints().filter(|constraint| !own.contains(constraint));
        losses.extend(dropped.map(|constraint| {
            loss(
                "context.constraints",
                LossKind::Constraint,
                format!("the constraint `{}`", shortened(constraint)),
            )
        }));
        let own: HashSet<&str> = draft.artifacts.iter().map(|(name, _)| name.as_str()).collect();
        let dropped = parent.artifacts().filter(|artifact| !own.contains(artifact.name));
        losses.extend(dropped.map(|artifact| {
            loss("context.artifacts", LossKind::Artifact, format!("the artifact `{}`", artifact.name))
        }));
    }
    losses.extend(of_history(draft, history));
    losses
}

fn of_history(draft: &Draft, history: &Conversation) -> Vec<Loss> {
    let references: HashSet<&str> =
        draft.artifacts.iter().filter_map(|(_, artifact)| reference(artifact)).collect();
    let answered: HashSet<&str> =
        history.messages().iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
    let has_summary = draft.history_summary.is_some();
    let mut losses = Vec::new();
    for (index, message) in history.messages().iter().enumerate() {
        let path = format!("messages[{index}]");
        if !has_summary && !message.text().trim().is_empty() {
            let what = format!("the {} message `{}`", message.role, shortened(message.text().trim()));
            losses.push(loss(&path, LossKind::History, format!("{what} is in no summary")));
        }
        losses.extend(open_calls(message, &path, &answered));
        losses.extend(media(message, &path, &references));
    }
    losses
}

fn open_calls(message: &Message, path: &str, answered: &HashSet<&str>) -> Vec<Loss> {
    let calls = message.tool_calls.iter().enumerate().filter(|_| message.role == Role::Assistant);
    let open = calls.filter(|(_, call)| !answered.contains(call.id.as_str()));
    let lost = open.map(|(index, call)| {
        let message = format!(
            "the call `{}` of the tool `{}` has no result",
            shortened(&call.id),
            shortened(&call.name)
        );
        loss(&format!("{path}.tool_calls[{index}]"), LossKind::OpenToolCall, message)
    });
    lost.collect()
}

fn media(message: &Message, path: &str, references: &HashSet<&str>) -> Vec<Loss> {
    let lost = message.content.iter().enumerate().filter_map(|(index, part)| {
        let what = match part {
            Part::Image(image) if image.url.starts_with("data:") => "an image with its bytes".to_owned(),
            Part::Image(image) if references.contains(image.url.as_str()) => return None,
            Part::Image(image) => format!("the image {}", shortened(without_query(&image.url))),
            Part::Audio(audio) => format!("{} audio with its bytes", shortened(&audio.format)),
            Part::File(file) => format!("a file of type {} with its bytes", shortened(&file.media_type)),
            Part::FileReference(file) => match &file.source {
                FileSource::Url(url) if references.contains(url.as_str()) => return None,
                FileSource::Url(url) => format!("the file {}", shortened(without_query(url))),
                FileSource::Id(id) => format!("the uploaded file `{}`", shortened(id)),
            },
            Part::Text(_) | Part::Refusal(_) | Part::Native(_) => return None,
        };
        let message = format!("{what} is not among the artifacts");
        Some(loss(&format!("{path}.content[{index}]"), LossKind::Media, message))
    });
    lost.collect()
}

/// The query of a URL may be a signature.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

fn reference(artifact: &cog_json::Value) -> Option<&str> {
    let text = |key: &str| artifact.get(key)?.as_str();
    artifact.as_str().or_else(|| text("url")).or_else(|| text("path"))
}

fn loss(path: &str, kind: LossKind, message: String) -> Loss {
    Loss { path: path.to_owned(), kind, message }
}
