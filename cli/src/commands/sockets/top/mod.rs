// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets top`: shows the traffic of accelerated connections live.

mod screen;
mod terminal;

use clap::{Args, ValueEnum};
use freeport_monitor::Control;
use freeport_monitor::activity::{Activity, Costs, Key, Snapshot};
use screen::View;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use terminal::{Happened, Terminal};

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets top\n  \
                  freeport sockets top --once --sort saved\n  \
                  freeport sockets top --json -n 10 -d 0.5 > activity.json\n\n\
                  Keys: b sorts by bytes, m by messages, d by doorbells, s by saved processor \
                  time; c shows or hides connections, space refreshes, q quits. Values marked est. \
                  are estimates from counters of the programs: see docs/guide/operating.md.")]
pub struct Arguments {
    /// Interval between refreshes
    #[arg(short, long, value_name = "SECONDS", default_value = "2", value_parser = delay)]
    delay: Duration,
    /// Exit after this number of refreshes
    #[arg(short = 'n', long, value_name = "NUMBER",
          value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Refresh once, after one interval, and exit
    #[arg(long, conflicts_with = "iterations")]
    once: bool,
    /// Sort by this value, largest first
    #[arg(long, value_enum, default_value_t = Sort::Bytes)]
    sort: Sort,
    /// Show programs without their connections
    #[arg(long)]
    programs: bool,
    /// Print one JSON object per refresh
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Sort {
    Bytes,
    Messages,
    Doorbells,
    Saved,
}

fn delay(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    let is_good = (0.05..=86_400.0).contains(&seconds);
    is_good
        .then(|| Duration::from_secs_f64(seconds))
        .ok_or_else(|| "expected 0.05 to 86400".to_owned())
}

/// Shows the activity until a key or signal ends it, or for the given number of refreshes.
pub fn run(arguments: &Arguments, control: &Control) -> anyhow::Result<()> {
    let costs = Costs::measured();
    let mut before = look(control)?;
    let terminal = if arguments.json { None } else { Terminal::take()? };
    let mut shown = Shown {
        view: arguments.view(),
        activity: Activity::between(&before, &before, &costs),
        terminal,
    };
    if shown.terminal.is_some() {
        // There are no rates yet, but the programs are known.
        shown.show()?;
    }
    let mut left = if arguments.once { Some(1) } else { arguments.iterations };
    while left != Some(0) && shown.wait(arguments.delay)? {
        left = left.map(|left| left - 1);
        let now = look(control)?;
        shown.activity = Activity::between(&before, &now, &costs);
        match arguments.json {
            true => println!("{}", shown.reported(&costs)),
            false => shown.show()?,
        }
        before = now;
    }
    Ok(())
}

fn look(control: &Control) -> anyhow::Result<Snapshot> {
    let list = control.list()?;
    Ok(Snapshot::of(&list, Instant::now()))
}

impl Arguments {
    fn view(&self) -> View {
        let key = match self.sort {
            Sort::Bytes => Key::Bytes,
            Sort::Messages => Key::Messages,
            Sort::Doorbells => Key::Doorbells,
            Sort::Saved => Key::Saved,
        };
        View { key, has_connections: !self.programs }
    }
}

/// The state of the display; `terminal` is `None` if standard output is not a terminal.
struct Shown {
    view: View,
    activity: Activity,
    terminal: Option<Terminal>,
}

impl Shown {
    fn show(&mut self) -> anyhow::Result<()> {
        self.activity.sort(self.view.key);
        let (lines, heads) = screen::lines(&self.activity, self.view);
        match &self.terminal {
            Some(terminal) => terminal.show(&lines, heads)?,
            None => println!("{}\n", lines.join("\n")),
        }
        Ok(())
    }

    fn reported(&mut self, costs: &Costs) -> Value {
        self.activity.sort(self.view.key);
        let mut reported = self.activity.to_json();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        reported["unix_seconds"] = now.as_secs_f64().into();
        reported["costs"] = costs.to_json();
        reported
    }

    /// Waits for an interval and handles keys. False: the command is to end.
    fn wait(&mut self, delay: Duration) -> anyhow::Result<bool> {
        let until = Instant::now() + delay;
        loop {
            let Some(terminal) = &self.terminal else {
                thread::sleep(delay);
                return Ok(true);
            };
            match terminal.wait(until)? {
                Happened::Nothing | Happened::Key(b' ') => return Ok(true),
                Happened::Ends | Happened::Key(b'q' | b'Q') => return Ok(false),
                Happened::Resized => self.show()?,
                Happened::Key(key) => {
                    self.view = self.view.after(key);
                    self.show()?;
                }
            }
        }
    }
}
