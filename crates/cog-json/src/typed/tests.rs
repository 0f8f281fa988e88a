use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

fn value(text: &str) -> Value {
    Value::parse(text).unwrap()
}

fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    from_value(&value(text)).map_err(|error| error.to_string())
}

/// Each form that serde knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything {
    text: String,
    letter: char,
    small: i8,
    large: u64,
    float: f64,
    flag: bool,
    unit: (),
    none: Option<u8>,
    some: Option<Vec<String>>,
    pair: (u8, String),
    wrapper: Wrapper,
    by_number: BTreeMap<u16, bool>,
    variants: Vec<Variants>,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Wrapper(i64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Variants {
    Unit,
    Newtype(u8),
    Tuple(u8, u8),
    Struct { at: u8 },
}

fn everything() -> impl Strategy<Value = Everything> {
    let text = || "\\PC{0,6}";
    let variant = prop_oneof![
        Just(Variants::Unit),
        any::<u8>().prop_map(Variants::Newtype),
        any::<(u8, u8)>().prop_map(|(one, two)| Variants::Tuple(one, two)),
        any::<u8>().prop_map(|at| Variants::Struct { at }),
    ];
    let scalars = (text(), any::<char>(), any::<i8>(), any::<u64>(), -1e9..1e9_f64, any::<bool>());
    let rest = (
        prop::option::of(prop::collection::vec(text(), 0..3)),
        (any::<u8>(), text()),
        any::<i64>(),
        prop::collection::btree_map(any::<u16>(), any::<bool>(), 0..3),
        prop::collection::vec(variant, 0..4),
    );
    (scalars, rest).prop_map(|((text, letter, small, large, float, flag), rest)| Everything {
        text,
        letter,
        small,
        large,
        float,
        flag,
        unit: (),
        none: None,
        some: rest.0,
        pair: rest.1,
        wrapper: Wrapper(rest.2),
        by_number: rest.3,
        variants: rest.4,
        rest: [("more".to_owned(), json!({"n": [1, null]}))].into(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_trip_agrees_with_serde_json(everything in everything()) {
        let value = to_value(&everything).unwrap();
        prop_assert_eq!(from_value::<Everything>(&value).unwrap(), everything.clone());
        let text = value.to_string();
        prop_assert_eq!(serde_json::from_str::<Everything>(&text).unwrap().text, everything.text);
    }

    #[test]
    fn what_serde_json_reads_reads_equal(text in "[0-9]{1,22}|-[0-9]{1,20}|[0-9]{1,5}\\.[0-9]{1,3}|\"[0-9a-z]{0,3}\"|null|true|\\[1,\"a\"\\]|\\{\"1\":2\\}") {
        let Ok(value) = Value::parse(&text) else { return Ok(()) };
        macro_rules! agrees {
            ($($t:ty),*) => {
                $(if let Ok(theirs) = serde_json::from_str::<$t>(&text) {
                    prop_assert_eq!(from_value::<$t>(&value).unwrap(), theirs, "{}", stringify!($t));
                })*
            };
        }
        agrees!(u8, i8, u64, i64, u128, i128, bool, String, Option<u8>, (u8, String), Vec<serde_json::Value>);
        agrees!(BTreeMap<u8, u8>, BTreeMap<String, serde_json::Value>, Variants, ());
        // `serde_json` sometimes misses the nearest float.
        prop_assert_eq!(from_value::<f64>(&value).ok(), text.parse().ok().filter(|float: &f64| float.is_finite()));
    }
}

#[test]
fn strings_are_borrowed_even_if_they_have_escapes() {
    #[derive(Deserialize)]
    struct Borrowing<'a> {
        plain: &'a str,
        escaped: &'a str,
        #[serde(borrow)]
        keys: BTreeMap<&'a str, &'a [u8]>,
    }
    let value = value(r#"{"plain":"a","escaped":"\u00e9\n","keys":{"k\t":"bytes"}}"#);
    let borrowing: Borrowing<'_> = from_value(&value).unwrap();
    assert_eq!((borrowing.plain, borrowing.escaped), ("a", "é\n"));
    assert_eq!(borrowing.keys, [("k\t", &b"bytes"[..])].into());
}

#[test]
fn error_names_the_path_of_the_first_difference() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only errors are looked at")]
    struct Outer {
        items: Vec<Inner>,
        #[serde(default)]
        variant: Option<Variants>,
    }
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are looked at")]
    struct Inner {
        count: u8,
    }
    for (text, path, message) in [
        (
            r#"{"items":[{"count":1},{"count":"x"}]}"#,
            "items[1].count",
            "invalid type: string \"x\", expected u8",
        ),
        (r#"{"items":[{"count":300}]}"#, "items[0].count", "invalid value: integer `300`, expected u8"),
        (r#"{"items":[{}]}"#, "items[0]", "missing field `count`"),
        (r#"{"items":[{"c d":1}]}"#, "items[0][\"c d\"]", "unknown field `c d`, expected `count`"),
        (r#"{"items":{}}"#, "items", "invalid type: map, expected a sequence"),
        (
            r#"{"items":[],"variant":{"Tuple":[1]}}"#,
            "variant.Tuple",
            "invalid length 1, expected tuple variant Variants::Tuple with 2 elements",
        ),
        (r#"{"items":[],"variant":{"Unit":1}}"#, "variant.Unit", "invalid type: integer `1`, expected unit"),
        (
            r#"{"items":[],"variant":"Newtype"}"#,
            "variant",
            "invalid type: unit variant, expected a variant with a value",
        ),
        (
            r#"{"items":[],"variant":7}"#,
            "variant",
            "invalid type: number, expected a string or an object with one member",
        ),
        ("[]", "", "invalid length 0, expected struct Outer with 2 elements"),
    ] {
        let error = from_value::<Outer>(&value(text)).unwrap_err();
        assert_eq!((error.path().to_string().as_str(), error.message()), (path, message), "{text}");
        let shown = if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") };
        assert_eq!(error.to_string(), shown);
    }
}

#[test]
fn array_with_too_many_elements_is_an_error() {
    assert!(read::<(u8, u8)>("[1,2,3]").unwrap_err().contains("invalid length 3"));
}

#[test]
fn number_without_a_fraction_is_an_integer_however_it_is_written() {
    assert_eq!(read::<u8>("2.0"), Ok(2));
    assert_eq!(read::<i32>("-1.5e1"), Ok(-15));
    assert_eq!(read::<u128>("340282366920938463463374607431768211455"), Ok(u128::MAX));
    assert_eq!(read::<i128>("-170141183460469231731687303715884105728"), Ok(i128::MIN));
    assert!(read::<u8>("2.5").unwrap_err().contains("floating point `2.5`, expected u8"));
    assert!(read::<u64>("1e30").unwrap_err().contains("expected u64"));
    assert_eq!(read::<f64>("-0").map(f64::to_bits), Ok((-0.0_f64).to_bits()));
}

#[test]
fn value_inside_a_type_stays_as_it_was_written() {
    #[derive(Deserialize)]
    struct Holder {
        inner: Value,
    }
    let holder: Holder =
        from_value(&value(r#"{"inner":{"n":1.10,"big":123456789012345678901234567890}}"#)).unwrap();
    assert_eq!(holder.inner.to_string(), r#"{"n":1.10,"big":123456789012345678901234567890}"#);
}

#[test]
fn text_of_other_formats_is_not_taken_for_json() {
    use serde::de::IntoDeserializer;
    use serde::de::value::{BytesDeserializer, Error, StringDeserializer};

    let text: StringDeserializer<Error> = "{}".to_owned().into_deserializer();
    assert_eq!(Value::deserialize(text).unwrap(), Value::from(json!("{}")));
    assert!(Value::deserialize(BytesDeserializer::<Error>::new(b"{}")).is_err());
}

#[test]
fn what_json_cannot_represent_is_an_error() {
    let error = to_value(&BTreeMap::from([((1, 2), 3)])).unwrap_err();
    assert_eq!(error.to_string(), "key must be a string");
    assert_eq!(to_value(&f64::NAN), Ok(Value::null()));
    assert_eq!(to_value("x").unwrap().as_str(), Some("x"));
}

/// The numbers of elements or members that are announced before each.
#[derive(Debug, PartialEq)]
struct Announced(Vec<Option<usize>>);

impl<'de> Deserialize<'de> for Announced {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Announced(Vec::new()))
    }
}

impl<'de> Visitor<'de> for Announced {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array or object")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
        self.0.push(items.size_hint());
        while items.next_element::<IgnoredAny>()?.is_some() {
            self.0.push(items.size_hint());
        }
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Self, A::Error> {
        self.0.push(members.size_hint());
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            self.0.push(members.size_hint());
        }
        Ok(self)
    }
}

#[test]
fn announces_how_many_elements_and_members_are_left() {
    for text in ["[7,8]", r#"{"a":7,"b":8}"#] {
        assert_eq!(read(text), Ok(Announced(vec![Some(2), Some(1), Some(0)])), "{text}");
    }
}
