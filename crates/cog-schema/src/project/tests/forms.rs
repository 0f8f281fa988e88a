//! What a model writes in each form (ruling R91).

use super::*;

const DATA_FIRST: &str = "envelope-data-first";

fn form(name: &str) -> &'static Form {
    Form::ALL.iter().find(|form| form.name == name).unwrap()
}

/// Returns the names of the properties of an object's schema, in their order.
fn names(schema: &Value) -> Vec<&str> {
    schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns a contract whose author has the rationale first, and which allows insights.
fn labels(extend: impl FnOnce(&mut Rules)) -> Contract {
    let mut rules = Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Decision)));
    extend(&mut rules);
    let data = json!({
        "type": "object",
        "required": ["rationale", "label"],
        "properties": { "rationale": { "type": "string" }, "label": { "enum": ["a", "b"] } },
    });
    Contract::compile(&json!({ "data": data }), &rules).unwrap()
}

#[test]
fn forms_order_what_the_model_writes() {
    let contract = labels(|rules| rules.overflow.enabled = false);
    let envelope = contract.project_form(Dialect::JsonSchema, Form::ENVELOPE).schema.unwrap();
    assert_eq!(envelope, contract.project(Dialect::JsonSchema).schema.unwrap());
    assert_eq!(names(success(&envelope)), ["ok", "meta", "data", "error"]);
    assert_eq!(names(&success(&envelope)["properties"]["data"]), ["rationale", "label"]);

    let first = contract.project_form(Dialect::JsonSchema, form(DATA_FIRST)).schema.unwrap();
    assert_eq!(names(success(&first)), ["ok", "data", "meta", "error"]);
    assert_eq!(success(&first)["required"], json!(["ok", "data", "meta", "error"]));
    assert_eq!(names(&success(&first)["properties"]["data"]), ["label", "rationale"]);

    let data = contract.project_form(Dialect::JsonSchema, Form::DATA).schema.unwrap();
    assert_eq!(names(success(&data)), ["label", "rationale"]);
    assert_eq!(success(&data)["required"], json!(["rationale", "label"]));

    let answer = contract.project_form(Dialect::JsonSchema, Form::ANSWER).schema.unwrap();
    assert_eq!((names(&answer), &answer["required"]), (vec!["label"], &json!(["label"])));
}

#[test]
fn rationale_of_each_branch_moves() {
    let branch = |name: &str| {
        json!({
            "type": "object",
            "required": ["rationale", name],
            "properties": { "rationale": { "type": "string" }, name: { "type": "integer" } },
        })
    };
    let document = json!({ "data": { "oneOf": [branch("a"), branch("b")] } });
    let contract = contract(document, Format::V22);
    let schema = contract.project_form(Dialect::OpenAiStrict, Form::DATA).schema.unwrap();
    let [a, b] = success(&schema)["anyOf"].as_array().unwrap().as_slice() else { panic!("{schema}") };
    assert_eq!((names(a), names(b)), (vec!["a", "rationale"], vec!["b", "rationale"]));
}

#[test]
fn data_alone_may_be_an_error_unless_the_module_forbids_it() {
    for dialect in WITH_SCHEMA {
        let contract = labels(|_| {});
        let schema = contract.project_form(dialect, Form::DATA).schema.unwrap();
        let error = &choice(&schema)[1];
        assert_eq!((names(error), &error["required"]), (vec!["error"], &json!(["error"])), "{dialect}");
        // The lightest form has no error, but reads one.
        let schema = contract.project_form(dialect, Form::ANSWER).schema.unwrap();
        assert_eq!(names(&schema), ["label"], "{dialect}");
        assert!(contract.accepts_error(Form::ANSWER) && !contract.has_error_arm(Form::ANSWER));

        let never = labels(|rules| rules.model_errors = false);
        let schema = never.project_form(dialect, Form::DATA).schema.unwrap();
        assert_eq!(names(&schema)[..2], ["label", "rationale"], "{dialect}");
        assert_eq!(never.wrapper(dialect, Form::DATA), None);
        assert!(!never.accepts_error(Form::ANSWER));
        let envelope = never.project_form(dialect, Form::ENVELOPE).schema.unwrap();
        assert_eq!(names(&envelope), ["ok", "meta", "data"], "{dialect}");
        assert_eq!(never.wrapper(dialect, Form::ENVELOPE), None);
    }
    let own = with(json!({ "error": { "type": "string" } }));
    let schema = own.project_form(Dialect::JsonSchema, Form::DATA).schema.unwrap();
    assert_eq!(names(&schema), ["error", "rationale"]);
}

#[test]
fn optional_rationale_is_not_asked_for() {
    let mut rules = Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Decision)));
    (rules.needs_rationale, rules.overflow.enabled) = (false, false);
    let data = json!({ "type": "object", "properties": { "label": { "enum": ["a"] } } });
    let contract = Contract::compile(&json!({ "data": data }), &rules).unwrap();
    for form in Form::ALL {
        let schema = contract.project_form(Dialect::JsonSchema, form).schema.unwrap();
        let data = match (form.is_data(), contract.has_error_arm(form)) {
            (true, true) => success(&schema),
            (true, false) => &schema,
            (false, _) => &success(&schema)["properties"]["data"],
        };
        assert_eq!(names(data), ["label"], "{form}");
    }
}

#[test]
fn older_formats_are_asked_for_their_data_in_every_form() {
    let document = json!({ "output": { "type": "object", "properties": { "a": { "type": "string" } } } });
    let contract = contract(document, Format::V1);
    for form in Form::ALL {
        let schema = contract.project_form(Dialect::JsonSchema, form).schema.unwrap();
        assert_eq!(names(&schema), ["a"], "{form}");
    }
}
