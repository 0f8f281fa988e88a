//! The formats of inputs and outputs, as the names of files say them.

use std::{path::Path, str::FromStr};

/// A format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One JSON value per line.
    JsonLines,
    /// Values that are separated by commas, or by another character, with a header.
    Csv,
    /// An array of JSON values.
    Json,
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
    pub const NAMES: &'static [&'static str] = &["jsonl", "csv", "json", "arrow", "parquet"];
    /// The names of the formats.
    #[cfg(not(feature = "arrow"))]
    pub const NAMES: &'static [&'static str] = &["jsonl", "csv", "json"];

    /// Returns the format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "csv" | "tsv" => Some(Self::Csv),
            "json" => Some(Self::Json),
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

/// Returns the character between the values of a CSV file: a tab in `.tsv`, otherwise a comma.
#[must_use]
pub fn delimiter_of(path: &Path) -> u8 {
    let is_tsv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"));
    if is_tsv { b'\t' } else { b',' }
}

/// How an input file is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// Returns the compression of a file with this extension.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Some(Self::Gzip),
            "zst" | "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Returns a path without the extension of a compression: `rows.csv` of `rows.csv.gz`.
    #[must_use]
    pub fn strip(path: &Path) -> &Path {
        match Self::from_path(path) {
            Some(_) => path.file_stem().map_or(path, Path::new),
            None => path,
        }
    }
}

/// The encoding of a text file, by a name of the WHATWG: `windows-1252`, `shift_jis`, `utf-16le`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(pub(crate) &'static encoding_rs::Encoding);

impl Encoding {
    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl FromStr for Encoding {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = encoding_rs::Encoding::for_label_no_replacement(name.as_bytes());
        found.map(Self).ok_or("not the name of an encoding, such as windows-1252, shift_jis or utf-16le")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_file_says_its_format() {
        for (name, format, compression, delimiter) in [
            ("a.csv", Some(Format::Csv), None, b','),
            ("dir.gz/a.TSV", Some(Format::Csv), None, b'\t'),
            ("a.tsv.GZ", Some(Format::Csv), Some(Compression::Gzip), b'\t'),
            ("a.b.jsonl.zst", Some(Format::JsonLines), Some(Compression::Zstd), b','),
            ("a.json", Some(Format::Json), None, b','),
            ("gz", None, None, b','),
            ("a.gz", None, Some(Compression::Gzip), b','),
        ] {
            let path = Path::new(name);
            let plain = Compression::strip(path);
            assert_eq!(Format::from_path(plain), format, "{name}");
            assert_eq!(
                (Compression::from_path(path), delimiter_of(plain)),
                (compression, delimiter),
                "{name}"
            );
        }
    }

    #[test]
    fn encodings_have_the_names_of_the_web() {
        for (name, expected) in [("Latin1", "windows-1252"), ("utf8", "UTF-8"), ("sjis", "Shift_JIS")] {
            assert_eq!(name.parse::<Encoding>().unwrap().name(), expected);
        }
        assert!("latin-99".parse::<Encoding>().is_err() && "replacement".parse::<Encoding>().is_err());
    }
}
