//! What is fetched once and what again.

use std::sync::atomic::{AtomicUsize, Ordering};

use cog_media::{FetchLimits, Fetcher, MediaError, Store, UrlGuard};

use crate::{
    dns::Dns,
    site::{Site, path, response},
    support::{bytes, fetch, fetcher},
};

/// A site whose image has these headers; the second answer has another body, or is a 304 to whoever has a validator.
fn site(lines: &'static [&'static str]) -> Site {
    let count = AtomicUsize::new(0);
    Site::at("127.0.0.2", move |head| {
        let is_known = head.contains("if-none-match: \"v1\"") || head.contains("if-modified-since: Sat");
        Some(match count.fetch_add(1, Ordering::SeqCst) {
            0 => response("200 OK", lines, b"first"),
            _ if is_known => response("304 Not Modified", lines, b""),
            _ => response("200 OK", lines, b"second"),
        })
    })
}

async fn twice(lines: &'static [&'static str]) -> (Vec<u8>, usize) {
    let site = site(lines);
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    let url = format!("http://{}/a.png", site.address());
    fetch(&fetcher, &url).await.unwrap();
    (bytes(&fetch(&fetcher, &url).await.unwrap()), site.heads().len())
}

#[tokio::test]
async fn what_is_fresh_is_not_asked_for_again() {
    assert_eq!(twice(&["cache-control: public, MAX-AGE=600"]).await, (b"first".to_vec(), 1));
    assert_eq!(twice(&["cache-control: max-age=600", "age: 600"]).await, (b"second".to_vec(), 2));
}

#[tokio::test]
async fn what_has_a_validator_is_asked_for_and_not_sent_again() {
    for lines in [
        &["etag: \"v1\""][..],
        &["etag: \"v1\"", "cache-control: max-age=600, no-cache"],
        &["last-modified: Sat, 21 Nov 2026 08:00:00 GMT"],
    ] {
        assert_eq!(twice(lines).await, (b"first".to_vec(), 2), "{lines:?}");
    }
}

#[tokio::test]
async fn what_may_not_be_kept_is_not() {
    for lines in
        [&[][..], &["etag: \"v1\"", "cache-control: no-store"], &["cache-control: max-age=600", "vary: *"]]
    {
        assert_eq!(twice(lines).await, (b"second".to_vec(), 2), "{lines:?}");
    }
}

#[tokio::test]
async fn the_bytes_that_are_kept_are_bounded_and_the_longest_unused_go_first() {
    let site =
        Site::at("127.0.0.2", |_| Some(response("200 OK", &["cache-control: max-age=600"], &[7; 400])));
    let site_of = |name: &str| format!("http://{}/{name}", site.address());
    let mut limits = FetchLimits::default();
    limits.cache = 1000;
    let rules = vec![site.address().to_string().parse().unwrap()];
    let fetcher = Fetcher::new(UrlGuard::new(rules), limits);
    for name in ["a", "b", "a", "c", "a", "b"] {
        fetch(&fetcher, &site_of(name)).await.unwrap();
    }
    let asked: Vec<_> = site.heads().iter().map(|head| path(head).to_owned()).collect();
    assert_eq!(asked, ["/a", "/b", "/c", "/b"]);
}

#[tokio::test]
async fn the_limit_of_a_store_holds_for_what_is_kept_too() {
    let site = site(&["cache-control: max-age=600"]);
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    let url = format!("http://{}/", site.address());
    fetch(&fetcher, &url).await.unwrap();
    let outcome = fetcher.fetch(&url, Store::with_limit(4)).await;
    assert!(matches!(outcome, Err(MediaError::TooLarge { limit: 4 })));
}
