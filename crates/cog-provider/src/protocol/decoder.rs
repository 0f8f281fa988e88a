//! The decoder that all protocols share, which converts frames to the events of one reply.

use cog_json::{Limits, Reader};
use cog_spec::ModelEvent;

use super::{
    DecodeError, Decoder,
    frames::{Frame, Frames},
    reply::Reply,
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
}

impl FrameDecoder {
    pub(super) fn new(frames: Frames, read: Read) -> Self {
        let (reply, template) = (Reply::default(), Template::default());
        let json = Reader::new(Limits::default());
        Self { frames, reader: FrameReader { reply, read, json, template } }
    }
}

impl FrameReader {
    fn read(&mut self, frame: &Frame<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        if let Some(text) = self.template.text_of(frame) {
            self.reply.push_text(text, out);
            return Ok(());
        }
        self.reply.begin_frame();
        (self.read)(&mut self.reply, frame, &mut self.json, out)?;
        if let Some(range) = self.reply.only_text() {
            self.template.learn(frame, range);
        }
        Ok(())
    }
}

impl Decoder for FrameDecoder {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reader } = self;
        frames.push(bytes, &mut |frame| reader.read(&frame, out))
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reader } = self;
        frames.finish(&mut |frame| reader.read(&frame, out))?;
        reader.reply.close(out)
    }
}
