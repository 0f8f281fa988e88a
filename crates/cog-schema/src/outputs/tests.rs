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

/// Returns the paths that media of these types get in `data`.
fn paths(contract: &Contract, data: &str, types: &[&str]) -> Vec<String> {
    let data = Value::parse(data).unwrap();
    let media: Vec<_> = types.iter().map(|media_type| Placement { media_type, form: "base64" }).collect();
    let placed = contract.place_media(data.node(), &media).into_iter();
    placed.map(|slot| slot.map_or_else(|| "-".to_owned(), |slot| slot.path.to_string())).collect()
}

#[test]
fn media_fill_free_fields_in_the_order_of_the_schema() {
    let contract = contract(json!({ "cover": reference(), "back": reference(), "title": {} }));
    assert!(contract.has_media_outputs());
    let png = "image/png";
    assert_eq!(paths(&contract, "{}", &[png, png, png]), ["data.cover", "data.back", "-"]);
    assert_eq!(paths(&contract, r#"{"cover": null}"#, &[png]), ["data.cover"]);
    assert_eq!(paths(&contract, r#"{"cover": {"media_type": "image/png"}}"#, &[png]), ["data.cover"]);
    let taken = r#"{"cover": {"type": "url", "media_type": "image/png", "url": "https://a.test/b.png"}}"#;
    assert_eq!(paths(&contract, taken, &[png, png]), ["data.back", "-"]);
    assert_eq!(paths(&contract, r#"{"cover": "see below"}"#, &[png]), ["data.back"]);
}

#[test]
fn list_accepts_up_to_max_items() {
    let contract = contract(json!({ "images": { "type": "array", "maxItems": 3, "items": reference() } }));
    let png = "image/png";
    let all = ["data.images[0]", "data.images[1]", "data.images[2]", "-"];
    assert_eq!(paths(&contract, "{}", &[png; 4]), all);
    let partial = r#"{"images": [{"type": "url", "url": "https://a.test/"}, {}]}"#;
    assert_eq!(paths(&contract, partial, &[png; 3]), ["data.images[1]", "data.images[2]", "-"]);
}

#[test]
fn file_goes_to_a_field_that_accepts_its_type() {
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
    assert_eq!(paths(&contract, "{}", &types), ["data.image", "data.voice", "data.any", "-"]);
    let data = Value::parse("{}").unwrap();
    let as_file = Placement { media_type: "image/png", form: "file" };
    let placed = contract.place_media(data.node(), &[as_file]);
    let slot = placed[0].as_ref().unwrap();
    assert_eq!(slot.path.to_string(), "data.image");
    assert!(slot.takes("base64") && !slot.takes("file"));
}

#[test]
fn finds_fields_at_any_depth() {
    let scene = json!({ "type": "object", "required": ["text"], "properties": {
        "text": { "type": "string" }, "image": reference() } });
    let contract = contract(json!({
        "scenes": { "type": "array", "items": scene },
        "result": { "type": "object", "properties": { "art": { "oneOf": [reference(), { "type": "null" }] } } },
    }));
    let png = "image/png";
    let data = r#"{"scenes": [{"text": "a"}, {"text": "b"}]}"#;
    let expected = ["data.scenes[0].image", "data.scenes[1].image", "data.result.art", "-"];
    assert_eq!(paths(&contract, data, &[png; 4]), expected);
    // No scene is created for an image.
    assert_eq!(paths(&contract, "{}", &[png; 2]), ["data.result.art", "-"]);
}

#[test]
fn recursive_schema_ends() {
    let manifest = Manifest::with_defaults("m", Format::V25, None);
    let document = json!({
        "data": { "$ref": "#/$defs/node" },
        "$defs": { "node": { "type": "object", "properties": {
            "next": { "$ref": "#/$defs/node" }, "image": { "$ref": "#/$defs/MediaOutput" } } } },
    });
    let contract = Contract::compile(&document, &Rules::from(&manifest)).unwrap();
    let png = "image/png";
    assert_eq!(paths(&contract, r#"{"next": {}}"#, &[png; 3]), ["data.next.image", "data.image", "-"]);
}

#[test]
fn finds_media_that_the_model_wrote_with_allowed_members() {
    let closed = json!({
        "properties": { "type": { "enum": ["base64"] }, "media_type": {}, "data": {} },
        "additionalProperties": false,
    });
    let contract = contract(json!({ "open": reference(), "shut": closed, "stub": reference() }));
    let data = r#"{"shut": {"type": "base64", "data": "QQ=="}, "stub": {"type": "base64"},
        "open": {"type": "url", "url": "https://a.test/"}, "other": {"type": "base64", "data": "QQ=="}}"#;
    let data = Value::parse(data).unwrap();
    let found = contract.media_outputs(data.node());
    let mut paths: Vec<_> = found.iter().map(|slot| slot.path.to_string()).collect();
    paths.sort();
    assert_eq!(paths, ["data.open", "data.shut"]);
    let closed = found.iter().find(|slot| slot.path.to_string() == "data.shut").unwrap();
    assert!(closed.allows("data") && !closed.allows("width"));
    assert!(found.iter().any(|slot| slot.allows("width")));
}

#[test]
fn contract_without_media_fields_has_none() {
    let contract = contract(json!({ "image": { "type": "string" } }));
    assert!(!contract.has_media_outputs());
    assert_eq!(paths(&contract, "{}", &["image/png"]), ["-"]);
}

#[test]
fn contract_for_a_model_omits_media_fields() {
    let fields = json!({ "cover": reference(), "title": { "type": "string" },
        "more": { "type": "array", "items": reference() } });
    let (remaining, omitted) = contract(fields).without_media_outputs().unwrap();
    assert_eq!(omitted, ["cover", "more"]);
    let properties = remaining.data_schema().unwrap()["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["title"]);
    assert!(contract(json!({ "title": {} })).without_media_outputs().is_none());
}

#[test]
fn required_media_fields_are_known_before_the_answer() {
    let manifest = Manifest::with_defaults("m", Format::V25, None);
    let audio = json!({ "properties": {
        "type": { "enum": ["base64"] }, "media_type": { "pattern": "^audio/" } } });
    let document = json!({
        "data": {
            "type": "object",
            "required": ["cover", "parts", "maybe"],
            "properties": {
                "cover": reference(),
                "voice": audio,
                "parts": { "type": "array", "minItems": 1, "items": reference() },
                "maybe": { "type": "array", "items": reference() },
                "inner": { "type": "object", "required": ["art"], "properties": { "art": reference() } },
            },
        },
    });
    let contract = Contract::compile(&document, &Rules::from(&manifest)).unwrap();
    let slots = contract.named_media_outputs(&["image/png", "audio/wav"], "base64");
    let of = |path: &str| slots.iter().find(|slot| slot.path.to_string() == path).unwrap();
    let required: Vec<_> =
        slots.iter().filter(|slot| slot.is_required).map(|slot| slot.path.to_string()).collect();
    assert_eq!(required, ["data.cover", "data.parts[0]"]);
    assert_eq!(of("data.voice").types, ["audio/wav"]);
    assert_eq!(of("data.inner.art").types, ["image/png", "audio/wav"]);
}

#[test]
fn number_of_searched_values_is_bounded() {
    let scene = json!({ "type": "object", "properties": { "text": {}, "image": reference() } });
    let contract = contract(json!({ "scenes": { "type": "array", "items": scene } }));
    let scenes = |count: usize| format!(r#"{{"scenes": [{}]}}"#, vec![r#"{"text": ""}"#; count].join(","));
    let found = |count: usize| {
        let paths = paths(&contract, &scenes(count), &vec!["image/png"; count]);
        paths.iter().filter(|path| *path != "-").count()
    };
    assert_eq!(found(1_000), 1_000);
    assert!(found(MAX_VISITED) < MAX_VISITED);
}
