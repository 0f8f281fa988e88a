//! What is known about an answer besides what the model states: what a run collects, and what it found (docs/evidence.md).

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The part of `confidence` that says what each run collects about its answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvidenceRule {
    /// What is collected: `evidence`.
    pub request: EvidenceRequest,
    /// The fields of `data` that runs are compared by; empty for all enums, booleans, numbers and ids.
    pub fields: Vec<String>,
    /// The fields of `data` whose strings should occur in the input; empty for all strings that are not values of an enum.
    pub grounded: Vec<String>,
}

/// The evidence that a run collects about its answer. By default it collects none.
///
/// ```
/// use cog_spec::EvidenceRequest;
///
/// let request: EvidenceRequest = "agreement=5,grounding".parse()?;
/// assert_eq!((request.agreement, request.grounding), (Some(5), true));
/// assert_eq!(request.to_string(), "agreement=5,grounding");
/// assert!("agreement=1".parse::<EvidenceRequest>().is_err());
/// # Ok::<(), cog_spec::EvidenceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvidenceRequest {
    /// The number of runs that are compared; none for one run, which is not compared.
    pub agreement: Option<u32>,
    /// Whether the strings of the answer are searched for in the input.
    pub grounding: bool,
    /// The module that judges the answer; none for no judge.
    pub judge: Option<String>,
    /// Whether the probabilities of the tokens are requested, from a model that reports them.
    pub logprob: bool,
}

/// An evidence that cannot be requested.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("found `{found}`; allowed: {allowed}")]
pub struct EvidenceError {
    /// The item of the list.
    pub found: String,
    /// What is allowed in its place.
    pub allowed: &'static str,
}

impl EvidenceRequest {
    /// The numbers of runs that `agreement` may compare.
    pub const RUNS: std::ops::RangeInclusive<u32> = 2..=20;

    /// The number of runs without another number.
    const DEFAULT_RUNS: u32 = 5;

    /// The module that judges by default.
    const JUDGE: &'static str = "answer-judge";

    /// The forms of an item.
    const ITEMS: &'static str = "agreement, agreement=2 to 20, grounding, judge, judge=MODULE, logprob, none";

    /// Returns whether nothing is collected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a kind of evidence that a calibration reads, in its default form, unless it is collected already.
    #[must_use]
    pub fn with_kind(mut self, kind: &str) -> Self {
        match kind {
            "agreement" => self.agreement = self.agreement.or(Some(Self::DEFAULT_RUNS)),
            // The checks come with any other evidence, and this one costs nothing.
            "grounding" | "checks" => self.grounding = true,
            "judge" => self.judge = self.judge.or_else(|| Some(Self::JUDGE.to_owned())),
            "logprob" => self.logprob = true,
            _ => {} // every run has the others
        }
        self
    }

    /// Returns the number of runs and of judges: the calls to models that the evidence needs in all, if each needs one.
    pub fn calls(&self) -> u32 {
        self.agreement.unwrap_or(1) + u32::from(self.judge.is_some())
    }

    /// Reads the items of a list.
    ///
    /// # Errors
    /// An item is unknown, or its value is not allowed.
    pub fn from_items<'a>(items: impl IntoIterator<Item = &'a str>) -> Result<Self, EvidenceError> {
        let mut request = Self::default();
        for item in items {
            request.add(item.trim())?;
        }
        Ok(request)
    }

    fn add(&mut self, item: &str) -> Result<(), EvidenceError> {
        let invalid = |allowed| EvidenceError { found: item.to_owned(), allowed };
        let (name, value) = item.split_once('=').map_or((item, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("agreement", None) => self.agreement = Some(Self::DEFAULT_RUNS),
            ("agreement", Some(runs)) => {
                let runs = runs.parse().ok().filter(|runs| Self::RUNS.contains(runs));
                self.agreement = Some(runs.ok_or_else(|| invalid("agreement=2 to agreement=20"))?);
            }
            ("grounding", None) => self.grounding = true,
            ("judge", None) => self.judge = Some(Self::JUDGE.to_owned()),
            ("judge", Some(module)) if !module.is_empty() => self.judge = Some(module.to_owned()),
            ("logprob", None) => self.logprob = true,
            ("none", None) => *self = Self::default(),
            _ => return Err(invalid(Self::ITEMS)),
        }
        Ok(())
    }
}

/// Reads a list with commas.
impl FromStr for EvidenceRequest {
    type Err = EvidenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_items(text.split(','))
    }
}

impl fmt::Display for EvidenceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agreement = self.agreement.map(|runs| format!("agreement={runs}"));
        let judge = self.judge.as_ref().map(|module| match module.as_str() {
            Self::JUDGE => "judge".to_owned(),
            module => format!("judge={module}"),
        });
        let named = |is_set: bool, name: &str| is_set.then(|| name.to_owned());
        let items = [agreement, named(self.grounding, "grounding"), judge, named(self.logprob, "logprob")];
        let items: Vec<String> = items.into_iter().flatten().collect();
        f.write_str(if items.is_empty() { "none" } else { "" })?;
        f.write_str(&items.join(","))
    }
}

// What was found.

/// How many runs of the same request gave the same answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "agreement"))]
pub struct Agreement {
    /// The share of the runs whose deciding fields are all as in this answer, from 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub value: f64,
    /// The number of runs that gave an answer.
    pub runs: u32,
    /// The number of them that agree with this answer in each field, by its path.
    pub fields: BTreeMap<String, u32>,
}

/// Which strings of an answer occur in the input, its documents and its citations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "grounding"))]
pub struct Grounding {
    /// The share of the strings that occur, from 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub value: f64,
    /// The number of strings that were searched for.
    pub texts: u32,
    /// Where each string occurs first.
    #[serde(default)]
    pub found: Vec<GroundedText>,
    /// The paths of the strings that do not occur.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// The place of a string in its source.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "grounded_text"))]
pub struct GroundedText {
    /// The path of the string in the answer.
    pub path: String,
    /// The source: the path of a string or a media item in the input, or `citation` and the identifier of a citation.
    pub source: String,
    /// The page of a document, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub page: Option<u32>,
    /// Where it starts in the text of the source, or of the page, in characters (Unicode scalar values) from 0.
    pub offset: u32,
    /// Its length there, in characters.
    pub length: u32,
}

/// What a module says about the answer of another.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "judgement"))]
pub struct Judgement {
    /// How sure the judge is that the answer is right, from 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub value: f64,
    /// Whether it finds the answer right.
    pub meets: bool,
    /// The module.
    pub module: String,
    /// The model, as `PROVIDER/MODEL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The checks that an answer passed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "passed_checks"))]
pub struct PassedChecks {
    /// The share of the checks that passed, from 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub value: f64,
    /// The number of checks that passed.
    pub passed: u32,
    /// The number of checks.
    pub of: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_reads_back_as_written() {
        for text in [
            "none",
            "agreement=5",
            "agreement=2,grounding",
            "grounding,judge,logprob",
            "agreement=20,judge=my-judge",
        ] {
            assert_eq!(text.parse::<EvidenceRequest>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        let request: EvidenceRequest = " agreement , judge=answer-judge".parse().unwrap_or_default();
        assert_eq!(request.to_string(), "agreement=5,judge");
        assert_eq!((request.calls(), EvidenceRequest::default().calls()), (6, 1));
    }

    #[test]
    fn unknown_items_and_numbers_out_of_range_are_errors() {
        for text in ["", "agreement=1", "agreement=21", "agreement=x", "judge=", "grounding=1", "opinion"] {
            assert!(text.parse::<EvidenceRequest>().is_err(), "{text}");
        }
    }
}
