//! Who may be asked, in which order, and by which names.

use std::sync::Arc;

use cog_provider::{OFFLINE, Provider};
use cog_spec::{Code, ErrorBody};

use crate::observe::{self, Observer};

/// The operator's providers. A request may choose one by its name, and nothing else of it: no address, no key.
#[derive(Clone, Default)]
pub struct Providers {
    default: Vec<Arc<dyn Provider>>,
    named: Option<Arc<Named>>,
}

type Named = dyn Fn(&str) -> Result<Arc<dyn Provider>, ErrorBody> + Send + Sync;

impl Providers {
    /// One provider, which is always asked.
    pub fn one(provider: Arc<dyn Provider>) -> Self {
        Self { default: vec![provider], named: None }
    }

    /// Nobody: golden answers and samples (docs/spec/golden-tests.md).
    pub fn offline() -> Self {
        Self::default()
    }

    /// The providers that are asked where a request names none, the first that answers; nobody where there are none.
    /// And any other by its name, for requests that do.
    pub fn new(
        default: Vec<Arc<dyn Provider>>,
        named: impl Fn(&str) -> Result<Arc<dyn Provider>, ErrorBody> + Send + Sync + 'static,
    ) -> Self {
        Self { default, named: Some(Arc::new(named)) }
    }

    /// The providers asked where a request names none, in their order; empty offline.
    pub fn default_order(&self) -> &[Arc<dyn Provider>] {
        &self.default
    }

    /// The same providers, their calls told to somebody.
    pub(crate) fn observed(self, observer: &Arc<dyn Observer>) -> Self {
        let default = self.default.into_iter().map(|one| observe::provider(one, observer)).collect();
        let named = self.named.map(|named| {
            let observer = Arc::clone(observer);
            let observed = move |name: &str| named(name).map(|one| observe::provider(one, &observer));
            Arc::new(observed) as Arc<Named>
        });
        Self { default, named }
    }

    /// Who is to be asked, in order; nobody is asked where the list is empty. `asked` are names, separated by commas.
    ///
    /// # Errors
    /// A name that is not known here.
    pub(crate) fn choose(&self, asked: Option<&str>) -> Result<Vec<Arc<dyn Provider>>, ErrorBody> {
        let Some(asked) = asked else { return Ok(self.default.clone()) };
        let names: Vec<&str> = asked.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        match names.as_slice() {
            [] => Ok(self.default.clone()),
            [OFFLINE] => Ok(Vec::new()),
            names => names.iter().map(|name| self.named(name)).collect(),
        }
    }

    fn named(&self, name: &str) -> Result<Arc<dyn Provider>, ErrorBody> {
        if let Some(provider) = self.default.iter().find(|provider| provider.name() == name) {
            return Ok(Arc::clone(provider));
        }
        match &self.named {
            Some(named) if name != OFFLINE => named(name),
            _ => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> ErrorBody {
        if name == OFFLINE {
            let message = "`offline` asks nobody, so that no other provider can stand beside it";
            return ErrorBody::new(Code::UnsupportedValue, message).suggest("name it alone, or leave it out");
        }
        let known: Vec<&str> = self.default.iter().map(|provider| provider.name()).chain([OFFLINE]).collect();
        let message = format!("there is no provider `{name}` here; allowed: {}", known.join(", "));
        ErrorBody::new(Code::UnsupportedValue, message)
    }
}
