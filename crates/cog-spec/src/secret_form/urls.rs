//! The passwords of URLs: `https://user:password@host`.

use std::ops::Range;

/// The beginning of the authority of a URL.
const AUTHORITY: &str = "://";

/// Returns where a text has passwords of URLs.
pub(super) fn find(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(AUTHORITY).filter_map(|(at, _)| {
        let start = at + AUTHORITY.len();
        let rest = text.get(start..)?;
        let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'<>`".contains(c));
        let (user_info, _) = rest.get(..end.unwrap_or(rest.len()))?.rsplit_once('@')?;
        let (user, password) = user_info.split_once(':')?;
        let start = start + user.len() + 1;
        (!password.is_empty()).then(|| start..start + password.len())
    })
}
