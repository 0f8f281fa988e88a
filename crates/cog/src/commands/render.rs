//! `cog render`: what a run would send, without sending it; with `--prefix`, the part that a provider can cache.

use std::sync::Arc;

use cog_flow::Answer;
use cog_host::{
    Host, Hosted, NamedModule, Use,
    settings::{Environment, Settings},
};
use cog_json::{ToJson as _, Value};
use cog_module::{Choice, Finder, Module};
use cog_run::{Rendered, RunOptions, StablePrefix};
use cog_spec::ErrorBody;

use super::{emit, input, runtime};
use crate::{
    args::RenderArgs,
    commands::runtime::load_run_settings,
    error::{CliError, Exit},
    output::{Console, Layout, wrap},
};

/// Prints the messages and the request; as text on a terminal, otherwise as JSON.
pub(crate) fn render(
    args: &RenderArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    emit::check(args.request.output.output.as_deref())?;
    let settings = load_run_settings(args.request.model.flags(), environment, console)?;
    let rendered = rendered(args, &settings, console)?;
    rendered.warnings.iter().for_each(|warning| console.warn(warning));
    let layout = Layout { palette: console.out().palette, width: console.width() };
    let is_text =
        console.out().is_terminal && !args.request.output.pretty && args.request.output.output.is_none();
    match (is_text, args.prefix) {
        (true, true) => console.print(&describe_prefix(&rendered.prefix, layout))?,
        (true, false) => console.print(&describe(&rendered, layout))?,
        (false, true) => emit::json(&rendered.prefix, &args.request.output, console)?,
        (false, false) => emit::json(&rendered, &args.request.output, console)?,
    }
    Ok(Exit::Ok)
}

fn rendered(args: &RenderArgs, settings: &Settings, console: &Console) -> Result<Rendered, ErrorBody> {
    let named = NamedModule { name: args.request.input.module(), choice: Choice::User };
    let Hosted { runtime, notes, .. } = Host::new(settings).runtime(Use::Render(named))?;
    notes.iter().for_each(|sentence| console.note(sentence));
    let module = runtime::load(&runtime, args.request.input.module(), settings, console)?;
    let input = input::read(&args.request.input, &module, &settings.media)?;
    let generation = args.request.generation.generation();
    let media = Some(settings.local_access(input::media_files(&args.request.input)));
    let options = RunOptions { generation, media, ..RunOptions::default() };
    let rendered = runtime::block_on(runtime.render(&module, input, options))?;
    let rendered = rendered.map_err(|refused| input::advise(refused, &args.request.input, &module))?;
    if let Some(note) = about_parts(&module, runtime.finder()) {
        console.note(&note);
    }
    Ok(rendered)
}

/// Returns what the parts of a composed module do; none for a module that calls no others.
fn about_parts(module: &Arc<Module>, finder: &Finder) -> Option<String> {
    let flow = cog_flow::check(Arc::clone(module), finder).into_flow().ok()?;
    let plan = flow.root();
    let name = &module.manifest.name;
    let parts: Vec<&str> = plan.parts.iter().map(|part| part.name.as_str()).collect();
    let first = *parts.first()?;
    let parts = parts.join(", ");
    Some(match plan.answer {
        Answer::OwnPrompt => {
            format!(
                "{name} calls {parts} first: their results replace the calls and references in the prompt."
            )
        }
        Answer::Output | Answer::Result => format!(
            "{name} sends no messages with its own input. Its parts send theirs: {parts}. \
             `cog graph {name}` shows what each receives, `cog render {first}` the messages of one."
        ),
    })
}

/// Formats the messages and then the request.
fn describe(rendered: &Rendered, layout: Layout) -> String {
    let palette = layout.palette;
    let mut text = String::new();
    for message in rendered.messages.messages() {
        text += &format!(
            "{}\n{}\n\n",
            palette.bold(format_args!("── {}", message.role)),
            message.text().trim_end()
        );
    }
    let Some(request) = &rendered.request else {
        let reason =
            if rendered.messages.messages().is_empty() { "no request" } else { "offline: no request" };
        return text + &format!("{}\n", palette.dim(reason));
    };
    text += &format!("{}\n", palette.bold(format_args!("── {} {}", request.method, request.url)));
    for (name, value) in request.headers.iter().chain(&request.auth) {
        text += &format!("{}: {value}\n", palette.name(name));
    }
    let body = Value::parse_bytes(&request.body).map_or_else(
        |_| String::from_utf8_lossy(&request.body).into_owned(),
        |body| {
            let mut pretty = String::new();
            body.node().write_pretty(&mut pretty);
            pretty
        },
    );
    text += &format!("\n{body}\n");
    text += &format!("\n{}\n", palette.bold(format_args!("── form `{}`", rendered.form)));
    text += &format!("{}\n", rendered.form_reason);
    if !rendered.lost.is_empty() {
        text += &format!("\n{}\n", palette.bold("── not enforced by the provider; checked locally"));
    }
    for loss in &rendered.lost {
        let line = format!("{} {}: {}", loss.pointer, loss.keyword, loss.reason);
        text += &format!("{}\n", wrap(&line, layout.width).join("\n  "));
    }
    text
}

/// Formats the size of the prefix, and then its text.
fn describe_prefix(prefix: &StablePrefix, layout: Layout) -> String {
    let palette = layout.palette;
    let mut text = format!("{}\n", palette.bold("── the same for every input"));
    for line in [size(prefix), cache(prefix)] {
        text += &format!("{}\n", wrap(&line, layout.width).join("\n  "));
    }
    if let Some(schema) = &prefix.schema {
        text += &format!("\n{}\n{}\n", palette.bold("── schema"), schema.to_json());
    }
    text + &format!("\n{}\n{}\n", palette.bold("── system"), prefix.text.trim_end())
}

fn size(prefix: &StablePrefix) -> String {
    let part = match prefix.is_complete {
        true => "the complete system message",
        false => "the system message up to the first placeholder for the input",
    };
    let StablePrefix { bytes, estimated_tokens: tokens, .. } = prefix;
    format!("about {tokens} tokens (estimated from {bytes} bytes): schema and {part}")
}

fn cache(prefix: &StablePrefix) -> String {
    let model = &prefix.model;
    let minimum = match prefix.min_tokens {
        Some(min) if prefix.estimated_tokens >= min => {
            format!("{model} caches from {min} tokens on: reached")
        }
        Some(min) => format!("{model} caches from {min} tokens on: not reached"),
        None => format!("the minimum that {model} caches is not known"),
    };
    match prefix.mark {
        Some(mark) => format!("{minimum}; marked with `{mark}`"),
        None => format!("{minimum}; not marked"),
    }
}
