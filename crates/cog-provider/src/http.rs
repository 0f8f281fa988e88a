//! The provider that calls a vendor over HTTP.

mod backoff;
mod batch;
mod call;
mod client;
mod error;
mod proxy;

use std::{borrow::Cow, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use cog_json::Value;
use cog_spec::Secret;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::OnceCell,
    task::block_in_place,
    time::{Instant, timeout},
};

use self::{call::Call, client::Client};
use crate::{
    ListedModel, ModelFuture, ModelRequest, Pace, Provider, ProviderError, ProviderInfo, RequestError,
    WireRequest,
    cassette::{Recorder, Recording, RecordingFailure, Replayer},
    protocol::{ProtocolKind, RequestContext},
    transport::Transport,
    vendors::{AuthRequirement, ProviderSettings, Vendor, is_own, normalize_base_url, protocol_at},
};

pub use self::batch::BatchClient;
pub use self::client::{PlainClient, PlainRequest, PlainResponse};

/// The time limit for listing a vendor's models.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);
/// The time limit for the question about the template of a model, which delays the first call.
const PROPERTIES_TIMEOUT: Duration = Duration::from_secs(2);
/// The size of a request, in bytes, from which other tasks move to another thread while it is written. Moving them
/// costs more than writing a smaller one.
const LARGE: usize = 256 << 10;

/// Calls a vendor over HTTP, or replays a recording. Requires a Tokio runtime with I/O and time enabled.
///
/// Before the first token, a call is retried after a temporary failure: 429, 5xx, or a connection that cannot be
/// established. Retries use full jitter and respect the vendor's `Retry-After`.
/// After the first token nothing is retried. Dropping the stream closes the connection, which cancels the call.
pub struct HttpProvider {
    vendor: &'static Vendor,
    base_url: String,
    protocol: ProtocolKind,
    info: ProviderInfo,
    settings: ProviderSettings,
    transport: Arc<dyn Transport>,
    /// The same without a recording, for questions that are no part of a cassette.
    unrecorded: Arc<dyn Transport>,
    recording: RecordingFailure,
    /// The cassette that replies, if there is one.
    replayer: Option<Arc<Replayer>>,
    /// Whether requests have marks for the cache. A gateway may reject them, and a recording is independent of them.
    marks_cache: bool,
    /// Whether the model behind this server answers at once, once the server has told it.
    answers_at_once: OnceCell<bool>,
}

impl HttpProvider {
    /// Creates a provider for this vendor. Sends nothing and loads no certificates before the first call.
    ///
    /// # Errors
    /// Fails if the base URL is invalid. A missing key is reported by the first call, so that requests can be rendered
    /// without a key.
    pub fn new(vendor: &'static Vendor, settings: ProviderSettings) -> Result<Self, ProviderError> {
        let base_url = normalize_base_url(vendor, settings.base_url.as_deref()).map_err(|reason| {
            let variable = vendor.base_url_vars.first().copied().unwrap_or_default();
            ProviderError::BaseUrl { vendor: vendor.title, variable, reason }
        })?;
        let auth = settings.key.clone().map(|key| (vendor.auth, key));
        let transport = Arc::new(Client::new(&base_url, auth, settings.connect_timeout));
        Ok(Self::over(vendor, settings, base_url, transport))
    }

    /// Records every request and reply in a cassette (docs/spec/golden-tests.md). Keys in them are masked. A reply that cannot
    /// be stored is passed on; [`HttpProvider::recording_failure`] tells it.
    ///
    /// # Errors
    /// Fails if the directory cannot be created.
    pub fn record(mut self, directory: impl Into<PathBuf>) -> Result<Self, ProviderError> {
        self.marks_cache = false;
        let recording =
            Recording { provider: self.vendor.name.to_owned(), model: self.info.model.clone().into_owned() };
        let keys = self.info.key.iter().chain(&self.settings.secrets).cloned().collect();
        let fault = self.recording.clone();
        self.transport = Arc::new(Recorder::new(directory.into(), recording, keys, fault, self.transport)?);
        Ok(self)
    }

    /// Returns what tells whether a recording lacks a reply.
    pub fn recording_failure(&self) -> RecordingFailure {
        self.recording.clone()
    }

    /// Creates a provider that replies from a cassette. It needs no key and no base URL.
    ///
    /// # Errors
    /// Fails if the cassette cannot be read.
    pub fn replay(
        vendor: &'static Vendor,
        settings: ProviderSettings,
        directory: impl Into<PathBuf>,
        pace: Pace,
    ) -> Result<Self, ProviderError> {
        let base_url = normalize_base_url(vendor, settings.base_url.as_deref());
        let base_url = base_url.unwrap_or_else(|_| "http://localhost".to_owned());
        let replayer = Arc::new(Replayer::open(directory.into(), pace)?);
        let recorded = replayer.protocol();
        let settings = ProviderSettings { protocol: settings.protocol.or(recorded), ..settings };
        let transport = Arc::<Replayer>::clone(&replayer);
        let provider = Self::over(vendor, settings, base_url, transport);
        Ok(Self { replayer: Some(replayer), marks_cache: false, ..provider })
    }

    fn over(
        vendor: &'static Vendor,
        settings: ProviderSettings,
        base_url: String,
        transport: Arc<dyn Transport>,
    ) -> Self {
        let protocol = protocol_at(vendor, &base_url, settings.protocol);
        let mut info = ProviderInfo::new(vendor.name, vendor.default_model.unwrap_or_default());
        info.model = settings.model.clone().map_or(info.model, Cow::Owned);
        info.dialect = vendor.dialect;
        info.engine = vendor.engine;
        let spoken = vendor.protocol_of(&info.model, protocol).protocol();
        info.input = spoken.input_limits(vendor.input);
        info.text_results = spoken.text_results();
        info.formats = vendor.formats;
        info.media_models = vendor.media_models.into();
        info.tools = vendor.tools;
        info.context_windows = vendor.prices;
        // Nothing is known about the cache and the prices of a gateway.
        let marks_cache = is_own(vendor, &base_url);
        if marks_cache {
            info.models = vendor.models;
            info.prices = vendor.prices;
        }
        info.own_prices.clone_from(&settings.prices);
        info.key.clone_from(&settings.key);
        let recording = RecordingFailure::default();
        Self {
            vendor,
            base_url,
            protocol,
            info,
            settings,
            unrecorded: Arc::clone(&transport),
            transport,
            recording,
            replayer: None,
            marks_cache,
            answers_at_once: OnceCell::new(),
        }
    }

    /// Returns the vendor's row.
    pub fn vendor(&self) -> &'static Vendor {
        self.vendor
    }

    /// Returns the base URL of the vendor.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Lists the vendor's models. This also checks that the vendor is reachable and accepts the key.
    ///
    /// # Errors
    /// Fails as [`Provider::call`] does. Nothing is retried.
    pub async fn models(&self) -> Result<Vec<ListedModel>, ProviderError> {
        self.check_key()?;
        let protocol = self.protocol.protocol();
        let body = self.get(&protocol.models_path(&self.base_url)).await?;
        let mut models = protocol.models(body.node());
        // The dates that a list does not have come from the vendor's row.
        for model in models.iter_mut().filter(|model| self.marks_cache && model.retires_at.is_none()) {
            model.retires_at = self.vendor.retires_at(&model.name).map(str::to_owned);
        }
        Ok(models)
    }

    /// Lists the models of the server, if it identifies itself as the vendor's by the path in the vendor's row.
    ///
    /// Any other program, and any error, is `None`.
    pub async fn identify(&self) -> Option<Vec<ListedModel>> {
        let version = self.get(self.vendor.version_path?).await.ok()?;
        version.get("version")?.as_str()?;
        self.models().await.ok()
    }

    async fn get(&self, path: &str) -> Result<Value, ProviderError> {
        self.get_at(&self.base_url, path, &self.transport).await
    }

    async fn get_at(
        &self,
        base_url: &str,
        path: &str,
        transport: &Arc<dyn Transport>,
    ) -> Result<Value, ProviderError> {
        let mut headers = vec![("accept", "application/json".to_owned())];
        headers.extend(self.protocol.protocol().headers());
        let url = format!("{base_url}{path}");
        let wire = WireRequest { method: "GET", url, headers, auth: self.auth(), body: Bytes::new() };
        let setup = self.setup(wire, String::new(), Some(LIST_TIMEOUT));
        let setup = call::Setup { transport: Arc::clone(transport), ..setup };
        Call::new(setup, Instant::now()).body().await
    }

    /// Writes the request. A large one does not delay the other tasks of the runtime, if the settings allow it.
    fn write(&self, request: &ModelRequest) -> Result<WireRequest, ProviderError> {
        let is_large = request.messages.content_len() >= LARGE;
        // `block_in_place` panics on a runtime with one thread.
        let may_block = self.settings.block_in_place
            && is_large
            && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        match may_block {
            true => block_in_place(|| self.wire(request)),
            false => self.wire(request),
        }
    }

    fn wire(&self, request: &ModelRequest) -> Result<WireRequest, ProviderError> {
        let context = self.context(request)?;
        let mut wire = context.protocol().request(&context)?;
        context.check_size(wire.body.len() as u64)?;
        wire.auth = self.auth();
        Ok(wire)
    }

    fn context<'a>(&'a self, request: &'a ModelRequest) -> Result<RequestContext<'a>, RequestError> {
        let model = self.info.model_or_default(&request.model);
        if model.is_empty() {
            let Vendor { title: vendor, name, .. } = self.vendor;
            let variable = self.vendor.model_var().unwrap_or_default();
            return Err(RequestError::NoModel { vendor, name, variable });
        }
        let Self { vendor, base_url, protocol, marks_cache, .. } = self;
        Ok(RequestContext {
            request,
            vendor,
            protocol: *protocol,
            base_url,
            model,
            marks_cache: *marks_cache,
        })
    }

    /// Returns the key's header for display, with the variable name instead of the key.
    fn auth(&self) -> Option<(&'static str, String)> {
        let is_sent = self.info.key.is_some() || self.vendor.key == AuthRequirement::Required;
        let variable = self.vendor.key_var().filter(|_| is_sent)?;
        Some(self.vendor.auth.header(&format!("${variable}")))
    }

    fn check_key(&self) -> Result<(), ProviderError> {
        if self.replayer.is_some() || self.info.key.is_some() || self.vendor.key == AuthRequirement::Optional
        {
            return Ok(());
        }
        let variable = self.vendor.key_var().unwrap_or_default();
        Err(ProviderError::NoKey { vendor: self.vendor.title, variable })
    }

    fn setup(&self, wire: WireRequest, model: String, timeout: Option<Duration>) -> call::Setup {
        call::Setup {
            vendor: self.vendor,
            model,
            wire,
            transport: Arc::clone(&self.transport),
            redactor: Redactor::new(self.info.key.clone()),
            settings: self.settings.clone(),
            timeout,
            on_reply: None,
        }
    }
}

// The grammar of an answer, which prevents a model from reasoning before it answers.

impl HttpProvider {
    /// Returns the request without its grammar if the model may reason, or if nothing is known about it.
    async fn with_usable_grammar<'a>(&self, request: &'a ModelRequest) -> Cow<'a, ModelRequest> {
        let is_asked = self.context(request).is_ok_and(|context| context.grammar().is_some());
        let is_told = request.generation.effort.is_some(); // not to reason
        if !is_asked || is_told || self.uses_grammar(request).await {
            return Cow::Borrowed(request);
        }
        let mut request = request.clone();
        if let Some(output) = &mut request.output {
            Arc::make_mut(output).grammar = None;
        }
        Cow::Owned(request)
    }

    /// Returns whether a model answers at once, or whether the recording of the request has its grammar.
    async fn uses_grammar(&self, request: &ModelRequest) -> bool {
        match &self.replayer {
            Some(replayer) => self.wire(request).is_ok_and(|wire| replayer.has(&wire)),
            None => self.answers_at_once().await,
        }
    }

    /// Returns whether the template of the model has no place for reasoning. A server that does not tell it is asked again.
    async fn answers_at_once(&self) -> bool {
        const MARKS: [&str; 3] = ["think", "reason", "<|channel|>"];
        let ask = async {
            let root = self.base_url.strip_suffix("/v1").unwrap_or(&self.base_url);
            let properties = self.get_at(root, "/props", &self.unrecorded);
            let properties = timeout(PROPERTIES_TIMEOUT, properties).await.ok()?.ok()?;
            let template = properties.get("chat_template")?.as_str()?;
            Some(!MARKS.iter().any(|mark| template.contains(mark)))
        };
        self.answers_at_once.get_or_try_init(|| async { ask.await.ok_or(()) }).await.copied().unwrap_or(false)
    }
}

impl Provider for HttpProvider {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn render(&self, request: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        self.wire(request).map(Some)
    }

    fn check(&self, request: &ModelRequest) -> Result<(), ProviderError> {
        let context = self.context(request)?;
        Ok(context.protocol().check(&context)?)
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            self.check_key()?;
            let request = self.with_usable_grammar(request).await;
            let request = &*request;
            let wire = self.write(request)?;
            let context = self.context(request)?;
            let format = context.reply_format();
            let mut setup = self.setup(wire, context.model.to_owned(), request.timeout);
            setup.on_reply.clone_from(&request.on_reply);
            match context.protocol().continuation() {
                Some(resume) => call::start(setup, format, request.on_retry.clone(), resume).await,
                None => Call::new(setup, Instant::now()).start(format, request.on_retry.as_ref()).await,
            }
        })
    }
}

/// The maximum length of external text in a message, in characters.
const MAX_CHARS: usize = 300;

/// The length of a key prefix that is redacted like the key itself: vendors repeat keys in part.
const PREFIX_LEN: usize = 8;

/// Makes external text safe to display: one line, bounded, and without the key.
#[derive(Clone)]
struct Redactor(Option<Secret>);

impl Redactor {
    fn new(key: Option<Secret>) -> Self {
        Self(key)
    }

    fn clean(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = match &self.0 {
            Some(key) => key.redact(&remove_key(key, &line)),
            None => line,
        };
        match line.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }
}

/// Removes the key, and words that begin with the same prefix as the key. A shorter key is removed only where it is a
/// complete word: `none` and similar values are set for servers that need no key.
fn remove_key(key: &Secret, text: &str) -> String {
    let key = key.expose();
    let prefix = key.get(..PREFIX_LEN).unwrap_or(key);
    if prefix.is_empty() {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(prefix) {
        let (before, found) = rest.split_at(start);
        clean.push_str(before);
        let tail = found.get(prefix.len()..).unwrap_or_default();
        let end = tail.find(ends_word).unwrap_or(tail.len());
        let (word, after) = found.split_at(prefix.len() + end);
        let is_key = word == key && !before.ends_with(char::is_alphanumeric);
        clean.push_str(if is_key || key.len() >= PREFIX_LEN { "***" } else { word });
        rest = after;
    }
    clean.push_str(rest);
    clean
}

fn ends_word(letter: char) -> bool {
    letter.is_whitespace() || "\"'`,;:()<>[]{}".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        Redactor::new(Some(Secret::new("sk-canary-0123456789"))).clean(text)
    }

    #[test]
    fn redacts_key_and_its_prefixes() {
        assert_eq!(clean("bad key sk-canary-0123456789."), "bad key ***");
        assert_eq!(clean(r#"key "sk-canary-****6789", sk-canary-01"#), r#"key "***", ***"#);
        assert_eq!(clean("sk-cana is too short"), "sk-cana is too short");
    }

    #[test]
    fn redacts_short_key_as_a_complete_word() {
        let clean = |text| Redactor::new(Some(Secret::new("k1"))).clean(text);
        assert_eq!(clean("your k1 is bad: k1"), "your *** is bad: ***");
        assert_eq!(clean("ask1 k10"), "ask1 k10");
    }

    #[test]
    fn handles_keys_of_special_characters() {
        for key in ["<", "(((((((((", "é", "ééééééééé", " "] {
            let clean = Redactor::new(Some(Secret::new(key))).clean(&format!("a {key} b{key}"));
            assert!(clean.starts_with('a'), "{clean}");
        }
    }

    #[test]
    fn text_is_one_line_and_bounded() {
        assert_eq!(clean("a\n  b\tc "), "a b c");
        let long = clean(&"é".repeat(MAX_CHARS + 1));
        assert_eq!(long.chars().count(), MAX_CHARS + 1);
        assert!(long.ends_with('…'));
        assert_eq!(clean(&"é".repeat(MAX_CHARS)).chars().count(), MAX_CHARS);
    }
}
