//! URLs from inputs: what the guard lets pass names a public host, as another reader sees it.
#![no_main]

use std::net::{Ipv4Addr, Ipv6Addr};

use cog_media::UrlGuard;
use libfuzzer_sys::fuzz_target;
use url::{Host, Url};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(target) = UrlGuard::default().judge(text) else { return };
    let url = Url::parse(text).expect("a URL that was let pass can be read");
    assert!(matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none());
    assert!(matches!(url.port_or_known_default(), Some(80 | 443)));
    match url.host().expect("a URL that was let pass has a host") {
        Host::Ipv4(address) => assert!(is_public(address), "{address}"),
        Host::Ipv6(address) => assert!(is_public_v6(address), "{address}"),
        Host::Domain(name) => assert!(name.contains('.') && !name.ends_with(".local"), "{name}"),
    }
    let shown = target.to_string();
    assert!(UrlGuard::default().judge(shown.trim_end_matches("?***")).is_ok(), "{shown}");
});

fn is_public(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let shared = first == 100 && second & 0xC0 == 64;
    let special = address.is_private() || address.is_loopback() || address.is_link_local() || shared;
    !special && first != 0 && first < 224 && !address.is_documentation()
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = address.to_ipv4_mapped().is_none_or(is_public);
    embedded && address.segments()[0] & 0xE000 == 0x2000
}
