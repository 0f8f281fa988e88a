//! Media files that are given on the command line.

use std::path::PathBuf;

use cog_host::settings::MediaSettings;
use cog_media::{
    Access, Expected, Media, MediaError, MediaLocation, MediaRules, MediaSource, Store, check, obtain,
};

/// Opens and checks a source: a URL, a file, or `-` for stdin.
///
/// # Errors
/// As in a run, but the file may be in any directory (docs/spec/media.md).
pub(super) async fn open(
    source: &str,
    rules: &MediaRules,
    settings: &MediaSettings,
) -> Result<Media, MediaError> {
    if source == "-" {
        return stdin(rules, settings).await;
    }
    obtain(MediaSource::new(classify(source)), rules.clone(), access(source, settings)).await
}

/// Classifies a source: with a scheme, or empty, it is a URL, otherwise a file.
pub(in crate::commands) fn classify(source: &str) -> MediaLocation {
    let scheme = source.split_once(':').map_or("", |(scheme, _)| scheme);
    // A scheme of one letter is a drive.
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if is_scheme || source.is_empty() {
        MediaLocation::Url(source.to_owned())
    } else {
        MediaLocation::File(PathBuf::from(source))
    }
}

/// Allows this file, and the URLs that the operator allows.
fn access(source: &str, settings: &MediaSettings) -> Access {
    Access {
        fetcher: settings.fetcher(),
        files: settings.files([PathBuf::from(source)]),
        tool: Some(settings.tool()),
        ..Access::default()
    }
}

async fn stdin(rules: &MediaRules, settings: &MediaSettings) -> Result<Media, MediaError> {
    let mut store = Store::with_limit(rules.max_bytes_of_any());
    store.push_all(std::io::stdin().lock())?;
    check(store.finish(), &Expected::default(), rules, Some(&settings.tool())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_with_scheme_is_url() {
        for url in ["", "http://a", "HTTP:a", "javascript:alert(1)", "data:,", "http+unix://a"] {
            assert!(matches!(classify(url), MediaLocation::Url(_)), "{url}");
        }
        for file in ["a.png", "./a:b.png", "C:\\a.png", "/etc/passwd", "//127.0.0.1/", " http://a"] {
            assert!(matches!(classify(file), MediaLocation::File(_)), "{file}");
        }
    }
}
