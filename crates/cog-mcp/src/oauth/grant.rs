//! The file with the tokens of a server, which only this user may read.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cog_store::{Durability, private, write_durably};
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

/// The maximum size of a file.
const LIMIT: u64 = 1 << 20;
/// How long a process waits for another one that renews the token.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
const LOCK_INTERVAL: Duration = Duration::from_millis(20);
/// A token is renewed this long before it expires, but not before half of its time has passed.
const MARGIN: u64 = 30;

/// What an authorization server has given to the user.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Grant {
    /// The URL of the server for which it was given.
    url: String,
    /// The secret of a client that has registered itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    pub(super) credentials: StoredCredentials,
}

/// What `rmcp` stores about a token, as far as it matters here.
#[derive(Deserialize)]
struct TokenFields {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
}

impl Grant {
    fn fields(&self) -> Option<TokenFields> {
        let token = self.credentials.token_response.as_ref()?;
        serde_json::from_value(serde_json::to_value(token).ok()?).ok()
    }

    pub(super) fn token(&self) -> Option<String> {
        Some(self.fields()?.access_token)
    }

    /// Returns the tokens with their types, the refresh token first: most servers revoke the other one with it.
    pub(super) fn revocable(&self) -> Vec<(&'static str, String)> {
        let Some(TokenFields { access_token, refresh_token, .. }) = self.fields() else { return Vec::new() };
        let refresh_token = refresh_token.map(|token| ("refresh_token", token));
        refresh_token.into_iter().chain([("access_token", access_token)]).collect()
    }

    /// Returns whether the token can still be sent. One without a time of its end can be, until the server rejects it.
    pub(super) fn is_current(&self) -> bool {
        let Some(fields) = self.fields() else { return false };
        let (Some(lifetime), Some(received)) = (fields.expires_in, self.credentials.token_received_at) else {
            return true;
        };
        let margin = MARGIN.min(lifetime / 2);
        now().saturating_sub(received) < lifetime.saturating_sub(margin)
    }
}

#[expect(clippy::disallowed_methods, reason = "tokens expire at a time of day")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The file of one server, and the token of a process without a directory for files.
#[derive(Clone)]
pub(super) struct GrantFile(Arc<Inner>);

struct Inner {
    path: Option<PathBuf>,
    url: String,
    found: Mutex<Found>,
    in_memory: Mutex<Option<Grant>>,
    alone: Arc<tokio::sync::Mutex<()>>,
}

/// What was found out since the process started.
#[derive(Default)]
struct Found {
    issuer: String,
    client_secret: Option<String>,
}

impl GrantFile {
    pub(super) fn new(server: &str, url: &str, directory: Option<&Path>) -> Self {
        let hash: String = Sha256::digest(format!("{server}\n{url}"))
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self(Arc::new(Inner {
            path: directory.map(|directory| directory.join(format!("{server}-{hash}.json"))),
            url: url.to_owned(),
            found: Mutex::default(),
            in_memory: Mutex::default(),
            alone: Arc::default(),
        }))
    }

    pub(super) fn set_issuer(&self, issuer: &str) {
        issuer.clone_into(&mut self.0.found.lock().unwrap_or_else(PoisonError::into_inner).issuer);
    }

    pub(super) fn issuer(&self) -> String {
        self.0.found.lock().unwrap_or_else(PoisonError::into_inner).issuer.clone()
    }

    /// Notes the secret that is stored with the tokens.
    pub(super) fn set_client_secret(&self, secret: Option<String>) {
        self.0.found.lock().unwrap_or_else(PoisonError::into_inner).client_secret = secret;
    }

    /// Reads the grant; none if there is no file, or if it belongs to another URL.
    ///
    /// # Errors
    /// The file cannot be read, or other users may read it.
    pub(super) fn read(&self) -> Result<Option<Grant>, AuthError> {
        let Some(path) = &self.0.path else {
            return Ok(self.0.in_memory.lock().unwrap_or_else(PoisonError::into_inner).clone());
        };
        let failed = |problem: &dyn std::fmt::Display| {
            AuthError::CredentialStoreError(format!("{}: {problem}", path.display()))
        };
        let text = match private::read(path, LIMIT) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        if private::is_readable_by_others(path) {
            return Err(failed(
                &"other users of this machine can read it; run `cog mcp logout`, and sign in again",
            ));
        }
        let grant: Grant =
            serde_json::from_slice(&text).map_err(|_| failed(&"damaged; run `cog mcp logout`"))?;
        Ok(Some(grant).filter(|grant| grant.url == self.0.url))
    }

    fn write(&self, credentials: StoredCredentials) -> io::Result<()> {
        let kept = self.read().ok().flatten().and_then(|grant| grant.client_secret);
        let found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner).client_secret.clone();
        let grant = Grant { url: self.0.url.clone(), client_secret: found.or(kept), credentials };
        let Some(path) = &self.0.path else {
            *self.0.in_memory.lock().unwrap_or_else(PoisonError::into_inner) = Some(grant);
            return Ok(());
        };
        // A refresh token may be valid once: the new one must not be lost.
        write_durably(path, &serde_json::to_vec(&grant)?, Durability::PowerCut)
    }

    /// Removes the tokens. Returns whether there were any.
    pub(super) fn remove(&self) -> io::Result<bool> {
        let was_there = self.0.in_memory.lock().unwrap_or_else(PoisonError::into_inner).take().is_some();
        let Some(path) = &self.0.path else { return Ok(was_there) };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(was_there),
            removed => removed.map(|()| true),
        }
    }

    /// Waits until no other call or process renews the token.
    ///
    /// # Errors
    /// The directory cannot be written, or another process does not end.
    pub(super) async fn lock(&self) -> Result<Locked, AuthError> {
        let alone = Arc::clone(&self.0.alone).lock_owned().await;
        let Some(path) = &self.0.path else { return Ok(Locked { _alone: alone, _file: None }) };
        let path = path.with_extension("lock");
        let failed = |problem: &dyn std::fmt::Display| {
            AuthError::CredentialStoreError(format!("{}: {problem}", path.display()))
        };
        let file = private::append(&path).map_err(|error| failed(&error))?;
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Locked { _alone: alone, _file: Some(file) }),
                Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(LOCK_INTERVAL).await,
                Err(TryLockError::WouldBlock) => return Err(failed(&"another process has locked it")),
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
            }
        }
    }
}

/// Dropping it lets others renew the token. The lock of a process that is killed ends with it.
pub(super) struct Locked {
    _alone: tokio::sync::OwnedMutexGuard<()>,
    _file: Option<File>,
}

#[async_trait::async_trait]
impl CredentialStore for GrantFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.read()?.map(|grant| grant.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.write(credentials).map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.remove().map(drop).map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }
}
