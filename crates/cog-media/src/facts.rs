use cog_json::Writer;

/// What the header of a media file says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Facts {
    /// Width in pixels, after the orientation is applied.
    pub width: Option<u32>,
    /// Height in pixels, after the orientation is applied.
    pub height: Option<u32>,
    /// Milliseconds of audio or video.
    pub duration_ms: Option<u64>,
    /// Pages of a document.
    pub pages: Option<u32>,
    /// Frames of an animated image; none for a still image.
    pub frames: Option<u32>,
    /// Samples per second of the audio track; none without audio.
    pub sample_rate: Option<u32>,
    /// Channels of the audio track.
    pub channels: Option<u32>,
    /// How the image must be rotated for display; none if it is upright.
    pub orientation: Option<Orientation>,
}

impl Facts {
    /// Writes the known facts into an open object.
    pub(crate) fn write_fields(&self, w: &mut Writer<'_>) {
        w.optional("width", &self.width);
        w.optional("height", &self.height);
        w.optional("duration_ms", &self.duration_ms);
        w.optional("pages", &self.pages);
        w.optional("frames", &self.frames);
        w.optional("sample_rate", &self.sample_rate);
        w.optional("channels", &self.channels);
        w.optional("orientation", &self.orientation.map(|turn| u32::from(turn.exif())));
    }
}

/// How an image must be rotated for display: EXIF orientation 2 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orientation(u8);

impl Orientation {
    /// Returns the orientation of an EXIF value; none for 1 (upright) and unknown values.
    pub fn new(exif: u8) -> Option<Self> {
        (2..=8).contains(&exif).then_some(Self(exif))
    }

    /// Returns the EXIF value.
    pub fn exif(self) -> u8 {
        self.0
    }

    /// Returns whether width and height are swapped.
    pub fn swaps_sides(self) -> bool {
        self.0 >= 5
    }
}
