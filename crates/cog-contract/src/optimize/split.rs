//! Splits cases before anything is measured.

use std::collections::BTreeMap;

use cog_json::Node;

/// The fewest different inputs that can be split.
pub const MIN_CASES: usize = 12;

/// What a case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// A prompt is written from its failures.
    Training,
    /// It decides which prompts are kept, and which one is best.
    Validation,
    /// It is run once, at the end, and decides whether the best prompt is proposed.
    HeldOut,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 3] = [Self::Training, Self::Validation, Self::HeldOut];

    /// Returns the name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Part::Training => "training",
            Part::Validation => "validation",
            Part::HeldOut => "held_out",
        }
    }
}

/// There are too few different inputs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found} golden tests with different inputs are too few to improve a prompt: {MIN_CASES} are needed, a third of them for each of \
     training, validation and the final comparison"
)]
pub struct TooFew {
    /// The number of different inputs.
    pub found: usize,
}

/// The part of each case, in the order of the cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split(Vec<Part>);

impl Split {
    /// Splits cases into thirds by their inputs. The same inputs are always split in the same way, whatever the names and the order of
    /// the cases, and equal inputs are in the same part.
    ///
    /// # Errors
    /// When there are fewer than [`MIN_CASES`] different inputs.
    pub fn new<'a>(inputs: impl IntoIterator<Item = Node<'a>>) -> Result<Self, TooFew> {
        let keys: Vec<(u64, String)> = inputs
            .into_iter()
            .map(|input| {
                let text = input.to_sorted_json();
                (hash(&text), text)
            })
            .collect();
        let mut groups: BTreeMap<&(u64, String), usize> = keys.iter().map(|key| (key, 0)).collect();
        if groups.len() < MIN_CASES {
            return Err(TooFew { found: groups.len() });
        }
        groups.values_mut().enumerate().for_each(|(index, place)| *place = index);
        let parts = keys.iter().map(|key| match groups.get(key).copied().unwrap_or_default() % 3 {
            0 => Part::Training,
            1 => Part::Validation,
            _ => Part::HeldOut,
        });
        Ok(Self(parts.collect()))
    }

    /// Returns the indices of the cases of a part.
    pub fn cases(&self, part: Part) -> Vec<usize> {
        let places = self.0.iter().enumerate();
        places.filter(|(_, other)| **other == part).map(|(index, _)| index).collect()
    }
}

/// Returns a hash that is the same on every machine (FNV-1a).
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
