//! The headers that several operations accept.

use utoipa::IntoParams;

/// Selects the response mode.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "described, not read: `negotiate` reads the header")]
pub(crate) struct ModeHeader {
    /// One envelope (`sync`) or a stream (`streaming`). Overrides `_options.response_mode`, the query and `Accept`.
    #[param(rename = "X-Cognitive-Response-Mode", required = false, pattern = "^(sync|streaming)$")]
    mode: String,
}

/// Names the last chunk that the client has.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "described, not read: `request::recovery_from_headers` reads them")]
pub(crate) struct RecoveryHeaders {
    /// The last event received, `SESSION:SEQ`. A browser's EventSource sends it when it reconnects.
    #[param(rename = "Last-Event-ID", required = false)]
    event: String,
    /// The session of the stream, without `Last-Event-ID`.
    #[param(rename = "X-Cognitive-Recovery-Session", required = false)]
    session: String,
    /// The number of the last chunk received.
    #[param(rename = "X-Cognitive-Recovery-Seq", required = false, pattern = "^[0-9]{1,19}$")]
    seq: String,
}
