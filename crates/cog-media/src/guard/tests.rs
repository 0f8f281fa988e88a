use std::{collections::BTreeMap, net::IpAddr};

use super::*;

/// `conformance/urls.json`.
#[derive(serde::Deserialize)]
struct Lists {
    refused: BTreeMap<String, Vec<String>>,
    allowed: Vec<String>,
}

fn lists() -> Lists {
    serde_json::from_str(include_str!("../../../../conformance/urls.json")).unwrap()
}

fn guard(rules: &[&str]) -> UrlGuard {
    UrlGuard::new(rules.iter().map(|rule| rule.parse().unwrap()).collect())
}

#[test]
fn refuses_every_listed_form_before_a_lookup() {
    let refused = lists().refused;
    assert!(refused.values().map(Vec::len).sum::<usize>() >= 150);
    for (why, urls) in refused {
        for url in urls {
            assert!(guard(&[]).judge(&url).is_err(), "{why}: {url:?}");
        }
    }
}

#[test]
fn refuses_a_host_whatever_ports_are_allowed() {
    let guard = guard(&[]).with_ports(0..=u16::MAX);
    for (why, urls) in lists().refused.into_iter().filter(|(why, _)| why != "ports") {
        for url in urls {
            assert!(guard.judge(&url).is_err(), "{why}: {url:?}");
        }
    }
}

#[test]
fn allows_public_forms() {
    let allowed = lists().allowed;
    assert!(allowed.len() >= 20);
    for url in allowed {
        assert!(guard(&[]).judge(&url).is_ok(), "{url:?}: {}", guard(&[]).judge(&url).unwrap_err());
    }
}

#[test]
fn refusal_gives_the_reason_without_the_url() {
    let message = |url: &str| guard(&[]).judge(url).unwrap_err().to_string();
    assert_eq!(
        message("http://[::ffff:a9fe:a9fe]/?token=s3cret"),
        "the URL is refused: ::ffff:169.254.169.254 is not public: an IPv4 address inside IPv6 (mapped) (::ffff:0.0.0.0/96)"
    );
    assert_eq!(message("http://0x7f.1/"), "the URL is refused: the host is an unusual spelling of 127.0.0.1");
    assert_eq!(
        message("gopher://x/s3cret"),
        "the URL is refused: scheme `gopher`; http and https are allowed"
    );
    for url in ["http://me:s3cret@example.com/", "http://localhost/s3cret", "s3cret", "http://a b/s3cret"] {
        assert!(!message(url).contains("s3cret"), "{}", message(url));
    }
}

#[test]
fn target_is_displayed_without_its_query() {
    let target = guard(&[]).judge("HTTPS://Example.com.:443/a/../b.png?token=s3cret#s3cret").unwrap();
    assert_eq!(target.to_string(), "https://example.com/b.png?***");
}

#[test]
fn edges_of_networks_are_exact() {
    let is_public = |text: &str| networks::special(text.parse().unwrap()).is_none();
    for (outside, inside) in [
        ("9.255.255.255", "10.0.0.0"),
        ("11.0.0.0", "10.255.255.255"),
        ("172.15.255.255", "172.16.0.0"),
        ("172.32.0.0", "172.31.255.255"),
        ("100.63.255.255", "100.64.0.0"),
        ("126.255.255.255", "127.0.0.0"),
        ("223.255.255.255", "224.0.0.0"),
        ("198.17.255.255", "198.18.0.0"),
        ("2001:200::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2001:db7:ffff::", "2001:db8::"),
        ("2003::", "2002:ffff::"),
        ("3fff:1000::", "3fff:fff::"),
    ] {
        assert!(is_public(outside) && !is_public(inside), "{outside} {inside}");
    }
}

#[test]
fn rules_allow_networks_names_and_ports() {
    let judged = |rules: &[&str], url: &str| guard(rules).judge(url).is_ok();
    for (rule, allowed, refused) in [
        ("10.1.0.0/16", "http://10.1.2.3/", "http://10.2.0.1/"),
        ("127.0.0.1:9000", "http://127.0.0.1:9000/", "http://127.0.0.1/"),
        ("127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1:9000/"),
        ("[fd00::5]:8080", "http://[fd00::5]:8080/", "http://[fd00::6]:8080/"),
        ("fd00::/8", "http://[fd12::1]/", "http://[fe80::1]/"),
        ("media.internal", "http://MEDIA.internal./", "http://a.media.internal/"),
        ("*.media.internal:8443", "https://a.media.internal:8443/", "https://media.internal:8443/"),
        ("cdn.example.com:8080", "http://cdn.example.com:8080/", "http://example.com:8080/"),
        ("localhost", "http://localhost/", "http://localhost:1/"),
    ] {
        assert!(judged(&[rule], allowed), "{rule} {allowed}");
        assert!(!judged(&[rule], refused), "{rule} {refused}");
    }
}

#[test]
fn contained_address_must_be_allowed_too() {
    let judged = |rules: &[&str], url: &str| guard(rules).judge(url).is_ok();
    assert!(judged(&["64:ff9b::/96"], "http://[64:ff9b::8.8.8.8]/"));
    assert!(!judged(&["64:ff9b::/96"], "http://[64:ff9b::10.0.0.1]/"));
    assert!(judged(&["64:ff9b::/96", "10.0.0.0/8"], "http://[64:ff9b::10.0.0.1]/"));
    for carrier in [
        "::ffff:10.9.8.7",
        "::10.9.8.7",
        "::ffff:0:10.9.8.7",
        "2002:a09:807::1",
        "2001::f5f6:f7f8",
        "64:ff9b:1:a09:8:700::",
        "2606:4700::200:5efe:a09:807",
    ] {
        let carrier: IpAddr = carrier.parse().unwrap();
        assert_eq!(networks::embedded_ipv4(carrier), Some([10, 9, 8, 7].into()), "{carrier}");
    }
}

#[test]
fn resolved_address_is_allowed_for_internal_names_only() {
    let private = "10.0.0.5".parse().unwrap();
    let public = "93.184.216.34".parse().unwrap();
    let guard = guard(&["media.internal", "cdn.example.com:8080"]);
    assert!(guard.admit("media.internal", 80, private).is_ok());
    assert!(guard.admit("cdn.example.com", 8080, public).is_ok());
    let refusal = guard.admit("cdn.example.com", 8080, private).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the URL is refused: cdn.example.com: its IP address 10.0.0.5 is not public: a private network (10.0.0.0/8)"
    );
}

#[test]
fn rule_round_trips_through_text() {
    for text in ["10.0.0.0/8", "10.0.0.1:80", "[fd00::/8]:80", "fd00::1", "a.internal", "*.a.internal:8443"] {
        assert_eq!(text.parse::<AllowRule>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "*",
        "*.",
        "10.0.0.0/33",
        "a b",
        "a:b",
        "1.2.3",
        "http://a.internal/",
        "0x7f.1",
        "a..b",
        "10.0.0.1:99999",
    ] {
        assert!(text.parse::<AllowRule>().is_err(), "{text}");
    }
}

#[test]
fn relative_location_is_joined_and_absolute_one_judged() {
    let guard = guard(&[]);
    let target = guard.judge("https://example.com/a/b.png").unwrap();
    assert_eq!(target.join("../c.png").unwrap(), "https://example.com/c.png");
    for location in ["http://127.1/", "//127.0.0.1/", "https://a@example.com/", "file:///etc/passwd"] {
        assert!(target.join(location).and_then(|next| guard.judge(&next)).is_err(), "{location}");
    }
    assert!(target.join("/\\127.0.0.1/").is_err());
}

#[test]
fn only_bare_public_urls_are_shared() {
    let shared = |url: &str| crate::guard::shareable_url(url);
    assert_eq!(shared("https://EXAMPLE.com/ä.png"), Some("https://example.com/%C3%A4.png".to_owned()));
    for url in [
        "http://example.com/a.png",
        "https://example.com/a.png?token=1",
        "https://u:p@example.com/a.png",
        "https://example.com:8443/a.png",
        "https://10.0.0.1/a.png",
        "https://media.internal/a.png",
        "file:///a.png",
    ] {
        assert_eq!(shared(url), None, "{url}");
    }
}
