//! From bytes to a medium that was checked.

use cog_json::Writer;
use cog_spec::Modality;

use crate::{
    Checksum, Detail, Facts, MediaError, MediaRules, MediaSource, Place, Rotation, Stored,
    checksum::hex,
    kind::{modality_of, sniff, type_of_name},
    picture,
};

/// A medium that has passed every check.
#[derive(Debug, Clone)]
pub struct Media {
    stored: Stored,
    kind: Modality,
    media_type: &'static str,
    facts: Facts,
    said: Expected,
}

/// What was said of a medium by who sent it.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// Its `media_type`, which the content must be (supplement R61).
    pub media_type: Option<String>,
    /// The type that its name or the server it came from hints at; the content decides (supplement R61).
    pub hint: Option<String>,
    /// How closely a model is to look at it.
    pub detail: Option<Detail>,
    /// By how much it is turned before a model sees it.
    pub rotation: Rotation,
    /// The `type` of its source.
    pub source: Option<&'static str>,
    /// What its bytes must hash to.
    pub checksum: Option<Checksum>,
}

impl Expected {
    /// What a source says; the ending of a file is a hint.
    pub(crate) fn of(source: &MediaSource) -> Self {
        let hint = match &source.place {
            Place::File(path) => type_of_name(path).map(str::to_owned),
            _ => None,
        };
        Self {
            media_type: source.media_type.clone(),
            hint,
            detail: source.detail,
            rotation: source.rotation,
            source: Some(source.place.kind()),
            checksum: source.checksum.clone(),
        }
    }
}

impl Media {
    /// Its bytes.
    pub fn bytes(&self) -> &Stored {
        &self.stored
    }

    /// Its kind.
    pub fn kind(&self) -> Modality {
        self.kind
    }

    /// Its type, by content.
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// What its header says.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The `type` of its source, where it came from one.
    pub fn source(&self) -> Option<&'static str> {
        self.said.source
    }

    /// What its bytes were held to, where the source said.
    pub fn checksum(&self) -> Option<&Checksum> {
        self.said.checksum.as_ref()
    }

    /// How closely a model is to look at it, where the source says.
    pub fn detail(&self) -> Option<Detail> {
        self.said.detail
    }

    /// By how much it is turned before a model sees it.
    pub fn rotation(&self) -> Rotation {
        self.said.rotation
    }

    /// Writes what it is into an object that is open: `kind`, `media_type`, `size_bytes`, `sha256`, and what its header
    /// says.
    pub fn write_fields(&self, w: &mut Writer<'_>) {
        w.field("kind", self.kind.as_str());
        w.field("media_type", self.media_type);
        w.field("size_bytes", &self.stored.len());
        w.field("sha256", &hex(self.stored.sha256()));
        self.facts.write_fields(w);
    }

    /// The type that its name or its server hinted at, where the content is of another (supplement R61).
    pub fn misleading_hint(&self) -> Option<&str> {
        self.said.hint.as_deref().filter(|hint| !hint.eq_ignore_ascii_case(self.media_type))
    }
}

/// Checks bytes: the checksum that came with them, their type by content, then size, then what their header says (SPEC 8.3, media validation).
///
/// # Errors
/// The first thing that does not hold, each with its code.
pub fn check(stored: Stored, expected: &Expected, rules: &MediaRules) -> Result<Media, MediaError> {
    expected.checksum.iter().try_for_each(|checksum| checksum.hold(&stored))?;
    let (kind, media_type) = taken(&stored, expected, rules)?;
    let limit = rules.bytes_of(kind);
    if stored.len() > limit {
        return Err(MediaError::TooLarge { limit });
    }
    let facts = match kind {
        Modality::Image => picture::facts(&stored, media_type)?,
        _ => Facts::default(),
    };
    fits(&facts, rules)?;
    Ok(Media { stored, kind, media_type, facts, said: expected.clone() })
}

/// The type of the content, where it is one that is taken and was not declared as another.
fn taken(
    stored: &Stored,
    expected: &Expected,
    rules: &MediaRules,
) -> Result<(Modality, &'static str), MediaError> {
    let found = sniff(stored.head());
    let allowed = rules.media_types();
    let Some(media_type) = found.filter(|found| allowed.contains(found)) else {
        return Err(MediaError::unsupported(found, &allowed));
    };
    if let Some(declared) = &expected.media_type
        && !declared.eq_ignore_ascii_case(media_type)
    {
        return Err(MediaError::OtherType { declared: declared.clone(), found: media_type.to_owned() });
    }
    let kind = modality_of(media_type).ok_or_else(|| MediaError::unsupported(found, &allowed))?;
    Ok((kind, media_type))
}

fn fits(facts: &Facts, rules: &MediaRules) -> Result<(), MediaError> {
    let (Some(width), Some(height)) = (facts.width, facts.height) else { return Ok(()) };
    if width.max(height) > rules.max_dimension {
        return Err(MediaError::TooWide { width, height, limit: rules.max_dimension });
    }
    if let Some(limit) = rules.min_dimension.filter(|limit| width.min(height) < *limit) {
        return Err(MediaError::TooSmall { width, height, limit });
    }
    let pixels = u64::from(width) * u64::from(height);
    if pixels > rules.max_pixels {
        return Err(MediaError::TooManyPixels { pixels, limit: rules.max_pixels });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
        let mut store = Store::within(1 << 30);
        store.push(bytes)?;
        check(
            store.finish(),
            &Expected { media_type: declared.map(str::to_owned), ..Expected::default() },
            rules,
        )
    }

    #[test]
    fn a_picture_passes_with_its_type_and_size() {
        let media = checked(&png(30, 20), Some("IMAGE/PNG"), &MediaRules::default()).unwrap();
        assert_eq!((media.media_type(), media.kind()), ("image/png", Modality::Image));
        assert_eq!((media.facts().width, media.facts().height), (Some(30), Some(20)));
    }

    #[test]
    fn sides_and_pixels_hold_at_the_limit_and_not_one_past_it() {
        let rules = MediaRules {
            max_dimension: 30,
            min_dimension: Some(20),
            max_pixels: 700,
            ..MediaRules::default()
        };
        assert!(checked(&png(30, 20), None, &rules).is_ok());
        assert!(matches!(checked(&png(31, 20), None, &rules), Err(MediaError::TooWide { .. })));
        assert!(matches!(checked(&png(30, 19), None, &rules), Err(MediaError::TooSmall { .. })));
        assert!(matches!(checked(&png(30, 24), None, &rules), Err(MediaError::TooManyPixels { .. })));
    }

    #[test]
    fn only_a_declared_type_that_differs_is_a_mismatch() {
        let rules = MediaRules::default();
        assert!(matches!(checked(&png(1, 1), Some("image/jpeg"), &rules), Err(MediaError::OtherType { .. })));
        assert!(matches!(checked(b"hello", Some("image/png"), &rules), Err(MediaError::Unsupported { .. })));
        assert!(matches!(checked(b"", None, &rules), Err(MediaError::Unsupported { .. })));
    }

    #[test]
    fn every_cut_of_a_picture_is_an_answer() {
        let whole = png(8, 8);
        for end in 0..whole.len() {
            let outcome = checked(&whole[..end], None, &MediaRules::default());
            assert!(!matches!(outcome, Err(MediaError::Storage(_))), "cut at {end}");
        }
    }
}
