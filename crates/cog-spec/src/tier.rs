//! The words a manifest chooses from (SPEC 2.2, 5; overview, tiers).

use thiserror::Error;

/// A word that the specification does not know in this place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{found}` is not one of {}", .allowed.join(", "))]
pub struct ParseEnumError {
    /// The word that was found.
    pub found: String,
    /// Every word that may stand there.
    pub allowed: &'static [&'static str],
}

/// Declares an enum of words: its names, the way there and back, all values.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every value, in the order of the specification.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// Every word, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word of the specification.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::ParseEnumError;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok($name::$variant),)+
                    _ => Err($crate::ParseEnumError { found: word.to_owned(), allowed: $name::WORDS }),
                }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// What an answer may be used for without a person (SPEC 5.1).
    Tier {
        /// Acted on by a program: confidence of 0.9 at least, risk `none` or `low`.
        Exec = "exec",
        /// Weighed by a person.
        Decision = "decision",
        /// Inspiration; no threshold.
        Exploration = "exploration",
    }
}

words! {
    /// What happens to fields that the schema does not name (ruling R8).
    Strictness {
        /// They are refused: E3001.
        High = "high",
        /// They are kept, with a warning.
        Medium = "medium",
        /// They are kept.
        Low = "low",
    }
}

words! {
    /// Whether `{custom, reason}` may stand for a word of an extensible enum (ruling R22).
    EnumStrategy {
        /// Only the words of the enum.
        Strict = "strict",
        /// Also the object, where the schema has the pattern.
        Extensible = "extensible",
    }
}

words! {
    /// How a module likes to answer (SPEC 2.2, ruling R6).
    ResponseMode {
        /// One envelope.
        Sync = "sync",
        /// A sequence of chunks.
        Streaming = "streaming",
        /// Whichever the caller asks for.
        Both = "both",
    }
}

words! {
    /// How content travels in a stream (SPEC 3.2.1).
    ChunkType {
        /// Pieces of leaves.
        Delta = "delta",
        /// The whole of `data`, again and again (ruling R46).
        Snapshot = "snapshot",
    }
}

words! {
    /// What a violation of the contract does while an answer arrives (ruling R49).
    OnViolation {
        /// It is told in a progress chunk; the check at the end decides.
        Report = "report",
        /// The provider is stopped; E3001.
        Abort = "abort",
        /// The model is asked again, in the same session.
        Retry = "retry",
    }
}

impl Tier {
    /// The strictness of a tier that does not set one (SPEC 5.2).
    pub const fn strictness(self) -> Strictness {
        match self {
            Tier::Exec => Strictness::High,
            Tier::Decision => Strictness::Medium,
            Tier::Exploration => Strictness::Low,
        }
    }

    /// Whether insights are allowed by default (SPEC 5.2).
    pub const fn overflow_enabled(self) -> bool {
        !matches!(self, Tier::Exec)
    }

    /// How many insights are allowed by default (overview, tiers).
    pub const fn max_items(self) -> u32 {
        match self {
            Tier::Exec => 0,
            Tier::Decision => 5,
            Tier::Exploration => 20,
        }
    }

    /// The enum strategy of a tier that does not set one (SPEC 5.2).
    pub const fn enum_strategy(self) -> EnumStrategy {
        match self {
            Tier::Exec => EnumStrategy::Strict,
            Tier::Decision | Tier::Exploration => EnumStrategy::Extensible,
        }
    }

    /// The response mode of a v2.5 manifest that does not set one (SPEC 5.2, ruling R6).
    pub const fn response_mode(self) -> ResponseMode {
        match self {
            Tier::Exec => ResponseMode::Sync,
            Tier::Decision => ResponseMode::Both,
            Tier::Exploration => ResponseMode::Streaming,
        }
    }

    /// The least confidence with which an answer of this tier succeeds (ruling R2).
    pub const fn least_confidence(self) -> Option<f64> {
        match self {
            Tier::Exec => Some(0.9),
            Tier::Decision | Tier::Exploration => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for tier in Tier::ALL {
            assert_eq!(tier.as_str().parse(), Ok(*tier));
        }
        let error = "execute".parse::<Tier>().unwrap_err();
        assert_eq!(error.to_string(), "`execute` is not one of exec, decision, exploration");
    }
}
