//! Checks bytes and returns a media file.

use std::io::{Read as _, Seek as _, SeekFrom};

use cog_spec::Modality;

use crate::{
    Checksum, LimitKind, Media, MediaDeclaration, MediaError, MediaInfo, MediaRules, Stored, Tool,
    heif::Picture,
    kind::{
        HEAD, audio_type, container_of, convertible, describe_unknown, end_of_tag, is_named, modality_of,
        sniff, tagged_type, with_codec,
    },
    normalise::read_header,
    rules::PADDING_MS,
    store::run_blocking,
};

/// Checks the checksum, the type by content, the size, and then what the header says (SPEC 8.3, media validation).
///
/// Images are read here, other files by the tool in a separate process. Dropping the future ends that process.
///
/// # Errors
/// The first check that fails, each with its code; [`MediaError::NoReader`] if a tool is required but missing.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), cog_media::MediaError> {
/// use cog_media::{MediaDeclaration, MediaRules, Store, check, decode_base64};
/// let pixel = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
/// let stored = decode_base64(pixel, Store::with_limit(20 << 20))?;
/// let media = check(stored, &MediaDeclaration::default(), &MediaRules::default(), None).await?;
/// assert_eq!((media.media_type(), media.info().width), ("image/gif", Some(1)));
/// # Ok(()) }
/// ```
pub async fn check(
    stored: Stored,
    expected: &MediaDeclaration,
    rules: &MediaRules,
    tool: Option<&Tool>,
) -> Result<Media, MediaError> {
    verify_checksum(&stored, expected.checksum.as_ref()).await?;
    match (check_supported(stored.clone(), expected, rules, tool).await, tool) {
        (Err(MediaError::Unsupported { found: Some(found), .. }), Some(tool))
            if tool.programs().ffmpeg.is_some() && rules.converts(&found) =>
        {
            convert(&stored, &found, expected, rules, tool).await
        }
        (Err(MediaError::Unsupported { found: None, allowed }), _) => {
            let found = describe_unknown(stored.head()).map(str::to_owned);
            Err(MediaError::Unsupported { found, allowed })
        }
        (checked, _) => checked,
    }
}

/// Converts a file of a type that no provider supports, and checks the result.
///
/// An image or video that this ffmpeg cannot convert is of an unsupported type, not damaged.
async fn convert(
    stored: &Stored,
    found: &str,
    expected: &MediaDeclaration,
    rules: &MediaRules,
    tool: &Tool,
) -> Result<Media, MediaError> {
    let unsupported = MediaError::unsupported(Some(found), &rules.media_types());
    let Some((media_type, kind)) = convertible(container_of(found)) else { return Err(unsupported) };
    check_declared(expected, media_type)?;
    // The limit for audio applies to the WAV: lossless files are larger.
    if kind != Modality::Audio {
        check_size(stored, kind, rules)?;
    }
    let any = MediaDeclaration { media_type: None, ..expected.clone() };
    let media = match kind {
        Modality::Audio => {
            let converted = tool.to_wav(stored, media_type).await;
            // With a codec that is not known here, the file may well be in order.
            let is_unknown = found != media_type;
            let wav = converted
                .map_err(|error| if is_unknown { instead_of_damaged(error, unsupported) } else { error })?;
            check_supported(wav, &any, rules, Some(tool)).await?
        }
        Modality::Image => {
            let converted = convert_picture(stored, media_type, rules, tool).await;
            let ConvertedPicture { jpeg, size } =
                converted.map_err(|error| instead_of_damaged(error, unsupported))?;
            let media = check_supported(jpeg, &any, rules, Some(tool)).await?;
            // A picture of another size is another picture of the file, such as a tile or a thumbnail.
            if (media.facts.width, media.facts.height) != (Some(size.0), Some(size.1)) {
                return Err(MediaError::unsupported(Some(found), &rules.media_types()));
            }
            media
        }
        _ => {
            let converted = convert_tracks(stored, media_type, rules, tool).await?;
            check_supported(converted, &any, rules, Some(tool)).await?
        }
    };
    Ok(Media { original: Some(media_type), declared: expected.clone(), ..media })
}

/// The picture of a HEIF or AVIF file.
struct ConvertedPicture {
    jpeg: Stored,
    /// The width and height that the file declares.
    size: (u32, u32),
}

async fn convert_picture(
    stored: &Stored,
    media_type: &'static str,
    rules: &MediaRules,
    tool: &Tool,
) -> Result<ConvertedPicture, MediaError> {
    let file = stored.clone();
    let picture = run_blocking(move || Ok(Picture::read(&file)?)).await?;
    let what = "its primary picture is not described, or in a way that is not supported";
    let picture = picture.ok_or(MediaError::Damaged { media_type, what })?;
    if picture.has_alpha {
        // ffmpeg shows the colours that are hidden, such as red in place of nothing.
        let found = with_codec(media_type, "transparency");
        return Err(MediaError::unsupported(Some(&found), &rules.media_types()));
    }
    // The limits for pixels apply before anything is decoded.
    let size = picture.displayed();
    let facts = MediaInfo { width: Some(size.0), height: Some(size.1), ..MediaInfo::default() };
    check_facts(&facts, Modality::Image, rules)?;
    let max_bytes = rules.max_bytes_of(Modality::Image);
    let jpeg = tool.to_jpeg(stored, media_type, &picture, max_bytes).await?;
    Ok(ConvertedPicture { jpeg, size })
}

/// Converts a video to MP4, and a file that has only sound to WAV.
async fn convert_tracks(
    stored: &Stored,
    media_type: &'static str,
    rules: &MediaRules,
    tool: &Tool,
) -> Result<Stored, MediaError> {
    let tracks = tool.tracks(stored, media_type).await?;
    let has_video = tracks.iter().any(|track| track.kind == Modality::Video);
    let kind = if has_video { Modality::Video } else { Modality::Audio };
    let codecs: Vec<_> = tracks.iter().map(|track| track.codec.as_str()).collect();
    let found = match codecs.as_slice() {
        [] => media_type.to_owned(),
        codecs => with_codec(media_type, &codecs.join(" and ")),
    };
    let unsupported = MediaError::unsupported(Some(&found), &rules.media_types());
    if codecs.is_empty() || !rules.kinds.contains(&kind) {
        return Err(unsupported);
    }
    let converted = match kind {
        Modality::Video => tool.to_mp4(stored, media_type, &tracks, rules.max_bytes_of(kind)).await,
        _ => tool.to_wav(stored, media_type).await,
    };
    converted.map_err(|error| instead_of_damaged(error, unsupported))
}

fn instead_of_damaged(error: MediaError, unsupported: MediaError) -> MediaError {
    match error {
        MediaError::Damaged { .. } => unsupported,
        error => error,
    }
}

/// Checks a file of a supported type.
async fn check_supported(
    stored: Stored,
    expected: &MediaDeclaration,
    rules: &MediaRules,
    tool: Option<&Tool>,
) -> Result<Media, MediaError> {
    let found = type_of(&stored).await?;
    // Whether a container has video is known only after its tracks are read. Until then a type counts as supported if
    // it is either as video or as audio.
    let (kind, likely) = supported_type(found, expected, rules).or_else(|refusal| {
        let other = found.and_then(audio_type);
        let supported = supported_type(other, expected, rules).ok();
        supported.or_else(|| convertible_track(found, expected, rules)).ok_or(refusal)
    })?;
    check_size(&stored, kind, rules)?;
    let facts = read_facts(&stored, likely, tool).await.map_err(|error| match error {
        // The reader does not know which types are supported.
        MediaError::Unsupported { found, .. } => {
            MediaError::unsupported(found.as_deref(), &rules.media_types())
        }
        error => error,
    })?;
    let (kind, media_type) = match found.and_then(audio_type) {
        Some(other) if facts.width.is_none() => supported_type(Some(other), expected, rules)?,
        _ => supported_type(found, expected, rules)?,
    };
    // Again: the limit for audio is lower than the one for video.
    check_size(&stored, kind, rules)?;
    check_facts(&facts, kind, rules)?;
    Ok(Media { stored, kind, media_type, facts, declared: expected.clone(), original: None })
}

/// Returns the type of the content.
async fn type_of(stored: &Stored) -> Result<Option<&'static str>, MediaError> {
    if stored.is_in_memory() {
        return Ok(sniff_stored(stored)?);
    }
    let stored = stored.clone();
    run_blocking(move || Ok(sniff_stored(&stored)?)).await
}

/// Returns the type of stored content, also of audio after a long ID3 tag, whose cover fills more than the head.
///
/// # Errors
/// If the stored bytes cannot be read.
pub(crate) fn sniff_stored(stored: &Stored) -> std::io::Result<Option<&'static str>> {
    let head = stored.head();
    let Some(end) = end_of_tag(head).filter(|end| *end >= head.len()) else { return Ok(sniff(head)) };
    let mut reader = stored.reader();
    reader.seek(SeekFrom::Start(end as u64))?;
    let mut after = Vec::new();
    reader.take(HEAD as u64).read_to_end(&mut after)?;
    Ok(Some(tagged_type(&after)))
}

/// Verifies the checksum on a thread that may block.
async fn verify_checksum(stored: &Stored, checksum: Option<&Checksum>) -> Result<(), MediaError> {
    let Some(checksum) = checksum.cloned() else { return Ok(()) };
    let stored = stored.clone();
    run_blocking(move || checksum.verify(&stored)).await
}

/// Returns the type of the content if it is supported and not declared as another type.
fn supported_type(
    found: Option<&'static str>,
    expected: &MediaDeclaration,
    rules: &MediaRules,
) -> Result<(Modality, &'static str), MediaError> {
    let allowed = rules.media_types();
    let Some(media_type) = found.filter(|found| allowed.contains(found)) else {
        return Err(MediaError::unsupported(found, &allowed));
    };
    check_declared(expected, media_type)?;
    let kind = modality_of(media_type).ok_or_else(|| MediaError::unsupported(found, &allowed))?;
    Ok((kind, media_type))
}

/// Returns the container of an audio track that is converted, if it turns out to have no video track.
fn convertible_track(
    found: Option<&'static str>,
    expected: &MediaDeclaration,
    rules: &MediaRules,
) -> Option<(Modality, &'static str)> {
    let other = audio_type(found?)?;
    let may_be = rules.converts(other) && check_declared(expected, other).is_ok();
    may_be.then_some((Modality::Audio, found?))
}

/// Checks that the declared type matches the content; any name of the type will do.
fn check_declared(expected: &MediaDeclaration, media_type: &str) -> Result<(), MediaError> {
    match expected.media_type.as_deref() {
        Some(declared) if !is_named(media_type, declared) => {
            Err(MediaError::TypeMismatch { declared: declared.to_owned(), found: media_type.to_owned() })
        }
        _ => Ok(()),
    }
}

fn check_size(stored: &Stored, kind: Modality, rules: &MediaRules) -> Result<(), MediaError> {
    let limit = rules.max_bytes_of(kind);
    if stored.len() > limit { Err(MediaError::TooLarge { limit }) } else { Ok(()) }
}

async fn read_facts(
    stored: &Stored,
    media_type: &'static str,
    tool: Option<&Tool>,
) -> Result<MediaInfo, MediaError> {
    if modality_of(media_type) == Some(Modality::Image) {
        // Reading from disk blocks, and counting the frames of an animation reads the complete file.
        if stored.is_in_memory() {
            return read_header(stored, media_type);
        }
        let stored = stored.clone();
        return run_blocking(move || read_header(&stored, media_type)).await;
    }
    let tool = tool.ok_or(MediaError::NoReader { what: "this program has no process that could read it" })?;
    tool.probe(stored, media_type).await
}

fn check_facts(facts: &MediaInfo, kind: Modality, rules: &MediaRules) -> Result<(), MediaError> {
    let found = facts.duration_ms.unwrap_or_default();
    let limit = rules.max_duration_of(kind);
    if found > limit.saturating_add(PADDING_MS) {
        return Err(MediaError::LimitExceeded { limit_kind: LimitKind::Duration, found, limit });
    }
    let found = u64::from(facts.pages.unwrap_or_default());
    let limit = u64::from(rules.max_pages);
    if found > limit {
        return Err(MediaError::LimitExceeded { limit_kind: LimitKind::Pages, found, limit });
    }
    let Some(width) = facts.width else { return Ok(()) };
    let Some(height) = facts.height else { return Ok(()) };
    if kind == Modality::Video && (width.max(height) > 3840 || width.min(height) > 2160) {
        return Err(MediaError::FrameTooLarge { width, height });
    }
    if width.max(height) > rules.max_dimension {
        return Err(MediaError::DimensionTooLarge { width, height, limit: rules.max_dimension });
    }
    if let Some(limit) = rules.min_dimension.filter(|limit| width.min(height) < *limit) {
        return Err(MediaError::DimensionTooSmall { width, height, limit });
    }
    let pixels = u64::from(width) * u64::from(height);
    if pixels > rules.max_pixels {
        return Err(MediaError::TooManyPixels { pixels, limit: rules.max_pixels });
    }
    Ok(())
}

/// Checks without a tool, for tests without an async runtime.
#[cfg(test)]
pub(crate) fn check_now(
    stored: Stored,
    expected: &MediaDeclaration,
    rules: &MediaRules,
) -> Result<Media, MediaError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(check(stored, expected, rules, None))
}

#[cfg(test)]
mod tests {
    use cog_spec::Code;
    use futures_util::FutureExt as _;
    use image::{ExtendedColorType, ImageEncoder as _, codecs::png::PngEncoder};

    use super::*;
    use crate::Store;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let pixels = vec![0; (width * height) as usize];
        PngEncoder::new(&mut bytes).write_image(&pixels, width, height, ExtendedColorType::L8).unwrap();
        bytes
    }

    fn checked(bytes: &[u8], declared: Option<&str>, rules: &MediaRules) -> Result<Media, MediaError> {
        let mut store = Store::with_limit(1 << 30);
        store.push(bytes)?;
        let expected =
            MediaDeclaration { media_type: declared.map(str::to_owned), ..MediaDeclaration::default() };
        check_now(store.finish(), &expected, rules)
    }

    #[test]
    fn image_passes_with_type_and_dimensions() {
        let media = checked(&png(30, 20), Some("IMAGE/PNG"), &MediaRules::default()).unwrap();
        assert_eq!((media.media_type(), media.kind()), ("image/png", Modality::Image));
        assert_eq!((media.info().width, media.info().height), (Some(30), Some(20)));
    }

    #[test]
    fn image_on_disk_is_read_on_a_blocking_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (release, released) = std::sync::mpsc::channel::<()>();
            let occupied = tokio::task::spawn_blocking(move || released.recv());
            let expected = MediaDeclaration::default();
            let rules = MediaRules::default();
            let in_memory = check(stored_png(1 << 20), &expected, &rules, None);
            assert!(in_memory.now_or_never().is_some());
            let mut on_disk = Box::pin(check(stored_png(0), &expected, &rules, None));
            assert!(on_disk.as_mut().now_or_never().is_none());
            release.send(()).unwrap();
            occupied.await.unwrap().unwrap();
            assert_eq!(on_disk.await.unwrap().info().width, Some(200));
        });
    }

    /// Returns a stored PNG with at most this many bytes in memory.
    fn stored_png(in_memory: usize) -> Stored {
        let mut store = Store::with_limit(1 << 30).in_memory(in_memory);
        let image = png(200, 100);
        let padded = [image.as_slice(), &[0; 10_000]].concat();
        store.push(&padded).unwrap();
        store.finish()
    }

    #[test]
    fn sides_and_pixels_at_the_limit_pass() {
        let rules = MediaRules {
            max_dimension: 30,
            min_dimension: Some(20),
            max_pixels: 700,
            ..MediaRules::default()
        };
        assert!(checked(&png(30, 20), None, &rules).is_ok());
        assert!(matches!(checked(&png(31, 20), None, &rules), Err(MediaError::DimensionTooLarge { .. })));
        assert!(matches!(checked(&png(30, 19), None, &rules), Err(MediaError::DimensionTooSmall { .. })));
        assert!(matches!(checked(&png(30, 24), None, &rules), Err(MediaError::TooManyPixels { .. })));
    }

    #[test]
    fn declared_type_that_differs_is_a_mismatch() {
        let rules = MediaRules::default();
        assert!(matches!(
            checked(&png(1, 1), Some("image/jpeg"), &rules),
            Err(MediaError::TypeMismatch { .. })
        ));
        assert!(matches!(checked(b"hello", Some("image/png"), &rules), Err(MediaError::Unsupported { .. })));
        assert!(matches!(checked(b"", None, &rules), Err(MediaError::Unsupported { .. })));
    }

    #[test]
    fn document_without_a_tool_is_refused() {
        let refused = checked(b"%PDF-1.7\n", None, &MediaRules::default()).unwrap_err();
        assert_eq!(
            (refused.code(), matches!(refused, MediaError::NoReader { .. })),
            (Code::MultimodalNotSupported, true)
        );
    }

    #[test]
    fn duration_pages_and_frames_at_the_limit_pass() {
        let rules = MediaRules { max_duration_ms: Some(1000), max_pages: 3, ..MediaRules::default() };
        let fits =
            |facts, kind| check_facts(&facts, kind, &rules).map_err(|error| (error.code(), error.reason()));
        let long = |duration_ms| MediaInfo { duration_ms: Some(duration_ms), ..MediaInfo::default() };
        assert_eq!(fits(long(1000 + PADDING_MS), Modality::Audio), Ok(()));
        assert_eq!(
            fits(long(1001 + PADDING_MS), Modality::Video),
            Err((Code::MediaTooLarge, Some("duration")))
        );
        let thick = |pages| MediaInfo { pages: Some(pages), ..MediaInfo::default() };
        assert_eq!(fits(thick(3), Modality::Document), Ok(()));
        assert_eq!(fits(thick(4), Modality::Document), Err((Code::MediaTooLarge, Some("pages"))));
        let frame =
            |width, height| MediaInfo { width: Some(width), height: Some(height), ..MediaInfo::default() };
        assert_eq!(fits(frame(2160, 3840), Modality::Video), Ok(()));
        assert_eq!(fits(frame(3000, 2161), Modality::Video), Err((Code::MediaDimensionExceeded, None)));
    }

    #[test]
    fn truncated_image_returns_an_error_or_a_result() {
        let complete = png(8, 8);
        for end in 0..complete.len() {
            let outcome = checked(&complete[..end], None, &MediaRules::default());
            assert!(!matches!(outcome, Err(MediaError::Storage(_))), "truncated at {end}");
        }
    }
}
