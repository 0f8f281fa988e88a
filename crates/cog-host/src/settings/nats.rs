//! The settings of NATS. Only the operator may set them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cog_spec::Secret;

use super::{
    Row, Setting, SettingsError, Shown, Source, values,
    file::NatsContent,
    sources::{Layers, Names, expand_home},
    rows,
};

const URL: Names = Names { flag: "--nats", variable: "COG_NATS_URL" };
const USER: Names = Names { flag: "", variable: "COG_NATS_USER" };
const PASSWORD: Names = Names { flag: "", variable: "COG_NATS_PASSWORD" };
const NAME: Names = Names { flag: "", variable: "COG_NATS_NAME" };
const REPLICAS: Names = Names { flag: "", variable: "COG_NATS_REPLICAS" };
const ACK_WAIT: Names = Names { flag: "", variable: "COG_NATS_ACK_WAIT" };
const MAX_DELIVERIES: Names = Names { flag: "", variable: "COG_NATS_MAX_DELIVERIES" };
const MAX_AGE: Names = Names { flag: "", variable: "COG_NATS_MAX_AGE" };
const CREDENTIALS: &str = "COG_NATS_CREDENTIALS";
const CA: &str = "COG_NATS_CA";

/// The connection to NATS, and the settings of its streams.
#[derive(Debug)]
pub struct NatsSettings {
    /// The URLs of the servers, separated by commas.
    pub url: Setting<Option<String>>,
    /// The credentials file of an account.
    pub credentials: Setting<Option<PathBuf>>,
    /// The name of the user.
    pub user: Setting<Option<String>>,
    /// The password of the user.
    pub password: Setting<Option<Secret>>,
    /// The certificates that the server's must be signed by.
    pub ca: Setting<Option<PathBuf>>,
    /// The first part of the names of streams and subjects.
    pub name: Setting<String>,
    /// The number of servers that store each message.
    pub replicas: Setting<usize>,
    /// The time after which a job is delivered again.
    pub ack_wait: Setting<Duration>,
    /// The maximum number of deliveries of a job.
    pub max_deliveries: Setting<u64>,
    /// The time for which results are stored.
    pub max_age: Setting<Duration>,
}

impl NatsSettings {
    pub(super) fn read(layers: &Layers<'_>, home: Option<&Path>) -> Result<Self, SettingsError> {
        let text = |text: &str| Ok(text.to_owned());
        let secret = |text: &str| Ok(Secret::new(text));
        let in_file = |file: &super::file::Content| file.nats.password.as_deref().map(Secret::new);
        let replicas = layers.pick(REPLICAS, None, values::count, |file| file.nats.replicas)?;
        let deliveries = layers.pick(MAX_DELIVERIES, None, values::count, |file| file.nats.max_deliveries)?;
        let ack_wait = layers.pick(ACK_WAIT, None, values::duration, |file| Some(file.nats.ack_wait?.0))?;
        let max_age = layers.pick(MAX_AGE, None, values::duration, |file| Some(file.nats.max_age?.0))?;
        let name = layers.pick(NAME, None, text, |file| file.nats.name.clone())?;
        Ok(Self {
            url: maybe(layers.pick(URL, None, text, |file| file.nats.url.clone())?),
            credentials: path(layers, CREDENTIALS, home, |nats| nats.credentials.as_ref()),
            user: maybe(layers.pick(USER, None, text, |file| file.nats.user.clone())?),
            password: maybe(layers.pick(PASSWORD, None, secret, in_file)?),
            ca: path(layers, CA, home, |nats| nats.ca.as_ref()),
            name: name.unwrap_or_else(|| Setting::default("cog".to_owned())),
            replicas: replicas.unwrap_or_else(|| Setting::default(1)),
            ack_wait: ack_wait.unwrap_or_else(|| Setting::default(Duration::from_secs(30))),
            max_deliveries: deliveries.unwrap_or_else(|| Setting::default(10)),
            max_age: max_age.unwrap_or_else(|| Setting::default(Duration::from_secs(24 * 60 * 60))),
        })
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 10] {
        let time = |length: &Duration| Shown::Text(values::show_duration(*length));
        let masked = |password: &Option<Secret>| Shown::maybe(password.as_ref().map(|_| "***"));
        [
            Row::new("nats.url", &self.url, |urls| Shown::maybe(urls.as_deref().map(without_credentials))),
            Row::new("nats.credentials", &self.credentials, |path| Shown::path(path.as_ref())),
            Row::new("nats.user", &self.user, |user| Shown::maybe(user.as_ref())),
            Row::new("nats.password", &self.password, masked),
            Row::new("nats.ca", &self.ca, |path| Shown::path(path.as_ref())),
            Row::new("nats.name", &self.name, |name| Shown::Text(name.clone())),
            Row::new("nats.replicas", &self.replicas, |count| Shown::Count(*count as u64)),
            Row::new("nats.ack_wait", &self.ack_wait, time),
            Row::new("nats.max_deliveries", &self.max_deliveries, |count| Shown::Count(*count)),
            Row::new("nats.max_age", &self.max_age, time),
        ]
    }
}

/// Removes what a URL should not contain.
fn without_credentials(urls: &str) -> String {
    urls.split(',').map(rows::without_credentials).collect::<Vec<_>>().join(",")
}

fn maybe<T>(found: Option<Setting<T>>) -> Setting<Option<T>> {
    found.map_or_else(|| Setting::default(None), Setting::some)
}

fn path(
    layers: &Layers<'_>,
    variable: &'static str,
    home: Option<&Path>,
    in_file: impl Fn(&NatsContent) -> Option<&PathBuf>,
) -> Setting<Option<PathBuf>> {
    if let Some(path) = layers.environment.path(variable) {
        return Setting { value: Some(path), source: Source::variable(variable) };
    }
    let found = layers.operator.as_ref().and_then(|file| {
        let path = in_file(&file.content.nats)?;
        Some(Setting::from_file(Some(file.directory().join(expand_home(path, home))), &file.path))
    });
    found.unwrap_or_else(|| Setting::default(None))
}
