//! Media that are named on the command line.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use cog_media::{
    Access, Expected, FetchLimits, Fetcher, FileGuard, Media, MediaError, MediaRules, MediaSource, Place,
    Store, UrlGuard, check, obtain,
};

/// Opens and checks what a word names: an address, a file, or stdin for `-`.
///
/// # Errors
/// As in a run; a file that is named may be anywhere (supplement section 9).
pub(super) async fn open(word: &str, rules: &MediaRules) -> Result<Media, MediaError> {
    if word == "-" {
        return stdin(rules);
    }
    obtain(MediaSource::new(place(word)), rules.clone(), access(word)).await
}

/// An address begins with a scheme; everything else is a file.
fn place(word: &str) -> Place {
    let is_address = word.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    if is_address { Place::Url(word.to_owned()) } else { Place::File(PathBuf::from(word)) }
}

/// The one file that was named, and public addresses.
fn access(word: &str) -> Access {
    Access {
        fetcher: Some(Arc::new(Fetcher::new(UrlGuard::default(), FetchLimits::default()))),
        files: FileGuard::new([Path::new(word).to_owned()]),
        ..Access::default()
    }
}

fn stdin(rules: &MediaRules) -> Result<Media, MediaError> {
    let mut store = Store::within(rules.bytes_of_any());
    let mut input = std::io::stdin().lock();
    let mut block = vec![0; 64 * 1024];
    loop {
        let read = input.read(&mut block)?;
        match block.get(..read) {
            Some(read) if !read.is_empty() => store.push(read)?,
            _ => return check(store.finish(), &Expected::default(), rules),
        }
    }
}
