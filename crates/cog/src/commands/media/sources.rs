//! Media that are named on the command line.

use std::path::PathBuf;

use cog_media::{Access, Expected, Media, MediaError, MediaRules, MediaSource, Place, Store, check, obtain};

use crate::settings::MediaSettings;

/// Opens and checks what a word names: an address, a file, or stdin for `-`.
///
/// # Errors
/// As in a run; a file that is named may be anywhere (docs/spec/media.md).
pub(super) async fn open(
    word: &str,
    rules: &MediaRules,
    settings: &MediaSettings,
) -> Result<Media, MediaError> {
    if word == "-" {
        return stdin(rules, settings).await;
    }
    obtain(MediaSource::new(place(word)), rules.clone(), access(word, settings)).await
}

/// What has a scheme is an address, and so is nothing; everything else is a file.
pub(super) fn place(word: &str) -> Place {
    let scheme = word.split_once(':').map_or("", |(scheme, _)| scheme);
    // A scheme of one letter is a disk.
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if is_scheme || word.is_empty() { Place::Url(word.to_owned()) } else { Place::File(PathBuf::from(word)) }
}

/// The one file that was named, and the addresses that the operator lets be fetched.
fn access(word: &str, settings: &MediaSettings) -> Access {
    Access {
        fetcher: settings.fetcher(),
        files: settings.files([PathBuf::from(word)]),
        tool: Some(settings.tool()),
        ..Access::default()
    }
}

async fn stdin(rules: &MediaRules, settings: &MediaSettings) -> Result<Media, MediaError> {
    let mut store = Store::within(rules.bytes_of_any());
    store.push_all(std::io::stdin().lock())?;
    check(store.finish(), &Expected::default(), rules, Some(&settings.tool())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_scheme_is_an_address() {
        for url in ["", "http://a", "HTTP:a", "javascript:alert(1)", "data:,", "http+unix://a"] {
            assert!(matches!(place(url), Place::Url(_)), "{url}");
        }
        for file in ["a.png", "./a:b.png", "C:\\a.png", "/etc/passwd", "//127.0.0.1/", " http://a"] {
            assert!(matches!(place(file), Place::File(_)), "{file}");
        }
    }
}
