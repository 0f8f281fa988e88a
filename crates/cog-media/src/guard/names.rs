//! Host names that lead into private networks.

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
