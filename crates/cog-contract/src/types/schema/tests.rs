use serde_json::{Value, json};

use super::*;

fn read(schema: &Value) -> Type {
    Reader::new(schema).read(schema)
}

fn keys(kind: &Type) -> Vec<&str> {
    let Type::Object(object) = kind else { panic!("{kind:?}") };
    object.fields.iter().map(|field| field.key.as_str()).collect()
}

#[test]
fn scalars_and_lists() {
    assert_eq!(read(&json!({"type": ["string", "null"]})), Type::Union(vec![Type::Text, Type::Null]));
    assert_eq!(read(&json!({"type": "array", "items": {"type": "integer"}})), Type::list(Type::Integer));
    assert_eq!(read(&json!({"enum": ["a"], "type": "string"})), Type::Literal(json!("a")));
    assert_eq!(read(&json!({"const": "a", "type": "integer"})), Type::Never);
    assert_eq!(read(&json!({"not": {"type": "string"}})), Type::Any);
}

#[test]
fn only_a_list_of_one_length_is_a_tuple() {
    let items = json!([{"type": "string"}, {"type": "number"}]);
    let pair = Type::Tuple(vec![Type::Text, Type::Number]);
    assert_eq!(read(&json!({"items": items, "additionalItems": false, "minItems": 2})), pair);
    assert_eq!(read(&json!({"items": items, "minItems": 2, "maxItems": 2})), pair);
    let open = read(&json!({"items": items, "additionalItems": false}));
    assert_eq!(open, Type::list(Type::Union(vec![Type::Text, Type::Number])));
    assert_eq!(read(&json!({"items": items})), Type::list(Type::Any));
    assert_eq!(read(&json!({"type": "array", "prefixItems": items})), Type::list(Type::Any));
}

#[test]
fn all_parts_apply() {
    let schema = json!({
        "allOf": [{"$ref": "#/$defs/A"}, {"required": ["a", "c"]}, {"properties": {"b": {"type": "string"}}}],
        "$defs": {"A": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    });
    let kind = read(&schema);
    assert_eq!(keys(&kind), ["a", "c", "b"]);
    let Type::Object(object) = kind else { unreachable!() };
    assert_eq!(object.required, ["a", "c"]);
}

#[test]
fn alternatives_that_only_require_fields_are_one_object() {
    let schema = json!({
        "type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]
    });
    assert_eq!(keys(&read(&schema)), ["a", "b"]);
}

#[test]
fn keywords_without_a_type_concern_objects_only() {
    let nullable = json!({"type": ["object", "null"]});
    let field = json!({"properties": {"a": {"type": "string"}}});
    for schema in [
        json!({"allOf": [nullable, field]}),
        json!({"allOf": [field, nullable]}),
        json!({"type": ["object", "null"], "anyOf": [field, {"items": {}}]}),
        json!({"type": ["object", "null"], "allOf": [{"oneOf": [field]}]}),
        json!({"properties": {"a": {"type": "string"}}, "anyOf": [{"type": "null"}, {"type": "object"}]}),
    ] {
        let Type::Union(arms) = read(&schema) else { panic!("{schema}") };
        let (nulls, objects): (Vec<Type>, Vec<Type>) = arms.into_iter().partition(|arm| *arm == Type::Null);
        assert_eq!((nulls.len(), keys(&objects[0])), (1, vec!["a"]), "{schema}");
    }
    assert_eq!(keys(&read(&field)), ["a"]);
}

#[test]
fn a_whole_number_is_an_integer() {
    assert_eq!(read(&json!({"type": "integer", "enum": [1.0]})), Type::Literal(json!(1)));
    assert_eq!(read(&json!({"type": "integer", "const": 1.5})), Type::Never);
}

#[test]
fn a_reference_remains_beside_an_object() {
    let items = json!([{"items": {"$ref": "#/$defs/A"}}, {"items": {"type": "object"}}]);
    let schema = json!({"type": "array", "allOf": items, "$defs": {"A": {"type": "object"}}});
    assert_eq!(read(&schema), Type::list(Type::Reference("/$defs/A".to_owned())));
}

#[test]
fn a_reference_that_is_narrowed_within_itself_ends() {
    let narrowed = json!({"allOf": [{"$ref": "#/$defs/N"}, {"required": ["x"]}]});
    let schema = json!({
        "allOf": [{"$ref": "#/$defs/N"}, {"required": ["y"]}],
        "$defs": {"N": {"type": "object", "properties": {"next": narrowed}}}
    });
    assert_eq!(keys(&read(&schema)), ["next", "y"]);
}

#[test]
fn nothing_has_an_effect_beside_a_reference() {
    let schema = json!({"$ref": "#/$defs/A", "required": ["x"], "$defs": {"A": {"type": "object"}}});
    assert_eq!(read(&schema), Type::Reference("/$defs/A".to_owned()));
}

#[test]
fn references_may_be_escaped() {
    assert_eq!(decoded("/$defs/a%20b%c3%a9%"), "/$defs/a bé%");
    assert_eq!(read(&json!({"$ref": "#/%24defs/A"})), Type::Reference("/$defs/A".to_owned()));
}

fn extensions(document: &Value) -> Type {
    let mut reader = Reader::new(document);
    let kind = reader.read(document);
    let Type::Object(object) = with_insights(kind, &field(true), &mut reader) else { panic!("an object") };
    assert!(!object.is_closed);
    object.fields.into_iter().find(|field| field.key == EXTENSIONS).expect("extensions").kind
}

#[test]
fn every_schema_of_data_takes_insights() {
    let added = field(true).kind;
    let closed = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
    assert_eq!(extensions(&closed), added);
    assert_eq!(extensions(&json!({"$ref": "#/$defs/A", "$defs": {"A": closed}})), added);
    let empty = json!({"type": "object", "additionalProperties": false});
    assert_eq!(extensions(&json!({"type": "object", "properties": {"extensions": empty}})), Type::Any);
    let own = json!({"$ref": "#/$defs/E"});
    let defined = json!({"type": "object", "properties": {"insights": {"type": "array"}}});
    let document = json!({"type": "object", "properties": {"extensions": own}, "$defs": {"E": defined}});
    assert_eq!(extensions(&document), Type::Reference("/$defs/E".to_owned()));
}

#[test]
fn a_map_has_them_as_a_value() {
    let document = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let mut reader = Reader::new(&document);
    let kind = reader.read(&document);
    let Type::Object(object) = with_insights(kind, &field(false), &mut reader) else { panic!("an object") };
    assert_eq!(object.rest, Some(Type::Union(vec![Type::Integer, field(false).kind])));
}
