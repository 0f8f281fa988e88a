use cog_json::Node;

/// Where a medium comes from (SPEC 4.2; `upload_ref` is the supplement's, section 9).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaSource {
    /// An address to fetch.
    Url {
        /// The address.
        url: String,
        /// Its type, where the caller says.
        media_type: Option<String>,
    },
    /// The bytes themselves.
    Base64 {
        /// Its type.
        media_type: String,
        /// The bytes, base64.
        data: String,
    },
    /// A file.
    File {
        /// Absolute, or relative to the module's folder.
        path: String,
    },
    /// Bytes that were uploaded before.
    UploadRef {
        /// The upload, `upl_…`.
        upload_id: String,
    },
}

impl MediaSource {
    /// Reads a source by its shape: `type` and the field that goes with it.
    pub fn read(node: Node<'_>) -> Option<Self> {
        let text = |key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
        match node.get("type")?.as_str()? {
            "url" => Some(Self::Url { url: text("url")?, media_type: text("media_type") }),
            "base64" => Some(Self::Base64 { media_type: text("media_type")?, data: text("data")? }),
            "file" => Some(Self::File { path: text("path")? }),
            "upload_ref" => Some(Self::UploadRef { upload_id: text("upload_id")? }),
            _ => None,
        }
    }
}
