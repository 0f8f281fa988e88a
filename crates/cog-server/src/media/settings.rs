use std::time::Duration;

/// How much is kept of what was uploaded, and of what runs have made (docs/server.md).
///
/// One upload is as large as a medium of its kind may be: 100 MiB of video (ruling R60).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UploadSettings {
    /// How many of all clients: 1,000.
    pub count: usize,
    /// How many of one client: 32.
    pub per_client: usize,
    /// The bytes of all clients together: 4 GiB.
    pub bytes: usize,
    /// The bytes of one client: 512 MiB.
    pub bytes_per_client: usize,
    /// The bytes of all files of one form: 200 MiB, as of all media of one input.
    pub form_bytes: usize,
    /// How long each is kept, from when it was asked for: 15 minutes.
    pub keep: Duration,
}

impl Default for UploadSettings {
    fn default() -> Self {
        Self {
            count: 1_000,
            per_client: 32,
            bytes: 4 << 30,
            bytes_per_client: 512 << 20,
            form_bytes: 200 << 20,
            keep: Duration::from_secs(900),
        }
    }
}
