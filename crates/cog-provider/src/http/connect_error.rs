//! Classifies connection errors by their local cause.

use std::{error::Error, io};

use crate::ConnectErrorKind;

impl ConnectErrorKind {
    /// Finds the local cause in an error chain; returns `None` for any other error.
    pub(super) fn among(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(cause) = next {
            if let Some(kind) = Self::of(cause) {
                return Some(kind);
            }
            // The `source` of an `io::Error` skips the error that it wraps.
            let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = wrapped.map(|cause| cause as _).or_else(|| cause.source());
        }
        None
    }

    fn of(cause: &(dyn Error + 'static)) -> Option<Self> {
        match cause.downcast_ref() {
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::General(_)) => Some(Self::Certificate),
            Some(_) => Some(Self::Tls),
            None => is_of_proxy(&cause.to_string()).then_some(Self::Proxy),
        }
    }
}

/// Returns whether an error text is about a proxy. The client reports proxy errors only as text.
fn is_of_proxy(words: &str) -> bool {
    words.starts_with("tunnel error") || words.starts_with("unsupported scheme socks")
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;

    use super::*;

    #[test]
    fn a_certificate_is_found_under_wrappings() {
        let error = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let error = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(ConnectErrorKind::among(&error), Some(ConnectErrorKind::Certificate));
    }

    #[test]
    fn other_words_of_tls_are_told_apart() {
        let error = io::Error::other(rustls::Error::HandshakeNotComplete);
        assert_eq!(ConnectErrorKind::among(&error), Some(ConnectErrorKind::Tls));
    }

    #[test]
    fn a_server_that_does_not_answer_is_no_obstacle() {
        let error = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(ConnectErrorKind::among(&error), None);
    }
}
