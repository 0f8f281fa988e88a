//! Generates answers from a schema, for the offline provider and for tests. They are seeded, and checked like other
//! answers before they are returned.

mod media;
mod scalars;
mod walk;

use cog_json::Value as Tree;
use serde_json::Value;

use crate::contract::{Contract, Part};

use self::walk::Sampler;

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

#[cfg(test)]
mod tests;
