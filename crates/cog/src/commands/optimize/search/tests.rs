use std::cell::{Cell, RefCell};

use cog_json::Value;

use super::*;

/// A task whose prompt is a list of rules. A case is right if the prompt has its rule; the writer adds the rules that the feedback names.
struct Rules {
    /// The rule of each case.
    cases: Vec<&'static str>,
    /// What the writer answers, if it does not do its work.
    instead: Option<fn(&str) -> Written>,
    /// The calls that are left.
    left: Cell<u32>,
    /// The cases that ran, with their prompts.
    log: RefCell<Vec<(String, usize)>>,
}

impl Rules {
    fn new(cases: &[&'static str]) -> Self {
        Self { cases: cases.to_vec(), instead: None, left: Cell::new(u32::MAX), log: RefCell::default() }
    }

    fn spend(&self) -> Result<(), Ended> {
        let left = self.left.get().checked_sub(1).ok_or(Ended::Spent)?;
        self.left.set(left);
        Ok(())
    }
}

impl Trial for Rules {
    async fn run(&self, prompt: &str, cases: &[usize]) -> Result<Vec<Scored>, Ended> {
        let mut scored = Vec::new();
        for case in cases {
            self.spend()?;
            self.log.borrow_mut().push((prompt.to_owned(), *case));
            let rule = self.cases[*case];
            let is_right = rule.is_empty() || prompt.contains(rule);
            scored.push(Scored { is_right, feedback: vec![rule.to_owned()], answer: None });
        }
        Ok(scored)
    }

    async fn write(&self, draft: Draft<'_>) -> Result<Written, Ended> {
        self.spend()?;
        assert!((1..=3).contains(&draft.failures.len()));
        if let Some(instead) = self.instead {
            return Ok(instead(draft.prompt));
        }
        let (_, first) = draft.failures[0];
        let prompt = format!("{}\n{}", draft.prompt, first.feedback[0]);
        Ok(Written::Prompt(Proposal { prompt, shown: BTreeSet::new() }))
    }

    fn refuse(&self, prompt: &str) -> Option<String> {
        prompt.contains("forbidden").then(|| "forbidden".to_owned())
    }
}

/// Thirty cases, of which each third has all rules.
fn cases() -> (Rules, Split) {
    let inputs: Vec<Value> = (0..30).map(|n| Value::parse(&n.to_string()).unwrap()).collect();
    let split = Split::new(inputs.iter().map(Value::node)).unwrap();
    let mut cases = vec![""; 30];
    for part in Part::ALL {
        for (place, case) in split.cases(part).into_iter().enumerate() {
            cases[case] = ["", "rule one", "rule two", "rule three"][place % 4];
        }
    }
    (Rules::new(&cases), split)
}

fn found(trial: &Rules, split: &Split, steps: u32) -> Result<Found, Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(search(trial, split, "Start.", &SearchLimits { steps, seed: 7 }))
}

#[test]
fn prompts_get_better_until_nothing_fails() {
    let (trial, split) = cases();
    let found = found(&trial, &split, 50).unwrap();
    assert_eq!(found.end, End::NothingFails);
    let best = &found.candidates[found.best].proposal.prompt;
    assert!(["rule one", "rule two", "rule three"].iter().all(|rule| best.contains(rule)), "{best}");
    assert_eq!(found.validation(&split, found.best), split.cases(Part::Validation).len());
    let held_out = split.cases(Part::HeldOut);
    assert!(trial.log.borrow().iter().all(|(_, case)| !held_out.contains(case)), "held-out cases never run");
}

#[test]
fn no_case_runs_twice_with_the_same_prompt() {
    let (trial, split) = cases();
    found(&trial, &split, 50).unwrap();
    let log = trial.log.borrow();
    let different: BTreeSet<_> = log.iter().collect();
    assert_eq!(different.len(), log.len());
}

#[test]
fn same_seed_takes_the_same_steps() {
    let steps = || {
        let (trial, split) = cases();
        found(&trial, &split, 50).unwrap().steps
    };
    assert_eq!(steps(), steps());
}

/// What a writer answers to a prompt, and the outcomes of the first two steps.
type Case = (fn(&str) -> Written, Outcome, Outcome);

#[test]
fn prompts_that_are_no_use_are_not_kept() {
    let refused = |why: &str| Outcome::Refused(why.to_owned());
    let again = || refused("it was proposed before");
    let writers: [Case; 4] = [
        (|_| Written::Nothing("no JSON".to_owned()), refused("no JSON"), refused("no JSON")),
        (|prompt| written(prompt.to_owned()), again(), again()),
        (|_| written("Something else.".to_owned()), Outcome::NotBetter, again()),
        (|_| written("forbidden rule one".to_owned()), refused("forbidden"), refused("forbidden")),
    ];
    for (instead, first, second) in writers {
        let (trial, split) = cases();
        let trial = Rules { instead: Some(instead), ..trial };
        let found = found(&trial, &split, 50).unwrap();
        assert_eq!((found.best, found.end), (0, End::Stuck));
        assert_eq!(found.steps.len(), PATIENCE as usize);
        assert_eq!((&found.steps[0].outcome, &found.steps[1].outcome), (&first, &second));
    }
}

fn written(prompt: String) -> Written {
    Written::Prompt(Proposal { prompt, shown: BTreeSet::new() })
}

#[test]
fn spent_budget_ends_the_search_with_what_was_kept() {
    let (trial, split) = cases();
    trial.left.set(10);
    assert!(
        matches!(found(&trial, &split, 50), Err(Ended::Spent)),
        "the prompt of the module was not measured"
    );
    let mut most = 0;
    for calls in 20..120 {
        let (trial, split) = cases();
        trial.left.set(calls);
        let found = found(&trial, &split, 50).unwrap();
        most = most.max(found.best);
        assert!(matches!(found.end, End::Spent | End::NothingFails));
    }
    assert!(most > 0);
}

#[test]
fn writer_learns_why_its_last_prompt_was_not_kept() {
    let step = |outcome| Step { parent: 0, cases: vec![1], outcome };
    assert_eq!(step(Outcome::Kept { small: 1, validation: 2 }).reason(), None);
    assert_eq!(
        step(Outcome::Refused("it is empty".to_owned())).reason().unwrap(),
        "Your last prompt was refused: it is empty."
    );
}
