//! Signing in: a person approves in the browser, which then calls a port of this machine.

use std::{net::Ipv4Addr, time::Duration};

use reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{Authorization, explained, failed};
use crate::server::{McpError, McpServer};

/// How long a person has for signing in.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time limit for reading one request of the browser, and its maximum size in bytes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_REQUEST: usize = 16 << 10;

const PATH: &str = "/callback";
const DONE: &str = "You are signed in. You can close this window.";
const FAILED: &str = "The sign-in failed. The terminal says why.";
const UNKNOWN: &str = "This does not belong to the current sign-in.";

impl McpServer {
    /// Signs the user in. `show` receives the address that a person must open. `pasted` returns the address at which the browser
    /// ended, for a browser on another machine; it may never end.
    ///
    /// # Errors
    /// It is a program or has a fixed token, its authorization server cannot be used, or the person refuses.
    pub async fn login(
        &self,
        show: impl FnOnce(&str),
        pasted: impl Future<Output = String>,
    ) -> Result<(), McpError> {
        let (url, oauth) = self.oauth()?;
        let authorization = Authorization::new(&self.name, url, oauth);
        let signed_in = match oauth.client_credentials {
            true => authorization.renew(None).await.map(drop),
            false => authorization.login(show, pasted).await,
        };
        signed_in.map_err(|error| self.unauthorized(&explained(error)))
    }
}

impl Authorization {
    async fn login(
        &self,
        show: impl FnOnce(&str),
        pasted: impl Future<Output = String>,
    ) -> Result<(), AuthError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.oauth.callback_port.unwrap_or(0))).await;
        let listener = listener.map_err(|error| failed(format!("the port of the browser: {error}")))?;
        let port = listener.local_addr().map_err(|error| failed(error.to_string()))?.port();
        let redirect = format!("http://127.0.0.1:{port}{PATH}");
        let mut manager = self.discover().await?.manager;
        let scopes = match self.oauth.scopes.as_slice() {
            [] => manager.select_initial_scopes(&[]).await,
            scopes => scopes.to_vec(),
        };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        self.configure(&mut manager, &redirect, &scopes).await?;
        let address = manager.get_authorization_url(&scopes).await?;
        let state = member(&address, "state").unwrap_or_default();
        show(&address);
        let answer = async {
            let mut pasted = std::pin::pin!(pasted);
            tokio::select! {
                answer = self.answer(&listener, &state) => answer,
                address = &mut pasted => Ok(address),
            }
        };
        let late = |_| Err(failed(format!("nobody has signed in within {} s", PATIENCE.as_secs())));
        let answer = timeout(PATIENCE, answer).await.unwrap_or_else(late)?;
        if let Some(error) = member(&answer, "error") {
            let description = member(&answer, "error_description").unwrap_or_default();
            return Err(failed(
                format!("the authorization server answers `{error}` {description}").trim_end(),
            ));
        }
        let (Some(code), true) = (member(&answer, "code"), member(&answer, "state").as_ref() == Some(&state))
        else {
            return Err(failed("the address does not belong to this sign-in"));
        };
        let issuer = member(&answer, "iss");
        let _alone = self.file.lock().await?;
        manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref()).await.map(drop)
    }

    /// Tells who asks: the client of the settings, or one that registers itself.
    async fn configure(
        &self,
        manager: &mut AuthorizationManager,
        redirect: &str,
        scopes: &[&str],
    ) -> Result<(), AuthError> {
        let Some(id) = &self.oauth.client_id else {
            let registered = manager.register_client("cog", redirect, scopes).await.map_err(|error| {
                failed(format!("{error}; register a client there, and set `oauth.client_id` in the settings"))
            })?;
            self.file.set_client_secret(registered.client_secret);
            return Ok(());
        };
        let config = OAuthClientConfig::new(id, redirect);
        manager.configure_client(match &self.oauth.client_secret {
            Some(secret) => config.with_client_secret(secret.expose()),
            None => config,
        })
    }

    /// Waits until the browser comes back, and returns its address. Other programs of this machine may call the port too.
    async fn answer(&self, listener: &TcpListener, state: &str) -> Result<String, AuthError> {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { continue };
            let Ok(Some(target)) = timeout(REQUEST_TIMEOUT, target(&mut stream)).await else { continue };
            let address = format!("http://127.0.0.1{target}");
            let is_answer = target.starts_with(&format!("{PATH}?"))
                && member(&address, "state").as_deref() == Some(state);
            let text = match (is_answer, member(&address, "code")) {
                (true, Some(_)) => DONE,
                (true, None) => FAILED,
                (false, _) => UNKNOWN,
            };
            let status = if is_answer { "200 OK" } else { "404 Not Found" };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: "
            );
            let _ = stream.write_all(format!("{head}{}\r\n\r\n{text}", text.len()).as_bytes()).await;
            let _ = stream.shutdown().await;
            if is_answer {
                return Ok(address);
            }
        }
    }
}

/// Returns the target of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut part = [0_u8; 1024];
    while head.len() < MAX_REQUEST && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part).await {
            Ok(length @ 1..) => head.extend_from_slice(part.get(..length)?),
            _ => return None,
        }
    }
    let head = String::from_utf8_lossy(&head);
    head.strip_prefix("GET ")?.split(' ').next().map(str::to_owned)
}

/// Returns a member of the query of an address.
fn member(address: &str, name: &str) -> Option<String> {
    let address = Url::parse(address.trim()).ok()?;
    address.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
