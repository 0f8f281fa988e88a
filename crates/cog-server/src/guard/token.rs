//! Tokens: who may ask at all (SECURITY of docs/server.md).

mod file;
mod given;

use std::{fmt, net::SocketAddr, sync::Arc};

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

/// The tokens that open a server: their digests, with a name for each.
///
/// The tokens themselves are not kept.
#[derive(Clone)]
pub struct Tokens(Arc<[Known]>);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

struct Known {
    digest: [u8; 32],
    client: Client,
}

/// Who may ask: everybody, or who holds a token.
#[derive(Clone)]
pub(crate) enum Access {
    /// Everybody who reaches the address.
    Open,
    /// Who holds one of the tokens.
    Tokens(Tokens),
}

/// A server that would stand open to others.
#[derive(Debug, Error)]
#[error("{0} can be reached from other machines, and no token guards it")]
pub struct MissingAuthError(pub SocketAddr);

impl MissingAuthError {
    /// What to do about it.
    pub fn suggestion(&self) -> &'static str {
        "give --token-file FILE, listen on 127.0.0.1, or say --insecure"
    }
}

impl Access {
    /// Who may ask at this address.
    ///
    /// # Errors
    /// The address can be reached from other machines, there are no tokens, and nobody has said that this is
    /// meant.
    pub(crate) fn at(
        address: SocketAddr,
        tokens: Option<Tokens>,
        is_meant: bool,
    ) -> Result<Self, MissingAuthError> {
        match tokens {
            Some(tokens) => Ok(Self::Tokens(tokens)),
            None if is_meant || address.ip().to_canonical().is_loopback() => Ok(Self::Open),
            None => Err(MissingAuthError(address)),
        }
    }

    /// The client behind a request.
    ///
    /// # Errors
    /// 401 E4007 without a token, or with one that is not known.
    pub(crate) fn client(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<Client, Refusal> {
        match self {
            Self::Open => Ok(Client::of_peer(peer.ip())),
            Self::Tokens(tokens) => match given::token(headers) {
                None => Err(refusal("a token is needed", r#"Bearer realm="cog""#)),
                Some(given) => tokens.holder(&given).ok_or_else(|| {
                    refusal("the token is not known", r#"Bearer realm="cog", error="invalid_token""#)
                }),
            },
        }
    }
}

impl Tokens {
    /// Who holds this token. Every token is compared, each in constant time, on digests.
    fn holder(&self, given: &str) -> Option<Client> {
        let digest = digest(given);
        let mut found = u64::MAX;
        for (place, known) in (0_u64..).zip(self.0.iter()) {
            let is_it: Choice = known.digest.ct_eq(&digest);
            found.conditional_assign(&place, is_it);
        }
        let place = usize::try_from(found).ok()?;
        self.0.get(place).map(|known| known.client.clone())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn refusal(message: &str, challenge: &'static str) -> Refusal {
    let error = ErrorBody::new(Code::PermissionDenied, message).suggest(
        "send `Authorization: Bearer TOKEN`; browsers' WebSockets offer the subprotocols `cog` and `cog.token.TOKEN`",
    );
    Refusal::new(Reason::Token, StatusCode::UNAUTHORIZED, error)
        .header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

#[cfg(test)]
mod tests;
