//! What replies cost.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::string_enum::string_enum;

/// The cost of one or more replies, at list prices or at those that the operator set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The amount, without taxes and discounts.
    pub amount: Amount,
    /// The currency.
    pub currency: Currency,
    /// The source of the prices.
    pub source: PriceSource,
    /// The day on which the source verified prices last, `2026-11-22`. Prices of the settings have the day of the reply.
    pub date: PriceDate,
}

string_enum! {
    /// A currency of prices.
    Currency {
        /// The US dollar.
        Usd = "USD",
    }
}

string_enum! {
    /// A source of prices.
    PriceSource {
        /// The data of the crate `genai-prices`.
        GenaiPrices = "genai-prices",
        /// The operator's settings.
        Settings = "settings",
    }
}

/// An amount, stored in millionths of a millionth, so that sums are exact. As JSON it is a number of the currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Amount(u64);

const UNITS: f64 = 1e12;

impl Amount {
    /// Returns the amount that is nearest to a number; none if it is negative or not finite.
    pub fn new(amount: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked; a cast saturates"
        )]
        (amount.is_finite() && amount >= 0.0).then(|| Self((amount * UNITS).round() as u64))
    }

    /// Returns the amount as a number of the currency.
    #[expect(clippy::cast_precision_loss, reason = "exact up to 9,000")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / UNITS
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(deserializer)?;
        Self::new(amount).ok_or_else(|| D::Error::custom("not an amount"))
    }
}

/// An answer from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "cache"))]
pub struct CacheHit {
    /// Whether the answer is from the cache.
    pub hit: bool,
    /// The time since the model replied, in seconds.
    pub age_s: u64,
}

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriceDate([u8; 10]);

impl PriceDate {
    /// Reads a day in the form `2026-11-22`.
    pub fn new(text: &str) -> Option<Self> {
        let digits: [u8; 10] = text.as_bytes().try_into().ok()?;
        let has_form = digits.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        has_form.then_some(Self(digits))
    }

    /// Returns the day in the form `2026-11-22`.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Serialize for PriceDate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PriceDate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| D::Error::custom("not a date"))
    }
}

/// The currency and the amount: `$0.00123`, `$1.50`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.currency {
            Currency::Usd => write!(f, "${}", self.amount),
        }
    }
}

/// Three digits that count, and at least cents: `0.00123`, `1.50`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = self.as_f64();
        let zeros = if amount > 0.0 { ((-amount.log10()).ceil() - 1.0).clamp(0.0, 9.0) } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 9")]
        let digits = if zeros < 1.0 { 2 } else { zeros as usize + 3 };
        write!(f, "{amount:.digits$}")
    }
}

impl Cost {
    /// Returns the cost of both, with the older date and the source of the first.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self { amount: self.amount.plus(other.amount), date: self.date.min(other.date), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use cog_json::{ToJson as _, Value};

    use super::*;

    fn cost(amount: f64) -> Cost {
        Cost {
            amount: Amount::new(amount).unwrap(),
            currency: Currency::Usd,
            source: PriceSource::GenaiPrices,
            date: PriceDate::new("2026-11-22").unwrap(),
        }
    }

    #[test]
    fn sums_are_exact_and_json_is_read_back() {
        let sum = cost(0.1).plus(&cost(0.2));
        let text = sum.to_json();
        assert_eq!(text, r#"{"amount":0.3,"currency":"USD","source":"genai-prices","date":"2026-11-22"}"#);
        assert_eq!(Cost::deserialize(Value::parse(&text).unwrap().node()), Ok(sum));
    }

    #[test]
    fn amounts_and_dates_are_checked() {
        for amount in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Amount::new(amount), None);
        }
        for date in ["", "2026-11-2", "2026/11/22", "2026-11-222"] {
            assert_eq!(PriceDate::new(date), None, "{date}");
        }
    }

    #[test]
    fn text_has_the_digits_that_count() {
        for (amount, shown) in [
            (0.0, "$0.00"),
            (0.000_000_123_4, "$0.000000123"),
            (0.001, "$0.00100"),
            (0.001_234, "$0.00123"),
            (0.01, "$0.0100"),
            (0.05, "$0.0500"),
            (0.1, "$0.10"),
            (0.11, "$0.11"),
            (1.5, "$1.50"),
            (1234.567, "$1234.57"),
        ] {
            assert_eq!(cost(amount).to_string(), shown);
        }
    }

    #[test]
    fn sum_has_the_older_date() {
        let older = Cost { date: PriceDate::new("2026-10-26").unwrap(), ..cost(1.0) };
        assert_eq!(older.plus(&cost(1.0)).date, older.date);
        assert_eq!(cost(1.0).plus(&older).date, older.date);
    }
}
