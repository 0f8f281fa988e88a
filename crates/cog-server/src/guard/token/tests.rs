use super::*;

const TOKEN: &str = "abcdefghij0123456789";
const SLASHED: &str = "aa/bb+cc==dd";

fn tokens(text: &str) -> Tokens {
    Tokens::parse(text).unwrap()
}

fn client_of(access: &Access, name: header::HeaderName, value: &str) -> Result<Client, Refusal> {
    let mut headers = HeaderMap::new();
    headers.insert(name, value.parse().unwrap());
    access.client(&headers, "127.0.0.1:9".parse().unwrap()).map(|(client, _)| client)
}

#[test]
fn named_token_identifies_its_holder() {
    let access = Access::Tokens(tokens(&format!("# two\nci: {TOKEN}\n\nother:{TOKEN}x\n")));
    let client = client_of(&access, header::AUTHORIZATION, &format!("Bearer {TOKEN}")).unwrap();
    assert_eq!(client, Client::Token("ci".into()));
    let client = client_of(&access, header::AUTHORIZATION, &format!("bearer  {TOKEN}x")).unwrap();
    assert_eq!(client, Client::Token("other".into()));
}

#[test]
fn unnamed_token_is_identified_by_its_digest() {
    let (client, _) = tokens(TOKEN).holder(&digest(TOKEN)).unwrap();
    assert!(!client.to_string().contains(TOKEN), "{client}");
    assert_eq!(client.to_string().len(), "token:".len() + 12);
}

#[test]
fn missing_or_wrong_token_returns_401() {
    let access = Access::Tokens(tokens(TOKEN));
    let basic = client_of(&access, header::AUTHORIZATION, "Basic YWJjOmRlZg==").unwrap_err();
    let wrong = client_of(&access, header::AUTHORIZATION, "Bearer abcdefghij012345678").unwrap_err();
    let cookie = client_of(&access, header::COOKIE, &format!("token={TOKEN}")).unwrap_err();
    for refusal in [&basic, &wrong, &cookie] {
        assert_eq!((refusal.status().as_u16(), refusal.error().code.as_str()), (401, "E4007"));
        assert!(!refusal.error().message.contains("abc"));
    }
    let challenge = |refusal: Refusal| {
        use axum::response::IntoResponse as _;
        refusal.into_response().headers()[header::WWW_AUTHENTICATE].clone()
    };
    assert_eq!(challenge(basic), r#"Bearer realm="cog""#);
    assert_eq!(challenge(wrong), r#"Bearer realm="cog", error="invalid_token""#);
}

#[test]
fn browser_websocket_sends_the_token_as_subprotocol() {
    let access = Access::Tokens(tokens(&format!("web:{TOKEN}\nslashed:{TOKEN}/+=")));
    let protocol = |value: &str| client_of(&access, header::SEC_WEBSOCKET_PROTOCOL, value);
    assert_eq!(protocol(&format!("cog, cog.token.{TOKEN}")).unwrap(), Client::Token("web".into()));
    let escaped = format!("cog,cog.token.{TOKEN}%2F%2B%3D");
    assert_eq!(protocol(&escaped).unwrap(), Client::Token("slashed".into()));
    protocol("cog").unwrap_err();
    protocol("cog, cog.token.").unwrap_err();
    protocol(&format!("cog.token.{TOKEN}%")).unwrap_err();
    protocol(&format!("cog.token.{TOKEN}%ff")).unwrap_err();
}

#[test]
fn options_follow_the_token() {
    let list = format!(
        "a:{TOKEN} models=openai,ollama/llama3:8b\n{TOKEN}x== models=ollama/a:b\nm:{TOKEN}y  scope=metrics"
    );
    let tokens = tokens(&list);
    let grant = |token: &str| tokens.holder(&digest(token)).unwrap().1;
    assert_eq!(grant(TOKEN).models.unwrap().to_string(), "openai,ollama/llama3:8b");
    assert_eq!(grant(&format!("{TOKEN}x==")).models.unwrap().to_string(), "ollama/a:b");
    let of_metrics = grant(&format!("{TOKEN}y"));
    assert!(of_metrics.only_metrics && of_metrics.models.is_none() && !grant(TOKEN).only_metrics);
}

#[test]
fn api_key_is_a_token_where_there_is_no_other() {
    let access = Access::Tokens(tokens(&format!("ci:{TOKEN}\nother:{TOKEN}x")));
    let key = axum::http::HeaderName::from_static("x-api-key");
    let ci = Client::Token("ci".into());
    assert_eq!(client_of(&access, key.clone(), TOKEN).unwrap(), ci);
    client_of(&access, key.clone(), "wrong").unwrap_err();
    let mut headers = HeaderMap::new();
    headers.insert(key.clone(), format!("{TOKEN}x").parse().unwrap());
    headers.insert(header::AUTHORIZATION, format!("Bearer {TOKEN}").parse().unwrap());
    assert_eq!(access.client(&headers, "127.0.0.1:9".parse().unwrap()).unwrap().0, ci);
    headers.remove(header::AUTHORIZATION);
    headers.append(key, TOKEN.parse().unwrap());
    access.client(&headers, "127.0.0.1:9".parse().unwrap()).unwrap_err();
}

#[test]
fn several_tokens_are_ambiguous() {
    let access = Access::Tokens(tokens(&format!("ci:{TOKEN}\nother:{TOKEN}x")));
    let (bearer, other) = (format!("Bearer {TOKEN}"), format!("Bearer {TOKEN}x"));
    let protocol = format!("cog, cog.token.{TOKEN}");
    let authorization = header::AUTHORIZATION;
    let offered = header::SEC_WEBSOCKET_PROTOCOL;
    for pairs in [
        vec![(&authorization, &bearer), (&authorization, &other)],
        vec![(&authorization, &bearer), (&authorization, &bearer)],
        vec![(&offered, &protocol), (&offered, &protocol)],
        vec![(&authorization, &bearer), (&offered, &protocol)],
    ] {
        let mut headers = HeaderMap::new();
        for (name, value) in &pairs {
            headers.append(*name, value.parse().unwrap());
        }
        for access in [&access, &Access::Open] {
            let refusal = access.client(&headers, "127.0.0.1:9".parse().unwrap()).unwrap_err();
            assert_eq!(
                (refusal.status().as_u16(), refusal.error().code.as_str()),
                (400, "E1001"),
                "{pairs:?}"
            );
        }
    }
}

#[test]
fn credential_ends_with_its_token_and_with_its_client() {
    let current = tokens(&format!("ci:{TOKEN}\nother:{TOKEN}x"));
    let access = Access::Tokens(current.clone());
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {TOKEN}").parse().unwrap());
    let (credential, none) =
        (Credential::from_headers(&headers), Credential::from_headers(&HeaderMap::new()));
    let client = Client::Token("ci".into());
    access.check_again(&credential, &client).unwrap();
    access.check_again(&none, &client).unwrap_err();
    // Another token for the same name, the same token under another name, and neither.
    for list in [format!("ci:{TOKEN}y"), format!("renamed:{TOKEN}"), format!("other:{TOKEN}x")] {
        current.replace(&tokens(&list));
        let refused = access.check_again(&credential, &client).unwrap_err();
        assert_eq!((refused.status().as_u16(), refused.reason().as_str()), (401, "token"), "{list}");
    }
    Access::Open.check_again(&none, &client).unwrap();
}

#[test]
fn public_address_requires_token_or_insecure() {
    let at = |address: &str, tokens, is_meant| Access::at(address.parse().unwrap(), tokens, is_meant);
    assert!(matches!(at("127.0.0.1:80", None, false), Ok(Access::Open)));
    assert!(matches!(at("[::1]:80", None, false), Ok(Access::Open)));
    assert!(matches!(at("0.0.0.0:80", None, true), Ok(Access::Open)));
    assert!(matches!(at("0.0.0.0:80", Some(tokens(TOKEN)), false), Ok(Access::Tokens(_))));
    assert!(matches!(at("127.0.0.1:80", Some(tokens(TOKEN)), true), Ok(Access::Tokens(_))));
    for address in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80", "[2001:db8::1]:80"] {
        let refused = at(address, None, false).err().unwrap();
        assert!(refused.to_string().contains(address) && refused.suggestion().contains("--token-file"));
    }
}

#[test]
fn error_contains_line_number_and_no_token() {
    let error_of = |text: &str| Tokens::parse(text).err().unwrap().to_string();
    assert_eq!(error_of("# nothing\n\n"), "the file contains no token");
    assert_eq!(error_of("\nshort-token-015"), "line 2: the token is shorter than 16 characters");
    let options = "line 1: only models=LIST and scope=metrics may follow the token, each once";
    for more in ["with space", "scope=all", "models=a models=b", "MODELS=a"] {
        assert_eq!(error_of(&format!("name: {TOKEN} {more}")), options);
    }
    assert!(error_of(&format!("{TOKEN} models=a,/b")).starts_with("line 1: models: `/b` is not"));
    assert_eq!(error_of("name: with#sign in it"), "line 1: a token cannot contain `#`");
    assert_eq!(error_of(&format!("a:{TOKEN}\nb:{SLASHED}aaaa\n")), "line 2: a token cannot contain `=`");
    assert_eq!(
        error_of(&format!("a:{TOKEN}\na:{TOKEN}x")),
        "line 2: the name or token is already on an earlier line"
    );
    assert!(error_of(&format!("{TOKEN}\nb:{TOKEN}")).starts_with("line 2"));
    for name in ["", "a b", "a\u{1b}"] {
        assert!(error_of(&format!("{name}:{TOKEN}")).starts_with("line 1: a name"), "{name}");
    }
    assert!(Tokens::parse("0123456789abcdef").is_ok());
}

#[cfg(unix)]
#[test]
fn file_that_others_can_read_is_detected() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens");
    std::io::Write::write_all(&mut std::fs::File::create_new(&path).unwrap(), TOKEN.as_bytes()).unwrap();
    for (mode, is_exposed) in [(0o600, false), (0o400, false), (0o640, true), (0o644, true)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(Tokens::is_exposed(&path), is_exposed, "{mode:o}");
    }
    assert!(Tokens::open(&path).unwrap().holder(&digest(TOKEN)).is_some());
    assert!(matches!(Tokens::open(&directory.path().join("none")), Err(TokenFileError::Unreadable(_))));
}
