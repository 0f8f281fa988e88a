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

#[test]
fn keys_label_runs() {
    let output = newcomer(REVIEW);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}{text}");
    assert!(text.contains(r#"[[["wrong",null]],[["corrected","positive"]],[]]"#), "{errors}{text}");
    assert!(text.contains("2 of 3 runs labelled"), "{errors}{text}");
}
