use std::time::Duration;

/// What the mock answers to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) media: Vec<Medium>,
    pub(crate) refusal: Option<String>,
    pub(crate) finish: Finish,
    pub(crate) model: String,
    pub(crate) usage: (u64, u64),
    pub(crate) piece: usize,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) raw: Option<String>,
    pub(crate) fault: Option<String>,
    pub(crate) network: Option<usize>,
    pub(crate) cut: Option<usize>,
    pub(crate) delay: Duration,
    pub(crate) pause: Duration,
    pub(crate) hang: bool,
}

/// An image or a sound beside the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Medium {
    pub(crate) media_type: String,
    pub(crate) data: String,
}

/// Why the model says it stopped; each vendor has its own word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Finish {
    /// It was done.
    #[default]
    Stop,
    /// It reached its limit.
    Length,
    /// A filter stopped it.
    ContentFilter,
    /// This very word.
    Word(String),
}

impl Reply {
    /// A good answer of this text, in pieces of eight characters.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            reasoning: String::new(),
            media: Vec::new(),
            refusal: None,
            finish: Finish::Stop,
            model: "mock-model".to_owned(),
            usage: (11, 7),
            piece: 8,
            status: 200,
            headers: Vec::new(),
            raw: None,
            fault: None,
            network: None,
            cut: None,
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            hang: false,
        }
    }

    /// A failure with this status, told in the vendor's form.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        Self { status, fault: Some(message.into()), ..Self::text("") }
    }

    /// This very body.
    pub fn raw(body: impl Into<String>) -> Self {
        Self { raw: Some(body.into()), ..Self::text("") }
    }

    /// With this much text in each piece, in characters.
    #[must_use]
    pub fn pieces(self, characters: usize) -> Self {
        Self { piece: characters.max(1), ..self }
    }

    /// With this reasoning before the text.
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        Self { reasoning: text.into(), ..self }
    }

    /// With this medium beside the text.
    #[must_use]
    pub fn media(mut self, media_type: impl Into<String>, base64: impl Into<String>) -> Self {
        self.media.push(Medium { media_type: media_type.into(), data: base64.into() });
        self
    }

    /// The model refuses, with these words.
    #[must_use]
    pub fn refusal(self, words: impl Into<String>) -> Self {
        Self { refusal: Some(words.into()), ..self }
    }

    /// With another reason to stop.
    #[must_use]
    pub fn finish(self, finish: Finish) -> Self {
        Self { finish, ..self }
    }

    /// From this model.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }

    /// With these counts of tokens, in and out.
    #[must_use]
    pub fn usage(self, input: u64, output: u64) -> Self {
        Self { usage: (input, output), ..self }
    }

    /// With this status.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// With this header as well.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// After the text, a fault in the vendor's form in the middle of the stream.
    #[must_use]
    pub fn fault(self, message: impl Into<String>) -> Self {
        Self { fault: Some(message.into()), ..self }
    }

    /// The connection breaks after this many bytes of the body.
    #[must_use]
    pub fn cut(self, bytes: usize) -> Self {
        Self { cut: Some(bytes), ..self }
    }

    /// The body leaves in packets of this many bytes, whatever stands in them.
    #[must_use]
    pub fn network(self, bytes: usize) -> Self {
        Self { network: Some(bytes.max(1)), ..self }
    }

    /// The head comes this much later.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// This much time passes between two pieces.
    #[must_use]
    pub fn pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// After its last piece the connection stays open and silent.
    #[must_use]
    pub fn hang(self) -> Self {
        Self { hang: true, ..self }
    }

    /// The text in its pieces; at least one, which may be empty.
    pub(crate) fn text_pieces(&self) -> Vec<String> {
        in_pieces(&self.text, self.piece)
    }

    /// The reasoning in its pieces; none where there is none.
    pub(crate) fn reasoning_pieces(&self) -> Vec<String> {
        if self.reasoning.is_empty() { Vec::new() } else { in_pieces(&self.reasoning, self.piece) }
    }
}

fn in_pieces(text: &str, characters: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = letters.chunks(characters).map(|piece| piece.iter().collect()).collect();
    if pieces.is_empty() { vec![String::new()] } else { pieces }
}
