//! Tokens of servers that use OAuth: read from the user's state, renewed when they expire or a server rejects them.
//!
//! `rmcp` speaks the protocol: the metadata of the resource (RFC 9728) and of its authorization server (RFC 8414), PKCE, resource
//! indicators (RFC 8707) and the issuer of an answer (RFC 9207).

mod grant;
mod login;
mod revoke;

use std::{
    error::Error,
    sync::{Mutex, PoisonError},
};

use rmcp::transport::{
    auth::{
        AuthError, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig, OAuthClientConfig,
    },
    streamable_http_client::{AuthRequiredError, InsufficientScopeError},
};

use self::grant::{Grant, GrantFile};
pub use self::revoke::{Revocation, SignedOut};
use crate::{
    server::{McpError, McpServer, McpTransport, OAuth, excerpt},
    tls,
};

/// The tokens of one server. They are never sent to another one: their file has the name and the URL of the server.
pub(crate) struct Authorization {
    url: String,
    oauth: OAuth,
    file: GrantFile,
    /// A token that the server rejected although it was new.
    refused: Mutex<Option<String>>,
}

/// The authorization server of an MCP server.
struct Discovered {
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
}

impl Authorization {
    pub(crate) fn new(server: &str, url: &str, oauth: &OAuth) -> Self {
        Self {
            url: url.to_owned(),
            oauth: oauth.clone(),
            file: GrantFile::new(server, url, oauth.directory.as_deref()),
            refused: Mutex::default(),
        }
    }

    /// Returns the token for a request; none for a server that nobody has signed in to, which may not need one.
    ///
    /// # Errors
    /// The token has expired and cannot be renewed.
    pub(crate) async fn token(&self) -> Result<Option<String>, AuthError> {
        match self.file.read()? {
            Some(grant) if grant.is_current() => Ok(grant.token()),
            None if !self.oauth.client_credentials => Ok(None),
            _ => self.renew(None).await.map(Some),
        }
    }

    /// Returns another token than the one that the server rejected or that has expired. Of several processes, one renews it.
    ///
    /// # Errors
    /// A person must sign in, the authorization server cannot be used, or the server has rejected the last new token.
    pub(crate) async fn renew(&self, rejected: Option<&str>) -> Result<String, AuthError> {
        let _alone = self.file.lock().await?;
        let grant = self.file.read()?;
        let current = grant.as_ref().filter(|grant| grant.is_current()).and_then(Grant::token);
        if let Some(token) = current.filter(|token| Some(token.as_str()) != rejected) {
            return Ok(token); // another process or call has renewed it
        }
        if rejected.is_some() && rejected == self.refused().as_deref() {
            return Err(refusal());
        }
        if grant.is_none() && !self.oauth.client_credentials {
            return Err(AuthError::AuthorizationRequired);
        }
        let mut manager = self.discover().await?.manager;
        let renewed = match (self.oauth.client_credentials, grant) {
            (true, _) => {
                let config = self.client_credentials()?;
                manager.validate_client_credentials_metadata(&config)?;
                manager.configure_client_credentials(&config)?;
                manager.exchange_client_credentials(&config).await
            }
            (false, Some(grant)) => {
                manager.configure_client(self.client_of(&grant)?)?;
                manager.refresh_token().await
            }
            (false, None) => Err(AuthError::AuthorizationRequired),
        };
        renewed.map_err(explained)?;
        self.file.read()?.and_then(|grant| grant.token()).ok_or(AuthError::AuthorizationRequired)
    }

    /// Notes that the server rejects a token that was just issued, so that it is not renewed for each call.
    pub(crate) fn refuse(&self, token: String) -> AuthError {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        refusal()
    }

    fn refused(&self) -> Option<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns what talks to the authorization server that the server names.
    async fn discover(&self) -> Result<Discovered, AuthError> {
        tls::install();
        let url = self.url.as_str();
        let mut manager = match &self.oauth.issuer {
            Some(_) => AuthorizationManager::new_allowing_private_addresses(url).await?,
            None => AuthorizationManager::new(url).await?,
        };
        manager.set_credential_store(self.file.clone());
        let found = manager.resolve_metadata().await.map_err(explained)?;
        // Without metadata, `rmcp` guesses the addresses: a token may then be requested anywhere.
        if !found.source.is_discovered() {
            return Err(failed("it publishes no metadata that names its authorization server"));
        }
        let issuer = found.metadata.issuer.as_deref().unwrap_or_default();
        match &self.oauth.issuer {
            Some(expected) if expected.trim_end_matches('/') != issuer.trim_end_matches('/') => {
                let message =
                    format!("its authorization server is `{issuer}`, but `oauth.issuer` is `{expected}`");
                return Err(failed(message));
            }
            _ => {}
        }
        self.file.set_issuer(issuer);
        manager.set_metadata(found.metadata.clone());
        Ok(Discovered { manager, metadata: found.metadata })
    }

    /// Returns the client to which a grant was given.
    ///
    /// # Errors
    /// The settings name another client, or the server another authorization server: neither may receive the refresh token.
    fn client_of(&self, grant: &Grant) -> Result<OAuthClientConfig, AuthError> {
        let credentials = &grant.credentials;
        let has_client = self.oauth.client_id.as_ref().is_none_or(|id| *id == credentials.client_id);
        if !has_client || credentials.issuer.as_deref() != Some(self.file.issuer().as_str()) {
            return Err(AuthError::AuthorizationRequired);
        }
        let config = OAuthClientConfig::new(&credentials.client_id, self.url.as_str());
        let configured = self.oauth.client_secret.as_ref().map(|secret| secret.expose().to_owned());
        Ok(match configured.or_else(|| grant.client_secret.clone()) {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        })
    }

    fn client_credentials(&self) -> Result<ClientCredentialsConfig, AuthError> {
        let OAuth { client_id: Some(client_id), client_secret: Some(secret), scopes, .. } = &self.oauth
        else {
            return Err(failed("`oauth.client_id` and `oauth.client_secret` are missing"));
        };
        Ok(ClientCredentialsConfig::ClientSecret {
            client_id: client_id.clone(),
            client_secret: secret.expose().to_owned(),
            scopes: scopes.clone(),
            resource: Some(self.url.clone()),
        })
    }
}

/// Returns an error in words that say what is wrong with which server.
fn explained(error: AuthError) -> AuthError {
    match error {
        AuthError::TokenRefreshRejected(_) => AuthError::AuthorizationRequired,
        AuthError::AuthorizationRequired | AuthError::AuthorizationFailed(_) => error,
        other => failed(chain(&other)),
    }
}

fn refusal() -> AuthError {
    failed("it answers 401 Unauthorized to a token that its authorization server has just issued")
}

fn failed(message: impl Into<String>) -> AuthError {
    AuthError::AuthorizationFailed(message.into())
}

/// Returns an error with its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn scope_needed(error: &InsufficientScopeError) -> String {
    let scope = error.get_required_scope().unwrap_or_default();
    format!("it answers 403 Forbidden: the token lacks a scope ({scope}), which `oauth.scopes` can name")
        .replace(" ()", "")
}

impl McpServer {
    /// Returns what an error of a request says about signing in; none if it is about something else. A challenge is an answer to a
    /// token of the operator.
    pub(crate) fn sign_in_error(&self, error: &(dyn Error + 'static)) -> Option<McpError> {
        let mut source = Some(error);
        while let Some(cause) = source {
            if let Some(error) = cause.downcast_ref::<AuthError>() {
                return Some(self.unauthorized(error));
            }
            if cause.is::<AuthRequiredError>() {
                return Some(self.violation(&"it answers 401 Unauthorized"));
            }
            if let Some(error) = cause.downcast_ref::<InsufficientScopeError>() {
                return Some(self.unauthorized(&failed(scope_needed(error))));
            }
            source = cause.source();
        }
        None
    }

    fn unauthorized(&self, error: &AuthError) -> McpError {
        let message = match error {
            AuthError::AuthorizationRequired => {
                "nobody is signed in to it, or the sign-in has expired".to_owned()
            }
            AuthError::AuthorizationFailed(message) => excerpt(message),
            other => excerpt(&chain(other)),
        };
        McpError::SignIn { server: self.name.clone(), message }
    }

    /// Returns how to sign in.
    ///
    /// # Errors
    /// It is a program, or has a fixed token.
    fn oauth(&self) -> Result<(&str, &OAuth), McpError> {
        match &self.transport {
            McpTransport::Http { url, token: None, oauth, .. } => Ok((url, oauth)),
            McpTransport::Http { .. } => Err(self.violation(&"its `token` is set in the settings file")),
            McpTransport::Stdio { .. } => Err(self.violation(&"it is a program: OAuth is for a `url`")),
        }
    }
}
