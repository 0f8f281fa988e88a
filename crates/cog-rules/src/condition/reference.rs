//! Compares the evaluation of random conditions with a second one, which calculates with hundredths.

use cog_json::Value;
use proptest::prelude::*;

use super::*;

/// A document: numbers in hundredths, of which some are absent, and names.
#[derive(Debug, Clone)]
struct Sample {
    amounts: Vec<Option<i64>>,
    names: Vec<&'static str>,
    total: Option<i64>,
}

/// A number of a condition; none if it has no value.
#[derive(Debug, Clone)]
enum Num {
    Literal(i64),
    Total,
    Sum,
    Count,
    CountIf(Op, i64),
    Min,
    Max,
    Plus(Box<Num>, Box<Num>),
    Minus(Box<Num>, Box<Num>),
    Times(i64, Box<Num>),
}

#[derive(Debug, Clone)]
enum Cond {
    Compare(Num, Op, Num),
    Every(Op, i64),
    Some(Op, i64),
    Unique,
    Sorted,
    Named(&'static str),
    Exists,
    Not(Box<Cond>),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
}

type Op = &'static str;

const OPS: [Op; 6] = ["==", "!=", "<", "<=", ">", ">="];
const NAMES: [&str; 4] = ["a", "b", "", "ä"];

fn decimal(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", hundredths.abs() / 100, hundredths.abs() % 100)
}

impl Sample {
    fn json(&self) -> String {
        let items = self.amounts.iter().map(|amount| match amount {
            Some(amount) => format!("{{\"amount\": {}}}", decimal(*amount)),
            None => "{}".to_owned(),
        });
        let names = self.names.iter().map(|name| format!("\"{name}\""));
        let total = self.total.map(|total| format!(", \"total\": {}", decimal(total))).unwrap_or_default();
        let items: Vec<String> = items.collect();
        let names: Vec<String> = names.collect();
        format!("{{\"items\": [{}], \"names\": [{}]{total}}}", items.join(", "), names.join(", "))
    }

    fn present(&self) -> impl Iterator<Item = i64> + '_ {
        self.amounts.iter().flatten().copied()
    }
}

fn compared(left: Option<i64>, op: Op, right: Option<i64>) -> bool {
    match (op, left, right) {
        ("==", ..) => left == right,
        ("!=", ..) => left != right,
        ("<", Some(left), Some(right)) => left < right,
        ("<=", Some(left), Some(right)) => left <= right,
        (">", Some(left), Some(right)) => left > right,
        (">=", Some(left), Some(right)) => left >= right,
        _ => false,
    }
}

impl Num {
    fn text(&self) -> String {
        match self {
            Num::Literal(value) => decimal(*value),
            Num::Total => "$.total".to_owned(),
            Num::Sum => "sum($.items[*].amount)".to_owned(),
            Num::Count => "count($.items)".to_owned(),
            Num::CountIf(op, value) => format!("count($.items[*], @.amount {op} {})", decimal(*value)),
            Num::Min => "min($.items[*].amount)".to_owned(),
            Num::Max => "max($.items[*].amount)".to_owned(),
            Num::Plus(left, right) => format!("({} + {})", left.text(), right.text()),
            Num::Minus(left, right) => format!("({} - {})", left.text(), right.text()),
            Num::Times(by, value) => format!("{by} * {}", value.text()),
        }
    }

    fn value(&self, sample: &Sample) -> Option<i64> {
        let count = |count: usize| Some(i64::try_from(count).unwrap() * 100);
        match self {
            Num::Literal(value) => Some(*value),
            Num::Total => sample.total,
            Num::Sum => Some(sample.present().sum()),
            Num::Count => count(sample.amounts.len()),
            Num::CountIf(op, value) => {
                count(sample.amounts.iter().filter(|amount| compared(**amount, op, Some(*value))).count())
            }
            Num::Min => sample.present().min(),
            Num::Max => sample.present().max(),
            Num::Plus(left, right) => Some(left.value(sample)? + right.value(sample)?),
            Num::Minus(left, right) => Some(left.value(sample)? - right.value(sample)?),
            Num::Times(by, value) => Some(by * value.value(sample)?),
        }
    }
}

impl Cond {
    fn text(&self) -> String {
        match self {
            Cond::Compare(left, op, right) => format!("{} {op} {}", left.text(), right.text()),
            Cond::Every(op, value) => format!("all($.items[*], @.amount {op} {})", decimal(*value)),
            Cond::Some(op, value) => format!("any($.items[*].amount, @ {op} {})", decimal(*value)),
            Cond::Unique => "unique($.names[*])".to_owned(),
            Cond::Sorted => "sorted($.items[*].amount)".to_owned(),
            Cond::Named(name) => format!("contains($.names, '{name}')"),
            Cond::Exists => "exists($.total)".to_owned(),
            Cond::Not(inner) => format!("!({})", inner.text()),
            Cond::And(left, right) => format!("({} && {})", left.text(), right.text()),
            Cond::Or(left, right) => format!("({} || {})", left.text(), right.text()),
        }
    }

    fn is_true(&self, sample: &Sample) -> bool {
        match self {
            Cond::Compare(left, op, right) => compared(left.value(sample), op, right.value(sample)),
            Cond::Every(op, value) => sample.amounts.iter().all(|amount| compared(*amount, op, Some(*value))),
            Cond::Some(op, value) => sample.present().any(|amount| compared(Some(amount), op, Some(*value))),
            Cond::Unique => {
                let mut names = sample.names.clone();
                names.sort_unstable();
                names.windows(2).all(|pair| pair[0] != pair[1])
            }
            Cond::Sorted => {
                let amounts: Vec<i64> = sample.present().collect();
                amounts.windows(2).all(|pair| pair[0] <= pair[1])
            }
            Cond::Named(name) => sample.names.contains(name),
            Cond::Exists => sample.total.is_some(),
            Cond::Not(inner) => !inner.is_true(sample),
            Cond::And(left, right) => left.is_true(sample) && right.is_true(sample),
            Cond::Or(left, right) => left.is_true(sample) || right.is_true(sample),
        }
    }
}

fn samples() -> impl Strategy<Value = Sample> {
    let amounts = prop::collection::vec(prop::option::weighted(0.8, -300_i64..300), 0..5);
    let names = prop::collection::vec(prop::sample::select(NAMES.to_vec()), 0..4);
    (amounts, names, prop::option::weighted(0.8, -300_i64..600)).prop_map(|(amounts, names, total)| Sample {
        amounts,
        names,
        total,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop::sample::select(OPS.to_vec())
}

fn numbers() -> impl Strategy<Value = Num> {
    let leaf = prop_oneof![
        (-300_i64..300).prop_map(Num::Literal),
        Just(Num::Total),
        Just(Num::Sum),
        Just(Num::Count),
        (op(), -300_i64..300).prop_map(|(op, value)| Num::CountIf(op, value)),
        Just(Num::Min),
        Just(Num::Max),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Num::Plus(a.into(), b.into())),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Num::Minus(a.into(), b.into())),
            (-3_i64..4, inner).prop_map(|(by, value)| Num::Times(by, value.into())),
        ]
    })
}

fn conditions() -> impl Strategy<Value = Cond> {
    let leaf = prop_oneof![
        4 => (numbers(), op(), numbers()).prop_map(|(left, op, right)| Cond::Compare(left, op, right)),
        1 => (op(), -300_i64..300).prop_map(|(op, value)| Cond::Every(op, value)),
        1 => (op(), -300_i64..300).prop_map(|(op, value)| Cond::Some(op, value)),
        1 => Just(Cond::Unique),
        1 => Just(Cond::Sorted),
        1 => prop::sample::select(NAMES.to_vec()).prop_map(Cond::Named),
        1 => Just(Cond::Exists),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Cond::Not(inner.into())),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Cond::And(a.into(), b.into())),
            (inner.clone(), inner).prop_map(|(a, b)| Cond::Or(a.into(), b.into())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_conditions_are_true_when_the_reference_is(condition in conditions(), sample in samples()) {
        let text = condition.text();
        let document = Value::parse(&sample.json()).unwrap();
        let parsed = Condition::parse(&text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let found = parsed.evaluate(Document::Envelope(document.node()));
        prop_assert_eq!(found, Ok(condition.is_true(&sample)), "{} {}", text, sample.json());
    }
}
