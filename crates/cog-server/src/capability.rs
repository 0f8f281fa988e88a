use cog_media::MediaRules;
use cog_spec::{Capabilities, Modality};

use crate::transport::TRANSPORTS;

/// Returns the capabilities of this runtime (SPEC 8.1), for the command line and for HTTP.
pub fn capabilities() -> Capabilities {
    let mut capabilities = Capabilities::new("cog", env!("CARGO_PKG_VERSION"));
    capabilities.streaming = !TRANSPORTS.is_empty();
    capabilities.input = Modality::ALL.to_vec();
    capabilities.output = vec![Modality::Text, Modality::Image, Modality::Audio];
    capabilities.max_media_size_mb = max_media_mb();
    capabilities.transports = TRANSPORTS.to_vec();
    capabilities
}

/// The maximum size of a media file of any kind, in MB of 1,048,576 bytes (ruling R60).
fn max_media_mb() -> u32 {
    u32::try_from(MediaRules::default().max_bytes_of_any() >> 20).unwrap_or(u32::MAX)
}
