//! Media that a model writes in its JSON (SPEC 4.3).

use cog_answer::PendingReply;
use cog_json::{Node, Value};
use cog_media::{Expected, Media, MediaError, UrlGuard};
use cog_spec::ErrorBody;

use super::{
    generated::{MediaSink, PendingDelivery, reject, value_at},
    output::Base64,
};

/// A media item to deliver like one beside the text; none when the value is not changed.
type Judged = Result<Option<(Media, Option<Base64>)>, MediaError>;

impl MediaSink {
    /// Collects the media that the model wrote in its answer, and rejects invalid ones.
    pub(super) async fn written(
        &self,
        pending: &mut PendingReply,
        data: &Value,
    ) -> Result<Vec<PendingDelivery>, ErrorBody> {
        let mut due = Vec::new();
        for slot in pending.written() {
            let Some(written) = value_at(data, &slot) else { continue };
            match self.judge(written, data, due.len()).await {
                Ok(Some((media, text))) => {
                    due.push(PendingDelivery { slot, media, text, params: Vec::new() });
                }
                Err(error) if !self.is_lenient => reject(pending, &slot.path.to_string(), &error)?,
                Err(_) | Ok(None) => {}
            }
        }
        Ok(due)
    }

    /// Checks a media value. Base64 is decoded and checked, a URL is checked by its form only, and a file
    /// path is rejected.
    async fn judge(&self, written: Node<'_>, data: &Value, index: usize) -> Judged {
        let text = |member: &str| written.get(member).and_then(Node::as_str);
        match text("type") {
            Some("base64") => {
                let Some(base64) = written.get("data").filter(|data| data.is_string()) else {
                    return Ok(None);
                };
                self.check_count(index)?;
                let media_type = text("media_type").map(str::to_owned);
                let expected = Expected { media_type, ..Expected::default() };
                let (text, outcome) = self.read(Base64::Shared(data.child(base64)), expected).await;
                outcome.map(|media| Some((media, text)))
            }
            Some("url") => text("url").map_or(Ok(None), |url| self.judge_url(url)),
            Some("file") => Err(MediaError::SourceUnavailable { what: "files that a model names" }),
            _ => Ok(None),
        }
    }

    fn judge_url(&self, url: &str) -> Judged {
        let judged = match &self.fetcher {
            Some(fetcher) => fetcher.guard().judge(url),
            None => UrlGuard::default().judge(url),
        };
        judged.map(|_| None).map_err(|refusal| MediaError::Refused { refusal, hop: 0 })
    }
}
