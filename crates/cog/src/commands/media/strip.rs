//! `cog media strip`: removes metadata from an image.

use std::{
    io::{Read as _, Write as _},
    path::Path,
};

use cog_host::settings::{Environment, Flags, Settings};
use cog_media::{MediaCapabilities, MediaError, MediaRules, Prepared, normalise, type_of_name};
use cog_spec::{ErrorBody, Modality};

use super::{super::emit, super::runtime, sources};
use crate::{args::StripArgs, error::CliError, exit::Exit, output::Console};

/// Writes the image to the file of the arguments or to stdout.
pub(crate) fn strip(args: &StripArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let file = args.output.as_deref().filter(|path| !emit::is_stdout(path));
    if file.is_none() && console.is_interactive() {
        return Err(CliError::Usage {
            message: "cannot write an image to a terminal".to_owned(),
            suggestion: Some("Write it to a file with -o FILE.".to_owned()),
        });
    }
    emit::check(file)?;
    let settings = Settings::read(Flags::default(), environment)?;
    let rules = MediaRules { kinds: vec![Modality::Image], ..MediaRules::default() };
    let Some(opened) = runtime::wait(sources::open(&args.source, &rules, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let capabilities = capabilities(file);
    let stripped = match opened.and_then(|media| normalise(&media, &capabilities, &rules)) {
        Err(MediaError::UnsupportedByProvider { media_type }) => return Err(other_format(media_type)),
        stripped => stripped,
    };
    let bytes = stripped.and_then(|stripped| read_all(&stripped)).map_err(|error| ErrorBody::from(&error))?;
    write(&bytes, file, console)?;
    Ok(Exit::Ok)
}

/// Returns the types that the image may have: that of the file name, or any if it names none.
fn capabilities(file: Option<&Path>) -> MediaCapabilities {
    let any = MediaCapabilities::default();
    match file.and_then(type_of_name).filter(|named| any.media_types.contains(named)) {
        Some(named) => MediaCapabilities { media_types: vec![named], ..any },
        None => any,
    }
}

fn other_format(media_type: &str) -> CliError {
    CliError::Usage {
        message: format!("{media_type} cannot be written in the format of the output file's name"),
        suggestion: Some("use a name that ends with .png, .jpg or .webp".to_owned()),
    }
}

fn read_all(stripped: &Prepared) -> Result<Vec<u8>, MediaError> {
    let mut bytes = Vec::new();
    stripped.stored.reader().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(bytes: &[u8], file: Option<&Path>, console: &Console) -> Result<(), CliError> {
    match file {
        Some(path) => emit::bytes(path, bytes, console),
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes)?;
            Ok(out.flush()?)
        }
    }
}
