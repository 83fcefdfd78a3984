// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Execution of requests, between two runs.

use super::handle::{Answer, Progress};
use super::load::Loaded;
use super::request::{Request, StatsFormat};
use super::work::Work;
use super::worker::{Control, JoinedPorts};
use crate::device::Device;
use crate::steering::{Initial, Manager};
use freeport_ir::Program;
use serde_json::{Value, json};
use std::time::Instant;

/// Maximum number of elements of a variable whose values an answer shows.
const MOST_VALUES: u64 = 1_024;

impl Control {
    /// Executes a request. Work that can be done in pieces stops at most one step after `until`.
    pub fn execute(
        &mut self,
        manager: &mut Manager<Box<dyn Device>>,
        ports: &mut JoinedPorts,
        work: Work,
        until: Instant,
    ) -> Progress {
        match work {
            Work::Request(Request::Init(values)) => match Initial::of_value(values) {
                Ok(initial) => proceed_with(manager, Box::new(initial), until),
                Err(error) => Progress::Done(Err(error.to_string())),
            },
            Work::Initial(initial) => proceed_with(manager, initial, until),
            Work::Request(request) => Progress::Done(self.carry_out(manager, ports, request)),
            Work::Replace(loaded, is_forced) => {
                Progress::Done(self.replace(manager, ports, *loaded, is_forced))
            }
        }
    }

    /// Continues with another program, which takes over all matching state of the old one.
    fn replace(
        &mut self,
        manager: &mut Manager<Box<dyn Device>>,
        ports: &mut JoinedPorts,
        loaded: Loaded,
        is_forced: bool,
    ) -> Answer {
        let Loaded { device, layouts, file } = loaded;
        let checked = ports.ports().check(device.program());
        checked.map_err(|error| error.to_string())?;
        self.keep_reported(manager);
        let device: Box<dyn Device> = device;
        let report = manager.replace(device, layouts, is_forced);
        let report = report.map_err(|error| error.to_string())?;
        self.keep_reported(manager);
        self.resting.clear();
        tracing::info!(file, "program replaced");
        if let Some(members) = self.about.as_object_mut() {
            members.insert("file".into(), file.into());
        }
        Ok(json!({"report": report.json(), "text": report.to_string()}))
    }

    /// Moves the output of probes into the log.
    pub fn keep_reported<D: Device>(&mut self, manager: &mut Manager<D>) {
        let reported = manager.device_mut().take_reported();
        let program = manager.device().program();
        for (instance, text) in &reported.lines {
            self.reported.push(&program.instance(*instance).name, text);
        }
        self.reported.lose(reported.lost);
    }

    fn carry_out<D: Device>(
        &mut self,
        manager: &mut Manager<D>,
        ports: &JoinedPorts,
        request: Request,
    ) -> Answer {
        let failed = |error: crate::steering::ManagerError| error.to_string();
        match request {
            Request::Call(call) => manager.call(&call).map_err(failed),
            Request::CallThatSucceeds(call) => manager.call_that_succeeds(&call).map_err(failed),
            Request::Signal { instance, command, words } => {
                let answer = manager.signal(&instance, command, &words).map_err(failed)?;
                Ok(json!(answer.params))
            }
            Request::Get { path } => manager.read(&path).map_err(failed),
            Request::Set { path, value } => {
                manager.write_value(&path, &value).map_err(failed)?;
                Ok(Value::Null)
            }
            Request::Variables => manager.values(MOST_VALUES).map_err(failed),
            Request::Methods => Ok(json!(manager.methods())),
            Request::Tables => Ok(manager.tables()),
            Request::Stats(format) => {
                let statistics = manager.statistics().with_lost(ports.lost());
                Ok(match format {
                    StatsFormat::Json => statistics.json(),
                    StatsFormat::Text => statistics.text().into(),
                    StatsFormat::Prometheus => statistics.prometheus().into(),
                })
            }
            Request::Reported { since } => Ok(self.reported.since(since)),
            Request::Resume { instance } => self.resume(manager, instance.as_deref()),
            Request::Init(_) => Err("initial values are applied in pieces".to_owned()),
            Request::Replace { .. } => Err("the program has not been loaded".to_owned()),
            Request::Status => Ok(self.status(manager.device().program())),
            Request::Stop => {
                self.is_to_stop = true;
                Ok(Value::Null)
            }
        }
    }

    fn resume<D: Device>(&mut self, manager: &mut Manager<D>, instance: Option<&str>) -> Answer {
        let name = |program: &Program, id| program.instance(id).name.clone();
        let resumed: Vec<_> = match instance {
            None => self.resting.iter().copied().collect(),
            Some(instance) => {
                let id = manager.instance(instance).map_err(|error| error.to_string())?;
                if !self.resting.contains(&id) {
                    return Err(format!("{instance} is not paused at a breakpoint"));
                }
                vec![id]
            }
        };
        for id in &resumed {
            self.resting.remove(id);
            manager.device_mut().resume(*id);
        }
        let program = manager.device().program();
        Ok(resumed.into_iter().map(|id| name(program, id)).collect())
    }

    fn status(&self, program: &Program) -> Value {
        let mut status = self.about.clone();
        let resting = self.resting.iter().map(|id| program.instance(*id).name.as_str());
        let resting: Vec<&str> = resting.collect();
        if let Some(members) = status.as_object_mut() {
            members.insert("uptime_seconds".into(), self.started.elapsed().as_secs_f64().into());
            members.insert("state".into(), self.state.into());
            members.insert("resting".into(), resting.into());
        }
        status
    }
}

/// Applies a piece of initial values.
fn proceed_with<D: Device>(
    manager: &mut Manager<D>,
    mut initial: Box<Initial>,
    until: Instant,
) -> Progress {
    let result = |(path, value): (String, Value)| json!({"path": path, "result": value});
    match manager.proceed_with(&mut initial, || Instant::now() > until) {
        Ok(Some(results)) => Progress::Done(Ok(results.into_iter().map(result).collect())),
        Ok(None) => Progress::Unfinished(Work::Initial(initial)),
        Err(error) => Progress::Done(Err(error.to_string())),
    }
}
