//! The wire form that a server implements.

use url::Url;

use super::Vendor;
use crate::protocol::ProtocolKind;

/// Returns the wire form of the server at a normalized base URL: the configured one, otherwise the vendor's.
///
/// A server that is not the vendor's own is a gateway. It may not implement Responses, so it gets Chat Completions.
pub(crate) fn protocol_at(vendor: &Vendor, base_url: &str, configured: Option<ProtocolKind>) -> ProtocolKind {
    match (configured, vendor.protocol) {
        (Some(configured), ProtocolKind::OpenAiChat | ProtocolKind::OpenAiResponses) => configured,
        (None, ProtocolKind::OpenAiResponses) if !is_own(vendor, base_url) => ProtocolKind::OpenAiChat,
        (_, own) => own,
    }
}

/// Returns whether the host of a base URL is the vendor's, or a subdomain of it, such as that of a region.
pub(crate) fn is_own(vendor: &Vendor, base_url: &str) -> bool {
    let host = |url: &str| Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let (Some(own), Some(host)) = (host(vendor.base_url), host(base_url)) else { return false };
    host.strip_suffix(own.as_str()).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vendor that uses Responses.
    fn vendor() -> Vendor {
        Vendor { base_url: "https://api.example/v1", ..*Vendor::by_name("openai").unwrap() }
    }

    #[test]
    fn vendors_own_server_gets_the_vendors_protocol() {
        for url in ["https://api.example/v1", "https://eu.api.example/v1", "http://api.example:8080"] {
            assert_eq!(protocol_at(&vendor(), url, None), ProtocolKind::OpenAiResponses, "{url}");
        }
    }

    #[test]
    fn gateway_gets_chat() {
        for url in ["http://127.0.0.1:4000/v1", "https://notapi.example/v1", "https://api.example.org/v1"] {
            assert_eq!(protocol_at(&vendor(), url, None), ProtocolKind::OpenAiChat, "{url}");
        }
    }

    #[test]
    fn configured_protocol_applies_to_every_server() {
        for kind in [ProtocolKind::OpenAiChat, ProtocolKind::OpenAiResponses] {
            for url in ["https://api.example/v1", "http://127.0.0.1:4000/v1"] {
                assert_eq!(protocol_at(&vendor(), url, Some(kind)), kind, "{url}");
            }
            let groq = Vendor::by_name("groq").unwrap();
            assert_eq!(protocol_at(groq, groq.base_url, Some(kind)), kind);
            let gemini = Vendor::by_name("gemini").unwrap();
            assert_eq!(protocol_at(gemini, gemini.base_url, Some(kind)), ProtocolKind::Gemini);
        }
    }
}
