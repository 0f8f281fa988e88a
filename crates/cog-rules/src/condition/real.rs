//! Numbers to calculate with: decimals that are exact, as amounts of money must be, and floats for the rest.

use std::{cmp::Ordering, fmt};

use cog_json::{Node, Number};

/// A number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Real {
    /// `digits` times ten to the `exponent`.
    Exact { digits: i128, exponent: i32 },
    /// A number with too many digits, or a quotient without an end.
    Float(f64),
}

/// The maximum of an exponent, in both directions. Numbers beyond it are floats.
const MAX_EXPONENT: i32 = 60;

/// The number of decimals up to which a quotient is exact.
const MAX_DECIMALS: u32 = 20;

impl Real {
    /// Returns the integer of a count.
    pub(crate) fn count(count: usize) -> Self {
        Real::Exact { digits: count as i128, exponent: 0 }
    }

    /// Reads a number.
    pub(crate) fn read(number: Number<'_>) -> Self {
        Self::exact(number.literal()).unwrap_or_else(|| Real::Float(number.as_f64()))
    }

    fn exact(literal: &str) -> Option<Self> {
        // Most numbers are short, and reading 128 bits takes several times as long.
        if let Some(short) = Short::parse(literal) {
            return Some(short.into());
        }
        let (mantissa, power) = match literal.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, power.parse::<i32>().ok()?),
            None => (literal, 0),
        };
        let decimals = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = mantissa.replace('.', "").parse().ok()?;
        Self::new(digits, power.checked_sub(i32::try_from(decimals).ok()?)?)
    }

    /// Returns a decimal; none if its exponent is too large.
    fn new(digits: i128, exponent: i32) -> Option<Self> {
        (exponent.abs() <= MAX_EXPONENT).then_some(Real::Exact { digits, exponent })
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Real::Exact { digits, exponent } => format!("{digits}e{exponent}").parse().unwrap_or_default(),
            Real::Float(float) => float,
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        match self {
            Real::Exact { digits, .. } => digits == 0,
            Real::Float(float) => float == 0.0,
        }
    }

    pub(crate) fn negated(self) -> Self {
        match self {
            Real::Exact { digits, exponent } => Real::Exact { digits: -digits, exponent },
            Real::Float(float) => Real::Float(-float),
        }
    }

    pub(crate) fn abs(self) -> Self {
        match self.compare(Real::count(0)) {
            Some(Ordering::Less) => self.negated(),
            _ => self,
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let exact = || {
            let (left, right, exponent) = aligned(self, other)?;
            Self::new(left.checked_add(right)?, exponent)
        };
        exact().unwrap_or_else(|| Real::Float(self.as_f64() + other.as_f64()))
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let exact = || match (self, other) {
            (Real::Exact { digits: a, exponent: b }, Real::Exact { digits: c, exponent: d }) => {
                Self::new(a.checked_mul(c)?, b + d)
            }
            _ => None,
        };
        exact().unwrap_or_else(|| Real::Float(self.as_f64() * other.as_f64()))
    }

    /// Returns the quotient; none for a division by zero.
    pub(crate) fn over(self, other: Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let exact = || match (self, other) {
            (Real::Exact { digits: mut a, exponent: b }, Real::Exact { digits: c, exponent: d }) => {
                let mut exponent = b - d;
                for _ in 0..=MAX_DECIMALS {
                    if a % c == 0 {
                        return Self::new(a / c, exponent);
                    }
                    a = a.checked_mul(10)?;
                    exponent -= 1;
                }
                None
            }
            _ => None,
        };
        Some(exact().unwrap_or_else(|| Real::Float(self.as_f64() / other.as_f64())))
    }

    /// Compares by value; none if one of them is not a number.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        self.compare_exactly(other).or_else(|| self.as_f64().partial_cmp(&other.as_f64()))
    }

    /// Compares two decimals; none if one of them is a float, or if they have too many digits.
    pub(crate) fn compare_exactly(self, other: Self) -> Option<Ordering> {
        aligned(self, other).map(|(left, right, _)| left.cmp(&right))
    }

    /// Returns the parts that equal numbers have in common.
    pub(crate) fn key(self) -> (i128, i32) {
        match self {
            Real::Exact { digits: 0, .. } => (0, 0),
            Real::Exact { digits, mut exponent } => {
                let Ok(mut short) = i64::try_from(digits) else { return long_key(digits, exponent) };
                while short % 10 == 0 {
                    short /= 10;
                    exponent += 1;
                }
                (i128::from(short), exponent)
            }
            // No decimal has this exponent.
            Real::Float(float) => (i128::from(float.to_bits()), i32::MAX),
        }
    }
}

fn long_key(mut digits: i128, mut exponent: i32) -> (i128, i32) {
    while digits % 10 == 0 {
        digits /= 10;
        exponent += 1;
    }
    (digits, exponent)
}

/// A number of at most 18 bytes without an exponent, as most are. Values of 64 bits are compared several times as fast.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    digits: i64,
    decimals: u32,
}

/// The length of a number whose digits fit 64 bits.
const SHORT: usize = 18;

impl Short {
    /// Reads a number; none if it is longer, or another value.
    pub(super) fn read(node: Node<'_>) -> Option<Self> {
        Self::parse(node.as_number()?.literal())
    }

    fn parse(literal: &str) -> Option<Self> {
        if literal.len() > SHORT {
            return None;
        }
        let mut digits = 0_i64;
        let mut decimals = 0;
        let mut is_fraction = false;
        for byte in literal.bytes() {
            match byte {
                b'0'..=b'9' => {
                    digits = digits * 10 + i64::from(byte - b'0');
                    decimals += u32::from(is_fraction);
                }
                b'.' => is_fraction = true,
                b'-' => {}
                _ => return None,
            }
        }
        let digits = if literal.starts_with('-') { -digits } else { digits };
        Some(Self { digits, decimals })
    }

    pub(super) fn compare(self, other: Self) -> Ordering {
        // Zero has the same sign whatever its decimals are.
        if self.decimals == other.decimals || self.digits == 0 || other.digits == 0 {
            return self.digits.cmp(&other.digits);
        }
        let decimals = self.decimals.max(other.decimals);
        let scaled = |number: Self| i128::from(number.digits) * 10_i128.pow(decimals - number.decimals);
        scaled(self).cmp(&scaled(other))
    }
}

impl From<Short> for Real {
    fn from(Short { digits, decimals }: Short) -> Self {
        Real::Exact { digits: i128::from(digits), exponent: -decimals.cast_signed() }
    }
}

/// Returns two decimals with the same exponent; none if they have too many digits for it.
fn aligned(left: Real, right: Real) -> Option<(i128, i128, i32)> {
    let (Real::Exact { digits: a, exponent: b }, Real::Exact { digits: c, exponent: d }) = (left, right)
    else {
        return None;
    };
    let exponent = b.min(d);
    Some((scaled(a, b - exponent)?, scaled(c, d - exponent)?, exponent))
}

fn scaled(digits: i128, places: i32) -> Option<i128> {
    match places {
        0 => Some(digits),
        _ if digits == 0 => Some(0),
        _ => {
            let places = u32::try_from(places).ok()?;
            match (i64::try_from(digits), 10_i64.checked_pow(places)) {
                // Two factors of 64 bits are multiplied without a check.
                (Ok(digits), Some(power)) => Some(i128::from(digits) * i128::from(power)),
                _ => digits.checked_mul(10_i128.checked_pow(places)?),
            }
        }
    }
}

impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Real::Float(float) = self {
            return write!(f, "{float}");
        }
        let (digits, exponent) = self.key();
        let sign = if digits < 0 { "-" } else { "" };
        let digits = digits.unsigned_abs().to_string();
        match usize::try_from(exponent) {
            Ok(zeros) => write!(f, "{sign}{digits}{}", "0".repeat(zeros)),
            Err(_) => {
                let places = exponent.unsigned_abs() as usize;
                let padded = format!("{digits:0>width$}", width = places + 1);
                let (whole, fraction) = padded.split_at(padded.len() - places);
                write!(f, "{sign}{whole}.{fraction}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn real(literal: &str) -> Real {
        Real::read(Value::parse(literal).unwrap().node().as_number().unwrap())
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(real("0.1").plus(real("0.2")).compare(real("0.3")), Some(Ordering::Equal));
        assert_eq!(real("19.99").times(real("3")).to_string(), "59.97");
        assert_eq!(real("1").over(real("8")).unwrap().to_string(), "0.125");
        assert_eq!(real("-1.50").abs().to_string(), "1.5");
        assert_eq!(real("12e3").to_string(), "12000");
        assert_eq!(real("-5e-3").to_string(), "-0.005");
        assert_eq!(real("9007199254740993").compare(real("9007199254740992")), Some(Ordering::Greater));
    }

    #[test]
    fn other_numbers_are_floats() {
        assert_eq!(real("1").over(real("3")).unwrap().to_string(), "0.3333333333333333");
        assert!(real("1").over(real("0.0")).is_none());
        assert_eq!(real("1e300").times(real("2")).compare(real("2e300")), Some(Ordering::Equal));
        let long = format!("0.{}1", "0".repeat(70));
        assert_eq!(real(&long).compare(real("0")), Some(Ordering::Greater));
    }

    #[test]
    fn short_numbers_are_compared_as_long_ones() {
        let literals = [
            "0",
            "-0.00",
            "1",
            "1.0",
            "-1.5",
            "-1.50",
            "0.1",
            "0.10000000000000001",
            "999999999999999999",
            "-99999999999999999",
            "1.25",
        ];
        for left in literals {
            for right in literals {
                let [one, other] = [left, right].map(|literal| Value::parse(literal).unwrap());
                let short = Short::read(one.node()).zip(Short::read(other.node()));
                let expected = real(left).compare_exactly(real(right));
                if let Some((one, other)) = short {
                    assert_eq!(Some(one.compare(other)), expected, "{left} {right}");
                }
            }
        }
        for other in ["1e2", "1.0000000000000000001", "true", "\"1\""] {
            assert!(Short::read(Value::parse(other).unwrap().node()).is_none(), "{other}");
        }
    }

    #[test]
    fn equal_numbers_have_equal_keys() {
        for (left, right) in [("1", "1.0"), ("100", "1e2"), ("0", "-0.00"), ("12.5e1", "125")] {
            assert_eq!(real(left).key(), real(right).key(), "{left}");
        }
        assert_ne!(real("1").key(), real("10").key());
    }
}
