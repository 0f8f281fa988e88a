//! Numbers: stored as they were written, converted on request.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

/// The name of the type by which [`Writer`](crate::Writer) recognizes a number, so that it is written as it was read.
pub(crate) const NUMBER_TOKEN: &str = "$cog_json::Number";

/// A JSON number as it was written.
#[derive(Clone, Copy)]
pub struct Number<'a> {
    literal: &'a str,
    plain: bool,
}

impl<'a> Number<'a> {
    /// Creates a number; `plain` means without fraction and exponent.
    #[inline]
    pub(crate) fn new(literal: &'a str, plain: bool) -> Self {
        Number { literal, plain }
    }

    /// Returns the number as it was written.
    #[inline]
    #[must_use]
    pub fn literal(self) -> &'a str {
        self.literal
    }

    /// Returns whether it was written without fraction and exponent.
    #[inline]
    #[must_use]
    pub fn is_plain_integer(self) -> bool {
        self.plain
    }

    /// Returns whether it is mathematically an integer: `2.0` and `1e2` are.
    #[inline]
    #[must_use]
    pub fn is_integer(self) -> bool {
        self.plain || Decimal::parse(self.literal).is_integer()
    }

    /// Returns the value, if it is an integer within range.
    #[inline]
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        if self.plain { self.literal.parse().ok() } else { self.as_i128().and_then(|it| it.try_into().ok()) }
    }

    /// Returns the value, if it is an integer within range; `-0` is 0.
    #[inline]
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        match self.plain && !self.literal.starts_with('-') {
            true => self.literal.parse().ok(),
            false => self.as_i128().and_then(|it| it.try_into().ok()),
        }
    }

    /// Returns the nearest finite float: the maximum or the minimum if the number is out of range.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        // The parser returns an infinity beyond the range, which JSON cannot write.
        self.literal.parse().unwrap_or(0.0_f64).clamp(f64::MIN, f64::MAX)
    }

    /// Returns an integer if the literal is one of 64 bits, otherwise the nearest float, which the parser of `serde_json`
    /// sometimes misses by a bit.
    pub(crate) fn to_serde(self) -> serde_json::Number {
        // `-0` is a float, because an integer has no sign of zero.
        let integer = Some(self).filter(|it| it.is_plain_integer() && it.literal() != "-0");
        integer
            .and_then(|it| it.as_u64().map(Into::into).or_else(|| it.as_i64().map(Into::into)))
            .or_else(|| serde_json::Number::from_f64(self.as_f64()))
            .unwrap_or_else(|| 0.into())
    }

    pub(crate) fn as_i128(self) -> Option<i128> {
        match self.plain {
            true => self.literal.parse().ok(),
            false => Decimal::parse(self.literal).to_i128(),
        }
    }
}

/// Written by hand, as only the writer of this crate can keep the literal.
impl Serialize for Number<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let literal = Literal { number: *self, is_human_readable: serializer.is_human_readable() };
        serializer.serialize_newtype_struct(NUMBER_TOKEN, &literal)
    }
}

/// A number inside the newtype that announces it.
struct Literal<'a> {
    number: Number<'a>,
    /// The answer of the serializer outside the newtype. Only [`Writer`](crate::Writer) changes it inside.
    is_human_readable: bool,
}

impl Serialize for Literal<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() == self.is_human_readable {
            true => self.number.to_serde().serialize(serializer),
            false => serializer.serialize_str(self.number.literal()),
        }
    }
}

impl PartialEq for Number<'_> {
    /// Mathematically and exactly: `1.0` equals `1e0`, `0.1` does not equal the float next to it.
    fn eq(&self, other: &Self) -> bool {
        self.literal == other.literal || Decimal::parse(self.literal) == Decimal::parse(other.literal)
    }
}

impl Hash for Number<'_> {
    /// Equal numbers have equal hashes, however they are written.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let decimal = Decimal::parse(self.literal);
        state.write_u8(u8::from(decimal.negative));
        state.write_i64(decimal.exponent);
        decimal.digits().for_each(|digit| state.write_u8(digit));
    }
}

impl PartialOrd for Number<'_> {
    /// Mathematically and exactly, so that two numbers that are not equal are less or greater.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self.as_i128(), other.as_i128()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => Some(Decimal::parse(self.literal).compare(&Decimal::parse(other.literal))),
        }
    }
}

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.literal)
    }
}

impl fmt::Debug for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.literal)
    }
}

/// The parts of a number: `digits` (without leading or trailing zeros) times ten to the `exponent`.
struct Decimal<'a> {
    negative: bool,
    integral: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn parse(literal: &'a str) -> Self {
        let unsigned = literal.strip_prefix('-').unwrap_or(literal);
        let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (integral, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let mut number = Decimal {
            negative: literal.starts_with('-'),
            integral: integral.trim_start_matches('0'),
            fraction,
            exponent: saturating(power).saturating_sub_unsigned(fraction.len() as u64),
        };
        number.strip();
        number
    }

    /// Normalizes the parts, so that equal numbers have equal parts.
    fn strip(&mut self) {
        if self.integral.is_empty() {
            self.fraction = self.fraction.trim_start_matches('0');
        }
        if self.fraction.is_empty() {
            let short = self.integral.trim_end_matches('0');
            self.exponent = self.exponent.saturating_add_unsigned((self.integral.len() - short.len()) as u64);
            self.integral = short;
        }
        if self.integral.is_empty() && self.fraction.is_empty() {
            self.negative = false;
            self.exponent = 0;
        }
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.integral.bytes().chain(self.fraction.bytes())
    }

    /// Returns -1, 0 or 1.
    fn sign(&self) -> i8 {
        match self.digits().next() {
            None => 0,
            Some(_) if self.negative => -1,
            Some(_) => 1,
        }
    }

    /// Returns the place of the first digit: 1 for the ones, 2 for the tens.
    fn places(&self) -> i64 {
        self.exponent.saturating_add_unsigned(self.digits().count() as u64)
    }

    /// Compares by sign, then by the place of the first digit, then digit by digit.
    fn compare(&self, other: &Self) -> Ordering {
        let size = self.places().cmp(&other.places()).then_with(|| self.digits().cmp(other.digits()));
        let signs = self.sign().cmp(&other.sign());
        signs.then(if self.negative { size.reverse() } else { size })
    }

    #[inline]
    fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    fn to_i128(&self) -> Option<i128> {
        let power = 10_i128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        let digits = self
            .digits()
            .try_fold(0_i128, |sum, digit| sum.checked_mul(10)?.checked_add(i128::from(digit - b'0')))?;
        let size = digits.checked_mul(power)?;
        Some(if self.negative { -size } else { size })
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.negative == other.negative && self.exponent == other.exponent && self.digits().eq(other.digits())
    }
}

/// Parses an exponent; one out of range becomes the end of the range.
// Two numbers with exponents of over 64 bits are therefore equal if their digits are. No calculation could use the difference.
fn saturating(power: &str) -> i64 {
    let edge = if power.starts_with('-') { i64::MIN } else { i64::MAX };
    power.parse().unwrap_or(edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(literal: &str) -> Number<'_> {
        Number::new(literal, !literal.contains(['.', 'e', 'E']))
    }

    #[test]
    fn equality_is_mathematical_and_exact() {
        for (left, right) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.10", "1E-1"),
            ("-0", "0"),
            ("0.0", "0e9"),
            ("12.5e1", "125"),
            ("0.0001", "1e-4"),
            ("18446744073709551616", "1.8446744073709551616e19"),
            ("100.0", "1e+2"),
        ] {
            assert_eq!(number(left), number(right));
        }
        for (left, right) in [
            ("1", "-1"),
            ("9007199254740993", "9007199254740992"),
            ("0.1", "0.10000000000000001"),
            ("1", "10"),
        ] {
            assert_ne!(number(left), number(right));
        }
    }

    #[test]
    fn equal_numbers_hash_alike_and_close_ones_do_not() {
        let hash = |literal| {
            let mut hasher = std::hash::DefaultHasher::new();
            number(literal).hash(&mut hasher);
            hasher.finish()
        };
        for (left, right) in [("1", "1.0"), ("100", "1e2"), ("-0", "0.0"), ("12.5e1", "125")] {
            assert_eq!(hash(left), hash(right), "{left} {right}");
        }
        for (left, right) in [("9007199254740993", "9007199254740992"), ("1", "-1"), ("1", "10")] {
            assert_ne!(hash(left), hash(right), "{left} {right}");
        }
    }

    #[test]
    fn integers_are_recognised_however_written() {
        assert_eq!(number("2.0").as_i64(), Some(2));
        assert_eq!(number("-1.5e1").as_i64(), Some(-15));
        assert_eq!(number("-0").as_u64(), Some(0));
        assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
        assert_eq!(number("18446744073709551616").as_u64(), None);
        assert_eq!(number("1e400000000000").as_i64(), None);
        assert!(number("1.50e1").is_integer() && !number("1.55e1").is_integer());
    }

    #[test]
    fn text_of_a_number_is_its_literal() {
        for literal in ["-0", "1.50", "1E+2"] {
            assert_eq!(
                (format!("{}", number(literal)), format!("{:?}", number(literal))),
                (literal.into(), literal.into())
            );
        }
    }

    #[test]
    fn order_is_by_value() {
        assert!(number("1e2") < number("101"));
        assert!(number("9007199254740992") < number("9007199254740993"));
        assert!(number("-0.5") < number("0"));
    }

    #[test]
    fn order_is_exact_and_agrees_with_equality() {
        let ascending = [
            "-1e400",
            "-12.5",
            "-12.4",
            "-0.10000000000000001",
            "-0.1",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000001",
            "0.2",
            "1",
            "1.5",
            "2.9999999999999999999",
            "3.0",
            "3.0000000000000000001",
            "12",
            "1e2",
            "1e400",
        ];
        for (place, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(
                    number(left).partial_cmp(&number(right)),
                    Some(place.cmp(&other)),
                    "{left} {right}"
                );
            }
        }
        assert_eq!(number("3.0").partial_cmp(&number("3")), Some(Ordering::Equal));
        assert_eq!(number("-0").partial_cmp(&number("0.0")), Some(Ordering::Equal));
    }
}
