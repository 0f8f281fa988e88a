//! The media formats that a provider accepts.

/// The media formats that a provider accepts (SPEC 8.3). Other media are converted to one of them before they are
/// sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats {
    /// The accepted media types. Types of a kind that the provider does not support are ignored.
    pub types: &'static [&'static str],
    /// The maximum width and height of an image, in pixels.
    pub max_side: Option<u32>,
    /// The maximum width and height of each image in a request with many images; `None` if the number does not matter.
    pub many_images: Option<ManyImages>,
    /// The maximum size of an image in bytes, before base64.
    pub max_image_bytes: Option<u64>,
    /// Whether the provider fetches images from URLs.
    pub by_url: bool,
    /// The maximum size of a complete request in bytes; `None` if the vendor documents none.
    pub max_request_bytes: Option<u64>,
}

/// The limit for the images of a request with many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManyImages {
    /// The number of images up to which it does not apply.
    pub over: usize,
    /// The maximum width and height, in pixels.
    pub max_side: u32,
}

impl Formats {
    /// Every type of SPEC 4.1.1, of any size.
    pub const ANY: Self = Self {
        types: &[
            "image/jpeg",
            "image/png",
            "image/webp",
            "image/gif",
            "audio/mpeg",
            "audio/wav",
            "audio/ogg",
            "audio/webm",
            "video/mp4",
            "video/webm",
            "video/quicktime",
            "application/pdf",
        ],
        max_side: None,
        many_images: None,
        max_image_bytes: None,
        by_url: false,
        max_request_bytes: None,
    };
}
