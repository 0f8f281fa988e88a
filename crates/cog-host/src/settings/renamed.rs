//! Settings that were renamed. The old names of keys and variables work for one more version.

use super::Environment;

/// The old and the new name of each renamed setting, as in a flag. A key has `_` in place of `-`.
const RENAMED: &[(&str, &str)] = &[
    ("first-token", "first-token-timeout"),
    ("stall", "idle-timeout"),
    ("breaker-pause", "breaker-reset-timeout"),
    ("media.by-address", "media.by-url"),
    ("server.heartbeat", "server.keepalive-interval"),
    ("server.socket-idle", "server.websocket-idle-timeout"),
    ("server.slow-reader", "server.write-timeout"),
    ("server.drain", "server.shutdown-timeout"),
    ("server.uploads", "server.max-uploads"),
    ("server.uploads-per-client", "server.max-uploads-per-client"),
    ("server.uploads-bytes", "server.max-upload-bytes-total"),
    ("server.uploads-bytes-per-client", "server.max-upload-bytes-per-client"),
    ("server.form-bytes", "server.max-form-bytes"),
    ("server.upload-keep", "server.upload-ttl"),
    ("server.recovery", "server.resume"),
    ("server.session-keep", "server.session-ttl"),
    ("server.sessions", "server.max-sessions"),
    ("server.sessions-bytes", "server.max-session-bytes-total"),
    ("server.session-bytes", "server.max-session-bytes"),
];

/// A deprecated name that was used, and the name that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deprecated {
    /// The name that was used.
    pub old: String,
    /// The name to use.
    pub new: String,
}

/// Moves the values of deprecated variables to the variables that replace them.
pub(super) fn rename_variables(environment: &mut Environment) -> Vec<Deprecated> {
    let names = RENAMED.iter().map(|(old, new)| (variable(old), variable(new)));
    let used = names.filter(|(old, new)| environment.rename(old, new));
    used.map(|(old, new)| Deprecated { old, new }).collect()
}

/// Renames the deprecated keys of a settings file; `path` is its path in warnings. A new key that is set wins.
pub(super) fn rename_keys(file: &mut toml::Table, path: &str) -> Vec<Deprecated> {
    let mut used = Vec::new();
    for (old, new) in RENAMED.iter().map(|(old, new)| (key(old), key(new))) {
        let (table, old_key) = match old.split_once('.') {
            None => (Some(&mut *file), old.as_str()),
            Some((section, key)) => (file.get_mut(section).and_then(toml::Value::as_table_mut), key),
        };
        let Some(table) = table else { continue };
        if let Some(value) = table.remove(old_key) {
            table.entry(new.rsplit('.').next().unwrap_or(&new)).or_insert(value);
            used.push(Deprecated { old: format!("`{old}` in {path}"), new: format!("`{new}`") });
        }
    }
    used
}

fn key(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns the environment variable of a setting: `COG_SERVE_PORT` for `server.port`.
fn variable(name: &str) -> String {
    let name = name.strip_prefix("server.").map_or_else(|| name.to_owned(), |name| format!("serve.{name}"));
    format!("COG_{}", name.replace(['.', '-'], "_").to_uppercase())
}

#[cfg(test)]
#[cfg(feature = "server")]
mod tests {
    use super::{
        super::{Flags, Row, ServeSettings, Settings},
        *,
    };

    /// Returns every setting with its value, as `cog config` shows it.
    fn shown(variables: &[(&str, &str)], file: &str) -> (Vec<(String, String)>, Vec<Deprecated>) {
        let home = tempfile::tempdir().unwrap();
        let file = ("config.toml".to_owned(), file.as_bytes().to_vec());
        cog_module::files::write_directory(&home.path().join(".config/cog"), &[file]).unwrap();
        let mut environment = Environment::from([("HOME", home.path().to_str().unwrap())]);
        variables.iter().for_each(|(name, value)| environment.set(name, value));
        let settings = Settings::read(Flags::default(), environment).unwrap();
        let (_, of_server) = ServeSettings::read(&settings, |_| None).unwrap();
        let rows = settings.rows().into_iter().chain(of_server);
        let rows = rows.map(|Row { name, value, .. }| (name, value.to_string())).collect();
        (rows, settings.deprecated)
    }

    /// Returns a value that the setting does not have by default, and its form in a settings file.
    fn value(name: &str) -> (&'static str, &'static str) {
        match name {
            "media.by-url" => ("true", "true"),
            "server.resume" => ("false", "false"),
            name if name.contains("bytes") => ("7KiB", "\"7KiB\""),
            "server.max-uploads" | "server.max-uploads-per-client" | "server.max-sessions" => ("7", "7"),
            _ => ("7s", "\"7s\""),
        }
    }

    #[test]
    fn deprecated_variables_set_the_new_settings() {
        for (old, new) in RENAMED {
            let (value, _) = value(new);
            let (rows, deprecated) = shown(&[(&variable(old), value)], "");
            assert!(rows.contains(&(key(new), value.to_owned())), "{old}: {rows:?}");
            assert_eq!(deprecated, [Deprecated { old: variable(old), new: variable(new) }]);
        }
    }

    #[test]
    fn deprecated_keys_set_the_new_settings() {
        for (old, new) in RENAMED {
            let (value, written) = value(new);
            let old = key(old);
            let file = match old.split_once('.') {
                Some((section, key)) => format!("[{section}]\n{key} = {written}\n"),
                None => format!("{old} = {written}\n"),
            };
            let (rows, deprecated) = shown(&[], &file);
            assert!(rows.contains(&(key(new), value.to_owned())), "{old}: {rows:?}");
            let [Deprecated { old: name, .. }] = deprecated.as_slice() else { panic!("{deprecated:?}") };
            assert!(name.starts_with(&format!("`{old}` in ")), "{name}");
        }
    }

    #[test]
    fn new_name_wins_over_deprecated_name() {
        let (rows, _) = shown(
            &[("COG_STALL", "7s"), ("COG_IDLE_TIMEOUT", "8s")],
            "first_token = \"7s\"\nfirst_token_timeout = \"8s\"\n",
        );
        for name in ["idle_timeout", "first_token_timeout"] {
            assert!(rows.contains(&(name.to_owned(), "8s".to_owned())), "{rows:?}");
        }
    }
}
