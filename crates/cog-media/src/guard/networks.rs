//! Networks that are not public; `IpAddr::is_global` of the standard library is unstable.
//!
//! IPv4 is public except for this table. IPv6 is public in 2000::/3 only, except for this table. Source: the IANA
//! registries of special-purpose addresses (RFC 6890 and its updates).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// A network: an IP address and a prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Returns whether an IP address belongs to it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let rest = 32_u32.saturating_sub(self.bits.into());
                (own.to_bits() ^ other.to_bits()).checked_shr(rest).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let rest = 128_u32.saturating_sub(self.bits.into());
                (own.to_bits() ^ other.to_bits()).checked_shr(rest).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    pub(super) fn is_v6(&self) -> bool {
        self.address.is_ipv6()
    }

    pub(super) fn is_single_ip(&self) -> bool {
        self.bits == if self.is_v6() { 128 } else { 32 }
    }
}

impl FromStr for Network {
    type Err = ();

    /// Reads `10.0.0.0/8`, or one IP address. Bits after the prefix are ignored.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let all = if address.is_ipv6() { 128 } else { 32 };
        let bits = bits.map_or(Ok(all), |bits| bits.parse().map_err(|_| ()))?;
        if bits > all { Err(()) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_single_ip() {
            return self.address.fmt(f);
        }
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Returns the non-public network of an IP address and its purpose.
pub(super) fn special(address: IpAddr) -> Option<(Network, &'static str)> {
    if let Some(found) = TABLE.iter().find(|(network, _)| network.contains(address)) {
        return Some(*found);
    }
    match address {
        IpAddr::V6(v6) if is_isatap(v6) => Some((ISATAP, "an IPv4 address inside IPv6 (ISATAP)")),
        IpAddr::V6(_) if !GLOBAL.contains(address) => Some((EVERYTHING, "not part of the public network")),
        _ => None,
    }
}

/// Returns the IPv4 address that an IPv6 address contains.
pub(super) fn embedded_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let [_, second, third, fourth, fifth, sixth, seventh, eighth] = address.segments();
    let ip = IpAddr::V6(address);
    if SIX_TO_FOUR.contains(ip) {
        Some(from_halves(second, third))
    } else if TEREDO.contains(ip) {
        // RFC 4380: the client's address is inverted, so that NATs do not rewrite it.
        Some(from_halves(!seventh, !eighth))
    } else if LOCAL_NAT64.contains(ip) {
        // RFC 6052 section 2.2: 16 bits before the reserved octet, 16 after it.
        Some(from_halves(fourth, (fifth << 8) | (sixth >> 8)))
    } else if is_isatap(address)
        || [MAPPED, TRANSLATED, COMPATIBLE, NAT64].iter().any(|network| network.contains(ip))
    {
        Some(from_halves(seventh, eighth))
    } else {
        None
    }
}

fn from_halves(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low))
}

/// RFC 5214: the interface identifier is 0000:5efe or 0200:5efe, then an IPv4 address.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, fifth, sixth, _, _] = address.segments();
    matches!(fifth, 0 | 0x0200) && sixth == 0x5efe
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Network {
    Network { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
}

/// Returns a network, given the first four, the fifth and the sixth group.
const fn v6(first: [u16; 4], fifth: u16, sixth: u16, bits: u8) -> Network {
    let [a, b, c, d] = first;
    Network { address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, fifth, sixth, 0, 0)), bits }
}

const EVERYTHING: Network = v6([0; 4], 0, 0, 0);
const GLOBAL: Network = v6([0x2000, 0, 0, 0], 0, 0, 3);
const ISATAP: Network = v6([0; 4], 0, 0x5efe, 96);
const MAPPED: Network = v6([0; 4], 0, 0xffff, 96);
const TRANSLATED: Network = v6([0; 4], 0xffff, 0, 96);
const COMPATIBLE: Network = v6([0; 4], 0, 0, 96);
const NAT64: Network = v6([0x64, 0xff9b, 0, 0], 0, 0, 96);
const LOCAL_NAT64: Network = v6([0x64, 0xff9b, 1, 0], 0, 0, 48);
const SIX_TO_FOUR: Network = v6([0x2002, 0, 0, 0], 0, 0, 16);
const TEREDO: Network = v6([0x2001, 0, 0, 0], 0, 0, 32);
const ONE: Network = Network { address: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 };
const NONE: Network = Network { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), bits: 128 };

/// Narrower networks come first.
const TABLE: &[(Network, &str)] = &[
    (v4(127, 0, 0, 0, 8), "this machine (loopback)"),
    (v4(10, 0, 0, 0, 8), "a private network"),
    (v4(172, 16, 0, 0, 12), "a private network"),
    (v4(192, 168, 0, 0, 16), "a private network"),
    (v4(169, 254, 169, 254, 32), "a cloud metadata service"),
    (v4(169, 254, 0, 0, 16), "link-local"),
    (v4(100, 100, 100, 200, 32), "a cloud metadata service"),
    (v4(100, 64, 0, 0, 10), "carrier-grade NAT"),
    (v4(168, 63, 129, 16, 32), "a cloud platform service"),
    (v4(0, 0, 0, 0, 8), "this machine or network"),
    (v4(192, 0, 0, 0, 24), "reserved for protocols"),
    (v4(192, 0, 2, 0, 24), "for documentation"),
    (v4(198, 51, 100, 0, 24), "for documentation"),
    (v4(203, 0, 113, 0, 24), "for documentation"),
    (v4(192, 88, 99, 0, 24), "6to4 relays"),
    (v4(198, 18, 0, 0, 15), "for benchmarking"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(255, 255, 255, 255, 32), "broadcast"),
    (v4(240, 0, 0, 0, 4), "reserved"),
    (ONE, "this machine (loopback)"),
    (NONE, "this machine (unspecified)"),
    (MAPPED, "an IPv4 address inside IPv6 (mapped)"),
    (TRANSLATED, "an IPv4 address inside IPv6 (translated)"),
    (COMPATIBLE, "an IPv4 address inside IPv6 (compatible)"),
    (NAT64, "an IPv4 address inside IPv6 (NAT64)"),
    (LOCAL_NAT64, "an IPv4 address inside IPv6 (NAT64)"),
    (SIX_TO_FOUR, "an IPv4 address inside IPv6 (6to4)"),
    (TEREDO, "an IPv4 address inside IPv6 (Teredo)"),
    (v6([0xfc00, 0, 0, 0], 0, 0, 7), "a private network (unique local)"),
    (v6([0xfe80, 0, 0, 0], 0, 0, 10), "link-local"),
    (v6([0xfec0, 0, 0, 0], 0, 0, 10), "a private network (site-local)"),
    (v6([0xff00, 0, 0, 0], 0, 0, 8), "multicast"),
    (v6([0x100, 0, 0, 0], 0, 0, 64), "discard-only"),
    (v6([0x5f00, 0, 0, 0], 0, 0, 16), "segment routing"),
    (v6([0x2001, 0, 0, 0], 0, 0, 23), "reserved for protocols"),
    (v6([0x2001, 0xdb8, 0, 0], 0, 0, 32), "for documentation"),
    (v6([0x3fff, 0, 0, 0], 0, 0, 20), "for documentation"),
    (v6([0x3ffe, 0, 0, 0], 0, 0, 16), "returned and unassigned"),
];
