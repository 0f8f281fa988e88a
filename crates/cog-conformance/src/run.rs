//! Runs the steps of a case.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::mpsc,
};

use cog_spec::Form;
use serde_json::{Map, Value};

use crate::{
    base::{Base, Reply},
    case::{Case, CommandStep, Program, RequestStep, ServeStep, SignalStep, SocketStep, Step},
    directory,
    http::{Endpoint, Request, Response},
    matching::{fits, missing},
    model::Model,
    outcome::Outcome,
    scene::Scene,
    server::{Deadline, PATIENCE, Programs, Server, command},
    site::Site,
    socket::{self, Act},
    stream::read_lines,
};

/// The header that requests a sync answer, and its value.
const RESPONSE_MODE: &str = "x-cognitive-response-mode";
const SYNC: &str = "sync";

impl Case {
    /// Runs the case in a directory of its own.
    ///
    /// # Errors
    /// Everything that differs in the first step that does not give what it should.
    pub(crate) fn check(&self, base: &Base, root: &Path, programs: &Programs) -> Result<(), String> {
        self.check_in(None, base, root, programs)
    }

    /// Runs the case, with models that are asked in a form if it is set.
    ///
    /// # Errors
    /// As [`Case::check`].
    pub(crate) fn check_in(
        &self,
        form: Option<&'static Form>,
        base: &Base,
        root: &Path,
        programs: &Programs,
    ) -> Result<(), String> {
        self.check_contains(root)?;
        let steps = self.all_steps();
        if steps.is_empty() {
            return if self.contains.is_empty() { Err("the case does nothing".to_owned()) } else { Ok(()) };
        }
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        self.fill(directory.path(), base, root)?;
        let replies: Vec<Reply> = self.reply.iter().chain(&self.replies).cloned().collect();
        let mut scene = Scene::new(directory.path(), programs, &replies, &base.reply);
        scene.form = form;
        if !self.site.is_empty() {
            scene.open(Site::start(&self.site)?);
        }
        steps.iter().try_for_each(|step| step.check(&mut scene))
    }

    fn fill(&self, target: &Path, base: &Base, root: &Path) -> Result<(), String> {
        for (name, source) in &self.copy {
            directory::copy(&root.join(source), &target.join(name))?;
        }
        if let Some(changes) = &self.module {
            let place = if self.serve.is_some() { "cognitive/modules/m" } else { "m" };
            directory::write_module(&base.module.changed(changes), &target.join(place))?;
        }
        for (name, changes) in &self.modules {
            let directory = target.join("cognitive/modules").join(name);
            directory::write_module(&base.module.changed(changes).named(name), &directory)?;
        }
        for (name, content) in &self.files {
            if content.is_null() {
                directory::remove(&target.join(name))?;
            } else {
                directory::write(&target.join(name), directory::bytes_of(content)?)?;
            }
        }
        Ok(())
    }

    /// Returns the steps, with those that `command`, `input` and `serve` stand for.
    pub(crate) fn all_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(command) = self.command.clone().or_else(|| self.command_of_input()) {
            steps.push(Step::Command(CommandStep {
                program: Program::Cog,
                command,
                stdin: self.stdin.clone(),
                env: self.env.clone(),
                reply: None,
                expect: self.expect.clone(),
            }));
        }
        steps.extend(self.serve.clone().map(|serve| Step::Serve(ServeStep { serve })));
        steps.extend(self.steps.iter().cloned());
        steps
    }

    fn command_of_input(&self) -> Option<Vec<String>> {
        let input = self.input.as_ref()?.to_string();
        Some(vec!["run".to_owned(), self.target(), "--input-json".to_owned(), input])
    }

    fn target(&self) -> String {
        let copied = self.copy.keys().next().filter(|_| self.module.is_none());
        format!("./{}", copied.map_or("m", String::as_str))
    }

    fn check_contains(&self, root: &Path) -> Result<(), String> {
        for (path, strings) in &self.contains {
            // The name of a test is there even if the test shows nothing.
            if !path.ends_with(".md") {
                return Err(format!("{path} is not a page: write a case that runs the code"));
            }
            let found = directory::read(&root.join(path))?;
            let missing = missing(&found, strings);
            if !missing.is_empty() {
                return Err(format!("{path} does not contain {missing:?}"));
            }
        }
        Ok(())
    }
}

impl Step {
    /// Runs the step.
    ///
    /// # Errors
    /// All differences, with what the step gave.
    fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        match self {
            Self::Command(step) => step.check(scene),
            Self::Serve(step) => step.start(scene),
            Self::Request(step) => {
                let outcome = step.send(scene).map_err(|error| format!("{}\n{error}", step.request))?;
                finish(&step.request, outcome, &step.expect, scene)
            }
            Self::Socket(step) => step.check(scene),
            Self::Signal(step) => step.check(scene),
        }
    }
}

/// Compares an outcome, and stores what later steps compare with.
fn finish(
    name: &str,
    outcome: Outcome,
    expect: &Map<String, Value>,
    scene: &mut Scene<'_>,
) -> Result<(), String> {
    let differences = outcome.differences(expect, scene);
    let checked = match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("{name}\n{}\n{}", differences.join("\n"), outcome.report())),
    };
    if let Some(request) = outcome.requests.last() {
        scene.last_request = Some(request.clone());
    }
    if !outcome.stream.chunks.is_empty() {
        scene.chunks = outcome.stream.chunks;
    }
    checked
}

impl CommandStep {
    fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        let arguments: Vec<String> = self.command.iter().map(|argument| scene.filled(argument)).collect();
        let output = self.run(scene, &arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut outcome = Outcome {
            exit: output.status.code(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            stream: read_lines(&text),
            text,
            requests: scene.requests(),
            ..Outcome::default()
        };
        if self.expect.contains_key("folds") {
            let output = self.run(scene, &without_stream(&arguments))?;
            outcome.sync = serde_json::from_slice(&output.stdout).ok();
        }
        finish(&format!("cog {}", arguments.join(" ")), outcome, &self.expect, scene)
    }

    /// Runs the command with a model of its own, unless the server has one.
    fn run(&self, scene: &mut Scene<'_>, arguments: &[String]) -> Result<Output, String> {
        if scene.endpoint.is_none() {
            let replies = self.reply.as_ref().map_or(scene.replies, std::slice::from_ref);
            scene.model = Model::start(replies, scene.base, scene.form)?;
        }
        let mut command = command(self.program(scene.programs), scene.directory, scene.model.as_ref());
        if matches!(self.program, Program::Library) {
            command.arg("library");
        }
        command.args(arguments).envs(self.env.iter().map(|(name, value)| (name, scene.filled(value))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut input = child.stdin.take();
        let text = scene.filled(&self.stdin);
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            // A command may close the pipe without reading its input.
            let _ = input.take().map(|mut pipe| pipe.write_all(text.as_bytes()));
            let _ = send.send(child.wait_with_output());
        });
        let ended = receive.recv_timeout(PATIENCE).map_err(|_| format!("cog {arguments:?} does not end"))?;
        ended.map_err(|error| error.to_string())
    }

    fn program<'a>(&self, programs: &'a Programs) -> &'a PathBuf {
        match self.program {
            Program::Cog => &programs.cog,
            Program::Cogn => &programs.cogn,
            Program::Library => &programs.library,
        }
    }
}

/// Returns the arguments of the same command for one envelope.
fn without_stream(arguments: &[String]) -> Vec<String> {
    let mut arguments = arguments.iter();
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--stream" | "--require-streaming" => {}
            "--chunk-type" | "--buffer-size" => drop(arguments.next()),
            _ => kept.push(argument.clone()),
        }
    }
    kept
}

impl ServeStep {
    fn start(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        if scene.model.is_none() {
            scene.model = Model::start(scene.replies, scene.base, scene.form)?;
        }
        let arguments: Vec<String> = self.serve.iter().map(|argument| scene.filled(argument)).collect();
        let server = Server::start(&scene.programs.cog, scene.directory, &arguments, scene.model.as_ref())?;
        scene.endpoint = Some(Endpoint::Server(server));
        Ok(())
    }
}

impl RequestStep {
    /// Sends the request, and reads the response to its end or to where the step disconnects.
    ///
    /// # Errors
    /// The reason why there is no response, or no value to store.
    pub(crate) fn send(&self, scene: &mut Scene<'_>) -> Result<Outcome, String> {
        let request = self.request(scene)?;
        let mut response = request.send(scene.endpoint()?)?;
        self.read(scene, &mut response)?;
        let mut outcome = Outcome {
            status: Some(response.status),
            stream: response.stream(),
            text: response.text(),
            headers: response.headers.clone(),
            requests: scene.requests(),
            ..Outcome::default()
        };
        // Disconnects before the outcome is checked.
        drop(response);
        if self.expect.contains_key("folds") {
            outcome.sync = Some(sync_answer(scene, request)?);
        }
        if !self.keep.is_empty() {
            let chunks = &outcome.stream.chunks;
            let whole = match chunks.is_empty() {
                true => serde_json::from_str(&outcome.text).unwrap_or_default(),
                false => Value::from(chunks.clone()),
            };
            scene.keep(&self.keep, &whole)?;
        }
        Ok(outcome)
    }

    fn request(&self, scene: &Scene<'_>) -> Result<Request, String> {
        let (method, target) = self.request.split_once(' ').unwrap_or(("GET", &self.request));
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.to_lowercase(), scene.filled(value))).collect();
        let body = self.body.as_ref().map(|body| scene.filled_in(body));
        if body.is_some() && !headers.iter().any(|(name, _)| name == "content-type") {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let body = match body {
            Some(Value::String(text)) => text.into_bytes(),
            Some(body) if body.get("$base64").is_some() => directory::bytes_of(&body)?,
            Some(body) => body.to_string().into_bytes(),
            None => Vec::new(),
        };
        Ok(Request { method: method.to_owned(), target: scene.filled(target), headers, body })
    }

    /// Reads the response to its end, or until the step disconnects.
    fn read(&self, scene: &mut Scene<'_>, response: &mut Response) -> Result<(), String> {
        let mut waits_for = self.once.as_ref();
        let deadline = Deadline::begin();
        while response.more()? {
            deadline.check().map_err(|error| format!("{error}: {}", response.text()))?;
            let Some(expected) = waits_for else { continue };
            let chunks = response.stream().chunks;
            if chunks.iter().any(|chunk| fits(chunk, expected)) {
                waits_for = None;
                scene.keep(&self.keep, &Value::from(chunks))?;
                match self.act.as_deref() {
                    None | Some("leave") => return Ok(()),
                    Some(act) => perform(act, scene)?,
                }
            }
        }
        match waits_for {
            Some(expected) => Err(format!("no chunk fits {expected}: {}", response.text())),
            None => Ok(()),
        }
    }
}

/// Sends a signal to the server, or sends another request, and continues.
fn perform(act: &str, scene: &Scene<'_>) -> Result<(), String> {
    let Some((method, target)) = act.split_once(' ') else {
        return scene.server()?.signal(act);
    };
    let request = Request {
        method: method.to_owned(),
        target: scene.filled(target),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let mut response = request.send(scene.endpoint()?)?;
    while response.more()? {}
    if response.status < 300 {
        Ok(())
    } else {
        Err(format!("{act}: {} {}", response.status, response.text()))
    }
}

/// Sends the same request for one envelope.
fn sync_answer(scene: &Scene<'_>, mut request: Request) -> Result<Value, String> {
    request.headers.retain(|(name, _)| name != RESPONSE_MODE);
    request.headers.push((RESPONSE_MODE.to_owned(), SYNC.to_owned()));
    let mut response = request.send(scene.endpoint()?)?;
    while response.more()? {}
    let text = response.text();
    serde_json::from_str(&text).map_err(|error| format!("the sync answer is not JSON: {error}: {text}"))
}

impl SocketStep {
    fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        let acts = self.acts.iter().map(|act| serde_json::from_value(scene.filled_in(act)));
        let acts: Vec<Act> = acts.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.clone(), scene.filled(value))).collect();
        let conversation = socket::converse(&scene.server()?.address, &self.socket, &headers, &acts)?;
        let mut outcome = Outcome {
            status: Some(conversation.status),
            text: conversation.refusal,
            stream: conversation.stream,
            requests: scene.requests(),
            ..Outcome::default()
        };
        if self.expect.contains_key("folds") {
            outcome.sync = Some(sync_answer(scene, self.as_request(&acts))?);
        }
        scene.keep(&self.keep, &Value::from(outcome.stream.chunks.clone()))?;
        finish(&format!("socket {}", self.socket), outcome, &self.expect, scene)
    }

    /// Returns the request that the socket sends.
    fn as_request(&self, acts: &[Act]) -> Request {
        let body = acts.iter().find_map(|act| match act {
            Act::Send(body) => Some(body.to_string()),
            _ => None,
        });
        let target = self.socket.replace("/ws", "/execute");
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Request { method: "POST".to_owned(), target, headers, body: body.unwrap_or_default().into_bytes() }
    }
}

impl SignalStep {
    fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        let Some(Endpoint::Server(server)) = scene.endpoint.take() else {
            return Err("no server runs".to_owned());
        };
        server.signal(&self.signal)?;
        let exit = server.wait()?;
        let outcome = Outcome { exit, requests: scene.requests(), ..Outcome::default() };
        finish(&format!("signal {}", self.signal), outcome, &self.expect, scene)
    }
}
