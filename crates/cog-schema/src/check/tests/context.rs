use super::*;

#[test]
fn contexts_are_checked_by_their_own_schemas() {
    let text = |field: &str| json!({ "properties": { field: { "type": "string" } } });
    let document =
        json!({ "$context": { "accepts": { "Note": text("read") }, "emits": { "Note": text("sent") } } });
    let contract = contract(document, &rules(Tier::Decision));
    let wrong = Tree::from(json!({ "read": 1, "sent": 1 }));
    assert_eq!(lines(&contract.check_context("Note", wrong.node())), ["input._context.Note.read type E1001"]);
    assert_eq!(
        lines(&contract.check_emitted("Note", wrong.node())),
        ["_emitted_context.Note.sent type E3001"]
    );
    assert_eq!(contract.check_context("Other", wrong.node()), []);
    assert_eq!(contract.check_emitted("Other", wrong.node()), []);
}
