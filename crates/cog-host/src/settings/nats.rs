//! The settings of NATS. Only the operator may set them.

use std::{path::PathBuf, time::Duration};

use cog_spec::Secret;

use super::{
    DisplayValue, Row, Setting, SettingsError, rows,
    sources::{Layers, Names},
    values,
};

const URL: Names = Names { flag: "--nats", variable: "COG_NATS_URL" };
const USER: Names = Names::variable("COG_NATS_USER");
const PASSWORD: Names = Names::variable("COG_NATS_PASSWORD");
const NAME: Names = Names::variable("COG_NATS_NAME");
const REPLICAS: Names = Names::variable("COG_NATS_REPLICAS");
const ACK_WAIT: Names = Names::variable("COG_NATS_ACK_WAIT");
const MAX_DELIVERIES: Names = Names::variable("COG_NATS_MAX_DELIVERIES");
const MODULE_WAIT: Names = Names::variable("COG_NATS_MODULE_WAIT");
const MAX_AGE: Names = Names::variable("COG_NATS_MAX_AGE");
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
    /// The time for which a job waits for a worker that has its module.
    pub module_wait: Setting<Duration>,
    /// The time for which results are stored.
    pub max_age: Setting<Duration>,
}

impl NatsSettings {
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, SettingsError> {
        Ok(Self {
            url: layers.optional(URL, None, values::text, |file| file.nats.url.clone())?,
            credentials: layers.path(CREDENTIALS, |file| file.nats.credentials.as_ref(), None),
            user: layers.optional(USER, None, values::text, |file| file.nats.user.clone())?,
            password: layers.optional(
                PASSWORD,
                None,
                |text| Ok(Secret::new(text)),
                |file| file.nats.password.as_deref().map(Secret::new),
            )?,
            ca: layers.path(CA, |file| file.nats.ca.as_ref(), None),
            name: layers.setting(
                NAME,
                None,
                values::text,
                |file| file.nats.name.clone(),
                "cog".to_owned(),
            )?,
            replicas: layers.setting(REPLICAS, None, values::count, |file| file.nats.replicas, 1)?,
            ack_wait: layers.setting(
                ACK_WAIT,
                None,
                values::duration,
                |file| Some(file.nats.ack_wait?.0),
                Duration::from_secs(30),
            )?,
            max_deliveries: layers.setting(
                MAX_DELIVERIES,
                None,
                values::count,
                |file| file.nats.max_deliveries,
                10,
            )?,
            module_wait: layers.setting(
                MODULE_WAIT,
                None,
                values::duration,
                |file| Some(file.nats.module_wait?.0),
                Duration::from_secs(15 * 60),
            )?,
            max_age: layers.setting(
                MAX_AGE,
                None,
                values::duration,
                |file| Some(file.nats.max_age?.0),
                Duration::from_secs(24 * 60 * 60),
            )?,
        })
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 11] {
        [
            Row::new("nats.url", &self.url, |urls| {
                DisplayValue::maybe(urls.as_deref().map(without_credentials))
            }),
            Row::new("nats.credentials", &self.credentials, |path| DisplayValue::path(path.as_ref())),
            Row::new("nats.user", &self.user, |user| DisplayValue::maybe(user.as_ref())),
            Row::new("nats.password", &self.password, |password| {
                DisplayValue::maybe(password.as_ref().map(|_| "***"))
            }),
            Row::new("nats.ca", &self.ca, |path| DisplayValue::path(path.as_ref())),
            Row::new("nats.name", &self.name, |name| DisplayValue::Text(name.clone())),
            Row::new("nats.replicas", &self.replicas, |count| DisplayValue::Count(*count as u64)),
            Row::new("nats.ack_wait", &self.ack_wait, DisplayValue::duration),
            Row::new("nats.max_deliveries", &self.max_deliveries, |count| DisplayValue::Count(*count)),
            Row::new("nats.module_wait", &self.module_wait, DisplayValue::duration),
            Row::new("nats.max_age", &self.max_age, DisplayValue::duration),
        ]
    }
}

/// Removes what a URL should not contain.
fn without_credentials(urls: &str) -> String {
    urls.split(',').map(rows::without_credentials).collect::<Vec<_>>().join(",")
}
