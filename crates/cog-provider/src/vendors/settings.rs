//! The operator's settings for a vendor: key, base URL, model, limits.

use std::time::Duration;

use cog_spec::Secret;

use super::{ModelPrices, Vendor};
use crate::protocol_kind::ProtocolKind;

/// The settings for calling a provider. They come from the operator, never from a request, a module or a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderSettings {
    /// The key.
    pub key: Option<Secret>,
    /// The base URL, if it differs from the vendor's default.
    pub base_url: Option<String>,
    /// The protocol, if it differs from the default for the base URL.
    pub protocol: Option<ProtocolKind>,
    /// The model, if it differs from the vendor's default.
    pub model: Option<String>,
    /// The operator's prices of models, which precede the vendor's list. A gateway has no list.
    pub prices: ModelPrices,
    /// Further keys of the operator, which a recording masks like its own.
    pub secrets: Vec<Secret>,
    /// The maximum number of retries before the first token (2).
    pub retries: u32,
    /// The timeout for establishing a connection (10 s).
    pub connect_timeout: Duration,
    /// The timeout for the first token (5 min, since reasoning models start slowly).
    pub first_token_timeout: Duration,
    /// The maximum time between two chunks of a reply (2 min).
    pub idle_timeout: Duration,
    /// Whether a large request is written with [`tokio::task::block_in_place`], so that other tasks continue meanwhile
    /// (false). It has no effect on a runtime with one thread. Calls within a [`tokio::task::LocalSet`] must not set
    /// it.
    pub block_in_place: bool,
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            key: None,
            base_url: None,
            protocol: None,
            model: None,
            prices: ModelPrices::NONE,
            secrets: Vec::new(),
            retries: 2,
            connect_timeout: Duration::from_secs(10),
            first_token_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(120),
            block_in_place: false,
        }
    }
}

impl ProviderSettings {
    /// Reads a vendor's key, base URL and protocol from the operator's settings, by the vendor's variable names. A
    /// protocol that [`ProtocolKind::from_setting`] rejects counts as unset.
    pub fn from_variables(vendor: &Vendor, setting: impl Fn(&str) -> Option<String>) -> Self {
        let protocol = first_set(vendor.protocol_var.as_slice(), &setting);
        Self {
            key: first_set(vendor.key_vars, &setting).map(Secret::new),
            base_url: first_set(vendor.base_url_vars, &setting),
            protocol: protocol.as_deref().and_then(ProtocolKind::from_setting),
            ..Self::default()
        }
    }
}

/// Returns the first setting that is not absent or blank.
fn first_set(names: &[&str], setting: &impl Fn(&str) -> Option<String>) -> Option<String> {
    names
        .iter()
        .filter_map(|name| setting(name))
        .map(|value| value.trim().to_owned())
        .find(|value| !value.is_empty())
}

/// What a model that generates only images accepts in addition to a prompt.
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
    pub fn contain(&self, size: (u32, u32)) -> bool {
        let (width, height) = size;
        match *self {
            Self::Listed(sizes) => sizes.contains(&(width, height)),
            Self::Within { multiple, max_side, max_ratio, pixels: (min, max) } => {
                let long = width.max(height);
                let short = width.min(height);
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
