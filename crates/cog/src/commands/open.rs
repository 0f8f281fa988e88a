//! `cog open`: the workbench, on a server that only the browser of its user can use.

use std::ffi::OsStr;

use cog_host::settings::{Environment, Flags, Settings};
use cog_module::{Finder, Origin};

use super::{
    docs,
    runtime::module_here,
    serve::{Listening, PageAddress, ServedWorkbench, listen},
};
use crate::{
    args::{OfferedArgs, OpenArgs},
    error::{CliError, Exit},
    output::Console,
};

/// Serves the page until Ctrl-C, and opens it.
pub(crate) fn open(args: &OpenArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment.clone())?;
    let Shown { offered, module } = shown(args.module.as_deref(), &settings.finder())?;
    let browser = docs::browser(&environment).filter(|_| !args.no_browser);
    let open = |page: &PageAddress| {
        let module = module.as_ref().map(|name| format!("&module={name}")).unwrap_or_default();
        let address = format!("http://{}/#token={}{module}", page.address, page.token);
        // Without a reader of stdout, the browser still opens.
        let _ = console.print(&address);
        if let Some(browser) = browser.clone() {
            // A browser in a terminal ends when its user ends it, and needs the server meanwhile.
            std::thread::spawn(move || docs::open(browser, OsStr::new(&address)));
        }
    };
    let listening = Listening {
        offered: &offered,
        model: &args.model,
        flag: &|flag| match flag {
            "listen" => Some("127.0.0.1".to_owned()),
            "port" => Some(args.port.to_string()),
            _ => None,
        },
        only_mcp: false,
        workbench: Some(ServedWorkbench { can_edit: args.edit, open: Some(&open) }),
    };
    listen(&listening, environment, console)
}

/// What is served, and the module that the page shows first.
struct Shown {
    offered: OfferedArgs,
    module: Option<String>,
}

/// Returns what is served: every module of `cog list`, unless the one to show is somewhere else.
fn shown(module: Option<&str>, finder: &Finder) -> Result<Shown, CliError> {
    let all = OfferedArgs { paths: Vec::new(), builtin: false };
    let Some(module) = module else {
        let here = module_here(finder).map(|origin| name_in(finder, origin)).transpose()?;
        return Ok(Shown { offered: all, module: here.flatten() });
    };
    if finder.find_name(module).is_ok() {
        return Ok(Shown { offered: all, module: Some(module.to_owned()) });
    }
    let origin = finder.find(module)?;
    let paths = origin.directory().map(ToOwned::to_owned).into_iter().collect();
    let name = name_in(finder, origin)?;
    Ok(Shown { offered: OfferedArgs { paths, builtin: false }, module: name })
}

/// Returns the name under which a directory is served.
fn name_in(finder: &Finder, origin: Origin) -> Result<Option<String>, CliError> {
    let Origin::Directory(directory) = origin else { return Ok(None) };
    let only = finder.clone().with_paths_only(&[directory], false)?;
    Ok(only.offered().into_iter().next().map(|(name, _)| name))
}
