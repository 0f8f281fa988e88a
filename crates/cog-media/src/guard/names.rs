//! Names that lead into somebody's own network.

/// What stands under these is answered by one's own machine or network, never by the public one (docs/spec/media.md).
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

/// Public names by which clouds tell a machine its secrets.
const METADATA: [&str; 4] =
    ["metadata.goog", "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com"];

/// Public services whose names stand for any address that the asker likes, or for this machine.
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

/// Why a name may not be asked, if so.
pub(super) fn fault(name: &str) -> Option<&'static str> {
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

/// Whether nobody outside of one's own network can answer for this name.
pub(super) fn is_internal(name: &str) -> bool {
    !name.contains('.') || is_under(name, &INTERNAL)
}

fn is_under(name: &str, domains: &[&str]) -> bool {
    domains.iter().any(|domain| {
        name.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}
