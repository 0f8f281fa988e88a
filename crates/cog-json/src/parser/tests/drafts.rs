//! What is a draft and what only wraps the answer (ruling R82).

use super::super::{End, Parser};
use super::outcome::{Outcome, run_every_split};
use crate::error::SyntaxErrorKind;
use crate::event::Limits;

const DRAFT: &str = r#"{"a":"draft"}"#;
const REAL: &str = r#"{"a":"real"}"#;

fn outcome(text: &str) -> Outcome {
    run_every_split(|| Parser::tolerant(Limits::model_output()), text.as_bytes())
}

/// The document of a reply with the words DRAFT and REAL, or why there is none.
fn read(text: &str) -> Result<String, SyntaxErrorKind> {
    let outcome = outcome(&text.replace("DRAFT", DRAFT).replace("REAL", REAL));
    match outcome.end {
        Ok(End::Complete) if outcome.several => Ok("several".to_owned()),
        Ok(End::Complete) => Ok(outcome.draft.unwrap()),
        Ok(End::Truncated) => Ok("truncated".to_owned()),
        Err(error) => {
            let is_draft =
                matches!(error.kind(), SyntaxErrorKind::OnlyReasoning | SyntaxErrorKind::OnlyToolCall);
            assert!(!is_draft || outcome.draft.is_none(), "{text}");
            Err(error.kind())
        }
    }
}

#[test]
fn marks_of_any_name_hold_drafts() {
    for (open, close) in [
        ("<plan>", "</plan>"),
        ("<PLAN>", "</PLAN>"),
        ("<Working-Notes>", "</Working-Notes>"),
        ("<my:notes step=\"1\">", "</my:notes>"),
        ("<draft\n  kind='first' >", "</draft >"),
        ("<p>", "</p>"),
        ("<思考>", "</思考>"),
        ("<my.notes>", "</my.notes>"),
        ("<_notes>", "</_notes>"),
        ("<my▁notes>", "</my▁notes>"),
        ("<$notes$>", "</$notes$>"),
        ("<notes🤔>", "</notes🤔>"),
        ("<!-- ", " -->"),
        ("[SCRATCH]", "[/SCRATCH]"),
        ("[reasoning]", "[/reasoning]"),
        ("[[notes]]", "[[/notes]]"),
        ("◁plan▷", "◁/plan▷"),
        ("<|notes|>", "<|/notes|>"),
        ("<|notes|>", "<|end|>"),
        ("<|begin_of_notes|>", "<|end_of_notes|>"),
        ("<|NOTES_START|>", "<|NOTES_END|>"),
        ("<|notes>", "<notes|>"),
        ("<|channel>notes\n", "<channel|>"),
        ("<｜begin▁of▁notes｜>", "<｜end▁of▁notes｜>"),
        ("<|start|>assistant<|channel|>notes<|message|>", "<|end|>"),
    ] {
        let none = Err(SyntaxErrorKind::OnlyReasoning);
        for inside in
            ["DRAFT", "Maybe DRAFT or DRAFT? No.\n", "```json\nDRAFT\n```", "<b>DRAFT</b> a < b [x] {"]
        {
            for lead in ["", "Well.\n", "Well. "] {
                let text = format!("{lead}{open}{inside}{close}\nREAL");
                assert_eq!(read(&text), Ok(REAL.to_owned()), "{text}");
                let text = format!("{lead}{open}{inside}{close}\nNo.");
                assert_eq!(read(&text), none, "{text}");
                let text = format!("{lead}{open}{inside}");
                assert_eq!(read(&text), none, "{text}");
                let text = format!("REAL\n{open}{inside}{close}\nThat is all.");
                assert_eq!(read(&text), Ok(REAL.to_owned()), "{text}");
            }
        }
        // The opening mark may be missing, since templates write it themselves.
        if !matches!(close, " -->" | "<|end|>") {
            assert_eq!(read(&format!("Hm. DRAFT{close} REAL")), Ok(REAL.to_owned()), "{close}");
            assert_eq!(read(&format!("DRAFT{close}")), none, "{close}");
        }
    }
}

#[test]
fn nested_marks_end_with_the_outer_one() {
    for text in [
        "<tool▁call▁begin>DRAFT<tool▁call▁end>REAL",
        "[Tool Call]DRAFT[/Tool Call]\nREAL",
        "<plan><note>DRAFT</note>DRAFT</plan>REAL",
        "<plan><note>DRAFT</plan>REAL",
        "<plan>\n<plan>x</plan>DRAFT</plan>REAL",
        "<plan>a <plan> tag is meant</plan>REAL",
        "<plan><answer>DRAFT</answer></plan>REAL",
        "<answer><plan>DRAFT</plan>REAL</answer>",
        "<|calls_begin|><|call_begin|>f<|call_end|>DRAFT<|calls_end|>REAL",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    let text = "<plan>\n<plan>x</plan>DRAFT";
    assert_eq!(read(text), Err(SyntaxErrorKind::OnlyReasoning));
}

/// A mark after a word may be mentioned, or may open something inside its own kind.
#[test]
fn second_closing_mark_ends_a_draft_that_mentions_its_own_mark() {
    for inside in ["a<note>b</note>", "[1, 2<note></note>\n", "as <note>maybe DRAFT</note>, so\n"] {
        let draft = format!("<note>{inside}</note>\n");
        assert_eq!(read(&format!("{draft}REAL")), Ok(REAL.to_owned()), "{draft}");
        assert_eq!(read(&format!("{draft}7")), Ok("7".to_owned()), "{draft}");
        assert_eq!(read(&format!("REAL\n{draft}")), Ok(REAL.to_owned()), "{draft}");
        assert_eq!(read(&format!("REAL\n{draft}REAL")), Ok("several".to_owned()), "{draft}");
    }
    // A mark that is closed at once is no mention.
    assert_eq!(read("<note>like a<note></note> so\nDRAFT"), Err(SyntaxErrorKind::OnlyReasoning));
    // The mention has no closing mark here.
    assert_eq!(read("<note>The tag <note> is mine.</note>\nREAL"), Ok(REAL.to_owned()));
    // An object between the two closing marks is inside the draft.
    assert_eq!(read("<note>a<note>b</note>DRAFT</note>\nREAL"), Ok(REAL.to_owned()));
    assert_eq!(read("REAL\n<note>a<note>b</note>DRAFT</note>\nREAL"), Ok("several".to_owned()));
}

#[test]
fn arguments_of_tool_calls_are_no_answer() {
    for text in [
        "<tool_call>\nDRAFT\n</tool_call>",
        "<function=find>DRAFT</function>",
        "[TOOL_CALLS]find[ARGS]DRAFT",
        "[TOOL_CALLS] [DRAFT]",
        "[ [TOOL_CALLS]DRAFT",
        "<|channel|>commentary to=functions.find <|constrain|>json<|message|>DRAFT<|call|>",
        "<|start|>assistant to=functions.find<|channel|>commentary json<|message|>DRAFT",
        "<|channel|>analysis to=browser.open code<|message|>DRAFT<|call|>",
        "DRAFT<|call|>",
        "<|python_tag|>DRAFT<|eom_id|>",
        "<|tool_call>call:find{x:1} DRAFT<tool_call|>",
        "<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>DRAFT<|tool_call_end|>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\nDRAFT\n```<｜tool▁call▁end｜>",
        "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\">DRAFT</｜DSML｜invoke>",
        "<start_function_call>call:find DRAFT<end_function_call>",
        "<|action_start|><|plugin|>\nDRAFT<|action_end|>",
        "<tool_call>find\n<arg_key>a</arg_key>\n<arg_value>DRAFT</arg_value>\n</tool_call>",
        "<minimax:tool_call>\n<invoke name=\"find\">DRAFT</invoke>\n</minimax:tool_call>",
        "✿FUNCTION✿: find\n✿ARGS✿: DRAFT\n✿RESULT✿: x",
        "```tool_code\nDRAFT\n```",
        "<tool_call DRAFT",
        "<|calls_begin|><|call_begin|>find DRAFT",
    ] {
        assert_eq!(read(text), Err(SyntaxErrorKind::OnlyToolCall), "{text}");
    }
}

/// What follows the object of such a call may be the answer.
#[test]
fn arguments_of_calls_in_words_are_no_answer() {
    for call in [
        "look_up(DRAFT)",
        "CodeReview(DRAFT)",
        "I use look_up(\n  DRAFT\n)",
        "```python\nlook_up(DRAFT)\n```",
        "[look_up(DRAFT)]",
        "print(api.look_up(DRAFT))",
        "look_up([DRAFT, DRAFT])",
        "look_up({\"a\":\"}) \\\" {\",\"b\":[{}]})",
        "look_up({a: 'x'})",
        "Thought: I look.\nAction: look_up\nAction Input: DRAFT\nObservation: DRAFT\n",
        "**Action Input:**\n```json\nDRAFT\n```",
        "TOOL_CALL: DRAFT",
        "TOOL_CALL: look_up DRAFT\nTOOL_CALL: look_up DRAFT",
        "Tool call 1 = `look_up` DRAFT",
        "Function call:\nDRAFT",
        "functions.look_up:0DRAFT",
        "<unused94>thought\nMaybe DRAFT. <unused95>look_up(DRAFT)",
    ] {
        assert_eq!(read(call), Err(SyntaxErrorKind::OnlyToolCall), "{call}");
        assert_eq!(read(&format!("{call}\nREAL")), Ok(REAL.to_owned()), "{call}");
        assert_eq!(read(&format!("REAL\n{call}")), Ok(REAL.to_owned()), "{call}");
        assert_eq!(read(&format!("{call}\nFinal Answer: REAL")), Ok(REAL.to_owned()), "{call}");
        assert_eq!(read(&format!("{call} REAL REAL")), Ok("several".to_owned()), "{call}");
    }
    for text in
        ["look_up({\"a\":", "look_up(DRAFT, \"b", "Action Input: {\"a\":\"b\"", "look_up(DRAFT)\n{\"a\":"]
    {
        assert!(!matches!(read(text), Ok(text) if text.starts_with('{')), "{text}");
    }
    for text in [
        "print(REAL)",
        "print(json.dumps(REAL))",
        "console.log(REAL);",
        "answer(REAL)",
        "(REAL)",
        "Here it is (REAL)",
        "Action: REAL",
        "Arguments: REAL",
        "The function call is right.\nREAL",
        "I looked it up with look_up(). REAL",
        "So look_up(x) it is: REAL",
        "Observation: REAL",
        "结果(REAL)",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    let array = r#"["as in f({\"a\":1})",{"b":2}]"#;
    assert_eq!(read(array), Ok(array.to_owned()));
}

#[test]
fn reserved_tokens_open_and_close_reasoning() {
    for text in [
        "<unused94>thought\nDRAFT<unused95>REAL",
        "DRAFT or so<unused95>\nREAL",
        "<unused12>DRAFT<unused13>\n```json\nREAL\n```",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    for text in ["<unused94>thought\nDRAFT", "<unused94>DRAFT<unused95>", "<unused94>REAL"] {
        assert_eq!(read(text), Err(SyntaxErrorKind::OnlyReasoning), "{text}");
    }
}

#[test]
fn wrappers_are_taken_off() {
    for text in [
        "<answer>REAL</answer>",
        "<ANSWER id=\"1\">\nREAL\n</ANSWER>",
        "<output>REAL",
        "<response>REAL</response>",
        "<result>```json\nREAL\n```</result>",
        "<final>REAL</final>",
        "REAL</json>",
        "<|begin_of_box|>REAL<|end_of_box|>",
        "[ANSWER]REAL[/ANSWER]",
        "<|START_RESPONSE|>REAL<|END_RESPONSE|>",
        "<|channel|>final<|message|>REAL<|return|>",
        "<|channel|>final<|constrain|>json<|message|>REAL",
        "<|channel|>analysis<|message|>DRAFT<|end|><|start|>assistant<|channel|>final json<|message|>REAL",
        "<|begin_of_text|>REAL<|eot_id|>",
        "<｜begin▁of▁sentence｜>REAL",
        "<bos>REAL<eos>",
        "REAL<|im_end|>",
        "REAL<｜end▁of▁sentence｜>",
        "REAL</s>",
        "<think>x</think><answer>REAL</answer>",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    assert_eq!(read("<answer>REAL</answer>\n<answer>DRAFT</answer>"), Ok("several".to_owned()));
    assert_eq!(read("<plan>DRAFT</plan>REAL DRAFT"), Ok("several".to_owned()));
    assert_eq!(read("<plan>DRAFT</plan>{\"a\":"), Ok("truncated".to_owned()));
}

#[test]
fn header_of_the_assistant_says_nothing_about_its_message() {
    for text in [
        "<|im_start|>assistant\nREAL<|im_end|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\nREAL<|eot_id|>",
        "<|header_start|>assistant<|header_end|>REAL",
        "<|start_of_role|>assistant<|end_of_role|>REAL<|end_of_text|>",
        "<start_of_turn>model\nREAL<end_of_turn>",
        "<|turn>model\nREAL<turn|>",
        "<|im_assistant|>assistant<|im_middle|>REAL<|im_end|>",
        "<|assistant|>REAL",
        "<｜Assistant｜>REAL",
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>REAL<|END_OF_TURN_TOKEN|>",
        "<|start|>assistant<|message|>REAL<|return|>",
        "<|im_start|>user\nDRAFT<|im_end|>\n<|im_start|>assistant\nREAL",
        "<|turn>user\nDRAFT<turn|>\n<|turn>model\nREAL<turn|>",
        "<|im_start|>assistant\n<think>DRAFT</think>REAL<|im_end|>",
        "REAL<|im_end|>\n<|im_start|>user\nDRAFT<|im_end|>",
        "REAL<end_of_turn>\n<start_of_turn>user\nDRAFT",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    for text in [
        "<|im_start|>user\nDRAFT<|im_end|>",
        "<|start_header_id|>ipython<|end_header_id|>\n\nDRAFT",
        "<|start_header_id|>critic<|end_header_id|>\n\nDRAFT",
        "<start_of_turn>user\nDRAFT<end_of_turn>",
        "<|user|>DRAFT",
        "<|im_start|>notes\nDRAFT",
    ] {
        assert_eq!(read(text), Err(SyntaxErrorKind::OnlyReasoning), "{text}");
    }
    let twice = "<|im_start|>assistant\nREAL<|im_end|>\n<|im_start|>assistant\nDRAFT";
    assert_eq!(read(twice), Ok("several".to_owned()));
}

#[test]
fn channels_whose_tokens_were_not_decoded_are_channels() {
    for text in [
        "analysisMaybe DRAFT. So it is.assistantfinalREAL",
        "Maybe DRAFT. So it is.assistantfinal REAL",
        "assistantanalysisDRAFTassistantfinal\n```json\nREAL\n```",
        "analysisDRAFTassistantcommentary to=functions.find jsonDRAFTassistantfinalREAL",
        "assistantfinalREAL",
        "analysis: it fits. REAL",
        "The assistant answers, and the assistant's final word is REAL",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    for text in ["analysisMaybe DRAFT", " analysisDRAFT", "So.assistantanalysisMaybe DRAFT"] {
        assert_eq!(read(text), Err(SyntaxErrorKind::OnlyReasoning), "{text}");
    }
    for text in [
        "assistantcommentary to=functions.find jsonDRAFT",
        "assistant to=functions.find commentary json DRAFT",
        "to=browser.open DRAFT",
        "Let me see.\n to=python DRAFT",
    ] {
        assert_eq!(read(text), Err(SyntaxErrorKind::OnlyToolCall), "{text}");
    }
}

#[test]
fn names_of_reasoning_close_each_other() {
    for text in [
        "<think>DRAFT</thinking>REAL",
        "<reasoning>DRAFT</thought>\nREAL",
        "<|think|>DRAFT</think>REAL",
        "[THINK]DRAFT</think>REAL",
        "<reasoning><think>x</reasoning>REAL",
        "<reasoning><think>DRAFT</think>DRAFT</reasoning>REAL",
        "<think><plan>DRAFT</plan>DRAFT</thinking>REAL",
        "<|inner_prefix|>DRAFT<|inner_suffix|>REAL",
        "< think >DRAFT</ think >REAL",
        "<think step one>DRAFT</think>REAL",
        "<input>DRAFT</input>REAL",
        "```thinking\nDRAFT\n```\nREAL",
        "```thinking\n```json\nDRAFT\n```\nor DRAFT\n```\nREAL",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    let deep = format!("{}DRAFT{}REAL", "<think>".repeat(100), "</think>".repeat(100));
    assert_eq!(read(&deep), Ok(REAL.to_owned()));
    assert_eq!(read(&deep.replacen("</think>REAL", "REAL", 1)), Err(SyntaxErrorKind::OnlyReasoning));
    for text in ["<notes>DRAFT</think>", "<thinkDRAFT", "<think DRAFT"] {
        assert_eq!(read(text), Err(SyntaxErrorKind::OnlyReasoning), "{text}");
    }
}

#[test]
fn mark_in_a_sentence_encloses_what_is_between_it_and_its_closing_mark() {
    for text in [
        "So <notes> maybe DRAFT </notes> but no. REAL",
        "So <notes> maybe DRAFT or DRAFT </notes> REAL",
        "Sure<notes>DRAFT</notes>REAL",
        "[draft]DRAFT[/draft]REAL",
        "[my-plan] First DRAFT, [/my-plan] then REAL",
        "<think>x</think>So <notes> maybe DRAFT </notes> but no. REAL",
        "[my-plan] of Vec<notes> DRAFT </notes> or DRAFT [/my-plan] REAL",
        "[my-plan] of Vec<notes> DRAFT </notes> [/my-plan] REAL",
        "I left <notes> out, and </notes> too. REAL",
        "A [note] and [/note]: REAL",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    for text in [
        "So <notes> maybe DRAFT </notes> but no.",
        "Sure<notes>DRAFT</notes> and so on",
        "[my-plan] of Vec<notes> DRAFT </notes> or DRAFT [/my-plan]",
        "[draft]DRAFT[/draft]",
        "I note <notes> DRAFT",
        "I note <notes>\n```json\nDRAFT\n```",
    ] {
        assert_eq!(read(text), Err(SyntaxErrorKind::OnlyReasoning), "{text}");
    }
}

#[test]
fn prose_with_angle_brackets_is_no_mark() {
    for prose in [
        "a < b and c > d: ",
        "x<y and z>w: ",
        "if x<y: ",
        "a <b> tag: ",
        "the `<plan>` and \"<notes>\" tags: ",
        "a <b> and </b>: ",
        "a Vec<u8> or Map<K, V>: ",
        "see <https://example.com/a> and <me@example.com>: ",
        "one<br>two<br/>\n<hr />three\n",
        "it is <3 -> fine <- so <= ",
        "[x], [1], [Note], [link](url), [think](url), [A] and [TODO] are fine: ",
        "<b>Answer</b>: ",
        "<p>Here it is.</p>\n",
        "as |a| <|b| and b > 0: ",
        "set x to=5 or y=to: ",
        "```python\nx = 1\n```\n",
        "see [call] and [/users]: ",
        "a < b, c < d > e: ",
        "◁ ",
        "<",
    ] {
        assert_eq!(read(&format!("{prose}REAL")), Ok(REAL.to_owned()), "{prose}");
        assert_eq!(read(&format!("REAL\n{prose}")), Ok(REAL.to_owned()), "{prose}");
    }
}

#[test]
fn marks_inside_the_answer_are_text() {
    for mark in [
        "<plan>",
        "</plan>",
        "</think>",
        "[TOOL_CALLS]",
        "<|call|>",
        "<|channel|>analysis<|message|>",
        "◁/x▷",
    ] {
        let json = format!("{{\"a\":\"x {mark} y\",\"b{mark}\":[\"{mark}\"]}}");
        for text in [
            json.clone(),
            format!("So: {json}"),
            format!("<answer>{json}</answer>"),
            format!("<plan>x</plan>{json}"),
        ] {
            assert_eq!(read(&text), Ok(json.clone()), "{text}");
        }
    }
}

#[test]
fn marks_inside_the_strings_of_an_array_are_text() {
    for text in [
        r#"["a<|x|>b",{"a":1}]"#,
        r#"["a<|x|>b<|end|>",{"a":1}]"#,
        r#"["a<plan>b</plan>"]"#,
        r#"["a<|channel|>analysis b"]"#,
        r#""a <|x|> {\"b\":1}""#,
    ] {
        let expected = serde_json::from_str::<serde_json::Value>(text).unwrap().to_string();
        assert_eq!(read(text), Ok(expected), "{text}");
    }
}

#[test]
fn part_of_something_with_a_draft_inside_is_refused() {
    for text in ["[1,\n<plan>x</plan>REAL]", "{\"x\" <|n|>y<|end_n|> \"item\": REAL}"] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn link_is_no_mark_however_it_is_split() {
    for text in [
        "[API](https://example.com) says: REAL",
        "[[wiki]](https://example.com): REAL",
        "REAL\nSee [/think](a) and [NOTES](b).",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    assert_eq!(read("DRAFT[/reasoning]"), Err(SyntaxErrorKind::OnlyReasoning));
}

#[test]
fn comment_inside_a_sentence_holds_drafts() {
    assert_eq!(read("Well. <!-- maybe DRAFT --> REAL"), Ok(REAL.to_owned()));
    assert_eq!(read("Well. <!-- maybe DRAFT -->\nNo."), Err(SyntaxErrorKind::OnlyReasoning));
}

#[test]
fn closing_mark_after_a_word_or_a_quote_ends_a_draft() {
    for text in [
        "Hm. DRAFT so that is it</notes> REAL",
        "Hm. DRAFT, so \"yes\"</think>REAL",
        "Hm. DRAFT, so it is 'a'</notes>\nREAL",
        "DRAFT or so</notes>REAL",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
}

#[test]
fn mark_in_quotes_is_text() {
    for text in [
        "REAL\nI left out the `</think>` tag.",
        "The “<think>” block is empty: REAL",
        "Neither '<notes>' nor '</notes>' is here. REAL",
    ] {
        assert_eq!(read(text), Ok(REAL.to_owned()), "{text}");
    }
    // One quote is not enough: a fence ends with one too.
    for text in ["```<think>\nDRAFT", "So: \"<notes>DRAFT"] {
        assert_eq!(read(text), Err(SyntaxErrorKind::OnlyReasoning), "{text}");
    }
}

#[test]
fn nothing_of_an_open_draft_is_emitted() {
    for open in [
        "<plan>",
        "<|plan|>",
        "[[plan]]",
        "[TOOL_CALLS]f[ARGS]",
        "<|channel|>analysis<|message|>",
        "x <notes>\n",
    ] {
        let mut parser = Parser::tolerant(Limits::model_output());
        for byte in format!("{open}{DRAFT} or {DRAFT}").bytes() {
            parser.push(&[byte], &mut |event| panic!("{open}: {event:?}")).unwrap();
        }
        assert!(parser.root().is_none() && !parser.is_tentative(), "{open}");
    }
}
