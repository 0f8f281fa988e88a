use std::{net::IpAddr, path::PathBuf, time::Duration};

use super::{Serving, amount};
use crate::settings::{Shown, parse_duration, show_duration};

/// One setting of the server, by all its names.
pub(crate) struct Knob {
    /// The flag, without its dashes.
    pub(crate) flag: &'static str,
    /// The variable.
    pub(crate) variable: &'static str,
    /// The key in `[server]`.
    pub(crate) key: &'static str,
    /// What stands for the value in the help.
    pub(crate) value: &'static str,
    /// What it is for.
    pub(crate) help: &'static str,
    /// A file in the working directory may not set it.
    pub(crate) is_operators: bool,
    part: Part,
}

/// The part of [`Serving`] that a knob turns.
enum Part {
    Address(fn(&mut Serving) -> &mut IpAddr),
    Port(fn(&mut Serving) -> &mut u16),
    Switch(fn(&mut Serving) -> &mut bool),
    Path(fn(&mut Serving) -> &mut Option<PathBuf>),
    Names(fn(&mut Serving) -> &mut Vec<String>),
    Url(fn(&mut Serving) -> &mut Option<String>),
    Count(fn(&mut Serving) -> &mut usize),
    Rate(fn(&mut Serving) -> &mut u32),
    Bytes(fn(&mut Serving) -> &mut usize),
    Time(fn(&mut Serving) -> &mut Duration),
}

macro_rules! knobs {
    ($($flag:literal $variable:literal $key:literal $part:ident |$serving:ident| $place:expr, $help:literal $($operators:ident)?;)+) => {
        /// Every setting of the server, in the order of the help.
        pub(crate) const KNOBS: &[Knob] = &[$(Knob {
            flag: $flag,
            variable: $variable,
            key: $key,
            value: Part::$part(|$serving| $place).placeholder(),
            help: $help,
            is_operators: knobs!(@ $($operators)?),
            part: Part::$part(|$serving| $place),
        }),+];
    };
    (@) => { false };
    (@ operator) => { true };
}

knobs! {
    "listen" "COG_SERVE_LISTEN" "listen" Address |it| &mut it.listen,
        "The address to listen at; any but this machine's own needs a token" operator;
    "port" "COG_SERVE_PORT" "port" Port |it| &mut it.port,
        "The port to listen at; 0 for any that is free" operator;
    "workers" "COG_SERVE_WORKERS" "workers" Count |it| &mut it.workers,
        "How many threads work; 0 for as many as there are processors";
    "token-file" "COG_SERVE_TOKEN_FILE" "token_file" Path |it| &mut it.token_file,
        "Answer only who brings a token of this file: one a line, TOKEN or NAME:TOKEN" operator;
    "insecure" "COG_SERVE_INSECURE" "insecure" Switch |it| &mut it.server.access.is_insecure,
        "Let other machines ask without a token" operator;
    "allow-host" "COG_SERVE_ALLOW_HOST" "allow_host" Names |it| &mut it.server.access.hosts,
        "Further names that the server is asked by, separated by commas" operator;
    "allow-origin" "COG_SERVE_ALLOW_ORIGIN" "allow_origin" Names |it| &mut it.server.access.origins,
        "Origins of other sites' pages that may ask from a browser, separated by commas" operator;
    "public-url" "COG_SERVE_PUBLIC_URL" "public_url" Url |it| &mut it.server.public_url,
        "The address that clients know the server by, for those of media; else http:// and the Host of each request" operator;
    "state-dir" "COG_SERVE_STATE_DIR" "state_dir" Path |it| &mut it.state_dir,
        "Keep sessions in this folder, so that they outlive the server" operator;
    "max-body-bytes" "COG_SERVE_MAX_BODY_BYTES" "max_body_bytes" Bytes |it| &mut it.server.max_body_bytes,
        "The largest body of a request";
    "max-header-bytes" "COG_SERVE_MAX_HEADER_BYTES" "max_header_bytes" Bytes |it| &mut it.server.max_header_bytes,
        "The largest head of a request";
    "max-message-bytes" "COG_SERVE_MAX_MESSAGE_BYTES" "max_message_bytes" Bytes |it| &mut it.server.max_message_bytes,
        "The largest WebSocket message";
    "max-connections" "COG_SERVE_MAX_CONNECTIONS" "max_connections" Count |it| &mut it.server.max_connections,
        "Connections at once; more wait";
    "max-streams" "COG_SERVE_MAX_STREAMS" "max_streams" Count |it| &mut it.server.max_streams,
        "Streams at once, of all clients";
    "max-streams-per-client" "COG_SERVE_MAX_STREAMS_PER_CLIENT" "max_streams_per_client" Count |it| &mut it.server.max_streams_per_client,
        "Streams at once, of one client";
    "requests-per-second" "COG_SERVE_REQUESTS_PER_SECOND" "requests_per_second" Rate |it| &mut it.server.requests_per_second,
        "Requests of one client a second; 0 for as many as it likes";
    "request-burst" "COG_SERVE_REQUEST_BURST" "request_burst" Rate |it| &mut it.server.request_burst,
        "Requests of one client at once, after it was quiet";
    "header-timeout" "COG_SERVE_HEADER_TIMEOUT" "header_timeout" Time |it| &mut it.server.header_timeout,
        "The longest the head of a request may take, and a connection be idle";
    "body-timeout" "COG_SERVE_BODY_TIMEOUT" "body_timeout" Time |it| &mut it.server.body_timeout,
        "The longest the body of a request may take";
    "heartbeat" "COG_SERVE_HEARTBEAT" "heartbeat" Time |it| &mut it.server.heartbeat,
        "After how long without a chunk a stream shows that it lives";
    "socket-idle" "COG_SERVE_SOCKET_IDLE" "socket_idle" Time |it| &mut it.server.socket_idle,
        "How long a WebSocket may be idle between two runs";
    "slow-reader" "COG_SERVE_SLOW_READER" "slow_reader" Time |it| &mut it.server.slow_reader,
        "How long a client may take nothing of what is there for it";
    "drain" "COG_SERVE_DRAIN" "drain" Time |it| &mut it.server.drain,
        "How long streams may go on once the server is told to end";
    "uploads" "COG_SERVE_UPLOADS" "uploads" Count |it| &mut it.server.uploads.count,
        "How many uploads are kept, of all clients";
    "uploads-per-client" "COG_SERVE_UPLOADS_PER_CLIENT" "uploads_per_client" Count |it| &mut it.server.uploads.per_client,
        "How many uploads of one client are kept";
    "uploads-bytes" "COG_SERVE_UPLOADS_BYTES" "uploads_bytes" Bytes |it| &mut it.server.uploads.bytes,
        "What all uploads may hold together, on disk";
    "uploads-bytes-per-client" "COG_SERVE_UPLOADS_BYTES_PER_CLIENT" "uploads_bytes_per_client" Bytes |it| &mut it.server.uploads.bytes_per_client,
        "What the uploads of one client may hold";
    "form-bytes" "COG_SERVE_FORM_BYTES" "form_bytes" Bytes |it| &mut it.server.uploads.form_bytes,
        "What the files of one form may hold together";
    "upload-keep" "COG_SERVE_UPLOAD_KEEP" "upload_keep" Time |it| &mut it.server.uploads.keep,
        "How long an upload is kept";
    "recovery" "COG_SERVE_RECOVERY" "recovery" Switch |it| &mut it.recovery,
        "Let streams that were cut be resumed";
    "session-keep" "COG_SERVE_SESSION_KEEP" "session_keep" Time |it| &mut it.sessions.keep,
        "How long a session is kept that runs no more";
    "sessions" "COG_SERVE_SESSIONS" "sessions" Count |it| &mut it.sessions.finished,
        "How many sessions are kept that run no more";
    "sessions-bytes" "COG_SERVE_SESSIONS_BYTES" "sessions_bytes" Bytes |it| &mut it.sessions.bytes,
        "What all sessions may hold together";
    "session-bytes" "COG_SERVE_SESSION_BYTES" "session_bytes" Bytes |it| &mut it.sessions.session_bytes,
        "What one session may hold";
}

impl Part {
    const fn placeholder(&self) -> &'static str {
        match self {
            Self::Address(_) => "ADDRESS",
            Self::Port(_) => "PORT",
            Self::Switch(_) => "true|false",
            Self::Path(_) => "PATH",
            Self::Names(_) => "NAMES",
            Self::Url(_) => "URL",
            Self::Count(_) | Self::Rate(_) => "NUMBER",
            Self::Bytes(_) => "SIZE",
            Self::Time(_) => "TIME",
        }
    }
}

impl Knob {
    /// Whether its flag can stand without a value.
    pub(crate) const fn is_switch(&self) -> bool {
        matches!(self.part, Part::Switch(_))
    }

    /// Turns it.
    pub(crate) fn set(&self, serving: &mut Serving, text: &str) -> Result<(), String> {
        match self.part {
            Part::Address(part) => *part(serving) = amount::address(text)?,
            Part::Port(part) => {
                *part(serving) = text.parse().map_err(|_| format!("`{text}` is no port: 0 to 65535"))?;
            }
            Part::Switch(part) => *part(serving) = amount::switch(text)?,
            Part::Path(part) => *part(serving) = Some(PathBuf::from(text)),
            Part::Names(part) => *part(serving) = amount::names(text),
            Part::Url(part) => *part(serving) = Some(amount::url(text)?),
            Part::Count(part) => *part(serving) = amount::count(text)?,
            Part::Rate(part) => *part(serving) = amount::count(text)?,
            Part::Bytes(part) => *part(serving) = amount::bytes(text)?,
            Part::Time(part) => *part(serving) = parse_duration(text)?,
        }
        Ok(())
    }

    /// Its value, as it would be typed.
    pub(crate) fn show(&self, serving: &mut Serving) -> Shown {
        match self.part {
            Part::Address(part) => Shown::Text(part(serving).to_string()),
            Part::Port(part) => Shown::Count(u64::from(*part(serving))),
            Part::Switch(part) => Shown::Switch(*part(serving)),
            Part::Names(part) => Shown::list(part(serving).iter()),
            Part::Url(part) => Shown::maybe(part(serving).as_ref()),
            Part::Path(part) => Shown::path(part(serving).as_ref()),
            Part::Count(part) => Shown::Count(*part(serving) as u64),
            Part::Rate(part) => Shown::Count(u64::from(*part(serving))),
            Part::Bytes(part) => Shown::Text(amount::show_bytes(*part(serving))),
            Part::Time(part) => Shown::Text(show_duration(*part(serving))),
        }
    }
}
