//! A JSON Schema in `response_format`, taken as it is written (vLLM, llama.cpp, Mistral and others; OpenAI without
//! `strict`). What the server's grammar does not know it ignores.

use cog_spec::Dialect;

use super::{Limits, Profile};

pub(crate) const PROFILE: Profile = Profile {
    verbatim: true,
    closes_objects: false,
    requires_all: false,
    types_all: false,
    recursion: true,
    takes: |_, _| true,
    limits: Limits::NONE,
    weaker: Dialect::JsonObject,
};
