//! The decoder that all protocols share, which converts frames to the events of one reply.

use cog_json::{Limits, Reader};
use cog_spec::ModelEvent;

use super::{
    DecodeError, Decoder,
    frames::{Frame, Frames},
    reply::Reply,
    surrogates::SurrogateJoiner,
    template::Template,
};

/// The function with which a protocol reads one frame.
pub(super) type Read =
    fn(&mut Reply, &Frame<'_>, &mut Reader, &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

/// Splits the bytes into frames and reads each of them.
pub(super) struct FrameDecoder {
    frames: Frames,
    reader: FrameReader,
}

/// The state of a reply between two frames.
struct FrameReader {
    reply: Reply,
    read: Read,
    json: Reader,
    template: Template,
    surrogates: SurrogateJoiner,
}

impl FrameDecoder {
    pub(super) fn new(frames: Frames, read: Read) -> Self {
        let (reply, template) = (Reply::default(), Template::default());
        let json = Reader::new(Limits::default());
        let surrogates = SurrogateJoiner::default();
        Self { frames, reader: FrameReader { reply, read, json, template, surrogates } }
    }
}

impl FrameReader {
    fn read(&mut self, frame: &Frame<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        if let Some(text) = self.template.text_of(frame) {
            self.reply.push_text(text, out);
            return if self.surrogates.is_waiting() { Err(half_a_character()) } else { Ok(()) };
        }
        let (joined, before) = (self.surrogates.join(frame.text), out.len());
        let text = joined.as_deref().unwrap_or(frame.text);
        self.read_json(&Frame { event: frame.event, text }, out)?;
        let is_text = |event: &ModelEvent| matches!(event, ModelEvent::Text(text) if !text.is_empty());
        match self.surrogates.is_overdue() && out.iter().skip(before).any(is_text) {
            true => Err(half_a_character()),
            false => Ok(()),
        }
    }

    fn read_json(&mut self, frame: &Frame<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        self.reply.begin_frame();
        (self.read)(&mut self.reply, frame, &mut self.json, out)?;
        if let Some(range) = self.reply.only_text() {
            self.template.learn(frame, range);
        }
        Ok(())
    }
}

fn half_a_character() -> DecodeError {
    DecodeError::NotJson("half of a character: an unpaired surrogate".to_owned())
}

impl Decoder for FrameDecoder {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reader } = self;
        frames.push(bytes, &mut |frame| reader.read(&frame, out))
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reader } = self;
        frames.finish(&mut |frame| reader.read(&frame, out))?;
        if reader.surrogates.is_waiting() {
            return Err(half_a_character());
        }
        reader.reply.close(out)
    }
}
