use super::*;

fn fixed(text: &str) -> FixReport {
    fix(&Document::parse(text).unwrap()).unwrap()
}

fn changes(fixed: &FixReport) -> Vec<String> {
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
    assert_eq!(fixed.changes[0].message, "moved behind the call `a`");
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
    let once = fixed(&text);
    assert_eq!((&once.text, left(&once)), (&text, vec!["call-id"]));
    let both =
        call.replace("}]}", r#"}, {"id":"a","type":"function","function":{"name":"g","arguments":"{}"}}]}"#);
    let other = result.replace('1', "2");
    let text = format!("[{both},{result},{other}]").replace(", ", ",");
    let once = fixed(&text);
    assert_eq!((&once.text, left(&once)), (&text, vec!["call-id"]));
}

#[test]
fn check_promises_only_what_is_fixed() {
    let call = |id: &str| {
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        )
    };
    let messages = [call("a"), call("b"), call(""), result("a"), result("b"), result("")];
    // Every history of four of these messages.
    for number in 0..6_usize.pow(4) {
        let picked = (0..4).map(|digit| messages[number / 6_usize.pow(digit) % 6].as_str());
        let document = Document::parse(&format!("[{}]", picked.collect::<Vec<_>>().join(","))).unwrap();
        let before = check::check(document.messages().unwrap(), None);
        let promised = before.iter().filter(|problem| problem.rule.suggestion.contains("messages fix"));
        let mut promised: Vec<&str> = promised.map(|problem| problem.rule.name).collect();
        let fixed = fix(&document).unwrap();
        let mut done: Vec<&str> = fixed.changes.iter().map(|change| change.rule.name).collect();
        promised.sort_unstable();
        done.sort_unstable();
        promised.dedup();
        done.dedup();
        assert_eq!(promised, done, "{before:?} {fixed:?}");
        assert!(left(&fixed).iter().all(|rule| ["call-id", "result-missing"].contains(rule)), "{fixed:?}");
    }
}

fn left(fixed: &FixReport) -> Vec<&str> {
    fixed.problems.iter().map(|problem| problem.rule.name).collect()
}

fn result(id: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"1"}}"#)
}

#[test]
fn what_cannot_be_fixed_is_left() {
    let fixed = fixed(&format!("[{CALLS},{}]", r#"{"role":"tool","tool_call_id":"b","content":"2"}"#));
    assert_eq!(left(&fixed), ["result-missing"]);
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
