//! Signing out: the tokens are revoked at the server that issued them (RFC 7009), and removed from this machine.

use std::time::Duration;

use reqwest::{Client, Url, redirect::Policy};
use rmcp::transport::auth::{AuthError, AuthorizationMetadata};
use serde_json::Value;
use tokio::time::timeout;

use super::{Authorization, Discovered, chain, explained, failed, grant::Grant};
use crate::{
    server::{McpError, McpServer, excerpt},
    tls,
};

/// How long the authorization server has: a person waits, and the tokens are removed in any case.
const PATIENCE: Duration = Duration::from_secs(20);
/// The maximum size of an error of the authorization server, in bytes.
const MAX_ERROR: usize = 16 << 10;

/// What became of the tokens of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedOut {
    /// Whether there were any on this machine.
    pub had_tokens: bool,
    /// Whether they are still valid for somebody who has a copy.
    pub revocation: Revocation,
}

/// Whether tokens were revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// They are no longer valid.
    Done,
    /// There was none to revoke.
    Nothing,
    /// The authorization server names no address for it.
    NotOffered,
    /// It failed, and why.
    Failed(String),
}

impl McpServer {
    /// Revokes the tokens of the server if its authorization server can do it, and removes them from this machine, also if that fails.
    ///
    /// # Errors
    /// It is a program or has a fixed token, or the file cannot be removed.
    pub async fn logout(&self) -> Result<SignedOut, McpError> {
        let (url, oauth) = self.oauth()?;
        let authorization = Authorization::new(&self.name, url, oauth);
        let _alone = authorization.file.lock().await.map_err(|error| self.unauthorized(&error))?;
        let revocation = match authorization.file.read() {
            Ok(Some(grant)) if !grant.revocable().is_empty() => authorization.revoke(&grant).await,
            Ok(_) => Revocation::Nothing,
            Err(error) => Revocation::Failed(excerpt(&chain(&error))),
        };
        let had_tokens = authorization.file.remove().map_err(|error| self.violation(&error))?;
        Ok(SignedOut { had_tokens, revocation })
    }
}

impl Authorization {
    async fn revoke(&self, grant: &Grant) -> Revocation {
        let late = |_| Err(failed(format!("no answer within {} s", PATIENCE.as_secs())));
        match timeout(PATIENCE, self.revoke_all(grant)).await.unwrap_or_else(late) {
            Ok(revocation) => revocation,
            Err(AuthError::AuthorizationFailed(why)) => Revocation::Failed(excerpt(&why)),
            Err(error) => Revocation::Failed(excerpt(&chain(&explained(error)))),
        }
    }

    async fn revoke_all(&self, grant: &Grant) -> Result<Revocation, AuthError> {
        let Discovered { metadata, .. } = self.discover().await?;
        let Some(endpoint) = metadata.additional_fields.get("revocation_endpoint").and_then(Value::as_str)
        else {
            return Ok(Revocation::NotOffered);
        };
        // Neither another issuer nor another server may receive the tokens.
        if grant.credentials.issuer.as_deref() != Some(self.file.issuer().as_str()) {
            return Err(failed("another authorization server has issued them"));
        }
        let endpoint = same_origin(endpoint, &metadata)?;
        let client = client()?;
        for (kind, token) in grant.revocable() {
            self.send(
                &client,
                &endpoint,
                &metadata,
                grant,
                [("token", token.as_str()), ("token_type_hint", kind)],
            )
            .await?;
        }
        Ok(Revocation::Done)
    }

    async fn send(
        &self,
        client: &Client,
        endpoint: &Url,
        metadata: &AuthorizationMetadata,
        grant: &Grant,
        fields: [(&str, &str); 2],
    ) -> Result<(), AuthError> {
        let id = grant.credentials.client_id.as_str();
        let configured = self.oauth.client_secret.as_ref().map(|secret| secret.expose().to_owned());
        let secret = configured.or_else(|| grant.client_secret.clone());
        let mut fields: Vec<(&str, &str)> = fields.into();
        let mut request = client.post(endpoint.clone());
        match &secret {
            Some(secret) if takes_header(metadata) => {
                request = request.basic_auth(encoded(id), Some(encoded(secret)));
            }
            Some(secret) => fields.extend([("client_id", id), ("client_secret", secret.as_str())]),
            None => fields.push(("client_id", id)),
        }
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form(&fields));
        let response = request.send().await.map_err(|error| failed(chain(&error.without_url())))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let error = error_of(response).await;
        // The server revokes only one of the two types, and the other one with it.
        match error.as_deref() {
            Some("unsupported_token_type") => Ok(()),
            Some(error) => Err(failed(format!("its authorization server answers {status} `{error}`"))),
            None => Err(failed(format!("its authorization server answers {status}"))),
        }
    }
}

/// Returns the client that revokes tokens. It follows no redirect: the tokens are for one address.
#[expect(clippy::disallowed_methods, reason = "its requests go to authorization servers of the operator")]
fn client() -> Result<Client, AuthError> {
    tls::install();
    Client::builder().redirect(Policy::none()).build().map_err(|error| failed(chain(&error)))
}

/// Returns the address for revoking tokens, if it is at the server that issues them.
fn same_origin(endpoint: &str, metadata: &AuthorizationMetadata) -> Result<Url, AuthError> {
    let endpoint =
        Url::parse(endpoint).map_err(|error| failed(format!("its revocation_endpoint: {error}")))?;
    let issuing = Url::parse(&metadata.token_endpoint)
        .map_err(|error| failed(format!("its token_endpoint: {error}")))?;
    match endpoint.origin() == issuing.origin() {
        true => Ok(endpoint),
        false => Err(failed("its revocation_endpoint is not at the server that issues the tokens")),
    }
}

/// Whether the secret of a client is sent in the header, which is the default (RFC 8414 section 2).
fn takes_header(metadata: &AuthorizationMetadata) -> bool {
    let methods = ["revocation_endpoint_auth_methods_supported", "token_endpoint_auth_methods_supported"];
    let methods = methods.iter().find_map(|name| metadata.additional_fields.get(*name)?.as_array());
    let has = |name: &str| methods.is_some_and(|methods| methods.iter().any(|method| method == name));
    has("client_secret_basic") || !has("client_secret_post")
}

/// Returns the fields as a form.
fn form(fields: &[(&str, &str)]) -> String {
    let Ok(mut url) = Url::parse("http://form/") else { return String::new() };
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

/// Returns a value as a form has it (RFC 6749 section 2.3.1).
fn encoded(value: &str) -> String {
    form(&[("", value)]).trim_start_matches('=').to_owned()
}

/// Returns the error that a response names.
async fn error_of(mut response: reqwest::Response) -> Option<String> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ERROR {
            return None;
        }
    }
    let error: Value = serde_json::from_slice(&body).ok()?;
    Some(excerpt(error.get("error")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(fields: Value) -> AuthorizationMetadata {
        let mut metadata = serde_json::json!({
            "authorization_endpoint": "https://login.example/authorize",
            "token_endpoint": "https://login.example/token",
        });
        metadata.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(metadata).unwrap()
    }

    #[test]
    fn token_is_sent_only_to_the_server_that_issued_it() {
        let metadata = metadata(serde_json::json!({}));
        assert!(same_origin("https://login.example/revoke?a=1", &metadata).is_ok());
        for other in [
            "https://evil.example/revoke",
            "http://login.example/revoke",
            "https://login.example:8443/",
            "revoke",
        ] {
            assert!(same_origin(other, &metadata).is_err(), "{other}");
        }
    }

    #[test]
    fn secret_is_sent_as_the_server_accepts_it() {
        let of = |methods: Value| takes_header(&metadata(methods));
        assert!(of(serde_json::json!({})));
        assert!(of(
            serde_json::json!({ "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"] })
        ));
        assert!(!of(serde_json::json!({ "token_endpoint_auth_methods_supported": ["client_secret_post"] })));
        assert!(!of(serde_json::json!({
            "revocation_endpoint_auth_methods_supported": ["client_secret_post"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        })));
    }

    #[test]
    fn values_are_escaped() {
        assert_eq!(form(&[("token", "a+b/c=&d")]), "token=a%2Bb%2Fc%3D%26d");
        assert_eq!(encoded("=a:b"), "%3Da%3Ab");
    }
}
