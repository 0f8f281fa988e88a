//! The step of a version that changes need.

use semver::Version;

/// How far a version is raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VersionStep {
    /// Not at all.
    None,
    /// `1.2.3` to `1.2.4`: what the module promises is the same.
    Patch,
    /// `1.2.3` to `1.3.0`: it promises more.
    Minor,
    /// `1.2.3` to `2.0.0`: somebody has to change something.
    Major,
}

impl VersionStep {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }

    /// Returns the version one step after another one. Before 1.0.0, a breaking change raises the second number, as semantic
    /// versions allow.
    pub(super) fn after(self, version: &str) -> Option<String> {
        self.next(version).map(|next| next.to_string())
    }

    /// Returns whether a version is at least one step after another one.
    pub(super) fn is_reached(self, old: &str, new: &str) -> bool {
        let Ok(new) = Version::parse(new) else { return self == Self::None };
        self.next(old).is_none_or(|next| new.cmp_precedence(&next).is_ge())
    }

    fn next(self, version: &str) -> Option<Version> {
        let old = Version::parse(version).ok()?;
        let is_initial = old.major == 0;
        Some(match self {
            Self::None => old,
            // The release that a pre-release precedes.
            Self::Patch if !old.pre.is_empty() => Version::new(old.major, old.minor, old.patch),
            Self::Patch => Version::new(old.major, old.minor, old.patch.saturating_add(1)),
            Self::Minor if is_initial => Version::new(0, old.minor, old.patch.saturating_add(1)),
            Self::Minor => Version::new(old.major, old.minor.saturating_add(1), 0),
            Self::Major if is_initial => Version::new(0, old.minor.saturating_add(1), 0),
            Self::Major => Version::new(old.major.saturating_add(1), 0, 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_leads_to_the_next_version() {
        use VersionStep::{Major, Minor, None, Patch};
        for (old, step, next) in [
            ("1.2.3", None, "1.2.3"),
            ("1.2.3", Patch, "1.2.4"),
            ("1.2.3", Minor, "1.3.0"),
            ("1.2.3", Major, "2.0.0"),
            ("0.2.3", Patch, "0.2.4"),
            ("0.2.3", Minor, "0.2.4"),
            ("0.2.3", Major, "0.3.0"),
            ("1.2.3-rc.1", Patch, "1.2.3"),
        ] {
            assert_eq!(step.after(old).as_deref(), Some(next), "{old} {step:?}");
            assert!(step.is_reached(old, next));
        }
        assert!(!Major.is_reached("1.2.3", "1.9.0") && !Patch.is_reached("1.2.3", "1.2.3"));
        assert!(Minor.is_reached("1.2.3", "2.0.0"));
        assert_eq!(Major.after("one"), Option::None);
    }
}
