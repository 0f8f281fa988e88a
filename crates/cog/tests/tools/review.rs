//! `cog review` on a terminal, which `script` makes.

use crate::scene::newcomer;

/// Runs three times, and presses `w`, `e` and `q`.
const REVIEW: &str = r#"
    set -e
    export LLM_PROVIDER=offline COG_LOGS_CONTENTS=on TERM=xterm
    cog logs clear > notes
    cog new my-module --kind classify 2> notes
    for text in one two three; do cog run my-module --args $text > notes 2>&1; done
    export EDITOR="sed -i 's/\"label\":.*,/\"label\":\"positive\",/'"
    printf 'weq' | script -qec 'stty columns 80 rows 24; cog review my-module' screen > notes
    cog logs --format json | jq -c 'map(.labels // [] | map([.label, .data.label]))'
    grep -a 'runs labelled' screen
"#;

/// Writes three confidences into the log, of which a gate accepts the third, and reviews with different filters.
const FILTERED: &str = r#"
    set -e
    export LLM_PROVIDER=offline COG_LOGS_CONTENTS=on TERM=xterm
    cog logs clear > notes
    cog new my-module --kind classify 2> notes
    for text in one two three; do cog run my-module --args $text > notes 2>&1; done
    log=$HOME/.local/state/cog/logs/runs.ndjson
    jq -s -c 'to_entries[] | ((.key + 1) / 10) as $confidence | .value | .confidence = $confidence
        | .contents.envelope.meta.gate = {accuracy: 0.9, threshold: 0.3, passed: ($confidence >= 0.3)}' $log > changed
    cp changed $log
    for flags in '--below 0.2' '--below 0.3' '--gate failed' '--gate passed' '--gate passed --below 1' '--gate passed --below 0.3'
    do
        printf 'q' | script -qec "stty columns 80 rows 24; cog review my-module $flags" screen > notes
        echo "$flags: $(grep -a -o 'of [0-9]* runs\? labelled\|no run to review' screen)"
    done
    printf 'q' | script -qec 'stty columns 80 rows 24; cog review --gate failed -n 1' screen > notes
    grep -a -o 'confidence 0.20.*gate failed' screen
    ! cog review --below 2 2> refused
    grep 'number from 0 to 1' refused
"#;

#[test]
fn runs_are_chosen_by_confidence_and_gate() {
    let output = newcomer(FILTERED);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}{text}");
    for line in [
        "--below 0.2: of 1 run labelled",
        "--below 0.3: of 2 runs labelled",
        "--gate failed: of 2 runs labelled",
        "--gate passed: of 1 run labelled",
        "--gate passed --below 1: of 1 run labelled",
        "--gate passed --below 0.3: no run to review",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {errors}{text}");
    }
}

#[test]
fn keys_label_runs() {
    let output = newcomer(REVIEW);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}{text}");
    assert!(text.contains(r#"[[["wrong",null]],[["corrected","positive"]],[]]"#), "{errors}{text}");
    assert!(text.contains("2 of 3 runs labelled"), "{errors}{text}");
}
