//! A refused media file as the `error` of an envelope.

use cog_json::{Value, Writer};
use cog_spec::ErrorBody;

use crate::MediaError;

/// Code, message and suggestion; `details` has the reason (ruling R62), and the URL and status of a failed fetch.
impl From<&MediaError> for ErrorBody {
    fn from(error: &MediaError) -> Self {
        let body = Self::new(error.code(), error.to_string()).suggest(error.suggestion());
        match details(error) {
            Some(details) => body.with_details(details),
            None => body,
        }
    }
}

fn details(error: &MediaError) -> Option<Value> {
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        w.optional("reason", &error.reason());
        if let MediaError::Fetch { url, status, .. } = error {
            w.field("url", url);
            w.optional("status", status);
        }
    });
    Value::parse(&text).ok().filter(|_| text != "{}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UrlGuard;

    fn details_of(error: &MediaError) -> Option<String> {
        Some(ErrorBody::from(error).details?.to_string())
    }

    #[test]
    fn details_of_a_failed_fetch_have_url_and_status() {
        let url = "https://example.com/a.png?***".to_owned();
        let what = "the server returned 404 Not Found".to_owned();
        let error = MediaError::Fetch { url, what, status: Some(404) };
        let expected = r#"{"reason":"fetch","url":"https://example.com/a.png?***","status":404}"#;
        assert_eq!(details_of(&error).as_deref(), Some(expected));
        let refusal = UrlGuard::default().judge("http://localhost/").unwrap_err();
        let error = MediaError::Refused { refusal, hop: 0 };
        assert_eq!(details_of(&error).as_deref(), Some(r#"{"reason":"refused"}"#));
        assert_eq!(details_of(&MediaError::TooLarge { limit: 1 }).as_deref(), Some(r#"{"reason":"size"}"#));
        assert_eq!(details_of(&MediaError::NotBase64 { what: "" }), None);
    }
}
