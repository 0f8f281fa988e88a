//! Cassettes: recorded requests and the raw bytes of their replies (docs/spec/golden-tests.md).
//!
//! A cassette is a directory. `NNNN.json` contains a request and the status and headers of its reply. `NNNN.ndjson`
//! contains the body as one `{"t_ms", "b64"}` object per chunk received.
//! A reply is found by the hash of the request body and the end of the request path, where Gemini names the model.
//! Equal requests get their replies in recorded order, and start over after the last one.

mod exchange;
mod files;
mod mask;
mod record;
mod recording;
mod replay;

pub(crate) use record::Recorder;
pub use recording::Recording;
pub use replay::Pace;
pub(crate) use replay::Replayer;
