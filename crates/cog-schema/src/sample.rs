//! Generates answers from a schema, for the offline provider and for tests. They are seeded, and checked like other
//! answers before they are returned.

mod scalars;
mod walk;

use cog_json::Value as Tree;
use serde_json::{Map, Value, json};

use self::walk::Sampler;
use crate::{
    contract::{Contract, Part},
    engine::Pattern,
};

/// The maximum number of attempts to generate a valid sample: `not`, `if` and `dependencies` are not considered.
const ATTEMPTS: u64 = 24;

impl Contract {
    /// Returns data that satisfies the contract, equal for equal seeds; none if no attempt is valid.
    pub fn sample(&self, seed: u64) -> Option<Tree> {
        self.first_of(
            seed,
            |sampler| self.sampled_data(sampler),
            |data| self.check_data(data.node()).violations.is_empty(),
        )
    }

    /// Returns an input that satisfies the contract, as [`Contract::sample`].
    pub fn sample_input(&self, seed: u64) -> Option<Tree> {
        let sampled = |sampler: &mut Sampler<'_>| sampler.part(self.input.as_ref());
        self.first_of(seed, sampled, |input| self.check_input(input.node()).is_empty())
    }

    fn first_of(
        &self,
        seed: u64,
        sampled: impl Fn(&mut Sampler<'_>) -> Option<Value>,
        is_valid: impl Fn(&Tree) -> bool,
    ) -> Option<Tree> {
        (0..ATTEMPTS)
            .filter_map(|attempt| {
                sampled(&mut Sampler::new(self.document(), seed.wrapping_add(attempt << 32)))
            })
            .map(Tree::from)
            .find(|value| is_valid(value))
    }

    fn sampled_data(&self, sampler: &mut Sampler<'_>) -> Option<Value> {
        let mut data = sampler.part(self.data.as_ref())?;
        if let Some(members) = data.as_object_mut()
            && self.rules.format.asks_for_envelope()
        {
            members.entry("rationale").or_insert_with(|| Value::from(scalars::RATIONALE));
        }
        Some(data)
    }
}

impl Sampler<'_> {
    /// Returns a sample of a part; an empty object if it is absent.
    fn part(&mut self, part: Option<&Part>) -> Option<Value> {
        match part {
            Some(part) => self.at(&part.pointer),
            None => Some(Value::Object(serde_json::Map::new())),
        }
    }
}

// Small media files for samples.

/// A file: its type, its base64, and its properties.
struct Sample {
    media_type: &'static str,
    data: &'static str,
    facts: &'static [(&'static str, u64)],
}

const MEDIA: [Sample; 2] = [
    // A chessboard.
    Sample {
        media_type: "image/png",
        data: "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQAQAAAAA3iMLMAAAAE0lEQVR42mPg52eAow8fEAiHOAAqXw/xPczXZQAAAABJRU5ErkJggg==",
        facts: &[("width", 16), ("height", 16)],
    },
    // Two milliseconds of silence.
    Sample {
        media_type: "audio/wav",
        data: "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA",
        facts: &[("duration_ms", 2)],
    },
];

/// Returns a file that a media schema accepts, if there is one.
fn media_file(members: &Map<String, Value>) -> Option<Value> {
    let properties = members.get("properties")?.as_object()?;
    let allows =
        |member: &str, value: &str| properties.get(member).is_none_or(|schema| accepts(schema, value));
    let sample = MEDIA.iter().find(|sample| allows("media_type", sample.media_type))?;
    if !allows("type", "base64") {
        return None;
    }
    let mut value = json!({ "type": "base64", "media_type": sample.media_type, "data": sample.data });
    let facts = sample.facts.iter().filter(|(name, _)| properties.contains_key(*name));
    value.as_object_mut()?.extend(facts.map(|(name, fact)| ((*name).to_owned(), Value::from(*fact))));
    Some(value)
}

/// Returns whether `const`, `enum` and `pattern` of a schema allow a value.
fn accepts(schema: &Value, value: &str) -> bool {
    let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let values = schema.get("enum").and_then(Value::as_array);
    text("const").is_none_or(|only| only == value)
        && values.is_none_or(|values| values.iter().any(|one| one == value))
        && text("pattern").is_none_or(|pattern| Pattern::new(pattern).is_ok_and(|it| it.is_match(value)))
}

#[cfg(test)]
mod tests;
