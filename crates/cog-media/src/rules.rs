use cog_spec::{Manifest, MediaConstraints, Modality};

/// 1 MB is 1,048,576 decoded bytes (ruling R60).
const MB: u64 = 1 << 20;

/// What a medium is held to: the limits of SPEC 4.1.1 and docs/spec/media.md, with those of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaRules {
    /// The kinds that are taken.
    pub kinds: Vec<Modality>,
    /// The longest side of an image, in pixels; of a frame of video 3840×2160 holds besides.
    pub max_dimension: u32,
    /// The shortest side of an image, where there is to be one.
    pub min_dimension: Option<u32>,
    /// The most pixels of an image.
    pub max_pixels: u64,
    /// The most bytes of any medium, below the limit of its kind.
    pub max_bytes: Option<u64>,
    /// The longest sound or video in milliseconds, below the limit of its kind.
    pub max_duration_ms: Option<u64>,
    /// The most pages of a document.
    pub max_pages: u32,
    /// The most media of one input.
    pub max_items: u32,
    /// Whether metadata are stripped.
    pub strip_metadata: bool,
    /// What is held to them was made by a model: it has the types of SPEC 4.1.2, not those of 4.1.1.
    pub are_of_output: bool,
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
            are_of_output: false,
        }
    }
}

impl MediaRules {
    /// The rules of a module: what its manifest takes, and its limits where they are tighter.
    pub fn of(manifest: &Manifest) -> Self {
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
            max_bytes: max_size_mb.map(|size| whole(size * 1_048_576.0)),
            max_duration_ms: max_duration_s.map(|seconds| whole(seconds * 1000.0)),
            max_items: max_items.map_or(general.max_items, |own| own.min(general.max_items)),
            strip_metadata,
            ..general
        }
    }

    /// The rules for what a module makes: the types of SPEC 4.1.2 of the kinds in `modalities.output`, and the limits
    /// that hold for its input.
    pub fn of_output(manifest: &Manifest) -> Self {
        Self { kinds: manifest.modalities.output.clone(), are_of_output: true, ..Self::of(manifest) }
    }

    /// The most bytes of a medium of this kind; exactly so many pass (ruling R60).
    pub fn bytes_of(&self, kind: Modality) -> u64 {
        let limit = match kind {
            Modality::Image => 20 * MB,
            Modality::Audio => 25 * MB,
            Modality::Video => 100 * MB,
            Modality::Document => 50 * MB,
            _ => 0,
        };
        self.max_bytes.map_or(limit, |own| own.min(limit))
    }

    /// The most bytes of a medium whose kind is not known yet.
    pub fn bytes_of_any(&self) -> u64 {
        self.kinds.iter().map(|kind| self.bytes_of(*kind)).max().unwrap_or(0)
    }

    /// The longest that a medium of this kind may take, in milliseconds.
    pub fn duration_of(&self, kind: Modality) -> u64 {
        let limit = if kind == Modality::Audio { 10 * 60_000 } else { 5 * 60_000 };
        self.max_duration_ms.map_or(limit, |own| own.min(limit))
    }

    /// The types that are taken.
    pub fn media_types(&self) -> Vec<&'static str> {
        let types =
            |kind: &Modality| if self.are_of_output { kind.output_types() } else { kind.media_types() };
        self.kinds.iter().flat_map(types).copied().collect()
    }
}

/// A limit that a manifest gives as a number, whole.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes an integer within its bounds"
)]
fn whole(limit: f64) -> u64 {
    limit.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use cog_spec::{Format, Modalities};

    use super::*;

    fn rules(constraints: MediaConstraints) -> MediaRules {
        let input = vec![Modality::Text, Modality::Image];
        let modalities = Modalities { input, constraints, ..Modalities::default() };
        MediaRules::of(&Manifest { modalities, ..Manifest::with_defaults("m", Format::V25, None) })
    }

    #[test]
    fn a_manifest_tightens_limits_and_never_loosens_them() {
        let tight = rules(MediaConstraints {
            max_size_mb: Some(0.5),
            max_dimension: Some(100),
            ..Default::default()
        });
        assert_eq!((tight.bytes_of(Modality::Image), tight.max_dimension), (524_288, 100));
        let loose = rules(MediaConstraints {
            max_size_mb: Some(1e9),
            max_dimension: Some(99_999),
            ..Default::default()
        });
        assert_eq!((loose.bytes_of(Modality::Image), loose.max_dimension), (20 * MB, 8192));
    }

    #[test]
    fn only_the_kinds_of_the_manifest_are_taken() {
        let rules = rules(MediaConstraints::default());
        assert_eq!(rules.media_types(), Modality::Image.media_types());
        assert_eq!(rules.bytes_of_any(), 20 * MB);
    }
}
