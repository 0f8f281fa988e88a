//! Loads a [`Module`] and collects all diagnostics.

use std::{borrow::Cow, ops::Range, sync::Arc};

use cog_rules::{CheckFinding, Checks};
use cog_schema::{Contract, Rules};
use cog_spec::{Format, Manifest, Modality, Tier};

use crate::{
    Diagnostic, LoadError, Module, ModuleFiles, Origin, Prompt, PromptPart, Rule, Severity, Trust,
    calibration,
    diagnostic::{Findings, shown},
    directory::{rename_advice, unreadable},
    files::{self, FileError},
    forms::Forms,
    front_matter,
    layout::{self, Family},
    lint,
    manifest::{self, LoadContext},
    schema::{Schema, SchemaSources},
    source::Source,
    text_location,
    yaml::{self, Node},
};

/// Loads a module. Reads manifest, prompt, schema and `forms.json` only.
///
/// # Errors
/// All diagnostics, if the module cannot run (E4008).
pub fn load(origin: &Origin) -> Result<Module, LoadError> {
    load_with_sources(origin).map(|(module, _)| module)
}

/// Loads a module and the source files of its schema.
pub(crate) fn load_with_sources(origin: &Origin) -> Result<(Module, SchemaSources), LoadError> {
    let mut found = Vec::new();
    let module = read(origin, &mut found);
    match module {
        Some((module, sources)) if is_loadable(&found) => Ok((Module { warnings: found, ..module }, sources)),
        _ => Err(LoadError { diagnostics: found }),
    }
}

/// Loads only the manifest, for lists.
///
/// # Errors
/// As [`load`], for the manifest.
pub fn load_manifest(origin: &Origin) -> Result<Manifest, LoadError> {
    let mut found = Vec::new();
    let manifest = read_manifest(origin, &mut found);
    match manifest {
        Some(manifest) if is_loadable(&found) => Ok(manifest),
        _ => Err(LoadError { diagnostics: found }),
    }
}

fn is_loadable(found: &[Diagnostic]) -> bool {
    found.iter().all(|finding| finding.severity == Severity::Warning)
}

impl ModuleFiles {
    /// Loads the module without reading any file.
    ///
    /// # Errors
    /// As [`load`].
    pub fn load(self) -> Result<Module, LoadError> {
        load(&Origin::Memory(Arc::new(self)))
    }
}

impl Module {
    /// Loads a module from the text of `module.yaml`, `prompt.md` and `schema.json`.
    ///
    /// With [`include_str!`] a module is embedded in a program. [`ModuleFiles`] also accepts golden tests.
    ///
    /// # Errors
    /// As [`load`].
    pub fn from_parts(
        manifest: impl Into<Cow<'static, str>>,
        prompt: impl Into<Cow<'static, str>>,
        schema: impl Into<Cow<'static, str>>,
    ) -> Result<Self, LoadError> {
        ModuleFiles::default()
            .with("module.yaml", manifest)
            .with("prompt.md", prompt)
            .with("schema.json", schema)
            .load()
    }
}

/// Returns the byte range of the name in the manifest; none if the manifest does not load.
pub(crate) fn locate_name(origin: &Origin) -> Option<Range<usize>> {
    let (family, _) = layout::detect(origin).ok()?;
    let text = ManifestText::read(origin, family).ok()?;
    text.root.get("name").map(|node| node.written.clone())
}

fn read_manifest(origin: &Origin, found: &mut Vec<Diagnostic>) -> Option<Manifest> {
    let family = collect_error(layout::detect(origin).map(|(family, _)| family), found)?;
    let text = collect_error(ManifestText::read(origin, family), found)?;
    // In v2 a missing tier depends on the schema. In any other case a list of modules need not parse it.
    let needs_schema = family == Family::V2 && text.root.get("tier").is_none();
    let schema = if needs_schema { Schema::read(origin, family).ok() } else { None };
    let context = LoadContext { family, schema: schema.as_ref().map(|schema| &schema.document) };
    let findings = Findings::new(&text.source);
    let manifest = manifest::read(&text.root, context, &findings);
    found.extend(findings.into_vec());
    Some(manifest)
}

fn read(origin: &Origin, found: &mut Vec<Diagnostic>) -> Option<(Module, SchemaSources)> {
    let (family, several) = collect_error(layout::detect(origin), found)?;
    found.extend(several);
    // The three files are read even if one is invalid: an author wants all problems at once, not one a run.
    let text = collect_error(ManifestText::read(origin, family), found);
    let mut schema = collect_errors(Schema::read(origin, family), found);
    let prompt = collect_error(read_prompt(origin, family, text.as_ref()), found);
    let text = text?;
    let context = LoadContext { family, schema: schema.as_ref().map(|schema| &schema.document) };
    let findings = Findings::new(&text.source);
    let mut manifest = manifest::read(&text.root, context, &findings);
    found.extend(findings.into_vec());
    if family == Family::V0 {
        read_constraints(origin, &mut manifest, found);
    }
    found.extend(lints(origin, family, &manifest));
    for context in manifest::context_schemas(&text.root, &manifest.context) {
        let Some(schema) = &mut schema else { break };
        let named = (&text.source, context.span);
        collect_error(schema.add(origin, &context.file, context.pointer, named), found);
    }
    let schema = schema?;
    let prompt = prompt?;
    found.extend(unused_media_placeholder(origin, family, &manifest, &prompt));
    let Schema { document, sources } = schema;
    let contract = Contract::compile(&document, &Rules::from(&manifest));
    let contract = contract
        .map_err(|problems: Vec<_>| problems.iter().map(|problem| sources.explain(problem)).collect());
    let contract = collect_errors(contract, found)?;
    found.extend(missing_sections(&sources, &contract));
    found.extend(contract.conflicts().iter().map(|conflict| sources.conflict(conflict)));
    let (checks, problems) = Checks::compile(&manifest.checks, Some(&contract));
    found.extend(problems.into_iter().map(|problem| check_finding(&text, problem)));
    let (forms, ignored) = Forms::read(origin, &prompt, &document);
    // The module runs without the file. `validate` reports them as errors.
    found.extend(ignored.into_iter().map(|found| Diagnostic { severity: Severity::Warning, ..found }));
    let fingerprint = calibration::fingerprint(&text.root.content, &prompt, &document);
    let module = Module {
        manifest: Arc::new(manifest),
        contract: Arc::new(contract),
        checks: Arc::new(checks),
        prompt,
        schema: document,
        forms,
        fingerprint,
        origin: origin.clone(),
        trust: Trust::Trusted,
        warnings: Vec::new(),
    };
    found.extend(lint::lint(&module, &sources));
    Some((module, sources))
}

/// The manifest as text and tree, and the prompt if it is in the same file.
pub(crate) struct ManifestText {
    pub(crate) source: Source,
    pub(crate) root: Node,
    body: Option<String>,
}

impl ManifestText {
    pub(crate) fn read(origin: &Origin, family: Family) -> Result<Self, Diagnostic> {
        let name = family.manifest();
        let source =
            origin.read(name, files::MAX_PART).map_err(|error| unreadable(&origin.path_of(name), &error))?;
        if family == Family::V2 {
            let root = yaml::parse(&source)?;
            return Ok(Self { source, root, body: None });
        }
        let front = front_matter::split(&source)?;
        let root = yaml::parse(&front_matter::yaml_alone(&source, &front))?;
        let body = source.text.get(front.body).unwrap_or_default().to_owned();
        Ok(Self { source, root, body: Some(body) })
    }
}

fn read_prompt(
    origin: &Origin,
    family: Family,
    manifest: Option<&ManifestText>,
) -> Result<Prompt, Diagnostic> {
    let name = family.prompt();
    // A composition may consist of other modules only.
    let is_optional = manifest.is_some_and(|manifest| manifest.root.get("composition").is_some());
    if family == Family::V1 {
        let body = manifest.and_then(|manifest| manifest.body.as_deref()).map(str::trim_start);
        return match body {
            Some("") if !is_optional => {
                let message = "the prompt after the front matter is missing";
                Err(Diagnostic::error(Rule::PromptEmpty, origin.path_of(name), message)
                    .suggest("Write the instructions for the model below the second `---`."))
            }
            body => Ok(Prompt::parse(layout::with_line_feeds(body.unwrap_or_default()))),
        };
    }
    match origin.read(name, files::MAX_PART) {
        Ok(source) => Ok(Prompt::parse(layout::with_line_feeds(&source.text))),
        Err(FileError::Missing | FileError::Empty) if is_optional => Ok(Prompt::parse("")),
        Err(FileError::Missing) => {
            let message = format!("{name} is missing");
            let help = rename_advice(origin, name)
                .unwrap_or_else(|| format!("Write the instructions for the model in {name}."));
            Err(Diagnostic::error(Rule::PromptMissing, origin.path_of(""), message).suggest(help))
        }
        Err(FileError::Empty) => {
            let message = format!("{name} is empty");
            Err(Diagnostic::error(Rule::PromptEmpty, origin.path_of(name), message)
                .suggest("Write the instructions for the model in it."))
        }
        Err(error) => Err(unreadable(&origin.path_of(name), &error)),
    }
}

const CONSTRAINTS: &str = "constraints.yaml";

/// Reads `constraints.yaml` of v0 over the constraints of the manifest.
fn read_constraints(origin: &Origin, manifest: &mut Manifest, found: &mut Vec<Diagnostic>) {
    match origin.read(CONSTRAINTS, files::MAX_PART) {
        Ok(source) => {
            let Some(root) = collect_error(yaml::parse(&source), found) else { return };
            let findings = Findings::new(&source);
            manifest::read_constraints(&root, manifest, &findings);
            found.extend(findings.into_vec());
        }
        Err(FileError::Missing) => {
            let message = "constraints.yaml is missing: no constraints apply";
            found.push(Diagnostic::warning(Rule::ConstraintsMissing, origin.path_of(""), message));
        }
        Err(FileError::Empty) => {}
        Err(error) => found.push(unreadable(&origin.path_of(CONSTRAINTS), &error)),
    }
}

/// Returns warnings: an old format, a directory with another name.
fn lints(origin: &Origin, family: Family, manifest: &Manifest) -> Vec<Diagnostic> {
    let file = origin.path_of(family.manifest());
    let mut found = Vec::new();
    if let Some(since) = deprecation(manifest.format) {
        let message = format!("format {} is {since}", manifest.format);
        let help = format!("Run `cog migrate {}` to upgrade it.", origin.display_name());
        found.push(Diagnostic::warning(Rule::FormatDeprecated, &file, message).suggest(help));
    }
    // The version of a module never decides its format (ruling R5), but an author may expect it.
    let is_of_v25 = manifest.version.starts_with("2.5.");
    if is_of_v25 && manifest.format == Format::V22 && manifest.tier == Some(Tier::Exploration) {
        let message = "version 2.5 in a manifest without `response` and `modalities`: the format is v2.2, so answers are not streamed";
        let help = "Write `response: { mode: streaming }`, or `mode: sync` to keep it.";
        found.push(Diagnostic::warning(Rule::FormatVersion, &file, message).suggest(help));
    }
    if let Some(path) = origin.directory()
        && let Some(directory) = path.file_name().and_then(|name| name.to_str())
        && directory != manifest.name
        && directory != ".."
    {
        let message = format!("module `{}` is in a directory named `{directory}`", shown(&manifest.name));
        let help = "Modules are found by directory name: use the same name for both.";
        found.push(Diagnostic::warning(Rule::NameDirectory, file, message).suggest(help));
    }
    found
}

/// Returns since when a format is deprecated (SPEC 0.0.4). It loads nevertheless (ruling R7).
const fn deprecation(format: Format) -> Option<&'static str> {
    match format {
        Format::V0 | Format::V1 => Some("deprecated since 2025-12-01"),
        Format::V21 => Some("deprecated as of 2026-12-01"),
        Format::V22 | Format::V25 => None,
    }
}

/// Reports missing sections: `data` is required to check answers, `input` is recommended.
fn missing_sections(sources: &SchemaSources, contract: &Contract) -> Vec<Diagnostic> {
    let mut missing = Vec::new();
    if contract.input_schema().is_none() {
        missing.push(Diagnostic { severity: Severity::Warning, ..missing_section(sources, "input") });
    }
    if contract.data_schema().is_none() {
        missing.push(missing_section(sources, "data"));
    }
    missing
}

fn missing_section(sources: &SchemaSources, part: &str) -> Diagnostic {
    sources.error_at(Rule::SchemaPart, format!("the schema has no `{part}` section"), "")
}

/// Returns the diagnostic about a check, at its condition or path.
fn check_finding(text: &ManifestText, problem: CheckFinding) -> Diagnostic {
    let CheckFinding { index, key, error, is_warning } = problem;
    let severity = if is_warning { Severity::Warning } else { Severity::Error };
    let found = Diagnostic::error(Rule::Check, &text.source.path, error.message);
    let found = Diagnostic { severity, suggestion: error.suggestion, ..found };
    text_location::in_text(found, &text.source, &text.root, &format!("/checks/{index}/{key}"), error.range)
}

/// Returns a warning about a media placeholder in the prompt of a module without media.
fn unused_media_placeholder(
    origin: &Origin,
    family: Family,
    manifest: &Manifest,
    prompt: &Prompt,
) -> Option<Diagnostic> {
    let takes_media = manifest.modalities.input.iter().any(|modality| *modality != Modality::Text);
    if takes_media || !prompt.parts().contains(&PromptPart::MediaInputs) {
        return None;
    }
    let message = "`$MEDIA_INPUTS` has no effect: the module accepts text only";
    let help = "List the accepted types under `modalities.input`.";
    Some(Diagnostic::warning(Rule::PromptPlaceholder, origin.path_of(family.prompt()), message).suggest(help))
}

/// Returns the value of a step, or collects its diagnostic.
fn collect_error<T>(result: Result<T, Diagnostic>, found: &mut Vec<Diagnostic>) -> Option<T> {
    result.map_err(|finding| found.push(finding)).ok()
}

fn collect_errors<T>(result: Result<T, Vec<Diagnostic>>, found: &mut Vec<Diagnostic>) -> Option<T> {
    result.map_err(|findings| found.extend(findings)).ok()
}

#[cfg(test)]
mod tests;
