//! The cache of the fetcher.

use std::sync::atomic::{AtomicUsize, Ordering};

use cog_media::{FetchLimits, Fetcher, MediaError, Store, UrlGuard};

use crate::{
    dns::Dns,
    site::{Site, path, response},
    support::{bytes, fetch, fetcher},
};

/// Returns a site whose image has these headers. Its second response has another body, or is a 304 for a known
/// validator.
fn site(lines: &'static [&'static str]) -> Site {
    let count = AtomicUsize::new(0);
    Site::at("127.0.0.2", move |request| {
        let is_known =
            request.contains("if-none-match: \"v1\"") || request.contains("if-modified-since: Sat");
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
    (bytes(&fetch(&fetcher, &url).await.unwrap()), site.requests().len())
}

#[tokio::test]
async fn fresh_response_is_not_requested_again() {
    assert_eq!(twice(&["cache-control: public, MAX-AGE=600"]).await, (b"first".to_vec(), 1));
    assert_eq!(twice(&["cache-control: max-age=600", "age: 600"]).await, (b"second".to_vec(), 2));
}

#[tokio::test]
async fn response_with_a_validator_is_revalidated() {
    for lines in [
        &["etag: \"v1\""][..],
        &["etag: \"v1\"", "cache-control: max-age=600, no-cache"],
        &["last-modified: Sat, 21 Nov 2026 08:00:00 GMT"],
    ] {
        assert_eq!(twice(lines).await, (b"first".to_vec(), 2), "{lines:?}");
    }
}

#[tokio::test]
async fn uncacheable_response_is_not_stored() {
    for lines in
        [&[][..], &["etag: \"v1\"", "cache-control: no-store"], &["cache-control: max-age=600", "vary: *"]]
    {
        assert_eq!(twice(lines).await, (b"second".to_vec(), 2), "{lines:?}");
    }
}

#[tokio::test]
async fn least_recently_used_responses_are_evicted_at_the_size_limit() {
    let site =
        Site::at("127.0.0.2", |_| Some(response("200 OK", &["cache-control: max-age=600"], &[7; 400])));
    let url_of = |name: &str| format!("http://{}/{name}", site.address());
    let mut limits = FetchLimits::default();
    limits.cache = 1000;
    let rules = vec![site.address().to_string().parse().unwrap()];
    let fetcher = Fetcher::new(UrlGuard::new(rules), limits);
    for name in ["a", "b", "a", "c", "a", "b"] {
        fetch(&fetcher, &url_of(name)).await.unwrap();
    }
    let paths: Vec<_> = site.requests().iter().map(|request| path(request).to_owned()).collect();
    assert_eq!(paths, ["/a", "/b", "/c", "/b"]);
}

#[tokio::test]
async fn limit_of_the_store_applies_to_cached_responses() {
    let site = site(&["cache-control: max-age=600"]);
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    let url = format!("http://{}/", site.address());
    fetch(&fetcher, &url).await.unwrap();
    let outcome = fetcher.fetch(&url, Store::with_limit(4)).await;
    assert!(matches!(outcome, Err(MediaError::TooLarge { limit: 4 })));
}
