use std::time::Duration;

/// The limits of stored uploads and generated media (docs/server.md).
///
/// One upload may be as large as its media type allows: 100 MiB for video (ruling R60).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UploadSettings {
    /// The maximum number of files of all clients: 1,000.
    pub max_files: usize,
    /// The maximum number of files of one client: 32.
    pub max_files_per_client: usize,
    /// The maximum bytes of all clients: 4 GiB.
    pub max_bytes: usize,
    /// The maximum bytes of one client: 512 MiB.
    pub max_bytes_per_client: usize,
    /// The maximum bytes of all files of one form: 200 MiB, as of all media of one input.
    pub max_form_bytes: usize,
    /// The time after which a file expires: 15 minutes.
    pub ttl: Duration,
}

impl Default for UploadSettings {
    fn default() -> Self {
        Self {
            max_files: 1_000,
            max_files_per_client: 32,
            max_bytes: 4 << 30,
            max_bytes_per_client: 512 << 20,
            max_form_bytes: 200 << 20,
            ttl: Duration::from_secs(900),
        }
    }
}
