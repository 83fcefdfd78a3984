// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A queueing model of clients that call one after the other: a closed network of queues with a
//! class of clients for each alternative.
//!
//! Approximate mean value analysis (Schweitzer, 1979): a call finds the queues that all other
//! clients make on average, and its own class without itself. A resource with several servers is
//! one that is as fast as all of them, and the time of a call on an idle machine is kept (Seidmann
//! et al., 1987). Service times hardly vary: the call in service has half of its time left. Links
//! work on parts of one transfer at the same time, so that a call waits for the slowest of them
//! only, and its time is that on an idle machine and its waits, and not the sum of its times at all
//! resources.

/// Clients that use one alternative.
#[derive(Clone, PartialEq, Debug)]
pub struct Class {
    /// Calls in flight.
    pub calls: f64,
    /// Time of a call on an idle machine in microseconds.
    pub latency: f64,
    /// Use of resources by a call.
    pub demands: Vec<Demand>,
}

/// Use of a resource by a call.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Demand {
    /// The resource.
    pub name: &'static str,
    /// Time in microseconds for which the call keeps all of it busy.
    pub busy: f64,
    /// Time in microseconds that the call spends there without waiting: `busy` times the number of
    /// calls that fit at once.
    pub stay: f64,
    /// Whether the resource serves whole calls, as cores do, and not parts of transfers, as links
    /// do.
    pub is_whole: bool,
}

/// Calls of a class.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Calls {
    /// Millions per second.
    pub rate: f64,
    /// Mean time of a call in microseconds.
    pub latency: f64,
}

/// Most repetitions, and the change at which they end.
const STEPS_MAX: usize = 2000;
const ENOUGH: f64 = 1e-6;

/// Returns the rates and times of all classes.
pub fn closed(classes: &[Class]) -> Vec<Calls> {
    let names = resources(classes);
    let demand = |class: &Class, name: &str| {
        let known = class.demands.iter().find(|demand| demand.name == name);
        known.copied().unwrap_or_default()
    };
    let demands: Vec<Vec<Demand>> = classes
        .iter()
        .map(|class| names.iter().map(|name| demand(class, name)).collect())
        .collect();
    let mut network = Network {
        present: vec![vec![0.0; names.len()]; classes.len()],
        calls: vec![Calls::default(); classes.len()],
        demands,
    };
    for _ in 0..STEPS_MAX {
        if network.step(classes) < ENOUGH {
            break;
        }
    }
    network.within_bounds()
}

/// Calls of each class, and how many of them are at each resource.
struct Network {
    demands: Vec<Vec<Demand>>,
    present: Vec<Vec<f64>>,
    calls: Vec<Calls>,
}

impl Network {
    /// Returns the calls; they are slowed down where the approximation has more than a resource.
    fn within_bounds(self) -> Vec<Calls> {
        let resources = self.demands.first().map_or(0, Vec::len);
        let most = (0..resources).map(|at| self.busy(at)).fold(1.0, f64::max);
        let of = |Calls { rate, latency }| Calls { rate: rate / most, latency: latency * most };
        self.calls.into_iter().map(of).collect()
    }

    /// Returns the share of time for which a resource is busy.
    fn busy(&self, at: usize) -> f64 {
        let classes = self.calls.iter().zip(&self.demands);
        classes.map(|(calls, demands)| calls.rate * demands[at].busy).sum()
    }

    /// Comes closer to the solution, and returns the greatest change as a share.
    fn step(&mut self, classes: &[Class]) -> f64 {
        let resources = self.demands.first().map_or(0, Vec::len);
        let at_all = |at: usize| {
            let present: f64 = self.present.iter().map(|class| class[at]).sum();
            (present, self.busy(at))
        };
        let all: Vec<(f64, f64)> = (0..resources).map(at_all).collect();
        let mut change = 0.0_f64;
        for (number, class) in classes.iter().enumerate().filter(|(_, class)| class.calls > 0.0) {
            let (demands, present) = (&self.demands[number], &mut self.present[number]);
            let wait = |at: usize| {
                let Demand { busy, stay, .. } = demands[at];
                if busy == 0.0 {
                    return 0.0;
                }
                // The call that is served has half of its time left.
                let others = all[at].0 - present[at] / class.calls.max(1.0);
                let ahead = others - (stay / busy - 1.0) - 0.5 * all[at].1.min(1.0);
                busy * ahead.max(0.0)
            };
            let waits: Vec<f64> = (0..resources).map(wait).collect();
            let mut latency = class.latency;
            let mut slowest = 0.0_f64;
            for (wait, demand) in waits.iter().zip(demands) {
                match demand.is_whole {
                    true => latency += wait,
                    false => slowest = slowest.max(*wait),
                }
            }
            latency += slowest;
            let rate = class.calls / latency;
            change = change.max((rate - self.calls[number].rate).abs() / rate);
            self.calls[number] = Calls { rate, latency };
            for at in 0..resources {
                let now = rate * (demands[at].stay + waits[at]);
                // Half of the way keeps the solution from swinging.
                change = change.max((now - present[at]).abs() / class.calls);
                present[at] = 0.5 * (present[at] + now);
            }
        }
        change
    }
}

fn resources(classes: &[Class]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = vec![];
    for Demand { name, .. } in classes.iter().flat_map(|class| &class.demands) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names
}
