//! The values from which a manifest chooses (SPEC 2.2, 5; overview, tiers).

use crate::string_enum::string_enum;

string_enum! {
    /// The use of an answer without human review (SPEC 5.1).
    Tier {
        /// A program acts on it: confidence of at least 0.9, risk `none` or `low`.
        Exec = "exec",
        /// A person decides with its help.
        Decision = "decision",
        /// A source of ideas; there is no threshold.
        Exploration = "exploration",
    }
}

string_enum! {
    /// The treatment of fields that the schema does not name (ruling R8).
    Strictness {
        /// They are refused: E3001.
        High = "high",
        /// They are preserved, with a warning.
        Medium = "medium",
        /// They are preserved.
        Low = "low",
    }
}

string_enum! {
    /// Whether `{custom, reason}` may replace a value of an extensible enum (ruling R22).
    EnumStrategy {
        /// Only the values of the enum are allowed.
        Strict = "strict",
        /// The object is allowed where the schema has the pattern.
        Extensible = "extensible",
    }
}

string_enum! {
    /// The form of a module's answer (SPEC 2.2, ruling R6).
    ResponseMode {
        /// One envelope.
        Sync = "sync",
        /// A sequence of chunks.
        Streaming = "streaming",
        /// The form that the caller requests.
        Both = "both",
    }
}

string_enum! {
    /// The form of the content in a stream (SPEC 3.2.1).
    ChunkType {
        /// Parts of strings, and other leaves as they complete.
        Delta = "delta",
        /// All `data`, repeatedly (ruling R46).
        Snapshot = "snapshot",
    }
}

string_enum! {
    /// The reaction to a violation of the contract while an answer arrives (ruling R49).
    OnViolation {
        /// A progress chunk reports it; the final check decides.
        Report = "report",
        /// The call is cancelled with E3001.
        Abort = "abort",
        /// The model is called again, in the same session.
        Retry = "retry",
    }
}

impl Tier {
    /// Returns the strictness of a module that does not set one (SPEC 5.2).
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

    /// Returns the maximum number of insights by default (overview, tiers).
    pub const fn max_items(self) -> u32 {
        match self {
            Tier::Exec => 0,
            Tier::Decision => 5,
            Tier::Exploration => 20,
        }
    }

    /// Returns the enum strategy of a module that does not set one (SPEC 5.2).
    pub const fn enum_strategy(self) -> EnumStrategy {
        match self {
            Tier::Exec => EnumStrategy::Strict,
            Tier::Decision | Tier::Exploration => EnumStrategy::Extensible,
        }
    }

    /// Returns the response mode of a v2.5 manifest that does not set one (SPEC 5.2, ruling R6).
    pub const fn response_mode(self) -> ResponseMode {
        match self {
            Tier::Exec => ResponseMode::Sync,
            Tier::Decision => ResponseMode::Both,
            Tier::Exploration => ResponseMode::Streaming,
        }
    }

    /// Returns the minimum confidence of a successful answer (ruling R2).
    pub const fn min_confidence(self) -> Option<f64> {
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
    fn every_name_parses_back() {
        for tier in Tier::ALL {
            assert_eq!(tier.as_str().parse(), Ok(*tier));
        }
        let error = "execute".parse::<Tier>().unwrap_err();
        assert_eq!(error.to_string(), "`execute` is not one of exec, decision, exploration");
    }

    #[test]
    fn only_tier_exec_has_a_minimum_confidence_and_no_insights() {
        for tier in Tier::ALL {
            let expected = if *tier == Tier::Exec { (Some(0.9), false) } else { (None, true) };
            assert_eq!((tier.min_confidence(), tier.overflow_enabled()), expected, "{tier}");
        }
    }
}
