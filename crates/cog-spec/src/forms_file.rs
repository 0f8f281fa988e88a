//! `forms.json` of a module: the form that was measured to be best for each model.

use std::{borrow::Cow, str::FromStr as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Ask, Form};

/// `forms.json` of a module. `cog test --forms --keep` writes it, and the form `auto` reads it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "forms"))]
#[serde(deny_unknown_fields)]
pub struct FormsFile {
    /// The best form for each model, at most one per provider and model.
    pub forms: Vec<MeasuredForm>,
}

impl FormsFile {
    /// The name of the file in the directory of a module.
    pub const NAME: &'static str = "forms.json";
}

/// The form that was measured to be best for one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "measured_form"))]
#[serde(deny_unknown_fields)]
pub struct MeasuredForm {
    /// The name of the provider.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub provider: String,
    /// The name of the model.
    pub model: String,
    /// The form in which the model is asked.
    #[serde(serialize_with = "write_form", deserialize_with = "read_form")]
    #[cfg_attr(feature = "schema", schemars(with = "FormName"))]
    pub form: &'static Form,
    /// The number of golden tests that were run in this form.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub cases: u64,
    /// The number of them with the expected answer.
    pub right: u64,
    /// The SHA-256 of the prompt and the schema that were measured. If they change, the entry is ignored.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^sha256:[0-9a-f]{64}$")))]
    pub module: String,
    /// The SHA-256 of the other members. An entry that was edited is ignored.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^sha256:[0-9a-f]{64}$")))]
    pub checksum: String,
}

pub(crate) fn write_form<S: Serializer>(form: &&'static Form, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(form.name)
}

pub(crate) fn read_form<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static Form, D::Error> {
    let name = Cow::<'de, str>::deserialize(deserializer)?;
    match Ask::from_str(&name) {
        Ok(Ask::Form(form)) => Ok(form),
        _ => Err(serde::de::Error::custom(format_args!("`{name}` is not one of {}", Form::NAMES.join(", ")))),
    }
}

#[cfg(feature = "schema")]
struct FormName;

#[cfg(feature = "schema")]
impl schemars::JsonSchema for FormName {
    fn schema_name() -> Cow<'static, str> {
        "form".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": Form::NAMES })
    }
}
