use std::slice::from_ref;

use cog_provider::{ModelFuture, ModelRequest, ProviderInfo};
use cog_spec::{Amount, Cost, Currency, ModelEvent, PriceDate, PriceSource};

use super::*;

fn usage(tokens: u64, cost: Option<f64>) -> Usage {
    let cost = cost.map(|amount| Cost {
        amount: Amount::new(amount).unwrap(),
        currency: Currency::Usd,
        source: PriceSource::GenaiPrices,
        date: PriceDate::new("2026-11-22").unwrap(),
    });
    Usage { input_tokens: tokens, cost, ..Usage::default() }
}

/// Spends one call, if the budget admits it.
fn spend(budget: &Budget, module: &str, usage: Usage) -> Result<(), ErrorBody> {
    budget.admit(module, Reservation::default())?;
    budget.add(module, &usage, false);
    budget.release(Reservation::default());
    Ok(())
}

fn limit_of(error: &ErrorBody) -> String {
    error.details.as_ref().unwrap().get("limit").unwrap().as_str().unwrap().to_owned()
}

#[test]
fn each_limit_refuses_the_call_after_it_was_reached() {
    for (limits, limit) in [
        (BudgetLimits { max_calls: Some(2), ..BudgetLimits::default() }, "max_calls"),
        (BudgetLimits { max_tokens: Some(200), ..BudgetLimits::default() }, "max_tokens"),
        (BudgetLimits { max_cost: Some(0.2), ..BudgetLimits::default() }, "max_cost"),
    ] {
        let budget = Budget::new("run", limits);
        spend(&budget, "a", usage(100, Some(0.1))).unwrap();
        spend(&budget, "b", usage(100, Some(0.1))).unwrap();
        let error = budget.admit("a", Reservation::default()).unwrap_err();
        assert_eq!((error.code.clone(), limit_of(&error).as_str()), (Code::RateLimited.into(), limit));
        assert!(error.message.contains("calls 2, tokens 200, cost 0.2 USD"), "{}", error.message);
        assert_eq!(budget.spent().calls, 2, "a refused call is not counted");
    }
}

#[test]
fn error_names_what_each_module_spent() {
    let budget = Budget::new("composition", BudgetLimits { max_calls: Some(2), ..BudgetLimits::default() });
    spend(&budget, "b", usage(3, Some(0.5))).unwrap();
    spend(&budget, "a", usage(1, Some(0.25))).unwrap();
    let details = budget.admit("c", Reservation::default()).unwrap_err().details.unwrap().to_serde();
    assert_eq!(
        details["by"],
        serde_json::json!([
            { "calls": 1, "tokens": 1, "cost": 0.25, "estimated": false, "module": "a" },
            { "calls": 1, "tokens": 3, "cost": 0.5, "estimated": false, "module": "b" },
        ])
    );
    assert_eq!(details["budget"], "composition");
}

#[test]
fn unknown_cost_is_not_zero() {
    let limited = Budget::new("run", BudgetLimits { max_cost: Some(100.0), ..BudgetLimits::default() });
    spend(&limited, "a", usage(1, None)).unwrap();
    assert_eq!(limit_of(&limited.admit("a", Reservation::default()).unwrap_err()), "unknown_cost");
    let other = Budget::new("run", BudgetLimits { max_tokens: Some(100), ..BudgetLimits::default() });
    spend(&other, "a", usage(1, None)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn budget_of_a_period_is_full_again_afterwards() {
    let budget = Budget::per_period(
        "token:ada",
        BudgetLimits { max_calls: Some(1), ..BudgetLimits::default() },
        Duration::from_secs(60),
    );
    budget.admit("a", Reservation::default()).unwrap();
    tokio::time::advance(Duration::from_secs(59)).await;
    let error = budget.admit("a", Reservation::default()).unwrap_err();
    assert_eq!(error.details.unwrap().to_serde()["retry_after_ms"], 1_000);
    tokio::time::advance(Duration::from_secs(1)).await;
    budget.admit("a", Reservation::default()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn call_that_ends_in_the_next_period_is_listed_there_with_its_tokens() {
    let limits = BudgetLimits { max_tokens: Some(5), ..BudgetLimits::default() };
    let budget = Budget::per_period("token:ada", limits, Duration::from_secs(60));
    let period = budget.admit("a", Reservation::default()).unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    budget.add("a", &usage(7, None), false);
    assert_eq!((budget.spent().calls, budget.spent().tokens), (0, 7));
    let details = budget.admit("b", Reservation::default()).unwrap_err().details.unwrap().to_serde();
    assert_eq!(details["by"][0]["module"], "a");
    assert_eq!((&details["by"][0]["calls"], &details["by"][0]["tokens"]), (&0.into(), &7.into()));

    let budget = Budget::per_period("token:ada", BudgetLimits::default(), Duration::from_secs(60));
    tokio::time::advance(Duration::from_secs(60)).await;
    budget.admit("a", Reservation::default()).unwrap();
    budget.withdraw("a", period);
    assert_eq!(budget.spent().calls, 1, "the withdrawn call was of an earlier period");
}

#[test]
fn retries_count_and_a_spent_budget_refuses_them() {
    let first = Budget::new("a", BudgetLimits::default());
    let second = Budget::new("b", BudgetLimits { max_calls: Some(2), ..BudgetLimits::default() });
    let call = open_call(&[first.clone(), second]).unwrap();
    assert!(call.counter().admit_retry());
    assert!(!call.counter().admit_retry());
    assert_eq!(limit_of(&call.reject().unwrap()), "max_calls");
    assert_eq!((first.spent().calls, first.spent().tokens), (2, 0));
    assert!(open_call(from_ref(&first)).unwrap().reject().is_none());
}

/// A provider that is never called.
struct Uncalled(ProviderInfo);

impl Provider for Uncalled {
    fn info(&self) -> &ProviderInfo {
        &self.0
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async { Ok(crate::provider::reply([])) })
    }
}

fn open_call(budgets: &[Budget]) -> Result<OpenCall, ErrorBody> {
    let provider: Arc<dyn Provider> = Arc::new(Uncalled(ProviderInfo::new("x", "y")));
    OpenCall::new(budgets, "a", provider, "y", InputTokens { expected: 100, at_most: 400 }, Some(50))
}

#[test]
fn unknown_price_is_refused_before_the_call() {
    let provider = Uncalled(ProviderInfo::new("x", "y"));
    let error = Budget::new("run", BudgetLimits { max_cost: Some(1.0), ..BudgetLimits::default() })
        .check_price(&provider, "")
        .unwrap_err();
    assert!(error.message.contains("x/y"), "{}", error.message);
    Budget::new("run", BudgetLimits { max_calls: Some(1), ..BudgetLimits::default() })
        .check_price(&provider, "")
        .unwrap();
}

#[test]
fn call_that_is_dropped_counts_with_an_estimate() {
    let budget = Budget::new("run", BudgetLimits::default());
    let mut call = open_call(from_ref(&budget)).unwrap();
    call.observe(&ModelEvent::Text("x".repeat(41)));
    call.observe(&ModelEvent::Reasoning("x".repeat(40)));
    drop(call);
    assert_eq!(budget.spent(), BudgetUsage { calls: 1, tokens: 121, cost: None, is_estimated: true });
}

#[test]
fn call_that_ends_counts_once_with_its_usage() {
    let budget = Budget::new("run", BudgetLimits::default());
    open_call(from_ref(&budget)).unwrap().end(Some(usage(7, Some(0.5))));
    assert_eq!(budget.spent(), BudgetUsage { calls: 1, tokens: 7, cost: Some(0.5), is_estimated: false });
    open_call(from_ref(&budget)).unwrap().reject();
    assert_eq!(budget.spent(), BudgetUsage { calls: 2, tokens: 7, cost: Some(0.5), is_estimated: false });
    open_call(from_ref(&budget)).unwrap().end(None);
    assert_eq!(budget.spent(), BudgetUsage { calls: 3, tokens: 107, cost: None, is_estimated: true });
}

#[test]
fn call_that_one_budget_refuses_counts_in_none() {
    let first = Budget::new("a", BudgetLimits::default());
    let second = Budget::new("b", BudgetLimits { max_calls: Some(0), ..BudgetLimits::default() });
    let error = open_call(&[first.clone(), second]).err().unwrap();
    assert_eq!(limit_of(&error), "max_calls");
    assert_eq!((first.spent().calls, first.spent().tokens), (0, 0));
}

/// A budget for a minute that limits tokens.
fn of_client(max_tokens: u64) -> Budget {
    Budget::per_period(
        "token:ada",
        BudgetLimits { max_tokens: Some(max_tokens), ..BudgetLimits::default() },
        Duration::from_secs(60),
    )
}

#[tokio::test(start_paused = true)]
async fn simultaneous_calls_do_not_exceed_the_budget_together() {
    let budget = of_client(300);
    let mut calls: Vec<_> = (0..1_000).filter_map(|_| open_call(from_ref(&budget)).ok()).collect();
    assert_eq!(calls.len(), 2, "each may spend 150 tokens");
    let error = open_call(from_ref(&budget)).err().unwrap();
    assert_eq!((error.code.clone(), limit_of(&error).as_str()), (Code::RateLimited.into(), "max_tokens"));
    assert_eq!(error.details.unwrap().to_serde()["retry_after_ms"], 1_000);
    assert!(budget.check_room().is_err());
    assert!(budget.check().is_ok(), "nothing is spent yet");
    assert_eq!(budget.spent().calls, 2, "a refused call is not counted");
    calls.pop().unwrap().end(Some(usage(10, None)));
    assert!(open_call(from_ref(&budget)).is_err(), "10 are spent, and 150 + 150 do not fit into the rest");
    drop(calls);
    assert_eq!((budget.spent().calls, budget.spent().tokens), (2, 110), "the dropped one is estimated");
}

#[tokio::test(start_paused = true)]
async fn each_exit_of_a_call_frees_what_it_reserved() {
    let exits: [fn(OpenCall); 5] = [
        |call| call.end(Some(usage(1, None))),
        |call| call.end(None),
        |call| drop(call.reject()),
        drop,
        |call| {
            let panicking = std::panic::AssertUnwindSafe(move || {
                let _call = call;
                panic!("a defect");
            });
            std::panic::catch_unwind(panicking).unwrap_err();
        },
    ];
    for exit in exits {
        let budget = of_client(1_000_000);
        let other = open_call(from_ref(&budget)).unwrap();
        exit(open_call(from_ref(&budget)).unwrap());
        assert_eq!(budget.lock().reserved.tokens(), 150);
        drop(other);
        assert_eq!(budget.lock().reserved.tokens(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn reply_that_is_longer_than_its_reservation_reserves_more() {
    let budget = of_client(10_000);
    let mut call = open_call(from_ref(&budget)).unwrap();
    call.observe(&ModelEvent::Text("x".repeat(4 * 50)));
    assert_eq!(budget.lock().reserved.tokens(), 150, "the reply is as long as its reservation");
    call.observe(&ModelEvent::Reasoning("x".to_owned()));
    assert_eq!(budget.lock().reserved.tokens(), 100 + 51 + 4_096);
    call.observe(&ModelEvent::Text("x".repeat(4 * 8_000)));
    assert!(open_call(from_ref(&budget)).is_err(), "8,151 tokens are spent, and 4,096 more may be");
    call.end(Some(usage(8_151, None)));
    assert_eq!(budget.lock().reserved.tokens(), 0);
    drop(open_call(from_ref(&budget)).unwrap());
}

#[tokio::test(start_paused = true)]
async fn single_call_may_be_larger_than_the_budget() {
    let budget = of_client(1);
    let call = open_call(from_ref(&budget)).unwrap();
    assert!(call.counter().admit_retry(), "a retry spends what its call has reserved");
    assert!(open_call(from_ref(&budget)).is_err());
    call.reject();
    open_call(from_ref(&budget)).unwrap().end(Some(usage(1, None)));
    assert_eq!(limit_of(&open_call(from_ref(&budget)).err().unwrap()), "max_tokens");
}

#[tokio::test(start_paused = true)]
async fn calls_in_progress_stay_reserved_in_the_next_period() {
    let budget = of_client(200);
    let call = open_call(from_ref(&budget)).unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(open_call(from_ref(&budget)).is_err());
    drop(call);
}

#[tokio::test(start_paused = true)]
async fn call_that_a_second_budget_refuses_reserves_nothing_in_the_first() {
    let (first, second) =
        (of_client(1_000), Budget::new("b", BudgetLimits { max_calls: Some(0), ..BudgetLimits::default() }));
    assert!(open_call(&[first.clone(), second]).is_err());
    assert_eq!(first.lock().reserved.tokens(), 0);
}

#[test]
fn budget_of_a_run_admits_its_parts_at_the_same_time() {
    let budget = Budget::new("run", BudgetLimits { max_tokens: Some(200), ..BudgetLimits::default() });
    let calls: Vec<_> = (0..4).map(|_| open_call(from_ref(&budget)).unwrap()).collect();
    assert_eq!(calls.len(), 4);
}

#[test]
fn capped_budget_refuses_a_call_that_may_exceed_it_also_alone() {
    // The call may have 400 tokens of input and 50 of output; its expected 100 and 50 do not count.
    let capped = |max_tokens| {
        let limits = BudgetLimits { max_tokens: Some(max_tokens), ..BudgetLimits::default() };
        Budget::capped("search", limits)
    };
    let budget = capped(449);
    let Err(error) = open_call(from_ref(&budget)) else { panic!("admitted") };
    assert_eq!(limit_of(&error), "max_tokens");
    assert_eq!(budget.spent().calls, 0);
    assert!(!error.recoverable.unwrap_or_default(), "the next period never comes: {error:?}");

    let budget = capped(900);
    let (first, second) = (open_call(from_ref(&budget)).unwrap(), open_call(from_ref(&budget)).unwrap());
    assert!(open_call(from_ref(&budget)).is_err(), "calls in progress may spend the rest");
    first.end(Some(Usage { input_tokens: 90, output_tokens: 10, ..Usage::default() }));
    assert!(open_call(from_ref(&budget)).is_err(), "100 spent, 450 reserved: 450 do not fit");
    second.end(Some(Usage { input_tokens: 90, output_tokens: 10, ..Usage::default() }));
    assert!(open_call(from_ref(&budget)).is_ok());
    assert_eq!(budget.spent().calls, 3);
}
