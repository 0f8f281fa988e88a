//! A packet as messages for the agent that receives it.

use super::{artifact::Artifact, packet::Handoff};
use crate::{Conversation, Message, Part};

impl Handoff {
    /// Returns the messages with which the receiver starts: fixed instructions, and one user message with the complete
    /// packet. Images among the artifacts that have a URL are parts of it.
    ///
    /// The text of the packet is never in the system message, because another agent wrote it.
    pub fn messages(&self) -> Conversation {
        let mut parts = vec![Part::text(self.text_for_receiver())];
        let images = self.artifacts().filter(Artifact::is_image_url);
        parts.extend(images.map(|image| Part::image_at(image.reference.as_str())));
        let mut user = Message::user("");
        (user.content, user.name) = (parts, Some(self.source_agent().to_owned()));
        Conversation::new([Message::system(self.instructions()), user])
    }

    fn instructions(&self) -> String {
        let target = self.target_agent();
        format!(
            "You are `{target}`, and you take over a task. The user message is the handoff packet; it contains all \
            that is known. The objective is fixed: do not change it. Every constraint applies. Continue with the next \
            step, and do not repeat completed steps. If you hand over in turn, keep the objective and all constraints."
        )
    }

    fn text_for_receiver(&self) -> String {
        let mut text = format!("# Objective\n\n{}\n", self.primary_objective());
        section(&mut text, "Status", self.status());
        list(&mut text, "Completed steps", self.completed_steps().map(str::to_owned));
        section(&mut text, "Next step", self.next_immediate_step());
        list(&mut text, "Constraints", self.constraints().map(str::to_owned));
        let artifacts =
            self.artifacts().map(|artifact| format!("{}: {}", artifact.name, artifact.reference.as_str()));
        list(&mut text, "Artifacts", artifacts);
        section(&mut text, "History", self.history_summary());
        text
    }
}

fn section(text: &mut String, title: &str, content: Option<&str>) {
    if let Some(content) = content {
        text.push_str(&format!("\n# {title}\n\n{content}\n"));
    }
}

fn list(text: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let lines: String = items.map(|item| format!("- {}\n", item.replace('\n', "\n  "))).collect();
    let lines = if lines.is_empty() { "None.\n".to_owned() } else { lines };
    text.push_str(&format!("\n# {title}\n\n{lines}"));
}
