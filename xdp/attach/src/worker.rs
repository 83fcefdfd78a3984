// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a program until it is stopped, and carries out requests between two rounds. When nothing
//! moves it polls for a moment, because on a busy link the next packet arrives sooner than a sleep
//! can end; then it sleeps.

use crate::request::short;
use crate::{Error, Part, Request, Running, Statistics};
use freeport_ebpf::object::{MapDefinition, Object};
use freeport_runtime::server::{Answer, Jobs, Progress, StatsFormat};
use freeport_xdp::{Contents, Dump, EntryName};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Longest time for which requests may delay packets, at a time.
const SHARE: Duration = Duration::from_micros(100);
/// Time for which the worker polls before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// A running program with its clients.
pub struct Worker {
    jobs: Jobs<Request>,
    control: Control,
}

/// State that requests read and change.
struct Control {
    running: Box<dyn Running>,
    object: Object,
    about: Value,
    started: Instant,
    has_moved: bool,
    is_to_stop: bool,
}

impl Worker {
    /// Creates a worker for a program of an object; `about` is the beginning of its status.
    pub fn new(
        running: Box<dyn Running>,
        object: Object,
        jobs: Jobs<Request>,
        about: Value,
    ) -> Self {
        let started = Instant::now();
        let control =
            Control { running, object, about, started, has_moved: false, is_to_stop: false };
        Self { jobs, control }
    }

    /// Runs until the program is stopped, or no further packet can arrive.
    ///
    /// # Errors
    /// The program cannot continue.
    pub fn run(&mut self) -> Result<(), Error> {
        let Self { jobs, control } = self;
        let mut moved_at = Instant::now();
        while !control.is_to_stop && !control.running.has_ended() {
            control.has_moved = control.running.round()?;
            if control.has_moved {
                moved_at = Instant::now();
            }
            jobs.serve(SHARE, |request, _| Progress::Done(control.carry_out(request)));
            match moved_at.elapsed() < SPIN {
                true => std::hint::spin_loop(),
                false if control.is_to_stop => {}
                false => control.running.wait(jobs.wake())?,
            }
        }
        control.running.finish()
    }

    /// Returns the counters.
    ///
    /// # Errors
    /// The target cannot report them.
    pub fn statistics(&mut self) -> Result<Statistics, Error> {
        self.control.statistics()
    }
}

impl Control {
    fn statistics(&mut self) -> Result<Statistics, Error> {
        self.running.statistics(&self.object)
    }

    fn carry_out(&mut self, request: Request) -> Answer {
        let reported = |error: Error| error.to_string();
        match request {
            Request::Maps(format) => Ok(self.maps(format)),
            Request::Dump { map, format } => self.dump(&map, format),
            Request::Lookup { entry, format } => self.lookup(&entry, format),
            Request::Change(setting) => {
                let changed = setting.apply(&self.object, self.running.target_mut());
                self.running.maps_changed();
                changed.map(|()| Value::Null).map_err(short)
            }
            Request::Stats(format) => {
                let statistics = self.statistics().map_err(reported)?;
                Ok(match format {
                    StatsFormat::Json => statistics.as_json(),
                    StatsFormat::Text => statistics.to_string().into(),
                    StatsFormat::Prometheus => statistics.prometheus().into(),
                })
            }
            Request::Status => Ok(self.status()),
            Request::Stop => {
                self.is_to_stop = true;
                Ok(Value::Null)
            }
        }
    }

    fn status(&self) -> Value {
        let mut status = self.about.clone();
        if let Some(members) = status.as_object_mut() {
            members.insert("uptime_seconds".into(), self.started.elapsed().as_secs_f64().into());
            let state = if self.has_moved { "running" } else { "idle" };
            members.insert("state".into(), state.into());
        }
        status
    }

    fn maps(&self, format: StatsFormat) -> Value {
        let maps = &self.object.maps;
        if format == StatsFormat::Json {
            let row = |map: &MapDefinition| {
                json!({
                    "name": map.name,
                    "type": map.kind.to_string(),
                    "bytes_key": map.key_size,
                    "bytes_value": map.value_size,
                    "max_entries": map.max_entries,
                })
            };
            return maps.iter().map(row).collect();
        }
        let mut text = String::new();
        for map in maps {
            let MapDefinition { name, kind, key_size, value_size, max_entries, .. } = map;
            let kind = kind.to_string();
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{name:<20} {kind:<16} key {key_size} B  value {value_size} B  max {max_entries}"
            );
        }
        text.into()
    }

    fn dump(&mut self, name: &str, format: StatsFormat) -> Answer {
        let Some(definition) = self.object.maps.iter().find(|map| map.name == name) else {
            let names: Vec<&str> = self.object.maps.iter().map(|map| map.name.as_str()).collect();
            let names = names.join(", ");
            return Err(short(format!("there is no map `{name}`; there are: {names}")));
        };
        let parts = self.running.contents(name).map_err(|error| error.to_string())?;
        let dump = |part| Dump { definition, contents: part };
        if format == StatsFormat::Json {
            return Ok(match parts.as_slice() {
                [Part { processor: None, contents }] => dump(contents).as_json(),
                parts => parts
                    .iter()
                    .map(|it| json!({ "cpu": it.processor, "map": dump(&it.contents).as_json() }))
                    .collect(),
            });
        }
        let mut text = String::new();
        for Part { processor, contents } in &parts {
            if let Some(processor) = processor {
                text += &format!("CPU {processor}\n");
            }
            text += &dump(contents).to_string();
        }
        Ok(text.into())
    }

    fn lookup(&mut self, entry: &EntryName, format: StatsFormat) -> Answer {
        let target = self.running.target_mut();
        let value = entry.lookup(&self.object, target).map_err(short)?;
        let definition = entry.map(&self.object).map_err(short)?;
        let value = value.ok_or_else(|| format!("map `{}` has no such entry", definition.name))?;
        let contents = [(entry.key().to_vec(), value)].into();
        let contents = Contents::Entries(contents);
        let dump = Dump { definition, contents: &contents };
        if format == StatsFormat::Json {
            return Ok(dump.as_json()[0].take());
        }
        let text = dump.to_string();
        // Drops the last line, which counts entries.
        Ok(text.rsplit_once("Found").map_or("", |(entry, _)| entry).into())
    }
}
