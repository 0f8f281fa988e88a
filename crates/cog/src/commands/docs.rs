//! `cog docs`: opens a page of the documentation, which a release has as files.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use cog_host::settings::Environment;
use cog_provider::vendors::VENDORS;
use cog_schema::nearest;
use cog_spec::{Code, ErrorBody};

use crate::{
    args::DocsArgs,
    error::{CliError, Exit},
    output::Console,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The page that opens without an argument.
const START: &str = "index";

/// Opens a page in a browser, or prints its path if there is none.
pub(crate) fn docs(args: &DocsArgs, environment: &Environment, console: &Console) -> Result<Exit, CliError> {
    let site = site(environment)?;
    let page = page(&site, args.page.as_deref().unwrap_or(START))?;
    let browser = browser(environment).filter(|_| !args.path);
    match browser.map(|browser| open(browser, page.as_os_str())) {
        Some(true) => console.note(&format!("opened {}", page.display())),
        Some(false) => {
            console.note("the browser could not be started");
            console.print(&page.display().to_string())?;
        }
        None => console.print(&page.display().to_string())?,
    }
    Ok(Exit::Ok)
}

/// Returns the directory of the pages of this version.
fn site(environment: &Environment) -> Result<PathBuf, CliError> {
    let named = format!("cog/cog-{VERSION}-docs");
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    let program = program.as_deref().and_then(Path::parent);
    let data = data_directory(environment);
    let places = [
        // An unpacked archive.
        program.map(|directory| directory.join("docs")),
        // What install.sh installs, or a package of the system.
        program.and_then(Path::parent).map(|prefix| prefix.join("share").join(&named)),
        // What a user unpacked.
        data.as_ref().map(|data| data.join(&named)),
        // A clone, after `cargo xtask docs`.
        program.and_then(Path::parent).map(|target| target.join("docs/book")),
    ];
    let found = places.into_iter().flatten().find(|place| place.join("index.html").is_file());
    found.ok_or_else(|| {
        let to = data.map_or_else(|| "~/.local/share/cog".to_owned(), |data| data.join("cog").display().to_string());
        let error = ErrorBody::new(Code::InvalidReference, "the documentation is not installed");
        CliError::from(error.suggest(format!(
            "Unpack `cog-{VERSION}-docs.tar.gz` of the release into {to}; in a clone of the repository, run `cargo xtask docs`."
        )))
    })
}

/// Returns the directory of a user's data, as the XDG Base Directory Specification names it.
fn data_directory(environment: &Environment) -> Option<PathBuf> {
    let named = environment.path("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let home = environment.path("HOME").or_else(|| environment.path("USERPROFILE"));
    named.or_else(|| Some(home?.join(".local/share")))
}

/// Returns the file of a page. `testing`, `testing.md` and `docs/testing.md` are one page; `run` is `cli/run`, since no other page
/// has this name.
fn page(site: &Path, wanted: &str) -> Result<PathBuf, CliError> {
    let name = wanted.strip_prefix("docs/").unwrap_or(wanted);
    let name = name.strip_suffix(".md").or_else(|| name.strip_suffix(".html")).unwrap_or(name).to_lowercase();
    let mut pages = pages_below(site);
    // Of several pages with one name, the first in the order of the site's directories.
    pages.sort_by_key(|page| (page.matches('/').count(), page.clone()));
    let is_page = |page: &&String| page.to_lowercase() == name;
    let ends_so = |page: &&String| last(page).to_lowercase() == name;
    match pages.iter().find(is_page).or_else(|| pages.iter().find(ends_so)) {
        Some(page) => Ok(site.join(format!("{page}.html"))),
        None => {
            let names = pages.iter().map(|page| last(page)).chain(pages.iter().map(String::as_str));
            let near = nearest(&name, names).map(|near| format!("Did you mean `{near}`?"));
            Err(CliError::Usage {
                message: format!("no page is named `{wanted}`"),
                suggestion: near.or_else(|| Some("`cog docs` opens the list of all pages.".to_owned())),
            })
        }
    }
}

/// Returns the last part of a page's name: `run` of `cli/run`, `spec` of `spec/index`.
fn last(page: &str) -> &str {
    let page = page.strip_suffix("/index").unwrap_or(page);
    page.rsplit('/').next().unwrap_or(page)
}

/// Returns the names of the pages below a directory: their paths without `.html`.
fn pages_below(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    named
        .flat_map(|(name, path)| match name.strip_suffix(".html") {
            _ if path.is_dir() => {
                pages_below(&path).into_iter().map(|page| format!("{name}/{page}")).collect()
            }
            Some(page) => vec![page.to_owned()],
            None => Vec::new(),
        })
        .collect()
}

/// Returns the words of the command that opens a page or an address: `$BROWSER`, or the program of the desktop. None without a desktop.
pub(super) fn browser(environment: &Environment) -> Option<Vec<String>> {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| environment.get(name).is_some());
    let default = match std::env::consts::OS {
        "macos" => Some("open"),
        "windows" => Some("explorer"),
        _ => Some("xdg-open").filter(|_| has_desktop),
    };
    // By convention a list, separated as in `PATH`; `%s` is the page.
    let chosen = environment.paths("BROWSER").and_then(|list| Some(list.first()?.to_str()?.to_owned()));
    let command = chosen.or_else(|| default.map(str::to_owned))?;
    Some(command.split_whitespace().map(str::to_owned).collect())
}

/// Opens a page or an address. A browser in the terminal ends when its user ends it; others return at once. Returns whether it could be started.
pub(super) fn open(browser: Vec<String>, page: &OsStr) -> bool {
    let has_place = browser.iter().any(|word| word.contains("%s"));
    let shown = page.to_string_lossy();
    let mut words = browser.into_iter().map(|word| word.replace("%s", &shown));
    let Some(program) = words.next() else { return false };
    let mut command = Command::new(program);
    command.args(words).args((!has_place).then_some(page));
    // A browser needs the variables of its desktop, but not the keys of providers.
    for name in VENDORS.iter().flat_map(|vendor| vendor.key_vars) {
        command.env_remove(name);
    }
    match command.status() {
        // Explorer returns 1 also when it has opened the page.
        Ok(status) => status.success() || cfg!(windows),
        Err(_) => false,
    }
}
