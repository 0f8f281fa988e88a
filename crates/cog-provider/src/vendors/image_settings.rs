/// What a model that generates only images accepts beside a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSettings {
    /// The sizes.
    pub sizes: ImageSizes,
    /// The styles.
    pub styles: &'static [&'static str],
}

/// The sizes of generated images, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSizes {
    /// These widths and heights.
    Listed(&'static [(u32, u32)]),
    /// All within limits.
    Within {
        /// Each side is a multiple of this.
        multiple: u32,
        /// The maximum of the longer side.
        max_side: u32,
        /// The maximum ratio of the longer side to the shorter one.
        max_ratio: u32,
        /// The minimum and maximum number of pixels.
        pixels: (u32, u32),
    },
}

impl ImageSettings {
    /// Only the prompt.
    pub const NONE: Self = Self { sizes: ImageSizes::Listed(&[]), styles: &[] };
}

impl ImageSizes {
    /// Returns whether an image may have this width and height.
    pub fn contain(&self, (width, height): (u32, u32)) -> bool {
        match *self {
            Self::Listed(sizes) => sizes.contains(&(width, height)),
            Self::Within { multiple, max_side, max_ratio, pixels: (min, max) } => {
                let (long, short) = (width.max(height), width.min(height));
                let is_multiple = width.is_multiple_of(multiple) && height.is_multiple_of(multiple);
                let pixels = u64::from(width) * u64::from(height);
                is_multiple
                    && long <= max_side
                    && u64::from(long) <= u64::from(short) * u64::from(max_ratio)
                    && (u64::from(min)..=u64::from(max)).contains(&pixels)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_within_limits() {
        let sizes =
            ImageSizes::Within { multiple: 16, max_side: 3840, max_ratio: 3, pixels: (655_360, 8_294_400) };
        for size in [(1024, 1024), (1536, 864), (3840, 2160), (2160, 3840), (480, 1440)] {
            assert!(sizes.contain(size), "{size:?}");
        }
        for size in [(512, 512), (1000, 1000), (3856, 2160), (3840, 1264), (3840, 2176), (0, 0)] {
            assert!(!sizes.contain(size), "{size:?}");
        }
        assert!(!ImageSettings::NONE.sizes.contain((1024, 1024)));
    }
}
