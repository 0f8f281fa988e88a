//! Golden tests whose results are passed on one by one, for the workbench.

use std::{sync::Arc, time::Instant};

use cog_host::settings::Settings;
use cog_json::{ToJson, Value, Writer};
use cog_module::Module;
use cog_run::Providers;
use cog_trust::repeat;
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc::Sender;

use super::{
    Bench, LastFailed,
    plan::Plan,
    report::{Attempt, CaseReport, INTERVAL, Verdict},
    runtime_with,
};
use crate::{args::TestArgs, error::CliError, output::Console};

/// Tests that are ready to run.
pub(in crate::commands) struct LiveTests<'a> {
    bench: Bench<'a>,
    plan: Plan,
}

impl<'a> LiveTests<'a> {
    /// Prepares the tests of a module, all or those with these names. Starts the MCP servers that they call.
    ///
    /// # Errors
    /// The provider is unknown, its settings are invalid, or an MCP server cannot be started.
    pub(in crate::commands) fn new(
        args: &'a TestArgs,
        settings: &'a Settings,
        module: Arc<Module>,
        names: &[String],
        console: &'a Console,
    ) -> Result<Self, CliError> {
        let bench = Bench {
            args,
            judge: None,
            settings,
            budget: None,
            last: LastFailed::read(settings.directories.state.as_deref()),
            runtime: runtime_with(Providers::offline(), settings)?,
            console,
        };
        let plan = bench.plan_of(module.manifest.name.clone(), module, names)?;
        Ok(Self { bench, plan })
    }

    /// Runs the cases, and sends a line of JSON for each when it has ended, and one for all. Stops when nobody reads the lines.
    pub(in crate::commands) async fn run(self, lines: &Sender<String>) {
        let Self { bench, plan } = self;
        let problems = plan.suites().filter_map(|(_, module)| module.loaded.as_ref().ok());
        for problem in problems.flat_map(|loaded| &loaded.problems) {
            let line = LiveCase::of(CaseReport::unreadable(problem)).to_json();
            if lines.send(line).await.is_err() {
                return;
            }
        }
        let mut ended: Vec<(usize, Attempt)> = Vec::new();
        {
            let runs = plan.jobs(1).enumerate().map(|(index, job)| {
                let bench = &bench;
                async move {
                    let started = Instant::now();
                    let (attempt, envelope) = bench.attempt_with_envelope(&job).await;
                    let case = LiveCase {
                        name: job.case.name.clone(),
                        expected: job.case.expected_document(job.module),
                        seconds: started.elapsed().as_secs_f64(),
                        envelope,
                        attempt,
                    };
                    (index, case)
                }
            });
            let mut running = stream::iter(runs).buffer_unordered(bench.args.jobs as usize);
            while let Some((index, case)) = running.next().await {
                let line = case.to_json();
                ended.push((index, case.attempt));
                if lines.send(line).await.is_err() {
                    return;
                }
            }
        }
        // The report distributes the attempts by their place.
        ended.sort_by_key(|(index, _)| *index);
        let modules = plan.modules();
        let report = bench.report(plan, ended.into_iter().map(|(_, attempt)| attempt).collect());
        if let Some(last) = bench.last.clone() {
            last.update(&modules, &report, bench.console);
        }
        let rate = repeat::pass_rate(&report.rates(), INTERVAL);
        let summary = Summary {
            counts: [
                ("passed", report.count("passed")),
                ("failed", report.count("failed")),
                ("errors", report.count("error")),
                ("contract_only", report.count("contract only")),
                ("not_judged", report.count("not judged")),
            ],
            interval: rate.map(|rate| [rate.interval.low, rate.interval.high]),
        };
        let _ = lines.send(summary.to_json()).await;
    }
}

/// A case that has ended.
struct LiveCase {
    name: String,
    attempt: Attempt,
    envelope: Option<Value>,
    expected: Option<Value>,
    seconds: f64,
}

impl LiveCase {
    /// Returns the case of a file that cannot be read.
    fn of(mut report: CaseReport) -> Self {
        let attempt = report.attempts.pop().unwrap_or_else(|| Attempt::new(Verdict::ContractOnly));
        Self { name: report.name, attempt, envelope: None, expected: None, seconds: 0.0 }
    }
}

/// Written by hand: the verdict is written in two ways, for programs and for people.
impl ToJson for LiveCase {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Attempt { verdict, figures, .. } = &self.attempt;
        w.object(|w| {
            w.key("case").object(|w| {
                w.field("name", &self.name);
                w.field("verdict", &verdict.as_str().replace(' ', "_"));
                w.field("passed", &verdict.is_passed());
                w.field("failures", verdict.mismatches());
                w.optional("envelope", &self.envelope);
                w.optional("expected", &self.expected);
                w.field("seconds", &self.seconds);
                w.optional("cost", &figures.as_ref().and_then(|figures| figures.cost()));
            });
        });
    }
}

/// The results of all cases.
struct Summary {
    counts: [(&'static str, usize); 5],
    /// The exact interval of the rate of right answers; none if no case was answered.
    interval: Option<[f64; 2]>,
}

/// Written by hand: each count is a member.
impl ToJson for Summary {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.key("summary").object(|w| {
                for (name, count) in &self.counts {
                    w.field(name, &(*count as u64));
                }
                w.field("interval", &self.interval);
            });
        });
    }
}
