//! Tokens: the authentication of clients (docs/server.md).

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use cog_module::files::{FileError, read_text};
use cog_run::ModelAccess;
use cog_spec::{Code, ErrorBody};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use thiserror::Error;

use super::{Reason, Refusal, limits::Client};

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
    grant: Grant,
}

/// What the holder of a token may do: the options after the token in its line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grant {
    /// The models that the client may name. None has the list of the server's settings.
    pub(crate) models: Option<ModelAccess>,
    /// Whether the client reads `/metrics`, with the figures of all clients, and uses no other route.
    pub(crate) only_metrics: bool,
    /// Whether the client is the operator, who sees whole errors and the figures of all clients.
    pub(crate) is_operator: bool,
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

    /// Returns the client of a request, and what it may do.
    ///
    /// # Errors
    /// 401 E4007 for a missing or unknown token, 400 E1001 for more than one.
    pub(crate) fn client(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<(Client, Grant), Refusal> {
        let token = token(headers)?;
        match self {
            Self::Open => Ok((Client::from_ip(peer.ip()), Grant::default())),
            Self::Tokens(tokens) => match token {
                None => Err(refusal("missing token", r#"Bearer realm="cog""#)),
                Some(given) => tokens.holder(&digest(&given)).ok_or_else(unknown),
            },
        }
    }

    /// Checks that the token of an open connection is still valid, and still belongs to this client. Returns what the client may do
    /// now.
    ///
    /// # Errors
    /// 401 E4007 for a token that was revoked.
    pub(crate) fn check_again(&self, credential: &Credential, client: &Client) -> Result<Grant, Refusal> {
        let Self::Tokens(tokens) = self else { return Ok(Grant::default()) };
        let holder = credential.0.and_then(|digest| tokens.holder(&digest));
        match holder {
            Some((holder, grant)) if holder == *client && !grant.only_metrics => Ok(grant),
            _ => Err(unknown()),
        }
    }

    /// Whether the server has tokens, so that its clients are not the operator.
    pub(crate) fn has_tokens(&self) -> bool {
        matches!(self, Self::Tokens(_))
    }
}

impl Credential {
    /// The credential that these headers contain.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        // The guard has refused a request with more than one token.
        Self(token(headers).ok().flatten().map(|given| digest(&given)))
    }
}

impl Tokens {
    /// Returns a new random token for the operator of the server, and the list that accepts only this one.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn for_operator() -> io::Result<(Self, String)> {
        let mut bits = [0_u8; 32];
        getrandom::fill(&mut bits).map_err(io::Error::other)?;
        let token = bits.iter().fold(String::new(), |mut token, byte| {
            let _ = write!(token, "{byte:02x}");
            token
        });
        let client = Client::Token("operator".into());
        let grant = Grant { is_operator: true, ..Grant::default() };
        Ok((Self::new(vec![Known { digest: digest(&token), client, grant }]), token))
    }

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
    fn holder(&self, digest: &[u8; 32]) -> Option<(Client, Grant)> {
        // No early return: the time must not depend on which token matches, or whether one does.
        let list = self.list();
        let mut found = u64::MAX;
        for (index, known) in (0_u64..).zip(list.iter()) {
            let is_equal: Choice = known.digest.ct_eq(digest);
            found.conditional_assign(&index, is_equal);
        }
        let index = usize::try_from(found).ok()?;
        list.get(index).map(|known| (known.client.clone(), known.grant.clone()))
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

// The token of a request.

/// The prefix of the subprotocol that contains a token.
const SUBPROTOCOL: &str = "cog.token.";

/// The token of `Authorization: Bearer`, of a WebSocket's subprotocol, or of `x-api-key`, which Anthropic's clients send.
///
/// A token in the URL is ignored: URLs end up in logs, histories and `Referer`.
///
/// # Errors
/// 400 E1001 for more than one: a proxy in front of the server might have checked another one than this server would.
fn token(headers: &HeaderMap) -> Result<Option<Cow<'_, str>>, Refusal> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let protocols = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let mut offered = protocols.iter().filter_map(|value| value.to_str().ok()).flat_map(subprotocols);
    match (lines.next(), offered.next(), lines.next(), offered.next()) {
        (Some(line), None, None, _) => Ok(bearer(line).map(Cow::Borrowed)),
        (None, Some(offered), _, None) => Ok(unescaped(offered)),
        (None, None, _, _) => api_key(headers),
        _ => Err(several()),
    }
}

/// The token of `x-api-key`.
fn api_key(headers: &HeaderMap) -> Result<Option<Cow<'_, str>>, Refusal> {
    let mut keys = headers.get_all("x-api-key").iter();
    match (keys.next(), keys.next()) {
        (key, None) => Ok(key.and_then(|key| key.to_str().ok()).map(Cow::Borrowed)),
        _ => Err(several()),
    }
}

fn several() -> Refusal {
    let error = ErrorBody::new(Code::InvalidInput, "the request has more than one token")
        .suggest("Send one header `Authorization`, or one subprotocol `cog.token.TOKEN`.");
    Refusal::new(Reason::Token, StatusCode::BAD_REQUEST, error)
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the tokens in the subprotocols that a header offers.
fn subprotocols(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').filter_map(|name| name.trim().strip_prefix(SUBPROTOCOL))
}

/// Decodes `encodeURIComponent`: a subprotocol can contain neither `/` nor `=`.
fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut parts = text.split('%');
    let mut plain = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let byte = u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)?;
        plain.push(char::from(byte));
        plain.push_str(rest);
    }
    Some(Cow::Owned(plain))
}

// The file of tokens.

/// The maximum size of a token file, in bytes.
const MAX_SIZE: u64 = 1024 * 1024;

/// The minimum length of a token: 16 characters of base64 are 96 bits.
const MIN_CHARS: usize = 16;

/// Why a token file is not valid. Never contains a token.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(#[from] FileError),
    /// The file has no token.
    #[error("the file contains no token")]
    NoToken,
    /// A token is too short.
    #[error("line {line}: the token is shorter than {MIN_CHARS} characters")]
    TooShort {
        /// The line, from 1.
        line: usize,
    },
    /// A token contains a character that is not valid.
    #[error("line {line}: a token cannot contain `{found}`")]
    Character {
        /// The line, from 1.
        line: usize,
        /// The first invalid character.
        found: char,
    },
    /// The name of a token is not valid.
    #[error("line {line}: a name may contain only letters, digits and -_.")]
    Name {
        /// The line, from 1.
        line: usize,
    },
    /// There is something else than options after the token.
    #[error("line {line}: only models=LIST and scope=metrics may follow the token, each once")]
    Option {
        /// The line, from 1.
        line: usize,
    },
    /// An entry of the list of models is not valid.
    #[error("line {line}: models: `{entry}` is not PROVIDER, PROVIDER/MODEL or PROVIDER/PREFIX*")]
    Models {
        /// The line, from 1.
        line: usize,
        /// The entry.
        entry: String,
    },
    /// Two lines have the same name or the same token.
    #[error("line {line}: the name or token is already on an earlier line")]
    Twice {
        /// The line, from 1.
        line: usize,
    },
}

impl TokenFileError {
    /// Returns what to do.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Unreadable(error) => error.suggestion(),
            Self::NoToken | Self::TooShort { .. } => "`openssl rand -base64 32` creates a token.",
            Self::Name { .. } | Self::Character { .. } => {
                "Write TOKEN or NAME:TOKEN; a token has letters, digits and -._~+/ and may end with =."
            }
            Self::Option { .. } => "Write NAME:TOKEN models=openai/gpt-6-luna, or NAME:TOKEN scope=metrics.",
            Self::Models { .. } => "Write models=openai,anthropic/claude-haiku-5,ollama/*, without spaces.",
            Self::Twice { .. } => "Use a different name and token on each line.",
        }
    }
}

impl Tokens {
    /// Reads a file with one token per line, `TOKEN` or `NAME:TOKEN`, each with its options. Empty lines and lines that start with
    /// `#` are ignored.
    ///
    /// # Errors
    /// The file cannot be read, or is not valid.
    pub fn open(path: &Path) -> Result<Self, TokenFileError> {
        Self::parse(&read_text(path, MAX_SIZE)?)
    }

    /// Whether other users may read the file; false where the system has no file modes.
    pub fn is_exposed(path: &Path) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            false
        }
    }

    /// Parses the text of a token file.
    ///
    /// # Errors
    /// A line is not valid, or there is no token.
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut known: Vec<Known> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let next = read_line(line, text)?;
            if known.iter().any(|other| other.client == next.client || other.digest == next.digest) {
                return Err(TokenFileError::Twice { line });
            }
            known.push(next);
        }
        if known.is_empty() { Err(TokenFileError::NoToken) } else { Ok(Self::new(known)) }
    }
}

fn read_line(line: usize, text: &str) -> Result<Known, TokenFileError> {
    // The name of a model may contain a colon, and the list of models comes after an equals sign.
    let (name, rest) = match text.split_once(':') {
        Some((name, rest)) if !name.contains('=') => (Some(name.trim()), rest),
        _ => (None, text),
    };
    let mut words = rest.split_whitespace();
    let token = words.next().unwrap_or_default();
    if let Some(found) = token.trim_end_matches('=').chars().find(|c| !is_of_a_token(*c)) {
        return Err(TokenFileError::Character { line, found });
    }
    if token.len() < MIN_CHARS {
        return Err(TokenFileError::TooShort { line });
    }
    let digest = digest(token);
    if name.is_some_and(|name| !is_name(name)) {
        return Err(TokenFileError::Name { line });
    }
    // The digest is computed first, because it also names a token without a name.
    let name = name.map_or_else(|| short(&digest), str::to_owned);
    Ok(Known { digest, client: Client::Token(name.into()), grant: read_grant(line, words)? })
}

/// Reads the options after a token. An error repeats nothing that may be a part of a token.
fn read_grant<'a>(line: usize, words: impl Iterator<Item = &'a str>) -> Result<Grant, TokenFileError> {
    let mut grant = Grant::default();
    for word in words {
        match word.split_once('=') {
            Some(("models", list)) if grant.models.is_none() => {
                let models = ModelAccess::parse(list);
                grant.models = Some(models.map_err(|entry| TokenFileError::Models { line, entry })?);
            }
            Some(("scope", "metrics")) if !grant.only_metrics => grant.only_metrics = true,
            _ => return Err(TokenFileError::Option { line }),
        }
    }
    Ok(grant)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// RFC 6750, b64token.
fn is_of_a_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~+/".contains(c)
}

/// The name of an unnamed token: the start of its digest, which reveals nothing about it.
fn short(digest: &[u8; 32]) -> String {
    digest.iter().take(6).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

#[cfg(test)]
mod tests;
