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
            "required": ["cover", "parts", "maybe", "none"],
            "properties": {
                "cover": reference(),
                "voice": audio,
                "parts": { "type": "array", "minItems": 1, "items": reference() },
                "maybe": { "type": "array", "items": reference() },
                "none": { "type": "array", "minItems": 0, "items": reference() },
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

#[test]
fn exactly_the_maximum_number_of_values_is_searched() {
    let contract = contract(json!({ "images": { "type": "array", "items": reference() } }));
    let data = Value::parse(&format!(r#"{{"images": [{}]}}"#, vec!["{}"; MAX_VISITED].join(","))).unwrap();
    let mut free = Vec::new();
    let mut search = SlotSearch { contract: &contract, free: &mut free, within: Vec::new(), visited: 0 };
    search.value(&[contract.data.as_ref().unwrap().id], Some(data.node()), &mut Path::root());
    // The data and its list are values too.
    assert_eq!(free.iter().filter(|field| field.list.is_none()).count(), MAX_VISITED - 2);
}

#[test]
fn media_fields_are_known_by_path() {
    let list = json!({ "type": "array", "items": reference() });
    let contract = contract(json!({ "cover": reference(), "title": {}, "images": list }));
    let path = |keys: &[&str]| {
        let mut path = Path::root();
        keys.iter().for_each(|key| path.push_key(key));
        path
    };
    for (keys, has_media) in [
        (&["data"][..], true),
        (&["data", "cover"], true),
        (&["data", "images"], true),
        (&["data", "title"], false),
        (&["data", "unknown"], false),
    ] {
        assert_eq!(contract.has_media_outputs_at(&path(keys)), has_media, "{keys:?}");
    }
}

#[test]
fn file_must_match_all_schemas_of_its_field() {
    let audio = json!({
        "properties": { "media_type": { "pattern": "^audio/" } },
        "anyOf": [reference(), { "type": "null" }],
    });
    let only_audio = json!({ "properties": {
        "type": { "enum": ["base64"] }, "media_type": { "pattern": "^audio/" } } });
    let branch = json!({ "anyOf": [only_audio, { "type": "null" }] });
    for field in [audio, branch] {
        let contract = contract(json!({ "file": field }));
        assert_eq!(paths(&contract, "{}", &["image/png", "audio/wav"]), ["-", "data.file"]);
    }
}

#[test]
fn full_list_has_no_room() {
    let contract = contract(json!({ "images": { "type": "array", "maxItems": 1, "items": reference() } }));
    let full = r#"{"images": [{"type": "url", "url": "https://a.test/"}]}"#;
    assert_eq!(paths(&contract, full, &["image/png"]), ["-"]);
}

#[test]
fn absent_object_is_created_if_it_needs_nothing_else() {
    let card = |required: &[&str]| {
        let properties = json!({ "text": { "type": "string" }, "image": reference() });
        json!({ "card": { "type": "object", "required": required, "properties": properties } })
    };
    for (required, path) in [
        (&[][..], "data.card.image"),
        (&["image"], "data.card.image"),
        (&["text"], "-"),
        (&["image", "text"], "-"),
    ] {
        assert_eq!(paths(&contract(card(required)), "{}", &["image/png"]), [path], "{required:?}");
    }
}

#[test]
fn object_with_empty_content_is_free() {
    let contract = contract(json!({ "cover": reference() }));
    for data in [r#"{"cover": {"data": null}}"#, r#"{"cover": {"data": ""}}"#, r#"{"cover": {"url": ""}}"#] {
        assert_eq!(paths(&contract, data, &["image/png"]), ["data.cover"]);
        assert_eq!(contract.media_outputs(Value::parse(data).unwrap().node()), []);
    }
}

#[test]
fn only_media_objects_are_found() {
    let contract = contract(json!({ "cover": reference(), "back": reference(), "url": {} }));
    let data = r#"{"url": "x", "cover": "see below", "back": {"type": "base64", "data": "QQ=="}}"#;
    let found = contract.media_outputs(Value::parse(data).unwrap().node());
    let found: Vec<String> = found.iter().map(|slot| slot.path.to_string()).collect();
    assert_eq!(found, ["data.back"]);
}

#[test]
fn required_names_of_omitted_fields_are_omitted() {
    let document = json!({ "data": {
        "type": "object",
        "required": ["cover", "title"],
        "properties": { "cover": reference(), "title": { "type": "string" } },
    } });
    let rules = Rules::from(&Manifest::with_defaults("m", Format::V25, None));
    let (remaining, _) = Contract::compile(&document, &rules).unwrap().without_media_outputs().unwrap();
    assert_eq!(remaining.data_schema().unwrap()["required"], json!(["title"]));
}

#[test]
fn named_fields_of_a_recursive_schema_end() {
    let document = json!({
        "data": { "$ref": "#/$defs/node" },
        "$defs": { "node": { "type": "object", "properties": {
            "image": { "$ref": "#/$defs/MediaOutput" }, "next": { "$ref": "#/$defs/node" } } } },
    });
    let rules = Rules::from(&Manifest::with_defaults("m", Format::V25, None));
    let slots = Contract::compile(&document, &rules).unwrap().named_media_outputs(&["image/png"], "base64");
    let found: Vec<String> = slots.iter().map(|slot| slot.path.to_string()).collect();
    assert_eq!(found, ["data.image"]);
}
