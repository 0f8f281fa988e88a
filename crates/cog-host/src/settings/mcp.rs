//! The MCP servers of the operator. Only the operator's file names them: a module or a project's file cannot start a program.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cog_mcp::{McpServer, McpTransport, OAuth, ToolRules};
use cog_spec::Secret;

use super::{
    Environment, SettingsError, UserDirectories,
    file::{Confirm, McpContent, McpProtocol, OAuthContent, OAuthGrant, SettingsFile},
    sources::expand_home,
};

/// The default time limit for starting a server.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// The variable with the number of servers that have started each other, one in the other: `cog mcp serve` is a server too, and its
/// settings may name itself.
pub(crate) const DEPTH: &str = "COG_MCP_DEPTH";

/// The variables that a program inherits. A list of what is allowed, not of what is forbidden: a key under a name that is not known
/// here must not reach a server.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "USER",
    "APPDATA",
    "LOCALAPPDATA",
    "SYSTEMROOT",
    "TEMP",
    "USERPROFILE",
];

/// Returns the servers of the operator's file.
///
/// # Errors
/// A server with neither or both of `command` and `url`, or with an invalid URL or name.
pub(super) fn servers(
    operator: Option<&SettingsFile>,
    environment: &Environment,
    directories: &UserDirectories,
) -> Result<Vec<McpServer>, SettingsError> {
    let Some(file) = operator else { return Ok(Vec::new()) };
    let mut servers = Vec::new();
    for (name, content) in &file.content.mcp {
        let server = server(name, content, file.directory(), environment, directories);
        servers.push(server.map_err(|problem| SettingsError::Syntax {
            path: file.path.clone(),
            line: None,
            message: format!("`mcp.{name}`: {problem}"),
        })?);
    }
    Ok(servers)
}

fn server(
    name: &str,
    content: &McpContent,
    operator: &Path,
    environment: &Environment,
    directories: &UserDirectories,
) -> Result<McpServer, &'static str> {
    let home = directories.home.as_deref();
    // The name begins the names of its tools, `NAME__TOOL`, which vendors limit to these characters and to 64.
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if name.is_empty() || name.len() > 32 || !is_plain {
        return Err("the name of a server has 1 to 32 letters, digits, `_` or `-`");
    }
    let transport = match (&content.command, &content.url) {
        (Some(_), None) if content.oauth != OAuthContent::default() => {
            return Err("`oauth` is only for a `url`");
        }
        (Some(command), None) if content.token.is_none() && content.headers.is_empty() => {
            McpTransport::Stdio {
                command: expand_home(command, home),
                args: content.args.clone(),
                env: variables(content, environment),
                directory: directory(content.directory.as_deref(), operator, home),
            }
        }
        (Some(_), None) => {
            return Err("`token` and `headers` are only for a `url`; pass them to a program in `env`");
        }
        (None, Some(url)) if url.starts_with("https://") || url.starts_with("http://") => {
            if content.args.is_empty() && content.env.is_empty() && content.directory.is_none() {
                let headers = content.headers.iter();
                McpTransport::Http {
                    url: url.clone(),
                    token: content.token.clone().map(Secret::new),
                    headers: headers
                        .map(|(name, value)| (name.clone(), Secret::new(value.clone())))
                        .collect(),
                    oauth: oauth(content, directories)?,
                }
            } else {
                return Err("`args`, `env` and `directory` are only for a `command`");
            }
        }
        (None, Some(_)) => return Err("`url` must begin with https:// or http://"),
        _ => return Err("set either `command` or `url`"),
    };
    let every = || vec!["*".to_owned()];
    let tools = ToolRules {
        allow: content.allow.clone().unwrap_or_else(every),
        confirm: match &content.confirm {
            Some(Confirm::All(true)) => every(),
            Some(Confirm::Tools(tools)) => tools.clone(),
            Some(Confirm::All(false)) | None => Vec::new(),
        },
        parallel: content.parallel.unwrap_or(true),
        call_timeout: content.call_timeout.as_ref().map(|span| span.0),
    };
    Ok(McpServer {
        startup_timeout: content.startup_timeout.as_ref().map_or(STARTUP_TIMEOUT, |span| span.0),
        initialize: content.protocol == Some(McpProtocol::Initialize),
        required: content.required,
        tools,
        sampling: content.sampling,
        roots: roots(content, operator, home),
        ..McpServer::new(name, transport)
    })
}

/// Returns how a server is signed in to.
fn oauth(content: &McpContent, directories: &UserDirectories) -> Result<OAuth, &'static str> {
    let OAuthContent { grant, client_id, client_secret, scopes, issuer, callback_port } = &content.oauth;
    if content.token.is_some() && content.oauth != OAuthContent::default() {
        return Err("set either `token` or `oauth`");
    }
    let client_credentials = *grant == Some(OAuthGrant::ClientCredentials);
    if client_credentials && (client_id.is_none() || client_secret.is_none()) {
        return Err("the grant `client_credentials` needs `oauth.client_id` and `oauth.client_secret`");
    }
    if client_secret.is_some() && client_id.is_none() {
        return Err("`oauth.client_secret` needs `oauth.client_id`");
    }
    Ok(OAuth {
        client_id: client_id.clone(),
        client_secret: client_secret.clone().map(Secret::new),
        client_credentials,
        scopes: scopes.clone(),
        issuer: issuer.clone(),
        callback_port: *callback_port,
        directory: directories.state.as_ref().map(|state| state.join("mcp")),
    })
}

/// Returns the directories that a server learns of: `roots`, otherwise the directory that the operator gave it.
fn roots(content: &McpContent, operator: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let own = || content.directory.clone().into_iter().collect();
    let roots = content.roots.clone().unwrap_or_else(own);
    roots.iter().map(|root| operator.join(expand_home(root, home))).collect()
}

/// Returns where a program starts: in its `directory`, otherwise in the home directory. A relative path starts
/// at the settings file, as the other paths of this file do.
fn directory(set: Option<&Path>, operator: &Path, home: Option<&Path>) -> PathBuf {
    match set {
        Some(directory) => operator.join(expand_home(directory, home)),
        None => home.unwrap_or(operator).to_owned(),
    }
}

/// Returns how many servers have started each other up to this process.
fn depth(environment: &Environment) -> usize {
    environment.get(DEPTH).and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

fn variables(content: &McpContent, environment: &Environment) -> Vec<(String, String)> {
    let inherited = INHERITED.iter().filter(|name| !content.env.contains_key(**name));
    let inherited = inherited.filter_map(|name| Some(((*name).to_owned(), environment.get(name)?)));
    let depth = (DEPTH.to_owned(), (depth(environment) + 1).to_string());
    let own = content.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    inherited.chain(own).chain([depth]).collect()
}
