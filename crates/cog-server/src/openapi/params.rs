//! The headers that more than one operation takes.

use utoipa::IntoParams;

/// Chooses the mode.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "described, not read: `negotiate` reads the header")]
pub(crate) struct ModeHeader {
    /// One envelope (`sync`) or a stream (`streaming`), above `_options.response_mode`, the query and `Accept`.
    #[param(rename = "X-Cognitive-Response-Mode", required = false, pattern = "^(sync|streaming)$")]
    mode: String,
}

/// Names the last chunk of a stream that broke.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "described, not read: `request::of_headers` reads them")]
pub(crate) struct RecoveryHeaders {
    /// The last event that arrived, `SESSION:SEQ`: what a browser's EventSource sends when it connects again.
    #[param(rename = "Last-Event-ID", required = false)]
    event: String,
    /// The session of the stream, where there is no `Last-Event-ID`.
    #[param(rename = "X-Cognitive-Recovery-Session", required = false)]
    session: String,
    /// The number of the last chunk that arrived.
    #[param(rename = "X-Cognitive-Recovery-Seq", required = false, pattern = "^[0-9]+$")]
    seq: String,
}
