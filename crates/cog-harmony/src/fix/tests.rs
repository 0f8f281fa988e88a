use super::*;

fn fixed(text: &str) -> Fixed {
    fix(&Document::parse(text).unwrap()).unwrap()
}

fn changes(fixed: &Fixed) -> Vec<String> {
    fixed.changes.iter().map(|change| format!("{} {}", change.path, change.rule)).collect()
}

const CALLS: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"q":1.50}}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}"#;

#[test]
fn arguments_become_a_string() {
    let text = format!(
        r#"[{CALLS},{{"role":"tool","tool_call_id":"a","content":"1"}},{{"role":"tool","tool_call_id":"b","content":"2"}}]"#
    );
    let fixed = fixed(&text);
    assert_eq!(changes(&fixed), ["messages[0].tool_calls[0].function.arguments arguments-type"]);
    assert!(fixed.text.contains(r#""arguments":"{\"q\":1.50}""#), "{}", fixed.text);
    assert_eq!(fixed.problems, []);
}

#[test]
fn results_move_behind_their_calls() {
    let text = r#"[{"role":"tool","tool_call_id":"b","content":"2"},{"role":"assistant","content":null,"tool_calls":[
        {"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
        {"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},
        {"role":"user","content":"?"},{"role":"tool","tool_call_id":"a","content":"1"}]"#;
    let fixed = fixed(text);
    assert_eq!(changes(&fixed), ["messages[3] result-place", "messages[0] result-place"]);
    assert_eq!(fixed.problems, []);
}

#[test]
fn orphans_move_beside_the_messages() {
    let text = r#"[{"role":"user","content":"?"},{"role":"tool","tool_call_id":"x","content":"1"}]"#;
    let once = fixed(text);
    assert_eq!(changes(&once), ["messages[1] result-unknown"]);
    let expected = concat!(
        r#"{"messages":[{"role":"user","content":"?"}],"#,
        r#""orphans":[{"role":"tool","tool_call_id":"x","content":"1"}]}"#
    );
    assert_eq!(once.text, expected);
    let twice = fixed(&once.text);
    assert_eq!((twice.text, twice.changes), (once.text, Vec::new()));
}

#[test]
fn identifiers_that_are_used_again_keep_their_results() {
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"a","content":"1"}"#;
    let text = format!("[{call},{result},{call},{result}]");
    let fixed = fixed(&text);
    assert_eq!(fixed.text, text);
    assert_eq!(fixed.problems[0].rule.name, "call-id");
}

#[test]
fn what_cannot_be_fixed_is_left() {
    let fixed = fixed(&format!("[{CALLS},{}]", r#"{"role":"tool","tool_call_id":"b","content":"2"}"#));
    let left: Vec<&str> = fixed.problems.iter().map(|problem| problem.rule.name).collect();
    assert_eq!(left, ["result-missing"]);
}

#[test]
fn lines_stay_lines() {
    let line = r#"{"role":"user","content":"a"}"#;
    let fixed = fixed(&format!("{line}\n\n{line}\n"));
    assert_eq!(fixed.text, format!("{line}\n{line}\n"));
}

#[test]
fn other_members_of_a_document_stay() {
    let text = r#"{"model":"m","messages":[],"n":1}"#;
    assert_eq!(fixed(text).text, r#"{"messages":[],"model":"m","n":1}"#);
}
