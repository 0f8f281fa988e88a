use cog_spec::{Manifest, MediaConstraints, Modality, media_type::canonical};

use crate::{
    MediaError,
    kind::{audio_type, container_of, convertible, describe_unknown, modality_of, sniff},
};

/// 1 MB is 1,048,576 decoded bytes (ruling R60).
const MB: u64 = 1 << 20;

/// How much longer than its content audio can be: encoders add silence and fill the last frame.
pub(crate) const PADDING_MS: u64 = 250;

/// The limits for media files: SPEC 4.1.1 and docs/spec/media.md, tightened by a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaRules {
    /// The allowed kinds.
    pub kinds: Vec<Modality>,
    /// The maximum side of an image, in pixels; video frames are also limited to 3840×2160.
    pub max_dimension: u32,
    /// The minimum side of an image.
    pub min_dimension: Option<u32>,
    /// The maximum pixels of an image.
    pub max_pixels: u64,
    /// The maximum bytes of any file, below the limit of its kind.
    pub max_bytes: Option<u64>,
    /// The maximum duration in milliseconds, below the limit of its kind.
    pub max_duration_ms: Option<u64>,
    /// The maximum pages of a document.
    pub max_pages: u32,
    /// The maximum media files of one input.
    pub max_items: u32,
    /// Whether metadata is removed.
    pub strip_metadata: bool,
    /// Whether the rules apply to generated media, with the types of SPEC 4.1.2 instead of 4.1.1.
    pub is_output: bool,
}

impl Default for MediaRules {
    fn default() -> Self {
        Self {
            kinds: Modality::ALL.to_vec(),
            max_dimension: 8192,
            min_dimension: None,
            max_pixels: 67_108_864,
            max_bytes: None,
            max_duration_ms: None,
            max_pages: 500,
            max_items: 10,
            strip_metadata: true,
            is_output: false,
        }
    }
}

impl MediaRules {
    /// Returns the rules for the input of a module: the kinds of its manifest, and its limits if they are tighter.
    pub fn from_manifest(manifest: &Manifest) -> Self {
        let MediaConstraints {
            max_size_mb,
            max_dimension,
            min_dimension,
            max_pixels,
            max_duration_s,
            max_items,
            strip_metadata,
        } = manifest.modalities.constraints;
        let general = Self::default();
        Self {
            kinds: manifest.modalities.input.clone(),
            max_dimension: max_dimension.map_or(general.max_dimension, |own| own.min(general.max_dimension)),
            min_dimension,
            max_pixels: max_pixels.map_or(general.max_pixels, |own| own.min(general.max_pixels)),
            max_bytes: max_size_mb.map(|size| to_integer(size * 1_048_576.0)),
            max_duration_ms: max_duration_s.map(|seconds| to_integer(seconds * 1000.0)),
            max_items: max_items.map_or(general.max_items, |own| own.min(general.max_items)),
            strip_metadata,
            ..general
        }
    }

    /// Returns the rules for generated media: the types of SPEC 4.1.2 for the kinds in `modalities.output`, and the
    /// limits of the input.
    pub fn output_from_manifest(manifest: &Manifest) -> Self {
        Self { kinds: manifest.modalities.output.clone(), is_output: true, ..Self::from_manifest(manifest) }
    }

    /// Returns the maximum bytes of a file of this kind; a file of exactly this size passes (ruling R60).
    pub fn max_bytes_of(&self, kind: Modality) -> u64 {
        let limit = match kind {
            Modality::Image => 20 * MB,
            Modality::Audio => 25 * MB,
            Modality::Video => 100 * MB,
            Modality::Document => 50 * MB,
            _ => 0,
        };
        self.max_bytes.map_or(limit, |own| own.min(limit))
    }

    /// Returns the maximum bytes of a file of unknown kind.
    pub fn max_bytes_of_any(&self) -> u64 {
        self.kinds.iter().map(|kind| self.max_bytes_of(*kind)).max().unwrap_or(0)
    }

    /// Returns the maximum duration of a file of this kind, in milliseconds.
    pub fn max_duration_of(&self, kind: Modality) -> u64 {
        let limit = if kind == Modality::Audio { 10 * 60_000 } else { 5 * 60_000 };
        self.max_duration_ms.map_or(limit, |own| own.min(limit))
    }

    /// Returns whether files of this type are converted to a supported type when they are opened.
    pub(crate) fn converts(&self, media_type: &str) -> bool {
        let media_type = canonical(container_of(media_type));
        let Some((_, kind)) = convertible(&media_type) else { return false };
        // A file of a video type may turn out to have only sound.
        let may_be_sound = kind == Modality::Video && self.kinds.contains(&Modality::Audio);
        !self.is_output && (may_be_sound || self.kinds.contains(&kind))
    }

    /// Returns why content that starts with these bytes is refused if it is too long: because no file of its type is accepted (ruling
    /// R80), or because of the limit of its kind. `limit` is the one of content of unknown kind.
    pub(crate) fn refusal(&self, head: &[u8], limit: u64) -> MediaError {
        let found = sniff(head);
        let allowed = self.media_types();
        // Whether a container has video is known only after its tracks are read.
        let possible = [found, found.and_then(audio_type)].into_iter().flatten();
        let is_accepted = possible.clone().any(|found| allowed.contains(&found) || self.converts(found));
        if !is_accepted {
            return MediaError::unsupported(found.or_else(|| describe_unknown(head)), &allowed);
        }
        MediaError::TooLarge { limit: self.max_bytes_by_type(head, limit) }
    }

    /// Returns the maximum bytes of content that starts with these bytes: the limit of its kind, where that is known, and otherwise
    /// `limit`.
    pub(crate) fn max_bytes_by_type(&self, head: &[u8], limit: u64) -> u64 {
        let found = sniff(head);
        let possible = [found, found.and_then(audio_type)].into_iter().flatten();
        let allowed = self.media_types();
        // Audio that is converted may be larger than its WAV.
        let is_sound = |found: &str| convertible(found).is_some_and(|(_, kind)| kind != Modality::Image);
        if possible.clone().any(|found| !allowed.contains(&found) && self.converts(found) && is_sound(found))
        {
            return limit;
        }
        let kind_of = |found| modality_of(found).or_else(|| Some(convertible(found)?.1));
        let limits = possible.filter_map(kind_of).filter(|kind| self.kinds.contains(kind));
        limits.map(|kind| self.max_bytes_of(kind)).max().unwrap_or(limit).min(limit)
    }

    /// Returns the supported types.
    pub fn media_types(&self) -> Vec<&'static str> {
        let kinds = self.kinds.iter();
        match self.is_output {
            true => kinds.flat_map(|kind| kind.output_types()).copied().collect(),
            false => kinds.flat_map(|kind| kind.media_types()).copied().collect(),
        }
    }
}

/// Returns a limit of a manifest as an integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes an integer within its bounds"
)]
fn to_integer(limit: f64) -> u64 {
    limit.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use cog_spec::{Format, Modalities};

    use super::*;

    fn rules(constraints: MediaConstraints) -> MediaRules {
        let input = vec![Modality::Text, Modality::Image];
        let modalities = Modalities { input, constraints, ..Modalities::default() };
        MediaRules::from_manifest(&Manifest { modalities, ..Manifest::with_defaults("m", Format::V25, None) })
    }

    #[test]
    fn manifest_tightens_limits_and_never_loosens_them() {
        let tight = rules(MediaConstraints {
            max_size_mb: Some(0.5),
            max_dimension: Some(100),
            ..Default::default()
        });
        assert_eq!((tight.max_bytes_of(Modality::Image), tight.max_dimension), (524_288, 100));
        let loose = rules(MediaConstraints {
            max_size_mb: Some(1e9),
            max_dimension: Some(99_999),
            ..Default::default()
        });
        assert_eq!((loose.max_bytes_of(Modality::Image), loose.max_dimension), (20 * MB, 8192));
    }

    #[test]
    fn only_the_kinds_of_the_manifest_are_supported() {
        let rules = rules(MediaConstraints::default());
        assert_eq!(rules.media_types(), Modality::Image.media_types());
        assert_eq!(rules.max_bytes_of_any(), 20 * MB);
    }
}
