//! The connection to NATS that the settings describe.

use std::{sync::Arc, time::Duration};

use cog_host::settings::Settings;
use cog_nats::{Names, NatsError, NatsOptions, NatsSessions, QueueSettings, connect};
use cog_run::sessions::{SessionSettings, Sessions};
use cog_spec::ErrorBody;

use crate::error::CliError;

/// Returns the connection to the servers of a flag, otherwise of the settings.
///
/// # Errors
/// A usage error where neither names a server.
pub(super) fn options(flag: Option<&str>, settings: &Settings) -> Result<NatsOptions, CliError> {
    let nats = &settings.nats;
    let Some(url) = flag.or(nats.url.value.as_deref()) else {
        return Err(CliError::Usage {
            message: "no NATS server is set".to_owned(),
            suggestion: Some("Use --nats URL, or set COG_NATS_URL.".to_owned()),
        });
    };
    let mut options = NatsOptions::default();
    url.clone_into(&mut options.url);
    options.credentials.clone_from(&nats.credentials.value);
    options.user.clone_from(&nats.user.value);
    options.password.clone_from(&nats.password.value);
    options.ca.clone_from(&nats.ca.value);
    Ok(options)
}

/// Returns the settings of the streams.
pub(super) fn queue(settings: &Settings) -> QueueSettings {
    let mut queue = QueueSettings::default();
    queue.replicas = settings.nats.replicas.value;
    queue.ack_wait = settings.nats.ack_wait.value;
    queue.max_age = settings.nats.max_age.value;
    queue
}

/// The minimum time for which the chunks of a session are stored, longer than a run may take.
const MIN_AGE: Duration = Duration::from_secs(60 * 60);

/// Opens the sessions that several servers share.
///
/// # Errors
/// See [`NatsError`].
pub(super) async fn shared_sessions(
    url: &str,
    stored: SessionSettings,
    settings: &Settings,
) -> Result<Sessions, CliError> {
    let options = options(Some(url), settings)?;
    let names = Names::new(&settings.nats.name.value).map_err(|problem| error(&problem))?;
    let age = (stored.ttl * 2).max(MIN_AGE);
    let client = connect(&options).await.map_err(|problem| error(&problem))?;
    let log = NatsSessions::open(client, names, settings.nats.replicas.value, age).await;
    let log = log.map_err(|problem| error(&problem))?;
    Sessions::open_shared(stored, Arc::new(log))
        .map_err(|problem| ErrorBody::new(problem.code(), problem.to_string()).into())
}

/// Returns the error of a command.
pub(super) fn error(error: &NatsError) -> CliError {
    match error {
        NatsError::Url { .. } | NatsError::Name { .. } => {
            CliError::Usage { message: error.to_string(), suggestion: Some(error.suggestion().to_owned()) }
        }
        _ => ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion()).into(),
    }
}
