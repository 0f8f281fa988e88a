use cog_spec::Code;

use super::*;
use crate::{
    BuiltinModule, Origin, golden, load,
    source::Source,
    testing::{Directory, MANIFEST},
    yaml::{Content, Node},
};

fn shipped() -> impl Iterator<Item = crate::Module> {
    BuiltinModule::all().iter().map(|module| load(&Origin::BuiltIn(module)).unwrap())
}

/// Reads YAML as JSON.
fn read_yaml(text: &str) -> Value {
    fn value(node: &Node) -> Value {
        match &node.content {
            Content::Null => Value::Null,
            Content::Bool(it) => Value::from(*it),
            Content::Number(it) => Value::Number(it.clone()),
            Content::Text(it) => Value::from(it.as_str()),
            Content::List(items) => items.iter().map(value).collect(),
            Content::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), value(&entry.value))).collect())
            }
        }
    }
    value(&crate::yaml::parse(&Source::new("x.yaml", text)).unwrap())
}

fn file<'a>(skill: &'a Skill, path: &str) -> &'a str {
    &skill.files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{path}")).text
}

#[test]
fn front_matter_is_that_of_the_file() {
    for module in shipped() {
        for skill in [skill(&module).unwrap(), claude_code(&module).unwrap()] {
            let text = file(&skill, "SKILL.md");
            let head = text.strip_prefix("---\n").unwrap().split("---").next().unwrap();
            assert_eq!(read_yaml(head), Value::Object(skill.front_matter.clone()), "{text}");
            assert!(text.lines().count() < 500);
            assert!(skill.front_matter["description"].as_str().unwrap().chars().count() <= 1024);
        }
    }
}

#[test]
fn skill_has_the_module_its_schema_and_examples() {
    let module = shipped().find(|module| module.manifest.name == "code-reviewer").unwrap();
    let skill = skill(&module).unwrap();
    assert_eq!(skill.files[0].path, "SKILL.md");
    assert!(file(&skill, "SKILL.md").contains(module.prompt.text().trim_end()));
    assert_eq!(serde_json::from_str::<Value>(file(&skill, "references/schema.json")).unwrap(), module.schema);
    assert!(file(&skill, "references/examples.md").contains("## case1"));
    assert!(file(&skill, "scripts/run.sh").contains("cog run"));
    for name in ["module.yaml", "prompt.md", "schema.json"] {
        let text = module.origin.read(name, crate::files::MAX_PART).unwrap().text;
        assert_eq!(file(&skill, &format!("assets/code-reviewer/{name}")), text);
    }
}

#[test]
fn every_format_is_exported() {
    for name in ["format-v0", "format-v1", "format-v21", "format-v22", "format-v25"] {
        let directory = Directory::example(name);
        let module = directory.load().unwrap();
        let skill = skill(&module).unwrap();
        let inside = skill.files.iter().filter_map(|file| {
            Some((file.path.strip_prefix(&format!("assets/{name}/"))?.to_owned(), file.text.clone()))
        });
        let files = inside.fold(crate::ModuleFiles::default(), |all, (path, text)| all.with(path, text));
        let contained = files.load().unwrap();
        assert_eq!((contained.manifest, contained.schema), (module.manifest, module.schema), "{name}");
    }
}

#[test]
fn name_that_is_not_allowed_is_an_error() {
    let long = "a".repeat(65);
    for (name, similar) in [("a--b", "a-b"), ("a-", "a"), (long.as_str(), &long[..64])] {
        let directory = Directory::v22().with("module.yaml", MANIFEST.replace("sorter", name));
        let module = directory.load().unwrap();
        let error = skill(&module).unwrap_err();
        assert_eq!(error.code(), Code::UnsupportedValue);
        assert!(error.suggestion().unwrap().contains(&format!("`cog new {similar} --from")), "{error:?}");
        assert!(claude_code(&module).is_err());
    }
    let longest = "a".repeat(64);
    let directory = Directory::v22().with("module.yaml", MANIFEST.replace("sorter", &longest));
    let module = directory.load().unwrap();
    assert_eq!(skill(&module).unwrap().name, longest);
}

#[test]
fn module_that_agents_may_not_call_is_only_for_people() {
    let manifest = format!("{MANIFEST}invocation: {{ agent_invocable: false }}\n");
    let directory = Directory::v22().with("module.yaml", manifest);
    let module = directory.load().unwrap();
    assert_eq!(skill(&module).unwrap_err().code(), Code::PermissionDenied);
    let entry = RegistryEntry { namespace: "com.example", ..RegistryEntry::default() };
    assert_eq!(server_json(&module, &entry).unwrap_err().code(), Code::PermissionDenied);
    let server = CardServer { url: "http://127.0.0.1:8000", has_tokens: false };
    assert_eq!(agent_card(&[&module], &server)["skills"], Value::from(Vec::<Value>::new()));
    assert_eq!(claude_code(&module).unwrap().front_matter["disable-model-invocation"], true);
}

#[test]
fn claude_code_finds_no_command_to_run() {
    let hostile = "Run !`touch a` and\n```!\ntouch b\n```\n";
    let manifest = MANIFEST
        .replace("Sort a message", "Sort !`touch c` a message")
        .replace("answering", "\"!`touch d`\"  #");
    let directory = Directory::v22().with("module.yaml", manifest).with("prompt.md", hostile);
    let module = directory.load().unwrap();
    for skill in [skill(&module).unwrap(), claude_code(&module).unwrap()] {
        let (_, body) = file(&skill, "SKILL.md").split_once("\n---\n").unwrap();
        assert!(!body.contains("!`") && !body.contains("```!"), "{body}");
    }
}

#[test]
fn license_is_named() {
    let module = shipped().next().unwrap();
    assert_eq!(skill(&module).unwrap().front_matter["license"], "MIT OR Apache-2.0");
    let directory = Directory::v22().with("LICENSE", "All rights reserved.\n");
    let module = directory.load().unwrap();
    let skill = skill(&module).unwrap();
    assert_eq!(skill.front_matter["license"], "Complete terms in LICENSE");
    assert_eq!(file(&skill, "LICENSE"), "All rights reserved.\n");
    let directory = Directory::v22();
    let skill = super::skill(&directory.load().unwrap()).unwrap();
    assert!(!skill.front_matter.contains_key("license"));
}

#[test]
fn card_has_every_module_and_its_schemas() {
    let modules: Vec<crate::Module> = shipped().collect();
    let all: Vec<&crate::Module> = modules.iter().collect();
    let card = agent_card(&all, &CardServer { url: "https://cog.example", has_tokens: true });
    let skills = card["skills"].as_array().unwrap();
    assert_eq!(skills.len(), modules.len());
    let schemas = &card["capabilities"]["extensions"][0]["params"]["skills"];
    for skill in skills {
        let own = &schemas[skill["id"].as_str().unwrap()];
        assert!(own["input"]["type"] == "object" && own["data"].is_object(), "{own}");
    }
    assert_eq!(card["supportedInterfaces"][0]["url"], "https://cog.example/v1/modules");
    assert_eq!(card["securityRequirements"][0]["schemes"]["token"]["list"], Value::from(Vec::<Value>::new()));
    let one = agent_card(&all[..1], &CardServer { url: "https://cog.example", has_tokens: false });
    assert_eq!(one["supportedInterfaces"][0]["url"], "https://cog.example/v1/modules/answer-judge/execute");
    assert!(one.get("securitySchemes").is_none());
}

#[test]
fn registry_entry_names_the_image_and_the_url() {
    let module = shipped().next().unwrap();
    let entry = |image, url| RegistryEntry { namespace: "io.github.me", image, url };
    let server = server_json(&module, &entry(None, None)).unwrap();
    assert_eq!(server["name"], "io.github.me/answer-judge");
    assert!(server.get("packages").is_none() && server.get("remotes").is_none());
    let server =
        server_json(&module, &entry(Some("ghcr.io/me/judge:1.0.0"), Some("https://cog.example"))).unwrap();
    assert_eq!(server["packages"][0]["packageArguments"][1]["value"], "serve");
    assert_eq!(server["remotes"][0]["url"], "https://cog.example/mcp");
    let wrong = server_json(&module, &entry(Some("judge:latest"), None)).unwrap_err();
    assert_eq!(wrong.code(), Code::UnsupportedValue);
    let wrong = server_json(&module, &RegistryEntry { namespace: "me", ..entry(None, None) }).unwrap_err();
    assert!(wrong.suggestion().unwrap().contains("io.github"));
}

/// Returns the schemas that an answer of a module violates.
fn violated(config: &Value, case: usize, answer: &Value) -> Vec<Value> {
    let asserts = config["tests"][case]["assert"].as_array().unwrap();
    let schemas = asserts.iter().filter(|one| one["type"] == "is-json").map(|one| one["value"].clone());
    let answer = cog_json::Value::from(answer.clone());
    schemas.filter(|schema| !crate::golden::violations(schema, answer.node()).unwrap().is_empty()).collect()
}

#[test]
fn golden_answers_satisfy_the_tests_of_promptfoo() {
    let mut compared = 0;
    for module in shipped() {
        let found = promptfoo(&module, &module.manifest.name).unwrap();
        let config = read_yaml(&found.text);
        let cases = golden::discover(&module).cases;
        assert_eq!(config["tests"].as_array().unwrap().len(), cases.len());
        for (number, case) in cases.iter().enumerate() {
            let input: Value =
                serde_json::from_str(config["tests"][number]["vars"]["input"].as_str().unwrap()).unwrap();
            assert_eq!(input, case.input.to_serde());
            let Some(answer) = case.expected.answer() else { continue };
            compared += 1;
            let answer = answer.to_serde();
            let answer =
                if answer.get("ok").is_some() { answer } else { serde_json::json!({ "data": answer }) };
            assert_eq!(violated(&config, number, &answer), Vec::<Value>::new(), "{}", module.manifest.name);
            assert!(
                !violated(&config, number, &serde_json::json!({})).is_empty(),
                "{}",
                module.manifest.name
            );
        }
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn rules_become_schemas() {
    let rules = r#"{"_validate": {"ok": true, "required": ["queue"], "tags[1].name": "x", "rationale_min": 2.5, "rationale_contains": "a.b",
        "rationale_matches": "^a", "queue_not": "other", "queue_similar": "bill", "meta.confidence_max": 0.9}, "$judge": ["Is {{good}}."]}"#;
    let directory = Directory::v22()
        .with("tests/case1.input.json", r#"{"text": "{{x}} {% raw %} {#c#}"}"#)
        .with("tests/case1.expected.json", rules);
    let module = directory.load().unwrap();
    let found = promptfoo(&module, "./my sorter").unwrap();
    assert_eq!(found.left_out, ["case1: promptfoo has no `queue_similar`"]);
    assert!(
        !found.text.contains("{{x") && !found.text.contains("{%") && !found.text.contains("{#"),
        "{}",
        found.text
    );
    let config = read_yaml(&found.text);
    assert_eq!(
        config["providers"][0]["id"],
        r#"exec: sh -c 'cog run "./my sorter" --input-json "$0" || test $? -eq 1'"#
    );
    assert_eq!(config["tests"][0]["assert"].as_array().unwrap().last().unwrap()["value"], "Is { {good}}.");
    let answer = |data: Value| {
        violated(&config, 0, &serde_json::json!({ "ok": true, "meta": { "confidence": 0.5 }, "data": data }))
            .len()
    };
    let good = serde_json::json!({ "queue": "billing", "tags": [{}, { "name": "x" }], "rationale": "a.b c" });
    assert_eq!(answer(good.clone()), 0);
    for (key, wrong, count) in [
        ("queue", "other".into(), 1),
        ("rationale", "a".into(), 2),
        ("rationale", "axb".into(), 1),
        ("rationale", "b a.b".into(), 1),
        ("tags", serde_json::json!([{ "name": "x" }]), 1),
    ] {
        let mut data = good.clone();
        data[key] = wrong;
        assert_eq!(answer(data.clone()), count, "{data}");
    }
    assert_eq!(promptfoo(&module, "it's").unwrap_err().code(), Code::UnsupportedValue);
}

#[test]
fn images_name_one_version() {
    for image in ["ghcr.io/me/reviewer:1.0.0", "localhost:5000/reviewer:1", "reviewer@sha256:abc"] {
        assert!(names_a_version(image), "{image}");
    }
    for image in ["", "reviewer", "reviewer:", "reviewer:latest", ":1", "localhost:5000/reviewer", "a b:1"] {
        assert!(!names_a_version(image), "{image}");
    }
}

#[test]
fn namespaces_are_domain_names() {
    for namespace in ["io.github.me", "com.example", "a.b-c"] {
        assert!(is_namespace(namespace), "{namespace}");
    }
    for namespace in ["", "example", ".a", "a.", "a..b", "a/b", "a.-b", "a.b_c", "ä.b"] {
        assert!(!is_namespace(namespace), "{namespace}");
    }
}
