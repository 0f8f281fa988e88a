use std::time::Duration;

use super::*;

fn parts(text: &str) -> Vec<PromptPart> {
    let prompt = Prompt::parse(text);
    let again: String = prompt.parts().iter().map(PromptPart::raw).collect();
    assert_eq!(again, text);
    prompt.parts().to_vec()
}

fn text(text: &str) -> PromptPart {
    PromptPart::Text(text.to_owned())
}

#[test]
fn finds_every_placeholder_of_the_input() {
    let found = parts("a $ARGUMENTS b $ARGUMENTS[2] c $0.\n$INPUT\n$MEDIA_INPUTS");
    assert_eq!(
        found,
        [
            text("a "),
            PromptPart::Arguments,
            text(" b "),
            PromptPart::Word { index: 2, short: false },
            text(" c "),
            PromptPart::Word { index: 0, short: true },
            text(".\n"),
            PromptPart::Input,
            text("\n"),
            PromptPart::MediaInputs,
        ]
    );
}

#[test]
fn look_alikes_of_placeholders_are_text() {
    for plain in [
        "$5.00",
        "$1,000",
        "$5k",
        "$0123",
        "$12345",
        "$INPUTS",
        "$ARGUMENTS_LIST",
        "$",
        "$$",
        "$x",
        "{{ jinja }}",
        "{{a b.c}}",
        "{{.path}}",
        "{{Name.path}}",
        "{{a.b}",
        "@call:",
        "@call:UP(x)",
        "@call:my_module(x)",
        "@call:name(never closed",
        "@",
    ] {
        assert_eq!(parts(plain), [text(plain)], "{plain}");
    }
}

#[test]
fn index_without_a_bracket_is_text() {
    assert_eq!(parts("$ARGUMENTS[x]"), [PromptPart::Arguments, text("[x]")]);
    assert_eq!(parts("\u{9700}\u{6c42}\u{ff1a}$ARGUMENTS\u{3002}")[1], PromptPart::Arguments);
}

#[test]
fn call_has_arguments_and_options() {
    let found = parts("see @call:ui-spec($ARGUMENTS (all))[async, timeout=30s] and @call:other.");
    let PromptPart::Call(call) = &found[1] else { panic!("{found:?}") };
    assert_eq!((call.name.as_str(), call.arguments.as_deref()), ("ui-spec", Some("$ARGUMENTS (all)")));
    assert!(call.options.is_async && call.options.timeout == Some(Duration::from_secs(30)));
    let PromptPart::Call(bare) = &found[3] else { panic!("{found:?}") };
    assert_eq!(
        (bare.name.as_str(), bare.arguments.as_deref(), found.last()),
        ("other", None, Some(&text(".")))
    );
}

#[test]
fn reference_has_module_and_path() {
    let found = parts("{{risk-check.meta.risk}}!");
    let PromptPart::Reference { module, path, .. } = &found[0] else { panic!("{found:?}") };
    assert_eq!((module.as_str(), path.as_str()), ("risk-check", "meta.risk"));
}

#[test]
fn parts_have_ranges() {
    let prompt = Prompt::parse("see @call:a and {{a.data}}");
    let ranges: Vec<_> = prompt.located().map(|(range, _)| &prompt.text()[range]).collect();
    assert_eq!(ranges, ["see ", "@call:a", " and ", "{{a.data}}"]);
}

#[test]
fn many_opening_brackets_parse_in_time() {
    let prompt = Prompt::parse("{{".repeat(200_000));
    assert_eq!(prompt.parts().len(), 1);
    assert_eq!(Prompt::parse("@call:a(".repeat(2_000)).parts().len(), 1);
}

#[test]
fn prompt_reports_its_placeholders() {
    assert!(Prompt::parse("$1").places_input() && !Prompt::parse("$MEDIA_INPUTS").places_input());
    assert!(Prompt::parse("$MEDIA_INPUTS").places_media());
}
