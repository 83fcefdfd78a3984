// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each request does, between two runs.

use super::handle::Answer;
use super::request::{Request, StatsFormat};
use super::worker::Control;
use crate::device::Device;
use crate::manager::Manager;
use freeport_ir::Program;
use serde_json::{Value, json};

/// Elements of the largest variable whose values an answer shows.
const MOST_VALUES: u64 = 1_024;

impl Control {
    /// Carries out a request.
    pub fn execute<D: Device>(&mut self, manager: &mut Manager<D>, request: Request) -> Answer {
        let failed = |error: crate::manager::ManagerError| error.to_string();
        match request {
            Request::Call(call) => manager.call(&call).map_err(failed),
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
                let statistics = manager.statistics();
                Ok(match format {
                    StatsFormat::Json => statistics.json(),
                    StatsFormat::Text => statistics.text().into(),
                    StatsFormat::Prometheus => statistics.prometheus().into(),
                })
            }
            Request::Told { since } => Ok(self.told.since(since)),
            Request::Resume { instance } => self.resume(manager, instance.as_deref()),
            Request::Init(values) => {
                let results = manager.set_initial(&values.to_string()).map_err(failed)?;
                let result =
                    |(path, value): (String, Value)| json!({"path": path, "result": value});
                Ok(results.into_iter().map(result).collect())
            }
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
                    return Err(format!("{instance} does not rest at a breakpoint"));
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
