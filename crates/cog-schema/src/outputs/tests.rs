use cog_json::Value;
use cog_spec::{Format, Manifest};
use serde_json::json;

use super::*;
use crate::Rules;

fn contract(properties: serde_json::Value) -> Contract {
    let output = json!({
        "type": "object",
        "required": ["type", "media_type"],
        "properties": {
            "type": { "enum": ["url", "base64", "file"] },
            "media_type": { "type": "string", "pattern": "^(image|audio|video)/[a-z0-9.+-]+$" },
        },
    });
    let document = json!({
        "data": { "type": "object", "properties": properties },
        "$defs": { "MediaOutput": output },
    });
    let manifest = Manifest::with_defaults("m", Format::V25, None);
    Contract::compile(&document, &Rules::from(&manifest)).unwrap()
}

fn reference() -> serde_json::Value {
    json!({ "$ref": "#/$defs/MediaOutput" })
}

/// Where media of these types go in `data`.
fn places(contract: &Contract, data: &str, types: &[&str]) -> Vec<String> {
    let data = Value::parse(data).unwrap();
    let media: Vec<_> = types.iter().map(|media_type| Placement { media_type, form: "base64" }).collect();
    let placed = contract.place_media(data.node(), &media).into_iter();
    placed.map(|place| place.map_or_else(|| "-".to_owned(), |place| place.path.to_string())).collect()
}

#[test]
fn media_take_the_places_of_the_schema_in_its_order() {
    let contract = contract(json!({ "cover": reference(), "back": reference(), "title": {} }));
    assert!(contract.has_media_outputs());
    let png = "image/png";
    assert_eq!(places(&contract, "{}", &[png, png, png]), ["data.cover", "data.back", "-"]);
    assert_eq!(places(&contract, r#"{"cover": null}"#, &[png]), ["data.cover"]);
    assert_eq!(places(&contract, r#"{"cover": {"media_type": "image/png"}}"#, &[png]), ["data.cover"]);
    let taken = r#"{"cover": {"type": "url", "media_type": "image/png", "url": "https://a.test/b.png"}}"#;
    assert_eq!(places(&contract, taken, &[png, png]), ["data.back", "-"]);
    assert_eq!(places(&contract, r#"{"cover": "see below"}"#, &[png]), ["data.back"]);
}

#[test]
fn a_list_takes_as_many_as_it_may_have() {
    let contract = contract(json!({ "images": { "type": "array", "maxItems": 3, "items": reference() } }));
    let png = "image/png";
    let all = ["data.images[0]", "data.images[1]", "data.images[2]", "-"];
    assert_eq!(places(&contract, "{}", &[png; 4]), all);
    let begun = r#"{"images": [{"type": "url", "url": "https://a.test/"}, {}]}"#;
    assert_eq!(places(&contract, begun, &[png; 3]), ["data.images[1]", "data.images[2]", "-"]);
}

#[test]
fn a_medium_goes_where_its_type_may_stand() {
    let only = |kind: &str| {
        json!({
            "properties": {
                "type": { "enum": ["base64"] },
                "media_type": { "type": "string", "pattern": format!("^{kind}/") },
            },
        })
    };
    let contract = contract(json!({ "voice": only("audio"), "image": only("image"), "any": reference() }));
    let types = ["image/png", "audio/wav", "video/mp4", "image/webp"];
    assert_eq!(places(&contract, "{}", &types), ["data.image", "data.voice", "data.any", "-"]);
    let data = Value::parse("{}").unwrap();
    let as_file = Placement { media_type: "image/png", form: "file" };
    let placed = contract.place_media(data.node(), &[as_file]);
    let place = placed[0].as_ref().unwrap();
    assert_eq!(place.path.to_string(), "data.image");
    assert!(place.takes("base64") && !place.takes("file"));
}

#[test]
fn places_are_found_however_deep() {
    let scene = json!({ "type": "object", "required": ["text"], "properties": {
        "text": { "type": "string" }, "image": reference() } });
    let contract = contract(json!({
        "scenes": { "type": "array", "items": scene },
        "result": { "type": "object", "properties": { "art": { "oneOf": [reference(), { "type": "null" }] } } },
    }));
    let png = "image/png";
    let data = r#"{"scenes": [{"text": "a"}, {"text": "b"}]}"#;
    let expected = ["data.scenes[0].image", "data.scenes[1].image", "data.result.art", "-"];
    assert_eq!(places(&contract, data, &[png; 4]), expected);
    // A scene is not made up around an image.
    assert_eq!(places(&contract, "{}", &[png; 2]), ["data.result.art", "-"]);
}

#[test]
fn a_schema_that_holds_itself_has_an_end() {
    let manifest = Manifest::with_defaults("m", Format::V25, None);
    let document = json!({
        "data": { "$ref": "#/$defs/node" },
        "$defs": { "node": { "type": "object", "properties": {
            "next": { "$ref": "#/$defs/node" }, "image": { "$ref": "#/$defs/MediaOutput" } } } },
    });
    let contract = Contract::compile(&document, &Rules::from(&manifest)).unwrap();
    let png = "image/png";
    assert_eq!(places(&contract, r#"{"next": {}}"#, &[png; 3]), ["data.next.image", "data.image", "-"]);
}

#[test]
fn what_a_model_wrote_itself_is_found_with_what_its_place_allows() {
    let shut = json!({
        "properties": { "type": { "enum": ["base64"] }, "media_type": {}, "data": {} },
        "additionalProperties": false,
    });
    let contract = contract(json!({ "open": reference(), "shut": shut, "stub": reference() }));
    let data = r#"{"shut": {"type": "base64", "data": "QQ=="}, "stub": {"type": "base64"},
        "open": {"type": "url", "url": "https://a.test/"}, "other": {"type": "base64", "data": "QQ=="}}"#;
    let data = Value::parse(data).unwrap();
    let found = contract.media_outputs(data.node());
    let mut paths: Vec<_> = found.iter().map(|place| place.path.to_string()).collect();
    paths.sort();
    assert_eq!(paths, ["data.open", "data.shut"]);
    let shut = found.iter().find(|place| place.path.to_string() == "data.shut").unwrap();
    assert!(shut.allows("data") && !shut.allows("width"));
    assert!(found.iter().any(|place| place.allows("width")));
}

#[test]
fn a_contract_without_such_places_has_none() {
    let contract = contract(json!({ "image": { "type": "string" } }));
    assert!(!contract.has_media_outputs());
    assert_eq!(places(&contract, "{}", &["image/png"]), ["-"]);
}

#[test]
fn a_model_is_told_of_no_field_that_is_not_its_to_write() {
    let fields = json!({ "cover": reference(), "title": { "type": "string" },
        "more": { "type": "array", "items": reference() } });
    let (reported, left_out) = contract(fields).without_media_outputs().unwrap();
    assert_eq!(left_out, ["cover", "more"]);
    let properties = reported.data_schema().unwrap()["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["title"]);
    assert!(contract(json!({ "title": {} })).without_media_outputs().is_none());
}

#[test]
fn what_an_answer_must_have_is_known_before_it_comes() {
    let manifest = Manifest::with_defaults("m", Format::V25, None);
    let sound = json!({ "properties": {
        "type": { "enum": ["base64"] }, "media_type": { "pattern": "^audio/" } } });
    let document = json!({
        "data": {
            "type": "object",
            "required": ["cover", "parts", "maybe"],
            "properties": {
                "cover": reference(),
                "voice": sound,
                "parts": { "type": "array", "minItems": 1, "items": reference() },
                "maybe": { "type": "array", "items": reference() },
                "inner": { "type": "object", "required": ["art"], "properties": { "art": reference() } },
            },
        },
    });
    let contract = Contract::compile(&document, &Rules::from(&manifest)).unwrap();
    let places = contract.named_media_outputs(&["image/png", "audio/wav"], "base64");
    let of = |path: &str| places.iter().find(|place| place.path.to_string() == path).unwrap();
    let required: Vec<_> =
        places.iter().filter(|place| place.is_required).map(|place| place.path.to_string()).collect();
    assert_eq!(required, ["data.cover", "data.parts[0]"]);
    assert_eq!(of("data.voice").types, ["audio/wav"]);
    assert_eq!(of("data.inner.art").types, ["image/png", "audio/wav"]);
}

#[test]
fn a_bounded_number_of_values_is_searched_for_places() {
    let scene = json!({ "type": "object", "properties": { "text": {}, "image": reference() } });
    let contract = contract(json!({ "scenes": { "type": "array", "items": scene } }));
    let scenes = |count: usize| format!(r#"{{"scenes": [{}]}}"#, vec![r#"{"text": ""}"#; count].join(","));
    let found = |count: usize| {
        let places = places(&contract, &scenes(count), &vec!["image/png"; count]);
        places.iter().filter(|place| *place != "-").count()
    };
    assert_eq!(found(1_000), 1_000);
    assert!(found(MAX_LOOKS) < MAX_LOOKS);
}
