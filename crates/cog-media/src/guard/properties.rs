//! Properties of all IP addresses and texts.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

/// Formats one part of an IPv4 address in a base that parsers accept.
fn spelled(part: u32, base: u8) -> String {
    match base {
        0 => format!("{part}"),
        1 => format!("0x{part:x}"),
        2 => format!("0X{part:08X}"),
        3 => format!("0{part:o}"),
        _ => format!("000000{part:o}"),
    }
}

/// Formats an IPv4 address as one to four numbers, each in its base.
fn odd(address: u32, parts: usize, bases: [u8; 4]) -> String {
    let [a, b, c, d] = address.to_be_bytes().map(u32::from);
    let numbers = match parts {
        1 => vec![address],
        2 => vec![a, address & 0x00ff_ffff],
        3 => vec![a, b, address & 0xffff],
        _ => vec![a, b, c, d],
    };
    let spelled: Vec<_> = numbers.iter().zip(bases).map(|(number, base)| spelled(*number, base)).collect();
    spelled.join(".")
}

/// Generates IPv4 addresses, many of them special.
fn address() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        any::<u8>().prop_map(|low| 0x7f00_0000 | u32::from(low)),
        any::<u16>().prop_map(|low| 0xa9fe_0000 | u32::from(low)),
        any::<u16>().prop_map(|low| 0xc0a8_0000 | u32::from(low)),
        any::<u8>().prop_map(u32::from),
    ]
}

/// Generates URL-like texts from elements that parsers disagree about.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("http://"),
        Just("https:"),
        Just("//"),
        Just("/"),
        Just("\\"),
        Just("@"),
        Just(":"),
        Just(":80"),
        Just("#"),
        Just("?"),
        Just("["),
        Just("]"),
        Just("::1"),
        Just("::ffff:"),
        Just("127.0.0.1"),
        Just("0x7f"),
        Just("1"),
        Just("."),
        Just("localhost"),
        Just("example.com"),
        Just("%31"),
        Just("%"),
        Just(" "),
        Just("\t"),
        Just("\u{3002}"),
        Just("\u{ff11}"),
        Just("\u{2460}"),
        Just("\u{ad}"),
        Just("ü"),
        Just("xn--"),
        Just("a"),
        Just("-"),
        Just("_"),
    ];
    let parts = prop::collection::vec(part, 0..10);
    (any::<bool>(), parts).prop_map(|(has_scheme, parts)| {
        format!("{}{}", if has_scheme { "http://" } else { "" }, parts.concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn allows_public_addresses_in_usual_notation_only(
        address in address(), parts in 1_usize..=4, bases in [0_u8..5, 0..5, 0..5, 0..5],
    ) {
        let guard = UrlGuard::default();
        let plain = Ipv4Addr::from_bits(address);
        let is_public = networks::special(plain.into()).is_none();
        prop_assert_eq!(guard.judge(&format!("http://{plain}/")).is_ok(), is_public);
        let odd = odd(address, parts, bases);
        if odd != plain.to_string() {
            prop_assert!(guard.judge(&format!("http://{odd}/")).is_err(), "{}", odd);
            prop_assert!(guard.judge(&format!("https://{odd}.:443?a")).is_err(), "{}", odd);
        }
    }

    #[test]
    fn rejects_embedded_addresses(address in address()) {
        let high = address >> 16;
        let low = address & 0xffff;
        for carrier in [
            format!("::ffff:{high:x}:{low:x}"),
            format!("::{high:x}:{low:x}"),
            format!("::ffff:0:{high:x}:{low:x}"),
            format!("64:ff9b::{high:x}:{low:x}"),
            format!("2002:{high:x}:{low:x}::1"),
            format!("2001::{:x}:{:x}", high ^ 0xffff, low ^ 0xffff),
            format!("2606:4700::5efe:{high:x}:{low:x}"),
        ] {
            prop_assert!(UrlGuard::default().judge(&format!("http://[{carrier}]/")).is_err(), "{}", carrier);
        }
    }

    #[test]
    fn rejects_addresses_outside_global_unicast(address in any::<u128>()) {
        let allowed = UrlGuard::default().judge(&format!("http://[{}]/", Ipv6Addr::from_bits(address))).is_ok();
        prop_assert!(!allowed || address >> 125 == 1);
    }

    #[test]
    fn allowed_url_round_trips(text in text()) {
        let guard = UrlGuard::default();
        if let Ok(target) = guard.judge(&text) {
            prop_assert_eq!(guard.judge(target.url().as_str()), Ok(target.clone()));
            match host(target.url()).unwrap() {
                Host::Address(address) => prop_assert_eq!(networks::special(address), None),
                Host::Name(name) => {
                    prop_assert_eq!(refusal_reason(&name), None);
                    // No parser reads it as an IP address: its last label is not a number in any base.
                    let last = name.rsplit('.').next().unwrap();
                    let is_number = match last.strip_prefix("0x") {
                        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
                        None => last.bytes().all(|byte| byte.is_ascii_digit()),
                    };
                    prop_assert!(!is_number, "{}", name);
                }
            }
        }
    }
}
