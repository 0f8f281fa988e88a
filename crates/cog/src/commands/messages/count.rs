//! `cog messages count`: the tokens of each message.

use cog_harmony::{Conversation, Estimate, MessageTokens, TokenCounter};
use serde::Serialize;

use super::history;
use crate::{
    args::CountArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Table},
};

/// Prints the tokens of each message and of all.
pub(crate) fn count(args: &CountArgs, console: &Console) -> Result<Exit, CliError> {
    let conversation = history::conversation(&history::read(&args.file)?, &args.file)?;
    let counts = Counts::new(args.model.as_deref(), &conversation);
    if console.prints_json(args.format) {
        console.print_json(&counts)?;
    } else {
        console.print(&counts.text(console))?;
    }
    Ok(Exit::Ok)
}

/// The tokens of a history.
#[derive(Serialize)]
struct Counts<'a> {
    model: Option<&'a str>,
    tokenizer: &'static str,
    exact: bool,
    tokens: u64,
    images: usize,
    image_tokens: u64,
    messages: Vec<Line<'a>>,
}

/// The tokens of a message.
#[derive(Serialize)]
struct Line<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    role: &'static str,
    tokens: u64,
    images: usize,
    image_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    estimated: Vec<&'static str>,
}

impl<'a> Counts<'a> {
    fn new(model: Option<&'a str>, conversation: &'a Conversation) -> Self {
        let counter = TokenCounter::new(model.unwrap_or_default());
        let line = |(index, message): (usize, &'a cog_harmony::Message)| {
            let MessageTokens { total, images, image_tokens, estimates } = counter.message(message);
            let estimated = estimates.into_iter().map(Estimate::as_str).collect();
            let (id, role) = (message.id.as_deref(), message.role.as_str());
            Line { index, id, role, tokens: total, images, image_tokens, estimated }
        };
        let messages: Vec<Line<'a>> = conversation.messages().iter().enumerate().map(line).collect();
        Self {
            model,
            tokenizer: counter.tokenizer(),
            exact: counter.is_exact() && messages.iter().all(|message| message.estimated.is_empty()),
            tokens: counter.reply() + messages.iter().map(|message| message.tokens).sum::<u64>(),
            images: messages.iter().map(|message| message.images).sum(),
            image_tokens: messages.iter().map(|message| message.image_tokens).sum(),
            messages,
        }
    }

    fn text(&self, console: &Console) -> String {
        let mut table = Table::new(["message", "role", "tokens", "images", "note"]);
        for line in &self.messages {
            let images = match line.images {
                0 => String::new(),
                images => format!("{images} ({} tokens)", line.image_tokens),
            };
            let (name, tokens) = (format!("[{}]", line.index), line.tokens.to_string());
            table.row([name, line.role.to_owned(), tokens, images, line.estimated.join("; ")]);
        }
        let kind = if self.exact { "exact" } else { "estimated" };
        let total = format!("{} tokens, {kind} with {}\n", self.tokens, self.tokenizer);
        format!("{}{total}", table.render(console.out().palette, console.out_columns()))
    }
}
