//! The formats of inputs and outputs.

use std::path::Path;

/// A format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One JSON value per line.
    JsonLines,
    /// Comma-separated values with a header.
    Csv,
    /// Arrow IPC: a file or a stream.
    #[cfg(feature = "arrow")]
    Arrow,
    /// Parquet.
    #[cfg(feature = "arrow")]
    Parquet,
}

impl Format {
    /// The names of the formats.
    #[cfg(feature = "arrow")]
    pub const NAMES: &'static [&'static str] = &["jsonl", "csv", "arrow", "parquet"];
    /// The names of the formats.
    #[cfg(not(feature = "arrow"))]
    pub const NAMES: &'static [&'static str] = &["jsonl", "csv"];

    /// Returns the format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "csv" => Some(Self::Csv),
            #[cfg(feature = "arrow")]
            "arrow" | "arrows" | "feather" | "ipc" => Some(Self::Arrow),
            #[cfg(feature = "arrow")]
            "parquet" | "pq" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// Returns the format of a file with this extension.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        Self::from_name(path.extension()?.to_str()?)
    }
}
