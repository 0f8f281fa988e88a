use cog_json::Writer;

/// What the header of a medium says of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Facts {
    /// Pixels, as it is shown: after the orientation was applied.
    pub width: Option<u32>,
    /// Pixels, as it is shown.
    pub height: Option<u32>,
    /// Milliseconds of sound or video.
    pub duration_ms: Option<u64>,
    /// Pages of a document.
    pub pages: Option<u32>,
    /// Images of one that moves; none where it stands still.
    pub frames: Option<u32>,
    /// Samples a second, of its sound; none where it has no sound.
    pub sample_rate: Option<u32>,
    /// Channels of its sound.
    pub channels: Option<u32>,
    /// How an image is to be turned to be shown; none where it stands upright.
    pub orientation: Option<Orientation>,
}

impl Facts {
    /// Writes what is known into an object that is open.
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

/// How an image is to be turned: EXIF's orientation, 2 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orientation(u8);

impl Orientation {
    /// The orientation of this EXIF value; none for 1, upright, and for what EXIF does not know.
    pub fn new(exif: u8) -> Option<Self> {
        (2..=8).contains(&exif).then_some(Self(exif))
    }

    /// EXIF's value.
    pub fn exif(self) -> u8 {
        self.0
    }

    /// Whether width and height change places.
    pub fn swaps_sides(self) -> bool {
        self.0 >= 5
    }
}
