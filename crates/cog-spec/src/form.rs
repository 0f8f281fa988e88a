//! The forms in which a model is asked for its answer (ruling R91).

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer};

use crate::ParseEnumError;

/// A form in which a model is asked for its answer. The envelope that leaves a run is the same in every form.
///
/// Forms are compared by name; [`Form::ALL`] is the table of them.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Form {
    /// The name in manifests, options, settings and `forms.json`.
    pub name: &'static str,
    /// What the model writes.
    pub subject: Subject,
    /// Where the rationale stands in what the model writes.
    pub rationale: RationalePlace,
    /// How much the model is told about the contract.
    pub wording: Wording,
    /// Whether the model is offered to report an error of its own, if the module allows that.
    pub offers_error: bool,
    /// Whether prompt, contract and input are one user message, instead of a system message and a user message.
    pub is_one_message: bool,
    /// The maximum number of golden answers of the module that the prompt shows.
    pub examples: usize,
}

/// What a model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The envelope: `ok`, `meta`, `data`, `error`.
    Envelope,
    /// The envelope with its deciding part first: `ok`, `data`, `meta`, `error`.
    EnvelopeDataFirst,
    /// The value of `data` alone.
    Data,
}

/// Where the rationale stands in what a model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RationalePlace {
    /// Where the schema of the module has it.
    AsWritten,
    /// After all other fields of the data.
    Last,
    /// In a second call that sees the answer, if the module needs a rationale.
    Afterwards,
}

/// How much a model is told about the contract, in addition to the schema that its engine enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wording {
    /// The members, the error codes and the limits, in sentences.
    Full,
    /// Only what is not allowed where an engine enforces the schema; otherwise one sentence about the format, the schema, and the
    /// codes.
    Grammar,
}

impl Form {
    /// The envelope, in the order of the specification. It is the form for hosted models.
    pub const ENVELOPE: &'static Form = &Form {
        name: "envelope",
        subject: Subject::Envelope,
        rationale: RationalePlace::AsWritten,
        wording: Wording::Full,
        offers_error: true,
        is_one_message: false,
        examples: 0,
    };

    /// The data without meta, the rationale last.
    pub const DATA: &'static Form = &Form {
        name: "data",
        subject: Subject::Data,
        rationale: RationalePlace::Last,
        wording: Wording::Grammar,
        offers_error: true,
        is_one_message: false,
        examples: 0,
    };

    /// The deciding fields alone. A required rationale follows in a second call. Small models that are told of errors report one
    /// instead of most answers, so this form has none.
    pub const ANSWER: &'static Form = &Form {
        name: "answer",
        subject: Subject::Data,
        rationale: RationalePlace::Afterwards,
        wording: Wording::Grammar,
        offers_error: false,
        is_one_message: true,
        examples: 0,
    };

    /// Every form, from the heaviest to the lightest, each without and with examples.
    pub const ALL: &'static [&'static Form] = &[
        Self::ENVELOPE,
        &Form {
            name: "envelope-data-first",
            subject: Subject::EnvelopeDataFirst,
            rationale: RationalePlace::Last,
            ..*Self::ENVELOPE
        },
        Self::DATA,
        &Form { name: "data-examples", examples: 3, ..*Self::DATA },
        Self::ANSWER,
        &Form { name: "answer-examples", examples: 3, ..*Self::ANSWER },
    ];

    /// The names of all forms, in the same order.
    pub const NAMES: &'static [&'static str] =
        &["envelope", "envelope-data-first", "data", "data-examples", "answer", "answer-examples"];

    /// Returns whether the model writes its data without an envelope, and so no meta.
    pub fn is_data(&self) -> bool {
        self.subject == Subject::Data
    }

    /// Returns the position in [`Form::ALL`].
    pub fn index(&self) -> usize {
        Self::ALL.iter().position(|form| *form == self).unwrap_or_default()
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Form {}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The form that a user, a manifest or the settings choose.
///
/// ```
/// use cog_spec::{Ask, Form};
///
/// assert_eq!("data".parse(), Ok(Ask::Form(Form::DATA)));
/// assert_eq!("auto".parse(), Ok(Ask::Auto));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ask {
    /// What was measured for module and model, otherwise the default for the kind of engine.
    #[default]
    Auto,
    /// This form, if module and provider can take it.
    Form(&'static Form),
}

impl Ask {
    /// The names of all values.
    pub const NAMES: &'static [&'static str] =
        &["auto", "envelope", "envelope-data-first", "data", "data-examples", "answer", "answer-examples"];

    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Form(form) => form.name,
        }
    }
}

impl FromStr for Ask {
    type Err = ParseEnumError;

    fn from_str(text: &str) -> Result<Self, ParseEnumError> {
        let form = Form::ALL.iter().find(|form| form.name == text);
        match form {
            Some(form) => Ok(Self::Form(form)),
            None if text == "auto" => Ok(Self::Auto),
            None => Err(ParseEnumError { found: text.to_owned(), allowed: Self::NAMES }),
        }
    }
}

impl<'de> Deserialize<'de> for Ask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names_agree_with_the_table() {
        let names: Vec<&str> = Form::ALL.iter().map(|form| form.name).collect();
        assert_eq!(names, Form::NAMES);
        assert_eq!(Ask::NAMES, [&["auto"], Form::NAMES].concat());
        for name in Ask::NAMES {
            assert_eq!(name.parse::<Ask>().unwrap().as_str(), *name);
        }
        assert_eq!("date".parse::<Ask>().unwrap_err().found, "date");
        assert!(Form::ALL.iter().enumerate().all(|(index, form)| form.index() == index));
    }
}
