//! Which servers the fetcher connects to.

use std::{collections::BTreeMap, fmt::Write as _};

use cog_media::{FetchLimits, Fetcher, MediaError, UrlGuard};

use crate::{
    dns::Dns,
    site::{Site, path, response},
    support::{LIMIT, bytes, error_of, fetch, fetcher, limits},
};

/// `conformance/urls.json`.
#[derive(serde::Deserialize)]
struct Lists {
    refused: BTreeMap<String, Vec<String>>,
}

fn refused() -> impl Iterator<Item = String> {
    let lists: Lists = serde_json::from_str(include_str!("../../../../conformance/urls.json")).unwrap();
    lists.refused.into_values().flatten()
}

/// Returns a URL with this port.
fn at_port(url: &str, port: u16) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once("]:").map_or(authority, |(host, _)| host);
    let mut url = format!("{scheme}://{host}");
    if !host.trim_start_matches('[').contains(':') || host.ends_with(']') {
        write!(url, ":{port}").unwrap();
    }
    url + path
}

#[tokio::test]
async fn refused_forms_cause_no_request_and_no_lookup() {
    let v4 = Site::at("127.0.0.1", |_| Some(response("200 OK", &[], b"secret")));
    let port = v4.address().port();
    let v6 = Site::on("::1", port, |_| Some(response("200 OK", &[], b"secret")));
    let dns = Dns::start(&[&["127.0.0.1", "::1"]]);
    let guard = UrlGuard::new(Vec::new()).with_ports([port]);
    let fetcher = Fetcher::with_resolver(guard, limits(), dns.clone());
    for url in refused() {
        for url in [at_port(&url, port), url] {
            assert!(fetch(&fetcher, &url).await.is_err(), "{url:?}");
        }
    }
    assert_eq!((v4.requests(), v6.requests(), dns.queried()), (vec![], vec![], vec![]));
}

#[tokio::test]
async fn name_with_a_private_address_is_resolved_but_not_connected_to() {
    let site = Site::at("127.0.0.1", |_| Some(response("200 OK", &[], b"secret")));
    let port = site.address().port();
    for answer in
        [&["127.0.0.1"][..], &["::1"], &["::ffff:127.0.0.1"], &["93.184.216.34", "127.0.0.1"], &["0.0.0.0"]]
    {
        let guard = UrlGuard::new(Vec::new()).with_ports([port]);
        let fetcher = Fetcher::with_resolver(guard, limits(), Dns::start(&[answer]));
        let message = error_of(&fetcher, &format!("http://innocent.example:{port}/?token=s3cret")).await;
        assert!(
            message.contains("innocent.example: its IP address ") && message.contains("not public"),
            "{message}"
        );
        assert!(!message.contains("s3cret"), "{message}");
    }
    assert_eq!(site.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn connects_to_the_address_that_was_checked() {
    let public =
        Site::at("127.0.0.2", |_| Some(response("200 OK", &["content-type: image/PNG; q=1"], b"image")));
    let port = public.address().port();
    let private = Site::on("127.0.0.1", port, |_| Some(response("200 OK", &[], b"secret")));
    // There is one lookup per connection: a second one would return 127.0.0.1.
    let dns = Dns::start(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let fetcher = fetcher(&[format!("127.0.0.2:{port}"), format!("rebind.example:{port}")], dns.clone());
    let url = format!("http://rebind.example:{port}/");
    let fetched = fetch(&fetcher, &url).await.unwrap();
    assert_eq!((bytes(&fetched), fetched.declared.as_deref()), (b"image".to_vec(), Some("image/png")));
    assert_eq!(dns.queried(), ["rebind.example"]);
    // The next connection is checked again.
    assert!(error_of(&fetcher, &url).await.contains("127.0.0.1 is not public"));
    assert_eq!((public.requests().len(), private.requests().len()), (1, 0));
}

#[tokio::test]
async fn each_redirect_is_judged_like_the_first_url() {
    let private = Site::at("127.0.0.1", |_| Some(response("200 OK", &[], b"secret")));
    let inner = private.address();
    let public = Site::at("127.0.0.2", move |request| {
        let location = match path(request) {
            "/loopback" => format!("http://{inner}/"),
            "/odd" => format!("http://2130706433:{}/", inner.port()),
            "/file" => "file:///etc/passwd".to_owned(),
            "/login" => "http://me:s3cret@93.184.216.34/".to_owned(),
            "/slashes" => format!("\\\\{inner}\\"),
            "/relative" => "image?size=1".to_owned(),
            _ => return Some(response("200 OK", &[], b"image")),
        };
        Some(response("302 Found", &[&format!("location: {location}")], b""))
    });
    let base = format!("http://{}", public.address());
    let fetcher = fetcher(&[public.address().to_string()], Dns::start(&[&["127.0.0.1"]]));
    for hop in ["/loopback", "/odd", "/file", "/login", "/slashes"] {
        let message = error_of(&fetcher, &format!("{base}{hop}")).await;
        assert!(message.starts_with("redirected: the URL is refused: "), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
    assert_eq!(bytes(&fetch(&fetcher, &format!("{base}/relative")).await.unwrap()), b"image");
    assert_eq!(private.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn follows_five_redirects_but_not_six() {
    let site = Site::at("127.0.0.2", |request| {
        let left: u32 = path(request).trim_start_matches('/').parse().unwrap();
        Some(match left.checked_sub(1) {
            None => response("200 OK", &[], b"image"),
            Some(next) => response("307 Temporary Redirect", &[&format!("location: /{next}")], b""),
        })
    });
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    assert!(fetch(&fetcher, &format!("http://{}/5", site.address())).await.is_ok());
    let message = error_of(&fetcher, &format!("http://{}/6", site.address())).await;
    assert!(message.contains("more than 5 redirects"), "{message}");
}

#[tokio::test]
async fn response_over_the_limit_is_rejected() {
    let body = vec![7; usize::try_from(LIMIT).unwrap() + 1];
    let site = Site::at("127.0.0.2", move |request| match path(request) {
        "/declared" => Some(response("200 OK", &["content-length: 100001"], b"")),
        "/fits" => Some(response("200 OK", &[], &body[1..])),
        _ => Some(response("200 OK", &[], &body)),
    });
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    for large in ["declared", "sent"] {
        let outcome = fetch(&fetcher, &format!("http://{}/{large}", site.address())).await;
        assert!(matches!(outcome, Err(MediaError::TooLarge { limit: LIMIT })), "{large}");
    }
    assert!(fetch(&fetcher, &format!("http://{}/fits", site.address())).await.is_ok());
}

#[tokio::test]
async fn failed_response_is_reported_with_status_and_without_query() {
    let site = Site::at("127.0.0.2", |request| {
        Some(match path(request).split('?').next().unwrap() {
            "/missing" => response("404 Not Found", &[], b"s3cret"),
            "/packed" => response("200 OK", &["content-encoding: gzip"], b"\x1f\x8b"),
            "/truncated" => response("200 OK", &["content-length: 10"], b"123"),
            "/nowhere" => response("302 Found", &[], b""),
            "/many" => response("200 OK", &[&format!("x: {}", "x".repeat(1 << 20))], b""),
            _ => b"not HTTP\r\n\r\n".to_vec(),
        })
    });
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    let base = format!("http://{}", site.address());
    for (path, status) in [
        ("missing", Some(404)),
        ("packed", None),
        ("truncated", None),
        ("nowhere", Some(302)),
        ("many", None),
        ("x", None),
    ] {
        match fetch(&fetcher, &format!("{base}/{path}?token=s3cret")).await {
            Err(MediaError::Fetch { url, what, status: found }) => {
                assert_eq!((url, found), (format!("{base}/{path}?***"), status), "{what}");
                assert!(!what.contains("s3cret"), "{what}");
            }
            other => panic!("{path}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn server_without_a_response_times_out() {
    let site = Site::at("127.0.0.2", |_| None);
    let mut limits = FetchLimits::default();
    limits.timeout = std::time::Duration::from_millis(100);
    let rules = vec![site.address().to_string().parse().unwrap()];
    let fetcher = Fetcher::new(UrlGuard::new(rules), limits);
    let message = error_of(&fetcher, &format!("http://{}/", site.address())).await;
    assert!(message.ends_with("timed out after 0.1 s"), "{message}");
}

#[tokio::test]
async fn proxy_gets_only_admitted_requests() {
    let proxy = Site::at("127.0.0.3", |_| Some(response("200 OK", &[], b"by proxy")));
    let dns = Dns::start(&[&["93.184.216.34"], &["127.0.0.1"]]);
    let fetcher = fetcher(&[], dns).through(format!("http://{}", proxy.address()).parse().unwrap());
    let url = "http://example.com/a.png";
    assert_eq!(bytes(&fetch(&fetcher, url).await.unwrap()), b"by proxy");
    assert!(error_of(&fetcher, url).await.contains("127.0.0.1 is not public"));
    assert!(error_of(&fetcher, "http://10.0.0.1/").await.contains("not public"));
    let [request] = &proxy.requests()[..] else { panic!("{:?}", proxy.requests()) };
    assert!(request.starts_with("GET http://example.com/a.png HTTP/1.1"), "{request}");
}

#[tokio::test]
async fn request_contains_nothing_about_the_caller() {
    let site = Site::at("127.0.0.2", |request| {
        Some(match path(request) {
            "/a" => response("302 Found", &["location: /b", "set-cookie: id=1"], b""),
            _ => response("200 OK", &[], b"image"),
        })
    });
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    fetch(&fetcher, &format!("http://{}/a#part", site.address())).await.unwrap();
    for request in site.requests() {
        let mut names: Vec<_> =
            request.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"], "{request}");
        assert!(request.contains("accept-encoding: identity"));
    }
}
