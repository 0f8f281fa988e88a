//! What is asked, and what is not.

use std::{collections::BTreeMap, fmt::Write as _};

use cog_media::{FetchLimits, Fetcher, MediaError, UrlGuard};

use crate::{
    dns::Dns,
    site::{Site, path, response},
    support::{LIMIT, bytes, complaint, fetch, fetcher, limits},
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

/// The same with a port, where it has none.
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
async fn no_form_of_the_list_reaches_this_machine_or_a_name_server() {
    let four = Site::at("127.0.0.1", |_| Some(response("200 OK", &[], b"secret")));
    let port = four.address().port();
    let six = Site::on("::1", port, |_| Some(response("200 OK", &[], b"secret")));
    let dns = Dns::start(&[&["127.0.0.1", "::1"]]);
    let guard = UrlGuard::new(Vec::new()).with_ports([port]);
    let fetcher = Fetcher::with_resolver(guard, limits(), dns.clone());
    for url in refused() {
        for url in [at_port(&url, port), url] {
            assert!(fetch(&fetcher, &url).await.is_err(), "{url:?}");
        }
    }
    assert_eq!((four.heads(), six.heads(), dns.asked()), (vec![], vec![], vec![]));
}

#[tokio::test]
async fn a_name_with_an_address_of_this_machine_is_resolved_and_not_dialled() {
    let site = Site::at("127.0.0.1", |_| Some(response("200 OK", &[], b"secret")));
    let port = site.address().port();
    for answer in
        [&["127.0.0.1"][..], &["::1"], &["::ffff:127.0.0.1"], &["93.184.216.34", "127.0.0.1"], &["0.0.0.0"]]
    {
        let guard = UrlGuard::new(Vec::new()).with_ports([port]);
        let fetcher = Fetcher::with_resolver(guard, limits(), Dns::start(&[answer]));
        let said = complaint(&fetcher, &format!("http://innocent.example:{port}/?token=s3cret")).await;
        assert!(said.contains("innocent.example: its IP address ") && said.contains("not public"), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
    assert_eq!(site.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_dialled_where_it_was_checked() {
    let public =
        Site::at("127.0.0.2", |_| Some(response("200 OK", &["content-type: image/PNG; q=1"], b"image")));
    let port = public.address().port();
    let private = Site::on("127.0.0.1", port, |_| Some(response("200 OK", &[], b"secret")));
    // Checked once, dialled once: whoever looked the name up a second time would be led to 127.0.0.1.
    let dns = Dns::start(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let fetcher = fetcher(&[format!("127.0.0.2:{port}"), format!("rebind.example:{port}")], dns.clone());
    let url = format!("http://rebind.example:{port}/");
    let fetched = fetch(&fetcher, &url).await.unwrap();
    assert_eq!((bytes(&fetched), fetched.declared.as_deref()), (b"image".to_vec(), Some("image/png")));
    assert_eq!(dns.asked(), ["rebind.example"]);
    // The next connection is checked anew.
    assert!(complaint(&fetcher, &url).await.contains("127.0.0.1 is not public"));
    assert_eq!((public.heads().len(), private.heads().len()), (1, 0));
}

#[tokio::test]
async fn each_redirect_is_judged_like_the_first_address() {
    let private = Site::at("127.0.0.1", |_| Some(response("200 OK", &[], b"secret")));
    let inner = private.address();
    let public = Site::at("127.0.0.2", move |head| {
        let location = match path(head) {
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
        let said = complaint(&fetcher, &format!("{base}{hop}")).await;
        assert!(said.starts_with("redirected: the URL is refused: "), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
    assert_eq!(bytes(&fetch(&fetcher, &format!("{base}/relative")).await.unwrap()), b"image");
    assert_eq!(private.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn five_redirects_are_followed_and_not_six() {
    let site = Site::at("127.0.0.2", |head| {
        let left: u32 = path(head).trim_start_matches('/').parse().unwrap();
        Some(match left.checked_sub(1) {
            None => response("200 OK", &[], b"image"),
            Some(next) => response("307 Temporary Redirect", &[&format!("location: /{next}")], b""),
        })
    });
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    assert!(fetch(&fetcher, &format!("http://{}/5", site.address())).await.is_ok());
    let said = complaint(&fetcher, &format!("http://{}/6", site.address())).await;
    assert!(said.contains("more than 5 redirects"), "{said}");
}

#[tokio::test]
async fn an_answer_over_the_limit_is_cut_where_it_is_known() {
    let body = vec![7; usize::try_from(LIMIT).unwrap() + 1];
    let site = Site::at("127.0.0.2", move |head| match path(head) {
        "/said" => Some(response("200 OK", &["content-length: 100001"], b"")),
        "/fits" => Some(response("200 OK", &[], &body[1..])),
        _ => Some(response("200 OK", &[], &body)),
    });
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    for large in ["said", "sent"] {
        let outcome = fetch(&fetcher, &format!("http://{}/{large}", site.address())).await;
        assert!(matches!(outcome, Err(MediaError::TooLarge { limit: LIMIT })), "{large}");
    }
    assert!(fetch(&fetcher, &format!("http://{}/fits", site.address())).await.is_ok());
}

#[tokio::test]
async fn what_is_no_answer_is_told_with_its_status_and_without_the_query() {
    let site = Site::at("127.0.0.2", |head| {
        Some(match path(head).split('?').next().unwrap() {
            "/missing" => response("404 Not Found", &[], b"s3cret"),
            "/packed" => response("200 OK", &["content-encoding: gzip"], b"\x1f\x8b"),
            "/cut" => response("200 OK", &["content-length: 10"], b"123"),
            "/nowhere" => response("302 Found", &[], b""),
            "/many" => response("200 OK", &[&format!("x: {}", "x".repeat(1 << 20))], b""),
            _ => b"no HTTP\r\n\r\n".to_vec(),
        })
    });
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    let base = format!("http://{}", site.address());
    for (path, status) in [
        ("missing", Some(404)),
        ("packed", None),
        ("cut", None),
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
async fn a_silent_server_is_left_in_time() {
    let site = Site::at("127.0.0.2", |_| None);
    let mut limits = FetchLimits::default();
    limits.timeout = std::time::Duration::from_millis(100);
    let rules = vec![site.address().to_string().parse().unwrap()];
    let fetcher = Fetcher::new(UrlGuard::new(rules), limits);
    let said = complaint(&fetcher, &format!("http://{}/", site.address())).await;
    assert!(said.ends_with("timed out after 0.1 s"), "{said}");
}

#[tokio::test]
async fn a_proxy_is_asked_where_the_operator_names_one_and_only_for_what_was_judged() {
    let proxy = Site::at("127.0.0.3", |_| Some(response("200 OK", &[], b"by proxy")));
    let dns = Dns::start(&[&["93.184.216.34"], &["127.0.0.1"]]);
    let fetcher = fetcher(&[], dns).through(format!("http://{}", proxy.address()).parse().unwrap());
    let url = "http://example.com/a.png";
    assert_eq!(bytes(&fetch(&fetcher, url).await.unwrap()), b"by proxy");
    assert!(complaint(&fetcher, url).await.contains("127.0.0.1 is not public"));
    assert!(complaint(&fetcher, "http://10.0.0.1/").await.contains("not public"));
    let [head] = &proxy.heads()[..] else { panic!("{:?}", proxy.heads()) };
    assert!(head.starts_with("GET http://example.com/a.png HTTP/1.1"), "{head}");
}

#[tokio::test]
async fn nothing_is_sent_that_tells_of_the_caller() {
    let site = Site::at("127.0.0.2", |head| {
        Some(match path(head) {
            "/a" => response("302 Found", &["location: /b", "set-cookie: id=1"], b""),
            _ => response("200 OK", &[], b"image"),
        })
    });
    let fetcher = fetcher(&[site.address().to_string()], Dns::start(&[&[]]));
    fetch(&fetcher, &format!("http://{}/a#part", site.address())).await.unwrap();
    for head in site.heads() {
        let mut names: Vec<_> =
            head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"], "{head}");
        assert!(head.contains("accept-encoding: identity"));
    }
}
