use cog_spec::{Code, ErrorBody};

/// Returns the id that is given, or a new one.
///
/// # Errors
/// E4000 if the system has no random numbers for its id.
pub(crate) fn given_or_new_id(given: Option<&str>) -> Result<String, ErrorBody> {
    given.map(str::to_owned).map_or_else(generate_id, Ok).map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("cannot generate random numbers: {error}"))
    })
}

/// Returns a new session id: `sess_` and 128 random bits in hexadecimal. No client can guess the session of
/// another (SPEC 11.2).
pub(crate) fn generate_id() -> Result<String, getrandom::Error> {
    random_id("sess_")
}

/// Returns an id of this prefix and 128 random bits in hexadecimal.
pub(crate) fn random_id(prefix: &str) -> Result<String, getrandom::Error> {
    let mut bits = [0u8; 16];
    getrandom::fill(&mut bits)?;
    Ok(format!("{prefix}{:032x}", u128::from_be_bytes(bits)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_do_not_repeat() {
        let ids: HashSet<String> = (0..1000).map(|_| generate_id().unwrap()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 37 && id.starts_with("sess_")));
    }
}
