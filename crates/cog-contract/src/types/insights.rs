//! The insights that an answer may have in addition to the fields of its schema (`data.extensions.insights`).

use super::{
    model::{Field, Object, Type},
    schema::Reader,
};

const EXTENSIONS: &str = "extensions";
const INSIGHTS: &str = "insights";

/// Returns the field of the data that contains insights.
pub(super) fn field(requires_mapping: bool) -> Field {
    let mut required = vec!["text".to_owned()];
    if requires_mapping {
        required.push("suggested_mapping".to_owned());
    }
    let fields = ["text", "suggested_mapping"]
        .map(|key| Field { key: key.to_owned(), about: None, kind: Type::Text })
        .to_vec();
    let insight = Type::Object(Box::new(Object { fields, required, ..Object::default() }));
    let insights = Field { key: INSIGHTS.to_owned(), about: None, kind: Type::list(insight) };
    Field {
        key: EXTENSIONS.to_owned(),
        about: Some("What the model found that has no place in the schema".to_owned()),
        kind: Type::Object(Box::new(Object { fields: vec![insights], ..Object::default() })),
    }
}

/// Adds the field to the type of data. Insights are valid with every schema, so the type is not closed.
pub(super) fn with_insights(kind: Type, field: &Field, reader: &mut Reader<'_>) -> Type {
    match kind {
        Type::Object(object) => Type::Object(Box::new(extended(*object, field, reader))),
        Type::Union(arms) => {
            let arms: Vec<Type> = arms.into_iter().map(|arm| with_insights(arm, field, reader)).collect();
            Type::union(arms)
        }
        Type::Reference(_) => match reader.open(kind) {
            kind @ Type::Reference(_) => kind,
            kind => with_insights(kind, field, reader),
        },
        other => other,
    }
}

fn extended(mut object: Object, field: &Field, reader: &mut Reader<'_>) -> Object {
    let is_map = object.fields.is_empty();
    let was_closed = std::mem::take(&mut object.is_closed);
    match (object.fields.iter_mut().find(|known| known.key == EXTENSIONS), &mut object.rest) {
        (Some(known), _) => {
            if !takes_insights(&reader.open(known.kind.clone())) {
                known.kind = Type::Any;
            }
        }
        (None, Some(rest)) if is_map => *rest = Type::union([rest.clone(), field.kind.clone()]),
        (None, None) if is_map && !was_closed => {}
        (None, _) => object.fields.push(field.clone()),
    }
    object
}

/// Whether the schema of `extensions` itself allows insights.
fn takes_insights(kind: &Type) -> bool {
    match kind {
        Type::Any => true,
        Type::Object(object) => {
            let names_insights = object.fields.iter().any(|field| field.key == INSIGHTS);
            names_insights || !object.is_closed && object.rest.is_none()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn extensions(document: &Value) -> Type {
        let mut reader = Reader::new(document);
        let kind = reader.read(document);
        let Type::Object(object) = with_insights(kind, &field(true), &mut reader) else {
            panic!("an object")
        };
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
        let Type::Object(object) = with_insights(kind, &field(false), &mut reader) else {
            panic!("an object")
        };
        assert_eq!(object.rest, Some(Type::Union(vec![Type::Integer, field(false).kind])));
    }
}
