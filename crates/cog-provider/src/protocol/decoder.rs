//! The decoder that all protocols share: frames in, events of one reply out.

use cog_spec::ModelEvent;

use super::{
    DecodeError, Decoder,
    frames::{Frame, Frames},
    reply::Reply,
};

/// What a protocol does with one frame.
pub(super) type Read = fn(&mut Reply, &Frame<'_>, &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

/// Cuts the bytes into frames and has each of them read.
pub(super) struct FrameDecoder {
    frames: Frames,
    reply: Reply,
    read: Read,
}

impl FrameDecoder {
    pub(super) fn new(frames: Frames, read: Read) -> Self {
        Self { frames, reply: Reply::default(), read }
    }
}

impl Decoder for FrameDecoder {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reply, read } = self;
        frames.push(bytes, &mut |frame| read(reply, &frame, out))
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reply, read } = self;
        frames.finish(&mut |frame| read(reply, &frame, out))?;
        reply.close(out)
    }
}
