//! Which URLs and files of inputs a run may open. Only the operator may set it (docs/settings.md).

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use cog_media::{
    AllowRule, FetchLimits, Fetcher, FileGuard, Programs, Proxy, ProxyError, RuleError, Tool, UrlGuard,
};

use super::{
    DisplayValue, Row, Setting, SettingsError,
    sources::{Layers, Names},
    values,
};

const FETCH: Names = Names::variable("COG_MEDIA_FETCH");
const BY_URL: Names = Names::variable("COG_MEDIA_BY_URL");
const STRIP_METADATA: Names = Names::variable("COG_MEDIA_STRIP_METADATA");
const ALLOW: Names = Names::variable("COG_MEDIA_ALLOW");
const PROXY: Names = Names::variable("COG_MEDIA_PROXY");
const TIMEOUT: Names = Names::variable("COG_MEDIA_TIMEOUT");
const REDIRECTS: Names = Names::variable("COG_MEDIA_REDIRECTS");
const CACHE: Names = Names::variable("COG_MEDIA_CACHE");
const ROOTS: &str = "COG_MEDIA_ROOTS";
const FFMPEG: &str = "COG_MEDIA_FFMPEG";

/// The settings of media.
#[derive(Debug)]
pub struct MediaSettings {
    /// Whether URLs are fetched at all (ruling R11).
    pub fetch: Setting<bool>,
    /// Whether images may be sent to providers as URLs.
    pub by_url: Setting<bool>,
    /// Whether metadata is removed; overrides the manifest.
    pub strip_metadata: Setting<Option<bool>>,
    /// The hosts and networks that may be fetched in addition to the public network.
    pub allow: Setting<Vec<AllowRule>>,
    /// The proxy for fetches.
    pub proxy: Setting<Option<Proxy>>,
    /// The maximum time of one fetch.
    pub timeout: Setting<Duration>,
    /// The maximum redirects of one fetch.
    pub redirects: Setting<u32>,
    /// The maximum size of the cache of fetched files.
    pub cache: Setting<usize>,
    /// Directories whose files may be read, in addition to the directories of the command.
    pub roots: Setting<Vec<PathBuf>>,
    /// The ffmpeg that extracts frames and audio, if one is set.
    pub ffmpeg: Setting<Option<PathBuf>>,
    /// The directories to search for ffmpeg otherwise, and for the programs of poppler.
    path: Vec<PathBuf>,
    /// What the search found.
    programs: OnceLock<Programs>,
    /// The program that reads documents, audio and video with these arguments before `internal-media`; none for this one.
    reader: Option<(PathBuf, Vec<OsString>)>,
}

impl MediaSettings {
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, SettingsError> {
        let limits = FetchLimits::default();
        Ok(Self {
            fetch: layers.setting(FETCH, None, values::switch, |file| file.media.fetch, true)?,
            by_url: layers.setting(BY_URL, None, values::switch, |file| file.media.by_url, false)?,
            strip_metadata: layers
                .optional(STRIP_METADATA, None, values::switch, |file| file.media.strip_metadata)?,
            allow: layers.setting(
                ALLOW,
                None,
                rules,
                |file| Some(file.media.allow.as_ref()?.iter().map(|rule| rule.0.clone()).collect()),
                Vec::new(),
            )?,
            proxy: layers.optional(
                PROXY,
                None,
                |text| text.parse().map_err(|error: ProxyError| error.to_string()),
                |file| Some(file.media.proxy.clone()?.0),
            )?,
            timeout: layers.setting(
                TIMEOUT,
                None,
                values::duration,
                |file| Some(file.media.timeout?.0),
                limits.timeout,
            )?,
            redirects: layers.setting(
                REDIRECTS,
                None,
                values::count,
                |file| file.media.redirects,
                limits.redirects,
            )?,
            cache: layers.setting(
                CACHE,
                None,
                values::bytes,
                |file| Some(file.media.cache?.0),
                limits.cache,
            )?,
            roots: layers.directories(ROOTS, |file| file.media.roots.as_ref()),
            ffmpeg: layers.path(FFMPEG, |file| file.media.ffmpeg.as_ref(), None),
            path: layers.environment.paths("PATH").unwrap_or_default(),
            programs: OnceLock::new(),
            reader: None,
        })
    }

    /// Sets the program that reads documents, audio and video in a child process, and its arguments before `internal-media`. It
    /// calls `cog_media::internal_media`. Otherwise it is this program.
    pub fn set_reader(&mut self, program: PathBuf, arguments: Vec<OsString>) {
        self.reader = Some((program, arguments));
    }

    /// Returns the tool that reads documents, audio and video as a child process. The programs are searched once.
    pub fn tool(&self) -> Arc<Tool> {
        let (program, arguments) = self.reader.clone().unwrap_or_else(|| {
            (std::env::current_exe().unwrap_or_else(|_| PathBuf::from("cog")), Vec::new())
        });
        let programs = self.programs.get_or_init(|| Programs {
            ffmpeg: self.ffmpeg.value.clone().or_else(|| found_in(&self.path, "ffmpeg")),
            pdftotext: found_in(&self.path, "pdftotext"),
            pdftoppm: found_in(&self.path, "pdftoppm"),
        });
        Arc::new(Tool::new(program).with_arguments(arguments).with_programs(programs.clone()))
    }

    /// Returns the guard that decides which URLs may be fetched.
    pub fn guard(&self) -> UrlGuard {
        UrlGuard::new(self.allow.value.clone())
    }

    /// Returns the fetcher of URLs, unless fetching is off.
    pub fn fetcher(&self) -> Option<Arc<Fetcher>> {
        let mut limits = FetchLimits::default();
        limits.timeout = self.timeout.value;
        limits.redirects = self.redirects.value;
        limits.cache = self.cache.value;
        let fetcher = self.fetch.value.then(|| Fetcher::new(self.guard(), limits))?;
        Some(Arc::new(match &self.proxy.value {
            Some(proxy) => fetcher.through(proxy.clone()),
            None => fetcher,
        }))
    }

    /// Returns the guard that opens files in the operator's roots and in `roots`.
    pub fn files(&self, roots: impl IntoIterator<Item = PathBuf>) -> FileGuard {
        FileGuard::new(self.roots.value.iter().cloned().chain(roots))
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> Vec<Row> {
        vec![
            Row::new("media.fetch", &self.fetch, DisplayValue::switch),
            Row::new("media.by_url", &self.by_url, DisplayValue::switch),
            Row::new("media.strip_metadata", &self.strip_metadata, |strip| {
                strip.map_or(DisplayValue::Nothing, DisplayValue::Switch)
            }),
            Row::new("media.allow", &self.allow, |rules| DisplayValue::list(rules)),
            Row::new("media.proxy", &self.proxy, |proxy| DisplayValue::maybe(proxy.as_ref())),
            Row::new("media.timeout", &self.timeout, DisplayValue::duration),
            Row::new("media.redirects", &self.redirects, |count| DisplayValue::Count(u64::from(*count))),
            Row::new("media.cache", &self.cache, DisplayValue::bytes),
            Row::new("media.roots", &self.roots, |roots| {
                DisplayValue::list(roots.iter().map(|root| root.display()))
            }),
            Row::new("media.ffmpeg", &self.ffmpeg, |path| DisplayValue::path(path.as_ref())),
        ]
    }
}

/// Returns the first program of this name in these directories. Relative directories are skipped: in them, a cloned repository could
/// put its own program.
fn found_in(path: &[PathBuf], name: &str) -> Option<PathBuf> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    path.iter()
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(&name))
        .find(|file| file.is_file())
}

fn rules(text: &str) -> Result<Vec<AllowRule>, String> {
    let rules = text.split(',').map(str::trim).filter(|rule| !rule.is_empty());
    rules.map(|rule| rule.parse().map_err(|error: RuleError| error.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Environment, Flags, Settings};

    fn read(variables: &[(&str, &str)], file: &str) -> Result<Settings, String> {
        let home = tempfile::tempdir().unwrap();
        let file = ("config.toml".to_owned(), file.as_bytes().to_vec());
        cog_module::files::write_directory(&home.path().join(".config/cog"), &[file]).unwrap();
        let mut environment = Environment::from([("HOME", home.path().to_str().unwrap())]);
        variables.iter().for_each(|(name, value)| environment.set(name, value));
        Settings::read(Flags::default(), environment).map_err(|error| error.to_string())
    }

    fn is_allowed(settings: &Settings, url: &str) -> bool {
        settings.media.guard().judge(url).is_ok()
    }

    #[test]
    fn fetches_only_public_hosts_unless_operator_allows_others() {
        let settings = read(&[], "").unwrap();
        assert!(is_allowed(&settings, "https://example.com/") && !is_allowed(&settings, "http://10.0.0.1/"));
        let file = "[media]\nallow = [\"10.0.0.0/8\", \"media.internal:8443\"]\n";
        let settings = read(&[], file).unwrap();
        assert!(
            is_allowed(&settings, "http://10.0.0.1/")
                && is_allowed(&settings, "https://media.internal:8443/")
        );
        let settings = read(&[("COG_MEDIA_ALLOW", "127.0.0.1:9000, a.lan,")], file).unwrap();
        assert!(is_allowed(&settings, "http://127.0.0.1:9000/") && is_allowed(&settings, "http://a.lan/"));
        assert!(!is_allowed(&settings, "http://10.0.0.1/"), "a variable replaces the file");
    }

    #[test]
    fn fetching_can_be_disabled() {
        assert!(read(&[], "").unwrap().media.fetcher().is_some());
        assert!(read(&[], "[media]\nfetch = false\n").unwrap().media.fetcher().is_none());
        assert!(read(&[("COG_MEDIA_FETCH", "off")], "").unwrap().media.fetcher().is_none());
    }

    #[test]
    fn process_that_should_read_media_has_no_settings() {
        assert!(read(&[], "").is_ok());
        let error = read(&[(cog_media::READER_VARIABLE, "1")], "").unwrap_err();
        assert_eq!(error, "this process was started to read a media file, which the program does not do");
    }

    #[test]
    fn defaults_match_documentation() {
        let shown = |settings: &Settings| {
            let rows = settings.media.rows().into_iter();
            rows.map(|row| format!("{} {}", row.name, row.value)).collect::<Vec<_>>().join("\n")
        };
        let documented = include_str!("../../../../docs/media-sources.md");
        let settings = read(&[], "").unwrap();
        for row in settings.media.rows() {
            let key = &row.name;
            let variable = row.name.to_uppercase().replace('.', "_");
            assert!(documented.contains(&format!("| `{key}`, `COG_{variable}` |")), "{key}");
        }
        assert!(shown(&settings).contains("media.timeout 30s\nmedia.redirects 5\nmedia.cache 256MiB"));
        let file = "[media]\ntimeout = \"2s\"\nredirects = 0\ncache = \"1MiB\"\nproxy = \"http://me:pw@proxy.lan:3128\"\n";
        let settings = read(&[("COG_MEDIA_REDIRECTS", "1")], file).unwrap();
        assert!(shown(&settings).ends_with(
            "media.proxy http://proxy.lan:3128\nmedia.timeout 2s\nmedia.redirects 1\nmedia.cache 1MiB\nmedia.roots -\nmedia.ffmpeg -"
        ));
        assert!(read(&[("COG_MEDIA_PROXY", "proxy.lan")], "").is_err());
    }

    #[test]
    fn invalid_rule_is_an_error_with_examples() {
        let message = "`10.0.0.0/99` is not a valid network, IP address or host: use 10.0.0.0/8, 127.0.0.1:9000, \
                    media.internal or *.media.internal";
        let error = read(&[], "[media]\nallow = [\"10.0.0.0/99\"]\n").unwrap_err();
        assert!(error.contains(message), "{error}");
        let error = read(&[("COG_MEDIA_ALLOW", "10.0.0.0/99")], "").unwrap_err();
        assert_eq!(error, format!("COG_MEDIA_ALLOW: {message}"));
    }
}
