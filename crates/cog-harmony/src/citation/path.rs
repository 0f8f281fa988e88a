use cog_json::Path;

/// Returns the path of a member.
pub(super) fn below(path: &Path, key: &str) -> Path {
    let mut path = path.clone();
    path.push_key(key);
    path
}
