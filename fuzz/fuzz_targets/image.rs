//! Images: what is read of the header stays right when metadata are left out, and leaving them out twice changes nothing.
#![no_main]

use std::{io::Read, sync::LazyLock};

use cog_media::{Media, MediaCapabilities, MediaDeclaration, MediaRules, Store, check, normalise};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime without any driver"));

fuzz_target!(|data: &[u8]| {
    let Some(media) = read(data) else { return };
    let rules = MediaRules { max_pixels: 1 << 16, ..MediaRules::default() };
    let Ok(prepared) = normalise(&media, &MediaCapabilities::default(), &rules) else { return };
    let bytes = bytes_of(&prepared.stored);
    let again = read(&bytes).expect("an image without its metadata is an image");
    assert_eq!(again.media_type(), prepared.media_type);
    if !prepared.steps.is_empty()
        && prepared.media_type == media.media_type()
        && again.info().frames.is_none()
    {
        let twice = normalise(&again, &MediaCapabilities::default(), &rules).expect("it was prepared before");
        assert_eq!(bytes_of(&twice.stored), bytes);
    }
});

fn read(bytes: &[u8]) -> Option<Media> {
    let rules = MediaRules { max_pixels: 1 << 16, ..MediaRules::default() };
    let mut store = Store::with_limit(1 << 20);
    store.push(bytes).ok()?;
    RUNTIME.block_on(check(store.finish(), &MediaDeclaration::default(), &rules, None)).ok()
}

fn bytes_of(stored: &cog_media::Stored) -> Vec<u8> {
    let mut bytes = Vec::new();
    stored.reader().read_to_end(&mut bytes).expect("bytes in memory can be read");
    bytes
}
