//! A run that Python asks for, without its objects.

use std::{path::PathBuf, sync::Arc};

use cog_json::{Node, Path};
use cog_module::Module;
use cog_run::{
    ChunkStream, ModuleRef, Rendered, RunContext, RunInput, RunOptions,
    provider::{Conversation, Message, Role},
    tools::{Approval, Decision},
};
use cog_spec::{Code, Envelope, ErrorBody, ResponseMode, Warning};
use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString},
};

use crate::{
    budget::SharedBudget,
    caller::{Caller, warn},
    check::NativeCheck,
    from_python::{Converted, convert, seconds, text},
    hooks::Hooks,
    hosted::{Hosted, LoggedRun},
    module::LoadedModule,
    result::exception,
    tool::NativeTool,
};

/// A run that Python asks for.
pub(crate) struct Request {
    module: Target,
    input: RunInput,
    /// Whether the input has media that were objects of Python.
    has_media: bool,
    /// The files that the input names as paths.
    files: Vec<PathBuf>,
    options: RunOptions,
    /// For the Python functions that the run calls; none if it calls none.
    pub(crate) caller: Option<Arc<Caller>>,
    /// The run, for its label.
    pub(crate) run: Arc<LoggedRun>,
    /// Whether the options say if repairs are violations.
    sets_strict: bool,
    /// Whether a stored answer may be used.
    uses_cache: bool,
}

/// A module, loaded or not.
pub(crate) enum Target {
    /// Its name or path, which the caller chose.
    Named(String),
    /// Its name or path, which is stored with a halted run.
    Found(String),
    /// The module.
    Loaded(Arc<Module>),
}

/// A run that waits for a confirmation, with the decision. It is passed instead of a module.
#[pyclass(name = "Halted", module = "cognitive._cognitive", frozen)]
pub(crate) struct HaltedCall {
    approval: Approval,
    /// The module, if the runtime does not find it by its name.
    module: Option<Py<PyAny>>,
}

#[pymethods]
impl HaltedCall {
    #[new]
    #[pyo3(signature = (id, *, confirm, deny, module))]
    fn new(id: String, confirm: Option<String>, deny: bool, module: Option<Py<PyAny>>) -> PyResult<Self> {
        let decision = match (confirm, deny) {
            (Some(text), false) => Decision::Approve(text),
            (None, true) => Decision::Deny,
            _ => return Err(PyValueError::new_err("continue_run: give confirm=\"YES\" or deny=True")),
        };
        Ok(Self { approval: Approval { id, decision }, module })
    }
}

/// The chunks that a run returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Those without data, and the last one.
    Answer,
    /// All.
    Stream,
}

impl Request {
    /// Reads the arguments of `execute`. A text as input becomes the text field of the module's input.
    ///
    /// # Errors
    /// `TypeError` or `ValueError` for an object that cannot be converted, `CognitiveError` for an invalid option.
    pub(crate) fn read(
        hosted: &Hosted,
        module: &Bound<'_, PyAny>,
        input: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let mut has_media = false;
        let (input, files) = match input.cast::<PyString>() {
            Ok(given) => (RunInput::text(text(given, "input")?), Vec::new()),
            Err(_) => {
                let Converted { value, files, has_media: holds_media } = convert(input, "input")?;
                has_media = holds_media;
                (RunInput::Json(value), files)
            }
        };
        let given = GivenOptions::read(options)?;
        let GivenOptions { mut options, tools, deps, hooks, sets_strict, uses_cache } = given;
        let has_functions = !(tools.is_empty() && options.checks.is_empty() && hooks.is_none());
        let calls_python = hosted.calls_python || has_functions;
        let new_caller = || Caller::new(module.py(), hosted.redactor(), deps.as_ref());
        let caller = calls_python.then(new_caller).transpose()?;
        let run = hosted.new_run();
        if let Some(caller) = &caller
            && let Some(hooks) = hooks
        {
            options.events.push(Arc::new(Hooks::new(hooks.unbind(), Arc::clone(caller), Arc::clone(&run))));
        }
        for tool in &tools {
            options.tools.push(Arc::clone(&tool.get().0) as _);
        }
        let module = match module.cast::<HaltedCall>() {
            Ok(halted) => {
                let HaltedCall { approval, module: given } = halted.get();
                options.approval = Some(approval.clone());
                let found = hosted.runtime.pending_approval(&approval.id, None);
                let found = found.map_err(|error| exception(module.py(), error))?;
                match given {
                    Some(given) => Target::read(given.bind(module.py()))?,
                    None if found.is_trusted_for_run => Target::Named(found.module),
                    None => Target::Found(found.module),
                }
            }
            Err(_) => Target::read(module)?,
        };
        Ok(Self { module, input, has_media, files, options, caller, run, sets_strict, uses_cache })
    }

    /// Loads the module, checks the input and starts the run.
    ///
    /// # Errors
    /// The envelope of a run that is refused before the provider is called.
    pub(crate) async fn start(self, hosted: &Hosted, mode: Mode) -> Result<ChunkStream, Box<Envelope>> {
        let uses_cache = self.uses_cache;
        let run = Arc::clone(&self.run);
        let prepared = self.prepare(hosted).await;
        let (module, input, mut options) = prepared.map_err(|error| Box::new(Envelope::failure(error)))?;
        if let Some(log) = &hosted.log {
            options.events.push(log.listener(&options, &run));
        }
        let _ = run.module.set(Arc::clone(&module));
        let streams = hosted.streams() && module.manifest.response.mode != ResponseMode::Sync;
        let mut context = RunContext::default();
        context.is_folded = mode == Mode::Answer || !streams;
        context.is_uncached = !uses_cache;
        if mode == Mode::Stream && !streams {
            // One envelope with a warning (ruling R55).
            context.warnings.push(Warning::sync_instead_of_stream());
        }
        hosted.runtime.prepare(&module, input, options, context)
    }

    /// Returns what the run would send.
    ///
    /// # Errors
    /// The run would be refused before the provider is called.
    pub(crate) async fn render(self, hosted: &Hosted) -> Result<Rendered, ErrorBody> {
        let (module, input, options) = self.prepare(hosted).await?;
        hosted.runtime.render(&module, input, options).await
    }

    /// Loads the module, and completes the options with what the settings allow.
    async fn prepare(self, hosted: &Hosted) -> Result<(Arc<Module>, RunInput, RunOptions), ErrorBody> {
        let module = self.module.load_async(hosted).await?;
        if self.has_media {
            check_media(&module, &self.input)?;
        }
        let access = hosted.access(&module, &self.input, self.files)?;
        let options = RunOptions { media: Some(access), ..self.options };
        let mut options = hosted.add_server_tools(&module, options).await?;
        options.strict |= !self.sets_strict && hosted.is_strict();
        Ok((module, self.input, options))
    }
}

impl Target {
    /// Reads a name, a path or a loaded module.
    pub(crate) fn read(module: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(loaded) = module.cast::<LoadedModule>() {
            return Ok(Self::Loaded(Arc::clone(&loaded.get().0)));
        }
        let Ok(path) = module.extract::<PathBuf>() else {
            let made = module.getattr("__cognitive_module__").ok();
            let made = made.and_then(|made| made.cast_into::<LoadedModule>().ok());
            return made.map(|made| Self::Loaded(Arc::clone(&made.get().0))).ok_or_else(|| {
                let kind = module.get_type().name().map(|name| name.to_string()).unwrap_or_default();
                PyTypeError::new_err(format!("module: found {kind}; allowed: a name, a path or a Module"))
            });
        };
        match path.to_str() {
            Some(name) => Ok(Self::Named(name.to_owned())),
            None => Err(PyValueError::new_err("module: the path is not valid UTF-8")),
        }
    }

    /// Returns the loaded module.
    pub(crate) fn load(&self, hosted: &Hosted) -> Result<Arc<Module>, ErrorBody> {
        match self {
            Self::Named(name) => noted(name, hosted, hosted.runtime.load(name)),
            Self::Found(path) => hosted.runtime.load(ModuleRef::Found(path)),
            Self::Loaded(module) => Ok(Arc::clone(module)),
        }
    }

    /// Returns the loaded module. Files are read on a thread that may block.
    async fn load_async(&self, hosted: &Hosted) -> Result<Arc<Module>, ErrorBody> {
        match self {
            Self::Named(name) => noted(name, hosted, hosted.runtime.load_async(name).await),
            Self::Found(path) => hosted.runtime.load_async(ModuleRef::Found(path)).await,
            Self::Loaded(module) => Ok(Arc::clone(module)),
        }
    }
}

/// Logs that a name means a module of the working directory, not the one that it means elsewhere.
fn noted(
    name: &str,
    hosted: &Hosted,
    loaded: Result<Arc<Module>, ErrorBody>,
) -> Result<Arc<Module>, ErrorBody> {
    if let Ok(module) = &loaded
        && let Some(shadowing) = hosted.runtime.finder().shadowing(name, &module.origin)
    {
        warn(shadowing.to_string());
    }
    loaded
}

/// Checks that every picture or file of the input is in a field for media. In another one, it would be sent as base64 text.
///
/// # Errors
/// E1003 with the path of the first one that is not.
fn check_media(module: &Module, input: &RunInput) -> Result<(), ErrorBody> {
    let RunInput::Json(value) = input else { return Ok(()) };
    let fields = module.contract.media_paths(value.node());
    let mut root = Path::default();
    root.push_key("input");
    let Some(path) = media_outside(value.node(), &root, &fields) else { return Ok(()) };
    Err(ErrorBody::new(Code::TypeMismatch, format!("{path}: found a picture or file; the field takes no media"))
        .suggest(
            "In a task, annotate the parameter with `PIL.Image.Image`, `bytes` or `pathlib.Path`; in a schema, write \
             `{\"$ref\": \"#/$defs/MediaInput\"}`.",
        ))
}

/// Returns the path of the first media source that is in none of these fields.
fn media_outside(node: Node<'_>, path: &Path, fields: &[Path]) -> Option<Path> {
    if fields.contains(path) {
        return None;
    }
    if matches!(node.get_str("type"), Some("base64" | "file")) && node.members().count() <= 3 {
        return Some(path.clone());
    }
    let within = |child: Node<'_>, push: &dyn Fn(&mut Path)| {
        let mut path = path.clone();
        push(&mut path);
        media_outside(child, &path, fields)
    };
    let mut members = node.members();
    let found = members.find_map(|(key, member)| within(member, &|path| path.push_key(key)));
    found.or_else(|| {
        node.elements().enumerate().find_map(|(index, item)| within(item, &|path| path.push_index(index)))
    })
}

/// The keyword arguments of `execute`.
struct GivenOptions<'py> {
    options: RunOptions,
    tools: Vec<Bound<'py, NativeTool>>,
    /// What tools and checks receive.
    deps: Option<Bound<'py, PyAny>>,
    /// A list of objects that learn what happens.
    hooks: Option<Bound<'py, PyAny>>,
    /// Whether they say if repairs are violations.
    sets_strict: bool,
    /// Whether a stored answer may be used.
    uses_cache: bool,
}

impl<'py> GivenOptions<'py> {
    /// Reads the arguments: the options of `_options` in a request, with `timeout` in seconds, and what only a program may say. An
    /// argument that is None is not set.
    fn read(given: &Bound<'py, PyDict>) -> PyResult<Self> {
        let py = given.py();
        let of_request = PyDict::new(py);
        let mut own = Self {
            options: RunOptions::default(),
            tools: Vec::new(),
            deps: None,
            hooks: None,
            sets_strict: false,
            uses_cache: true,
        };
        for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
            if !own.read_own(name.cast::<PyString>()?.to_str()?, &value)? {
                of_request.set_item(name, value)?;
            }
        }
        own.sets_strict = of_request.contains("strict")?;
        let value = convert(of_request.as_any(), "options")?.value;
        let read = RunOptions::read(value.node(), &[]).map_err(|error| exception(py, error))?;
        let Self { options, .. } = &mut own;
        let RunOptions { timeout, generation, messages, instructions, trace_id, budgets, checks, .. } =
            std::mem::take(options);
        *options = RunOptions {
            timeout: timeout.or(read.timeout),
            generation: generation.or(&read.generation),
            messages,
            instructions,
            trace_id,
            budgets,
            checks,
            ..read
        };
        Ok(own)
    }

    /// Reads an argument that is no option of a request. Returns false for another one.
    fn read_own(&mut self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        let generation = &mut self.options.generation;
        match name {
            "timeout" => self.options.timeout = Some(seconds("timeout", value.extract()?)?),
            "tools" => self.tools = value.extract()?,
            "deps" => self.deps = Some(value.clone()),
            "hooks" => self.hooks = Some(value.clone()),
            "checks" => {
                let checks: Vec<Bound<'py, NativeCheck>> = value.extract()?;
                self.options.checks = checks.iter().map(|check| Arc::clone(&check.get().0) as _).collect();
            }
            "temperature" => generation.temperature = Some(temperature(option(name, value, "a number")?)?),
            "max_tokens" => {
                let tokens: u64 = option(name, value, "a whole number from 1")?;
                generation.max_tokens = Some(tokens).filter(|tokens| *tokens > 0);
                if generation.max_tokens.is_none() {
                    return Err(PyValueError::new_err("max_tokens: found 0; allowed: a whole number from 1"));
                }
            }
            "seed" => generation.seed = Some(option(name, value, "a whole number")?),
            "stop" => {
                generation.stop = match value.cast::<PyString>() {
                    Ok(one) => vec![text(one, "stop")?.to_owned()],
                    Err(_) => option(name, value, "strings")?,
                };
            }
            "instructions" => self.options.instructions = Some(option(name, value, "a string")?),
            "trace_id" => self.options.trace_id = Some(option(name, value, "a string")?),
            "cache" => self.uses_cache = option(name, value, "True or False")?,
            "budget" => {
                let budget: Bound<'py, SharedBudget> = option(name, value, "a Budget")?;
                self.options.budgets = vec![budget.get().0.clone()];
            }
            "messages" => self.options.messages = messages(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads the value of an option.
fn option<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    value: &Bound<'py, PyAny>,
    allowed: &str,
) -> PyResult<T> {
    value.extract().map_err(|_| {
        let shown = value.repr().map(|text| text.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("{name}: found {shown}; allowed: {allowed}"))
    })
}

fn temperature(number: f64) -> PyResult<f64> {
    let range = 0.0..=2.0;
    match range.contains(&number) {
        true => Ok(number),
        false => Err(PyValueError::new_err(format!("temperature: found {number}; allowed: 0 to 2"))),
    }
}

/// Reads the messages before the input, as OpenAI or Harmony writes them.
fn messages(given: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
    let value = convert(given, "messages")?.value;
    let read = Conversation::read(value.node()).map_err(|problems| {
        let first = problems.first().map(|problem| format!("{}: {}", problem.path, problem.message));
        PyValueError::new_err(first.unwrap_or_else(|| "messages: found no messages".to_owned()))
    })?;
    if let Some(index) = read.0.iter().position(|message| message.role == Role::System) {
        return Err(PyValueError::new_err(format!(
            "messages[{index}].role: found system; the prompt of the module is the system message; pass instructions=\"...\""
        )));
    }
    Ok(read.0)
}
