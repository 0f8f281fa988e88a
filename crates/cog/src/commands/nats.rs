//! The connection to NATS that the settings describe.

use cog_batch::nats::{NatsError, NatsOptions, QueueSettings};
use cog_host::settings::Settings;
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

/// Returns the error of a command.
pub(super) fn error(error: &NatsError) -> CliError {
    match error {
        NatsError::Url { .. } | NatsError::Name { .. } => {
            CliError::Usage { message: error.to_string(), suggestion: Some(error.suggestion().to_owned()) }
        }
        _ => ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion()).into(),
    }
}
