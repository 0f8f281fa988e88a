//! The certificate authorities that calls over HTTPS trust: `SSL_CERT_FILE` and `SSL_CERT_DIR`, otherwise the system's.

use std::path::{Path, PathBuf};

use cog_module::files;
use cog_store::private;

use super::{Environment, Settings};

/// The maximum size of a file with certificates. The list of Mozilla has 250 kB.
const MAX_FILE: u64 = 16 << 20;

/// The line before a certificate in PEM.
const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// A file or directory of certificate authorities that a variable names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateSource {
    /// The variable: `SSL_CERT_FILE` or `SSL_CERT_DIR`.
    pub variable: &'static str,
    /// The file or the directory.
    pub path: PathBuf,
    /// The number of certificates in it, or why it cannot be read.
    pub certificates: Result<usize, String>,
}

impl CertificateSource {
    /// Returns the sources that the variables name; none if the system's are used.
    fn read(environment: &Environment) -> Vec<Self> {
        let files = environment.path("SSL_CERT_FILE").into_iter().map(|path| Self {
            variable: "SSL_CERT_FILE",
            certificates: in_file(&path),
            path,
        });
        let directories = environment.paths("SSL_CERT_DIR").into_iter().flatten().map(|path| Self {
            variable: "SSL_CERT_DIR",
            certificates: in_directory(&path),
            path,
        });
        files.chain(directories).collect()
    }

    /// Returns what is wrong with it, if anything is.
    pub fn problem(&self) -> Option<String> {
        let Self { variable, path, certificates } = self;
        match certificates {
            Err(reason) => Some(format!("{variable}: cannot read {}: {reason}", path.display())),
            Ok(0) => Some(format!("{variable}: {} contains no certificate in PEM", path.display())),
            Ok(_) => None,
        }
    }
}

impl Settings {
    /// Returns the certificate authorities that variables name, in place of the system's. Reads files.
    pub fn certificate_sources(&self) -> Vec<CertificateSource> {
        CertificateSource::read(&self.environment)
    }

    /// Returns a warning for each source of certificates that has none.
    pub(super) fn certificate_warnings(&self) -> Vec<String> {
        let sources = self.certificate_sources();
        let is_any_usable = sources.iter().any(|source| source.problem().is_none());
        let effect = if is_any_usable { "it is ignored" } else { "no HTTPS server will be trusted" };
        sources.iter().filter_map(|source| Some(format!("{}; {effect}", source.problem()?))).collect()
    }
}

fn in_file(path: &Path) -> Result<usize, String> {
    let bytes = private::read(path, MAX_FILE).map_err(|error| error.to_string())?;
    Ok(bytes.windows(BEGIN.len()).filter(|window| *window == BEGIN).count())
}

fn in_directory(path: &Path) -> Result<usize, String> {
    if !path.is_dir() {
        return Err("not a directory".to_owned());
    }
    // A file of the directory that cannot be read is skipped, as it is when certificates are loaded.
    Ok(files::file_names(path).iter().filter_map(|name| in_file(&path.join(name)).ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_without_certificates_are_reported() {
        let place = tempfile::tempdir().unwrap();
        let pem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n".repeat(2).into_bytes();
        let written = [("set/a.pem".to_owned(), pem), ("set/empty.pem".to_owned(), b"none".to_vec())];
        files::write_directory(&place.path().join("ca"), &written).unwrap();
        let found = |file: &str, directory: &str| {
            let [file, directory] = [file, directory].map(|path| place.path().join("ca").join(path));
            let variables =
                [("SSL_CERT_FILE", file.to_str().unwrap()), ("SSL_CERT_DIR", directory.to_str().unwrap())];
            let sources = CertificateSource::read(&Environment::from(variables));
            sources.into_iter().map(|source| source.certificates).collect::<Vec<_>>()
        };
        assert_eq!(found("set/a.pem", "set"), [Ok(2), Ok(2)]);
        assert_eq!(found("set/empty.pem", "nowhere"), [Ok(0), Err("not a directory".to_owned())]);
        assert!(found("nowhere.pem", "set")[0].is_err());
        assert_eq!(CertificateSource::read(&Environment::from([("X", "")])), []);
    }
}
