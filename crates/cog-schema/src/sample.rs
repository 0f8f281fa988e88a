//! Answers made up from a schema, for the offline provider and for tests: plain, seeded, and checked like any
//! other answer before they are given out.

mod medium;
mod number;
mod pattern;
mod text;
mod walk;

use cog_json::Value as Tree;
use serde_json::Value;

use crate::contract::{Contract, Part};

use self::walk::Sampler;

/// How often another sample is tried when one does not fit (`not`, `if`, `dependencies` are not sampled for).
const ATTEMPTS: u64 = 24;

impl Contract {
    /// Data that keep the contract, the same for the same seed; none where no sample was found that does.
    pub fn sample(&self, seed: u64) -> Option<Tree> {
        self.first_of(
            seed,
            |sampler| self.sampled_data(sampler),
            |data| self.check_data(data.node()).violations.is_empty(),
        )
    }

    /// An input that keeps the contract, likewise.
    pub fn sample_input(&self, seed: u64) -> Option<Tree> {
        let sampled = |sampler: &mut Sampler<'_>| sampler.part(self.input.as_ref());
        self.first_of(seed, sampled, |input| self.check_input(input.node()).is_empty())
    }

    fn first_of(
        &self,
        seed: u64,
        sampled: impl Fn(&mut Sampler<'_>) -> Option<Value>,
        fits: impl Fn(&Tree) -> bool,
    ) -> Option<Tree> {
        (0..ATTEMPTS)
            .filter_map(|attempt| {
                sampled(&mut Sampler::new(self.document(), seed.wrapping_add(attempt << 32)))
            })
            .map(Tree::from)
            .find(|value| fits(value))
    }

    fn sampled_data(&self, sampler: &mut Sampler<'_>) -> Option<Value> {
        let mut data = sampler.part(self.data.as_ref())?;
        if let Some(members) = data.as_object_mut()
            && self.rules.format.asks_for_envelope()
        {
            members.entry("rationale").or_insert_with(|| Value::from(text::RATIONALE));
        }
        Some(data)
    }
}

impl Sampler<'_> {
    /// A sample of a part; of an absent one an empty object.
    fn part(&mut self, part: Option<&Part>) -> Option<Value> {
        match part {
            Some(part) => self.at(&part.pointer),
            None => Some(Value::Object(serde_json::Map::new())),
        }
    }
}

#[cfg(test)]
mod tests;
