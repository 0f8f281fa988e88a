//! The form of a URL: whatever two parsers could read differently is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Url;

use super::{Host, Refusal};

/// The maximum length of a URL in bytes; signed URLs have up to 2,000.
const MAX_LEN: usize = 8192;

/// Characters that separate labels of internationalised names, in addition to the dot.
const OTHER_DOTS: [char; 3] = ['\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// Parses an http or https URL.
pub(super) fn read(text: &str) -> Result<Url, Refusal> {
    check_characters(text)?;
    let authority = authority(text)?;
    let written = host_of(authority);
    if written.contains('%') {
        return Err(Refusal::Form("the host is percent-encoded"));
    }
    let mut url = Url::parse(text).map_err(|_| Refusal::Form("it is not a valid URL"))?;
    let read = url.host_str().unwrap_or_default().to_owned();
    check_spelling(written, &read)?;
    if let Some(name) = read.strip_suffix('.') {
        url.set_host(Some(name)).map_err(|_| Refusal::Form("the host is not a valid name"))?;
    }
    url.set_fragment(None);
    Ok(url)
}

/// Refuses white space, control characters and backslashes, which some parsers drop or turn into slashes.
pub(super) fn check_characters(text: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::Form("it is empty"));
    }
    if text.len() > MAX_LEN {
        return Err(Refusal::Form("it is longer than 8192 bytes"));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Refusal::Form("it contains white space or a control character"));
    }
    if text.contains('\\') {
        return Err(Refusal::Form("it contains a backslash"));
    }
    Ok(())
}

/// Returns the host of a parsed URL.
pub(super) fn host(url: &Url) -> Result<Host, Refusal> {
    let host = url.host_str().unwrap_or_default();
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.trim_end_matches(']').parse::<Ipv6Addr>();
        return address.map(|address| Host::Address(IpAddr::V6(address))).map_err(|_| invalid_host());
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Address(IpAddr::V4(address)));
    }
    let is_name = host.len() <= 253
        && host.split('.').all(|label| (1..=63).contains(&label.len()))
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_name { Ok(Host::Name(host.to_owned())) } else { Err(invalid_host()) }
}

fn invalid_host() -> Refusal {
    Refusal::Form("the host is neither a name nor an IP address")
}

/// Returns the text between the scheme and the path.
fn authority(text: &str) -> Result<&str, Refusal> {
    let (scheme, rest) = text.split_once(':').ok_or_else(|| Refusal::Scheme(String::new()))?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        let is_scheme = scheme.len() <= 24
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        return Err(Refusal::Scheme(if is_scheme { scheme.to_ascii_lowercase() } else { String::new() }));
    }
    let rest = rest.strip_prefix("//").ok_or(Refusal::Form("the scheme is not followed by `//`"))?;
    // Older parsers end the host only at a slash.
    let until_slash = rest.split('/').next().unwrap_or_default();
    if until_slash.contains('@') {
        return Err(Refusal::Credentials);
    }
    match rest.split(['/', '?', '#']).next().unwrap_or_default() {
        "" => Err(Refusal::Form("it has no host")),
        authority => Ok(authority),
    }
}

/// Returns the host without its port.
fn host_of(authority: &str) -> &str {
    match authority.find(']') {
        Some(end) => authority.get(..=end).unwrap_or(authority),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Refuses a host whose spelling differs from what it is parsed as: IP addresses in other bases, look-alike letters.
/// An internationalised name is allowed: its labels become `xn--…`.
fn check_spelling(written: &str, read: &str) -> Result<(), Refusal> {
    if read.starts_with('[') {
        return Ok(());
    }
    if read.parse::<Ipv4Addr>().is_ok_and(|_| written != read) {
        return Err(Refusal::Spelling(read.to_owned()));
    }
    let labels = written.split('.').zip(read.split('.'));
    // A parser maps look-alike letters, such as full-width ones, to ASCII, so that no `xn--` label results.
    let looks_alike = labels.into_iter().any(|(own, read)| !own.is_ascii() && !read.starts_with("xn--"));
    if written.contains(OTHER_DOTS) || looks_alike {
        return Err(Refusal::Spelling(read.to_owned()));
    }
    Ok(())
}

// Host names that lead into private networks.

/// Names below these resolve in private networks only (docs/spec/media.md).
const INTERNAL: [&str; 14] = [
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "svc",
    "consul",
    "onion",
    "in-addr.arpa",
];

/// Public names of cloud metadata services.
const METADATA: [&str; 4] =
    ["metadata.goog", "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com"];

/// Public DNS services whose names resolve to any IP address.
const ANY_ADDRESS: [&str; 13] = [
    "nip.io",
    "sslip.io",
    "xip.io",
    "localtest.me",
    "lvh.me",
    "vcap.me",
    "lacolhost.com",
    "localh.st",
    "traefik.me",
    "rbndr.us",
    "1u.ms",
    "spoofed.burpcollaborator.net",
    "bugbounty.dod.network",
];

/// Returns why a host name is refused, if it is.
pub(super) fn refusal_reason(name: &str) -> Option<&'static str> {
    if is_internal(name) {
        Some("it is the name of an internal network")
    } else if is_under(name, &METADATA) {
        Some("it is a cloud metadata service")
    } else if is_under(name, &ANY_ADDRESS) {
        Some("it resolves to any IP address that the caller chooses")
    } else {
        None
    }
}

/// Returns whether only a private network can resolve this name.
pub(super) fn is_internal(name: &str) -> bool {
    !name.contains('.') || is_under(name, &INTERNAL)
}

fn is_under(name: &str, domains: &[&str]) -> bool {
    domains.iter().any(|domain| {
        name.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}
