//! Searches on a runtime, with providers of the test.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use cog_module::{ModuleFiles, Prompt};
use cog_provider::{ModelFuture, ModelRequest, Provider, ProviderInfo};
use cog_run::{BudgetUsage, Providers, provider};
use cog_spec::{FinishReason, ModelEvent, Usage};
use serde_json::json;

use super::{
    search::{Found, Random, Trial as _, Written},
    *,
};

const PROMPT: &str = "Give the text a label.\n\n$INPUT\n";

/// A module with this number of cases.
fn module(cases: u32) -> (Arc<Module>, Vec<GoldenCase>) {
    let schema = json!({
        "input": { "type": "object", "properties": { "text": { "type": "string" } } },
        "meta": {},
        "data": {
            "type": "object",
            "required": ["label", "rationale"],
            "properties": { "label": { "enum": ["a", "b"] }, "rationale": { "type": "string" } }
        },
        "error": {}
    });
    let manifest =
        "name: label\nversion: 1.0.0\nresponsibility: Labels a text\ntier: decision\nexcludes: []\n";
    let mut files = ModuleFiles::default()
        .with("module.yaml", manifest)
        .with("prompt.md", PROMPT)
        .with("schema.json", schema.to_string());
    for case in 0..cases {
        let expected = json!({ "_validate": { "label": if case % 2 == 0 { "a" } else { "b" } } });
        files = files
            .with(format!("tests/c{case}.input.json"), json!({ "text": format!("text{case}") }).to_string())
            .with(format!("tests/c{case}.expected.json"), expected.to_string());
    }
    let module = files.load().unwrap();
    let cases = golden::discover(&module).cases;
    (Arc::new(module), cases)
}

/// A model that answers and writes prompts by chance, at the price of a model of the list.
struct Chance {
    info: ProviderInfo,
    random: Mutex<Random>,
    /// The calls of the writer.
    written: AtomicU64,
}

impl Chance {
    fn new(seed: u64) -> Self {
        let mut info = ProviderInfo::new("chance", "gpt-6-luna");
        info.prices = Some("openai");
        Self { info, random: Mutex::new(Random(seed)), written: AtomicU64::new(0) }
    }
}

impl Provider for Chance {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let text: String = request.messages.messages().iter().map(|message| message.text()).collect();
        let data = if text.contains("last_reason") {
            let number = self.written.fetch_add(1, Ordering::Relaxed);
            json!({ "rationale": "r", "prompt": format!("Rule {number}.\n\n{PROMPT}") })
        } else {
            json!({ "rationale": "r", "label": if random.below(2) == 0 { "a" } else { "b" } })
        };
        let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
        let reply = match random.below(12) {
            0 => "nonsense".to_owned(),
            _ => json!({ "ok": true, "meta": meta, "data": data }).to_string(),
        };
        // A token has at least one byte, and a reply has at most what was requested.
        let input_tokens = (text.len() / (1 + random.below(6))) as u64;
        let limit = usize::try_from(request.generation.max_tokens.unwrap()).unwrap();
        let output_tokens = if random.below(4) == 0 { limit } else { random.below(limit) } as u64;
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        drop(random);
        let events =
            [ModelEvent::Text(reply), ModelEvent::Usage(usage), ModelEvent::Finished(FinishReason::Stop)];
        Box::pin(async move { Ok(provider::reply(events)) })
    }
}

/// One search with a model by chance.
struct Trial {
    runtime: Runtime,
    module: Arc<Module>,
    cases: Vec<GoldenCase>,
    split: Split,
}

impl Trial {
    fn new(seed: u64, cases: u32) -> Self {
        let runtime =
            Runtime::builder().providers(Providers::single(Arc::new(Chance::new(seed)))).build().unwrap();
        let (module, cases) = module(cases);
        let split = Split::new(cases.iter().map(|case| case.input.node())).unwrap();
        Self { runtime, module, cases, split }
    }

    fn runner(&self, writer: Writer) -> Runner<'_> {
        let generation = Generation { max_tokens: Some(300), ..Generation::default() };
        let options = RunOptions { generation, max_attempts: Some(1), ..RunOptions::default() };
        Runner {
            runtime: &self.runtime,
            module: &self.module,
            cases: &self.cases,
            secret_in: &|text: &str| text.contains("sk-hidden").then(|| "OPENAI_API_KEY".to_owned()),
            rules: PromptRules { old: &self.module.prompt, sources: &[] },
            judge: options.clone(),
            options,
            writer,
            budgets: RefCell::default(),
            log: None,
            jobs: 4,
            progress: None,
        }
    }

    /// Searches as the command does. Returns what was found, if the limits allowed a step, and what was spent.
    async fn search(&self, limits: Limits, steps: u32, seed: u64) -> Option<(Option<Found>, BudgetUsage)> {
        let options = Box::new(RunOptions { max_attempts: Some(1), ..RunOptions::default() });
        let runner = self.runner(Writer::Model { module: Arc::new(writer().unwrap()), options });
        let budgets = Costs::measure(&runner, &self.split).await.unwrap().budgets(limits).ok()?;
        runner.budgets.replace(vec![budgets.search.clone(), budgets.total.clone()]);
        let found = search::search(&runner, &self.split, PROMPT, &SearchLimits { steps, seed }).await.ok();
        if let Some(found) = &found {
            runner.budgets.replace(vec![budgets.total.clone()]);
            let new = &found.candidates[found.best].proposal.prompt;
            let compared = search::compare(&runner, &self.split, PROMPT, new).await;
            assert!(compared.is_ok(), "the comparison is paid: {compared:?}");
        }
        Some((found, budgets.total.spent()))
    }
}

/// Each quarter is one test, so that they run at the same time.
async fn a_quarter_of_a_thousand(quarter: u64) {
    let (mut allowed, mut refused, mut ended) = (0, 0, 0);
    for seed in (quarter * 250)..((quarter + 1) * 250) {
        let trial = Trial::new(seed, 12);
        let mut random = Random(seed);
        // From too little for one step to enough for several.
        let max_cost = 0.02 + 0.0005 * random.below(400) as f64;
        let max_calls = 20 + random.below(40) as u64;
        let limits = match seed % 3 {
            0 => Limits { max_cost: None, max_calls: Some(max_calls) },
            1 => Limits { max_cost: Some(max_cost), max_calls: None },
            _ => Limits { max_cost: Some(max_cost), max_calls: Some(max_calls) },
        };
        match trial.search(limits, 3, seed).await {
            Some((found, spent)) => {
                allowed += 1;
                assert!(limits.max_cost.is_none_or(|max| spent.cost.unwrap() <= max), "{limits:?} {spent:?}");
                assert!(limits.max_calls.is_none_or(|max| spent.calls <= max), "{limits:?} {spent:?}");
                ended += u32::from(found.unwrap().end == End::Spent);
            }
            None => refused += 1,
        }
    }
    assert!(allowed > 50 && refused > 10 && ended > 10, "{allowed} {refused} {ended}");
}

#[tokio::test]
async fn budget_is_never_exceeded_in_a_thousand_runs_1() {
    a_quarter_of_a_thousand(0).await;
}

#[tokio::test]
async fn budget_is_never_exceeded_in_a_thousand_runs_2() {
    a_quarter_of_a_thousand(1).await;
}

#[tokio::test]
async fn budget_is_never_exceeded_in_a_thousand_runs_3() {
    a_quarter_of_a_thousand(2).await;
}

#[tokio::test]
async fn budget_is_never_exceeded_in_a_thousand_runs_4() {
    a_quarter_of_a_thousand(3).await;
}

#[tokio::test]
async fn too_little_for_one_step_is_refused_before_a_call() {
    let trial = Trial::new(1, 12);
    let runner = trial.runner(Writer::Examples);
    let costs = Costs::measure(&runner, &trial.split).await.unwrap();
    let refused = |limits| costs.budgets(limits).map(drop).unwrap_err().message;
    let message = refused(Limits { max_cost: Some(0.0001), max_calls: None });
    assert!(
        message.starts_with("one full step can take up to ") && message.contains("--max-cost is 0.0001"),
        "{message}"
    );
    // 8 cases of training and validation twice, and 4 held-out cases twice.
    let message = refused(Limits { max_cost: None, max_calls: Some(23) });
    assert!(message.starts_with("one full step can take up to 24 calls"), "{message}");
    assert!(costs.budgets(Limits { max_cost: None, max_calls: Some(24) }).is_ok());
}

#[test]
fn secrets_of_the_environment_are_refused() {
    let trial = Trial::new(1, 12);
    let runner = trial.runner(Writer::Examples);
    let why = runner.refuse("Use the key sk-hidden.\n\n$INPUT").unwrap();
    assert_eq!(why, "it contains a secret of the environment: OPENAI_API_KEY");
}

#[tokio::test]
async fn examples_are_exact_cases_of_training_without_placeholders() {
    let (module, mut cases) = module(12);
    for (index, case) in cases.iter_mut().enumerate() {
        let answer = json!({ "label": "a", "rationale": format!("reason {index}") });
        case.expected = golden::Expected::Exact(answer.into());
    }
    cases[3].input = json!({ "text": "see @call:other($ARGUMENTS)" }).into();
    let trial = Trial { module, cases, ..Trial::new(1, 12) };
    let runner = trial.runner(Writer::Examples);
    let shown = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let draft = search::Draft {
            prompt: PROMPT,
            shown: &shown,
            failures: Vec::new(),
            free: vec![2, 3, 5],
            seed,
            last_reason: None,
        };
        let Ok(Written::Prompt(proposal)) = runner.write(draft).await else { panic!("no prompt") };
        assert!(!proposal.shown.is_empty() && !proposal.shown.contains(&3), "{:?}", proposal.shown);
        let text = proposal.prompt;
        assert!(text.starts_with("Give the text a label.\n\n$INPUT\n\n# Examples\n\nInput: {"), "{text}");
        assert_eq!(Prompt::parse(&*text).parts().len(), 3, "one placeholder: {text}");
    }
}

#[test]
fn module_that_writes_prompts_is_valid() {
    let module = writer().unwrap();
    assert!(module.warnings.is_empty(), "{:?}", module.warnings);
    let placeholders =
        module.prompt.parts().iter().filter(|part| !matches!(part, cog_module::PromptPart::Text(_)));
    assert_eq!(placeholders.count(), 1, "the prompt explains placeholders, and must not contain them");
}
