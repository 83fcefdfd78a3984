// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A rule inserted under load: how long the call takes, when it takes effect, and how it affects
//! the traffic.

use super::site::{App, BULK, HTTP, LATE_HTTP, Site, Way, rule};
use crate::harness::report::{Kind, Line, Traffic};
use crate::network::bulk::{self, Direction, Transfer};
use crate::network::http::{Connection, Connections, Load};
use crate::network::{Launch, PATIENCE, until};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Length of a step.
pub const STEP: Duration = Duration::from_millis(100);
/// Number of steps before and after the rule.
const STEPS: usize = 15;
/// Time limit of an attempt to reach a service that is not allowed.
const ATTEMPT: Duration = Duration::from_millis(20);

/// Results of inserting a rule under load.
pub struct Live {
    /// Duration of the call, as seen by the caller.
    pub call: Duration,
    /// Time from the start of the call to the first answer of the service it allows.
    pub first_answer: Duration,
    /// For each step: millions of bytes per second of a transfer, and answered requests per second.
    pub steps: Vec<(f64, f64)>,
    /// Step in which the rule was inserted.
    pub at: usize,
}

impl Live {
    /// Measures the firewall.
    pub fn measure(launch: &Launch) -> Result<Self> {
        let site = Site::new(App::Firewall, Way::Freeport, launch)?;
        let transfer = bulk::start(&site.client, site.at(BULK), Direction::Up, u64::MAX)?;
        until("the transfer flows", || (transfer.bytes() > 1_000_000).then_some(()))?;
        let is_to_stop = AtomicBool::new(false);
        let load = Load {
            host: &site.client,
            server: site.at(HTTP),
            path: "/bytes/1000",
            connections: Connections::Kept,
            clients: 2,
            requests: u64::MAX,
            limit: PATIENCE,
        };
        let begin = Instant::now();
        let (seen, outcome) = std::thread::scope(|scope| {
            let load = scope.spawn(|| load.run(&is_to_stop));
            let seen = watch(&site, &transfer, begin);
            is_to_stop.store(true, Ordering::Relaxed);
            (seen, load.join())
        });
        let seen = seen?;
        let outcome = outcome.ok().context("the load panicked")??;
        ensure!(outcome.failed() == 0, "requests fail: {:?}", outcome.failures);
        transfer.stop()?;
        let steps = seen.bytes.windows(2).map(|pair| {
            let ((from, before), (to, after)) = (pair[0], pair[1]);
            let seconds = (to - from).as_secs_f64();
            let answered = outcome.answered.iter().filter(|at| (from..to).contains(at)).count();
            ((after - before) as f64 / seconds / 1e6, answered as f64 / seconds)
        });
        let at = seen.bytes.iter().filter(|(time, _)| *time <= seen.called).count();
        Ok(Self {
            call: seen.call,
            first_answer: seen.first_answer,
            steps: steps.collect(),
            at: at.saturating_sub(1),
        })
    }

    /// Formats the results as text.
    pub fn text(&self) -> String {
        let micro = |time: Duration| time.as_secs_f64() * 1e6;
        let mut text = format!(
            "firewall, a rule inserted under load, measured: the call took {:.0} us, the first \
             answer it allowed came {:.0} us after its beginning\n  \
             in steps of 100 ms, the rule in the one with *\n  MB/s      ",
            micro(self.call),
            micro(self.first_answer)
        );
        let row = |value: &dyn Fn(&(f64, f64)) -> f64| -> String {
            let steps = self.steps.iter().enumerate().map(|(at, step)| {
                let mark = if at == self.at { "*" } else { "" };
                format!(" {mark}{:.0}", value(step))
            });
            steps.collect()
        };
        text += &row(&|step| step.0);
        text += "\n  requests/s";
        text += &(row(&|step| step.1) + "\n\n");
        text
    }

    /// Returns the results as JSON lines.
    pub fn lines(&self) -> Vec<Line> {
        let line = |metric: &str, unit: &str, value: f64| Line {
            bench: "apps".into(),
            case: "firewall-live-rule".into(),
            traffic: Traffic::Frames { frame_bytes: super::FRAME_BYTES },
            metric: metric.into(),
            unit: unit.into(),
            kind: Kind::Measured,
            value,
            p50: value,
            p99: value,
            peer: None,
            peer_value: None,
            ratio: None,
            published: None,
            note: None,
        };
        let micro = |time: Duration| (time.as_secs_f64() * 1e6).round();
        vec![
            line("call", "us", micro(self.call)),
            line("first_answer", "us", micro(self.first_answer)),
        ]
    }

    /// Returns the steps as CSV.
    pub fn csv(&self) -> String {
        let mut text = String::from("step,begin_ms,tcp_mb_per_s,http_requests_per_s,has_rule\n");
        for (at, (bytes, requests)) in self.steps.iter().enumerate() {
            let begin = at as u128 * STEP.as_millis();
            let has_rule = u8::from(at >= self.at);
            text += &format!("{at},{begin},{bytes:.1},{requests:.0},{has_rule}\n");
        }
        text
    }
}

/// Observations; times are counted from the start.
struct Seen {
    /// Times, and the number of bytes by then.
    bytes: Vec<(Duration, u64)>,
    called: Duration,
    call: Duration,
    first_answer: Duration,
}

/// Observes a transfer for all steps, and inserts the rule in the middle.
fn watch(site: &Site, transfer: &Transfer, begin: Instant) -> Result<Seen> {
    let mut client = site.programs.first().context("the firewall is not running")?.connect()?;
    let request = json!({"do": "call", "call": rule(6, LATE_HTTP)});
    let answers = || {
        let connection = Connection::open(&site.client, site.at(LATE_HTTP), ATTEMPT);
        connection.and_then(|it| it.last("/")).is_ok()
    };
    ensure!(!answers(), "a service answers before it is allowed");
    std::thread::scope(|scope| {
        let steps = scope.spawn(|| {
            let steps = 0..=2 * STEPS as u32;
            steps
                .map(|step| {
                    let due = STEP * step;
                    std::thread::sleep(due.saturating_sub(begin.elapsed()));
                    (begin.elapsed(), transfer.bytes())
                })
                .collect::<Vec<_>>()
        });
        let due = STEP * STEPS as u32 + STEP / 2;
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
        let called = begin.elapsed();
        let status = client.ask(&request)?;
        let call = begin.elapsed() - called;
        ensure!(status == 0, "the rule cannot be inserted: status {status}");
        until("the service answers", || answers().then_some(()))?;
        let first_answer = begin.elapsed() - called;
        let bytes = steps.join().ok().context("the watcher panicked")?;
        ensure!(!transfer.has_ended(), "the transfer ended");
        Ok(Seen { bytes, called, call, first_answer })
    })
}
