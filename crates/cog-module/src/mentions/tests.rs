use crate::{EditedDirectory, testing::Directory, testing::MANIFEST};

use super::*;

const SCHEMA: &str = r##"{
  "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
  "data": {
    "type": "object",
    "required": ["items", "rationale"],
    "properties": {
      "items": { "type": "array", "items": { "$ref": "#/$defs/item" } },
      "best": { "$ref": "#/$defs/item" },
      "rationale": { "type": "string" },
      "text": { "type": "string" }
    }
  },
  "$defs": {
    "item": {
      "type": "object",
      "properties": { "price": { "type": "number" }, "properties": { "type": "string" } }
    }
  }
}"##;

const CHECKS: &str = "checks:
  - name: cheap
    that: all($.data.items[*], @.price < 10) && $.data.best.price > 0
  - name: real
    when: length($.input.text) > 1
    grounded: $.data.rationale
";

fn origin() -> (Directory, Origin) {
    let directory = Directory::v22()
        .with("module.yaml", format!("{MANIFEST}{CHECKS}"))
        .with("schema.json", SCHEMA)
        .with(
            "prompt.md",
            "Give `items` with a `price`, from `input.text`.\n```json\n{\"best\": {\"price\": 1}}\n```\n",
        )
        .with("tests/a.input.json", r#"{"text": "price"}"#)
        .with(
            "tests/a.expected.json",
            r#"{"required": ["data.items[0].price"], "equals": {"data.best.price": 1}}"#,
        )
        .with("tests/b.expected.json", r#"{"items": [{"price": 2}], "rationale": "best"}"#);
    let origin = directory.origin();
    (directory, origin)
}

/// Returns the places that name a field: the file and the line.
fn places(mentions: &[Mention], field: &str) -> Vec<String> {
    let of_field = mentions.iter().filter(|mention| mention.fields == [field]);
    let text = of_field.map(|mention| {
        let text = files::read_text(&mention.file, files::MAX_CASE).unwrap();
        let line = text.get(..mention.range.start).unwrap().lines().count().max(1);
        let name = mention.file.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(text.get(mention.range.clone()), Some(last(field)), "{name}:{line}");
        format!("{name}:{line}")
    });
    text.collect()
}

#[test]
fn field_is_found_in_every_file() {
    let (_directory, origin) = origin();
    let found = mentions(&origin);
    assert_eq!(
        places(&found, "/$defs/item/properties/price"),
        [
            "schema.json:16",
            "module.yaml:9",
            "module.yaml:9",
            "prompt.md:1",
            "prompt.md:3",
            "a.expected.json:1",
            "a.expected.json:1",
            "b.expected.json:1",
        ]
    );
    assert_eq!(
        places(&found, "/input/properties/text"),
        ["schema.json:2", "schema.json:2", "module.yaml:11", "prompt.md:1", "a.input.json:1"]
    );
}

#[test]
fn name_of_two_fields_means_both() {
    let directory = Directory::v22().with("schema.json", SCHEMA).with("prompt.md", "See `text`.\n");
    let found = mentions(&directory.origin());
    let prompt: Vec<_> = found.iter().filter(|mention| mention.file.ends_with("prompt.md")).collect();
    assert_eq!(prompt.len(), 1);
    assert_eq!(prompt[0].fields, ["/input/properties/text", "/data/properties/text"]);
}

#[test]
fn field_with_the_name_of_a_keyword_is_a_field() {
    let (_directory, origin) = origin();
    let definitions = mentions(&origin).into_iter().filter(|mention| mention.is_definition);
    let names: Vec<_> = definitions.map(|mention| mention.fields[0].clone()).collect();
    assert_eq!(
        names,
        [
            "/input/properties/text",
            "/data/properties/items",
            "/data/properties/best",
            "/data/properties/rationale",
            "/data/properties/text",
            "/$defs/item/properties/price",
            "/$defs/item/properties/properties",
        ]
    );
}

#[test]
fn text_of_an_open_file_counts() {
    let (_directory, origin) = origin();
    let path = origin.directory().unwrap();
    let edited = EditedDirectory::new(path)
        .with("prompt.md", "Only `best`.")
        .with("tests/c.expected.json", r#"{"best": {}}"#);
    let found = mentions(&Origin::Edited(edited.into()));
    let files = found.iter().filter(|mention| mention.fields == ["/data/properties/best"]);
    let names: Vec<_> = files.map(|mention| mention.file.file_name().unwrap().to_string_lossy()).collect();
    assert_eq!(names, ["schema.json", "module.yaml", "prompt.md", "a.expected.json", "c.expected.json"]);
}

#[test]
fn recursive_schema_ends() {
    let schema =
        r##"{"data": {"$ref": "#/data"}, "input": {"properties": {"a": {"items": {"$ref": "#/input"}}}}}"##;
    let directory = Directory::v22()
        .with("schema.json", schema)
        .with("tests/a.input.json", r#"{"a": [{"a": []}], "b": 1}"#);
    let found = mentions(&directory.origin());
    assert_eq!(places(&found, "/input/properties/a"), ["schema.json:1", "a.input.json:1", "a.input.json:1"]);
}

#[test]
fn paths_of_fields_are_those_of_conditions() {
    let (_directory, origin) = origin();
    let paths: Vec<_> =
        field_paths(&origin).into_iter().map(|field| format!("{} {}", field.path, field.about)).collect();
    assert_eq!(
        paths,
        [
            "data.items array",
            "data.items[*].price number",
            "data.items[*].properties string",
            "data.best ",
            "data.best.price number",
            "data.best.properties string",
            "data.rationale string",
            "data.text string",
            "input.text string",
        ]
    );
}
