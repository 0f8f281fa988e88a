use cog_spec::{Capabilities, Modality};

use crate::transport::TRANSPORTS;

/// What this runtime can do, by what it does: the document of SPEC 8.1, the same on the command line and over HTTP.
pub fn capabilities() -> Capabilities {
    Capabilities {
        runtime: "cog".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        streaming: !TRANSPORTS.is_empty(),
        input: vec![Modality::Text],
        output: vec![Modality::Text],
        max_media_size_mb: 0,
        transports: TRANSPORTS.to_vec(),
    }
}
