//! Reports the media of a run: `meta.media_processed` and `meta.media_validation` (SPEC 6.2, docs/spec/media.md).

use cog_json::{Array, Path, ToJson, Value, Writer};
use cog_spec::Modality;

use crate::{Media, MediaPart};

/// A media file of an input, and what was sent of it.
#[derive(Debug, Clone)]
pub struct ProcessedMedia {
    /// Its path, from `input`.
    pub path: Path,
    /// The checked file.
    pub media: Media,
    /// The parts that were sent.
    pub sent: Vec<MediaPart>,
}

/// Returns `meta.media_processed`: each media file and what was sent of it.
pub fn media_processed(all: &[ProcessedMedia]) -> Value {
    write_all(all, |processed, w| {
        w.optional("source", &processed.media.source());
        processed.media.write_fields(w);
        w.field("sent", &Array(&processed.sent));
    })
}

/// Returns `meta.media_validation`: the checks of each media file, all of which have passed.
pub fn media_validation(all: &[ProcessedMedia]) -> Value {
    write_all(all, |processed, w| {
        w.field("valid", &true);
        w.field("checks", checks(&processed.media).as_slice());
        w.optional("warning", &processed.media.hint_warning());
    })
}

fn write_all(all: &[ProcessedMedia], write: impl Fn(&ProcessedMedia, &mut Writer<'_>)) -> Value {
    let mut text = String::new();
    Writer::compact(&mut text).array(|w| {
        for processed in all {
            w.object(|w| {
                w.field("path", &processed.path.to_string());
                write(processed, w);
            });
        }
    });
    Value::parse(&text).unwrap_or_else(|_| Value::null())
}

fn checks(media: &Media) -> Vec<&'static str> {
    let of_kind: &[&str] = match media.kind() {
        Modality::Image => &["dimensions", "pixels"],
        Modality::Audio => &["duration"],
        Modality::Video => &["duration", "dimensions"],
        Modality::Document => &["pages"],
        _ => &[],
    };
    let checksum = media.checksum().map(|_| "checksum");
    ["type", "size"].into_iter().chain(of_kind.iter().copied()).chain(checksum).collect()
}

/// Written by hand: the size and the part are computed.
impl ToJson for MediaPart {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("media_type", self.media_type);
            w.field("size_bytes", &self.stored.len());
            w.optional("url", &self.url);
            self.part.write_fields(w);
            let steps: Vec<&str> = self.steps.iter().map(|step| step.as_str()).collect();
            w.field("steps", steps.as_slice());
            w.optional("warning", &self.warning);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Access, FileGuard, MediaCapabilities, MediaDeclaration, MediaLocation, MediaRules, MediaSource,
        Store, check::check_now, normalise, obtain,
    };

    const PIXEL: &str = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";

    fn processed(expected: &MediaDeclaration) -> ProcessedMedia {
        let stored = crate::decode_base64(PIXEL, Store::with_limit(100)).unwrap();
        let media = check_now(stored, expected, &MediaRules::default()).unwrap();
        let sent = vec![normalise(&media, &MediaCapabilities::default(), &MediaRules::default()).unwrap()];
        ProcessedMedia { path: "input.image".parse().unwrap(), media, sent }
    }

    #[test]
    fn reports_checks_and_sent_parts() {
        let all = [processed(&MediaDeclaration::default())];
        let reported = media_processed(&all);
        assert_eq!(reported.pointer("/0/media_type").unwrap().as_str(), Some("image/gif"));
        assert_eq!(reported.pointer("/0/path").unwrap().as_str(), Some("input.image"));
        assert_eq!(reported.pointer("/0/sent/0/size_bytes").unwrap().as_u64(), Some(43));
        let reported = media_validation(&all).to_string();
        let checks = r#"["type","size","dimensions","pixels"]"#;
        assert_eq!(reported, format!(r#"[{{"path":"input.image","valid":true,"checks":{checks}}}]"#));
    }

    #[tokio::test]
    async fn misleading_file_name_is_a_warning() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.png");
        let pixel = base64_simd::STANDARD.decode_to_vec(PIXEL).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the file of the test")]
        std::fs::write(&path, pixel).unwrap();
        let access = Access { files: FileGuard::new([path.clone()]), ..Access::default() };
        let media =
            obtain(MediaSource::new(MediaLocation::File(path)), MediaRules::default(), access).await.unwrap();
        let all = [ProcessedMedia { path: Path::root(), media, sent: Vec::new() }];
        let warning = "the file name suggests image/png, but the content is image/gif";
        assert_eq!(media_validation(&all).pointer("/0/warning").unwrap().as_str(), Some(warning));
        assert_eq!(media_processed(&all).pointer("/0/source").unwrap().as_str(), Some("file"));
    }
}
