//! Tokens: the authentication of clients (docs/server.md).

mod file;
mod given;

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use cog_spec::{Code, ErrorBody};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use thiserror::Error;

pub use file::TokenFileError;

use super::{
    client::Client,
    refusal::{Reason, Refusal},
};

/// The tokens that the server accepts: their digests, each with a name.
///
/// The tokens themselves are not stored. Clones share one list, which [`Tokens::replace`] changes.
#[derive(Clone)]
pub struct Tokens(Arc<RwLock<Vec<Known>>>);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.list().len())
    }
}

#[derive(Clone)]
struct Known {
    digest: [u8; 32],
    client: Client,
}

/// The clients that have access.
#[derive(Clone)]
pub(crate) enum Access {
    /// Every client that reaches the address.
    Open,
    /// Clients with one of the tokens.
    Tokens(Tokens),
}

/// What a connection has shown at its start: the digest of its token, if it sent one.
///
/// A connection that starts runs later keeps it, because the token may be revoked meanwhile.
#[derive(Clone)]
pub(crate) struct Credential(Option<[u8; 32]>);

/// A server that other machines could use without authentication.
#[derive(Debug, Error)]
#[error("other machines can reach {0}, and authentication is not configured")]
pub struct MissingAuthError(pub SocketAddr);

impl MissingAuthError {
    /// Returns what to do.
    pub fn suggestion(&self) -> &'static str {
        "Set --token-file FILE, listen on 127.0.0.1, or set --insecure."
    }
}

impl Access {
    /// Returns the access rules at this address.
    ///
    /// # Errors
    /// Other machines can reach the address, there are no tokens, and `is_insecure` is not set.
    pub(crate) fn at(
        address: SocketAddr,
        tokens: Option<Tokens>,
        is_insecure: bool,
    ) -> Result<Self, MissingAuthError> {
        match tokens {
            Some(tokens) => Ok(Self::Tokens(tokens)),
            None if is_insecure || address.ip().to_canonical().is_loopback() => Ok(Self::Open),
            None => Err(MissingAuthError(address)),
        }
    }

    /// Returns the client of a request.
    ///
    /// # Errors
    /// 401 E4007 for a missing or unknown token.
    pub(crate) fn client(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<Client, Refusal> {
        match self {
            Self::Open => Ok(Client::from_ip(peer.ip())),
            Self::Tokens(tokens) => match given::token(headers) {
                None => Err(refusal("missing token", r#"Bearer realm="cog""#)),
                Some(given) => tokens.holder(&digest(&given)).ok_or_else(unknown),
            },
        }
    }

    /// Checks that the token of an open connection is still valid, and is still that of this client.
    ///
    /// # Errors
    /// 401 E4007 for a token that was revoked.
    pub(crate) fn check_again(&self, credential: &Credential, client: &Client) -> Result<(), Refusal> {
        let Self::Tokens(tokens) = self else { return Ok(()) };
        let holder = credential.0.and_then(|digest| tokens.holder(&digest));
        if holder.as_ref() == Some(client) { Ok(()) } else { Err(unknown()) }
    }
}

impl Credential {
    /// The credential that these headers contain.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        Self(given::token(headers).map(|given| digest(&given)))
    }
}

impl Tokens {
    /// Replaces these tokens by others, in all clones: a server accepts the new ones from then on.
    pub fn replace(&self, others: &Self) {
        let others = others.list().clone();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = others;
    }

    fn new(list: Vec<Known>) -> Self {
        Self(Arc::new(RwLock::new(list)))
    }

    fn list(&self) -> RwLockReadGuard<'_, Vec<Known>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the holder of the token with this digest. The digests of all tokens are compared, each in constant time.
    fn holder(&self, digest: &[u8; 32]) -> Option<Client> {
        let list = self.list();
        let mut found = u64::MAX;
        for (index, known) in (0_u64..).zip(list.iter()) {
            let is_equal: Choice = known.digest.ct_eq(digest);
            found.conditional_assign(&index, is_equal);
        }
        let index = usize::try_from(found).ok()?;
        list.get(index).map(|known| known.client.clone())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn unknown() -> Refusal {
    refusal("unknown token", r#"Bearer realm="cog", error="invalid_token""#)
}

fn refusal(message: &str, challenge: &'static str) -> Refusal {
    let error = ErrorBody::new(Code::PermissionDenied, message).suggest(
        "Send `Authorization: Bearer TOKEN`; for a browser's WebSocket, offer the subprotocols `cog` and `cog.token.TOKEN`.",
    );
    Refusal::new(Reason::Token, StatusCode::UNAUTHORIZED, error)
        .header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

#[cfg(test)]
mod tests;
