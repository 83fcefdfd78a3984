// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading functions from files.

use super::{Action, Alternative, Constraints, Function, Memory, Repeated, is_possible};
use crate::file::{Fields, FileError, Reader};
use freeport_plan_model::route::Request;
use freeport_plan_model::{Operation, Path, Side};

/// Largest size of a payload in bytes.
const BYTES_MAX: u64 = 1 << 30;
/// Largest size of a memory in bytes.
const MEMORY_MAX: u64 = 1 << 50;
/// Most repetitions of a step.
const TIMES_MAX: f64 = 1024.0;
/// Longest work in nanoseconds.
const WORK_MAX: f64 = 1e9;
/// Longest payload of a message in bytes: the largest packet of RDMA. A plan refuses messages that
/// are longer than a packet of its device.
const MESSAGE_MAX: u64 = 4096;
/// Most alternatives of a function, most steps of a sequence, and most memories of an alternative.
const PARTS_MAX: usize = 32;
/// Range of addresses without another one, in bytes: that of the study.
const RANGE: u64 = 10_000_000_000;

/// Fields of steps, by what they do.
const OF_REQUESTS: [&str; 7] = ["do", "path", "bytes", "times", "batch", "range", "compressed"];
const OF_MESSAGES: [&str; 5] = ["do", "path", "bytes", "times", "compressed"];
const OF_WORK: [&str; 5] = ["do", "side", "ns", "times", "compressed"];

impl Function {
    /// Reads a function from the text of a file, whose name appears in errors.
    ///
    /// # Errors
    /// The text is not a complete and consistent function.
    pub fn parse(file: &str, text: &str) -> Result<Self, FileError> {
        Reader::new(file, text).read(function)
    }
}

fn function(root: &Fields<'_>) -> Result<Function, FileError> {
    root.only(&[
        "name",
        "service",
        "bytes",
        "ratio",
        "criteria",
        "tolerance",
        "clients",
        "in_flight",
        "offered",
        "notes",
        "constraints",
        "alternatives",
    ])?;
    let name = root.text("name")?.to_owned();
    let service = match root.text_if_there("service")? {
        None => None,
        Some(_) => Some(root.parsed("service")?),
    };
    let bytes = root.whole("bytes", 1..=BYTES_MAX)?;
    let ratio = root.number_if_there("ratio", 0.01..=1.0)?.unwrap_or(1.0);
    let mut criteria = vec![];
    for name in root.texts("criteria")? {
        let criterion = name.parse().map_err(|problem: String| root.error("criteria", problem))?;
        if criteria.contains(&criterion) {
            return Err(root.error("criteria", format!("{name} is there twice")));
        }
        criteria.push(criterion);
    }
    if criteria.is_empty() {
        return Err(root.error("criteria", "it has to name at least one criterion"));
    }
    let tolerance = root.number_if_there("tolerance", 0.0..=0.9)?.unwrap_or(0.1);
    let clients = root.whole_if_there("clients", 1..=4096)?.map(|clients| clients as u32);
    let in_flight = root.whole_if_there("in_flight", 1..=1024)?.unwrap_or(1) as u32;
    let offered = root.number_if_there("offered", 1e-6..=1e6)?;
    let notes = root.texts("notes")?.into_iter().map(str::to_owned).collect();
    let constraints = match root.table_if_there("constraints")? {
        None => Constraints::default(),
        Some(fields) => constraints(&fields)?,
    };
    let mut alternatives: Vec<Alternative> = vec![];
    for fields in root.tables("alternatives")? {
        let alternative = alternative(&fields)?;
        if alternatives.iter().any(|other| other.name == alternative.name) {
            let problem = format!("another alternative is named {}", alternative.name);
            return Err(fields.error("name", problem));
        }
        check_memory(&fields, &alternatives, &alternative)?;
        alternatives.push(alternative);
    }
    if !(1..=PARTS_MAX).contains(&alternatives.len()) {
        let problem = format!("a function has 1 to {PARTS_MAX} alternatives");
        return Err(root.error("alternatives", problem));
    }
    Ok(Function {
        name,
        bytes,
        ratio,
        criteria,
        tolerance,
        clients,
        in_flight,
        offered,
        constraints,
        alternatives,
        notes,
        service,
    })
}

fn constraints(fields: &Fields<'_>) -> Result<Constraints, FileError> {
    fields.only(&["host_cores", "host_memory", "soc_memory", "latency_us"])?;
    Ok(Constraints {
        host_cores: fields.number_if_there("host_cores", 0.0..=4096.0)?,
        host_memory: fields.whole_if_there("host_memory", 0..=MEMORY_MAX)?,
        soc_memory: fields.whole_if_there("soc_memory", 0..=MEMORY_MAX)?,
        latency_us: fields.number_if_there("latency_us", 0.001..=1e9)?,
    })
}

fn alternative(fields: &Fields<'_>) -> Result<Alternative, FileError> {
    fields.only(&["name", "about", "covers", "steps", "miss", "memory"])?;
    let covers = fields.number_if_there("covers", 0.0..=1.0)?.unwrap_or(1.0);
    let steps = sequence(fields, "steps")?;
    let miss = sequence(fields, "miss")?;
    if covers == 0.0 {
        return Err(fields.error("covers", "0 is no share of calls; leave the alternative out"));
    }
    if covers < 1.0 && miss.is_empty() {
        return Err(fields.error("miss", "it is missing: calls that are not covered need steps"));
    }
    if covers == 1.0 && !miss.is_empty() {
        return Err(fields.error("miss", "it is never used, because `covers` is 1"));
    }
    if steps.is_empty() {
        return Err(fields.error("steps", "it is missing: an alternative needs steps"));
    }
    for (key, steps) in [("steps", &steps), ("miss", &miss)] {
        if !steps.is_empty() && !steps.iter().any(|step| step.action.path().is_some()) {
            return Err(fields.error(key, "no step takes a path, so that nothing is to be planned"));
        }
    }
    let memory = memories(fields)?;
    Ok(Alternative {
        name: fields.text("name")?.to_owned(),
        about: fields.text_if_there("about")?.unwrap_or_default().to_owned(),
        steps,
        covers,
        miss,
        memory,
    })
}

fn memories(fields: &Fields<'_>) -> Result<Vec<Memory>, FileError> {
    let tables = fields.tables("memory")?;
    if tables.len() > PARTS_MAX {
        let problem = format!("an alternative has at most {PARTS_MAX} memories");
        return Err(fields.error("memory", problem));
    }
    let mut all: Vec<Memory> = vec![];
    for fields in tables {
        let memory = memory(&fields)?;
        if all.iter().any(|other| (other.side, &other.name) == (memory.side, &memory.name)) {
            return Err(fields.error("name", format!("{} is there twice", memory.name)));
        }
        all.push(memory);
    }
    Ok(all)
}

fn memory(fields: &Fields<'_>) -> Result<Memory, FileError> {
    fields.only(&["side", "name", "bytes"])?;
    Ok(Memory {
        side: side(fields)?,
        name: fields.text("name")?.to_owned(),
        bytes: fields.whole("bytes", 0..=MEMORY_MAX)?,
    })
}

/// Refuses memory that has another size in an earlier alternative, which shares it.
fn check_memory(
    fields: &Fields<'_>,
    earlier: &[Alternative],
    alternative: &Alternative,
) -> Result<(), FileError> {
    for memory in &alternative.memory {
        let mut known = earlier.iter().flat_map(|it| &it.memory);
        let is_same = |it: &&Memory| it.side == memory.side && it.name == memory.name;
        if let Some(other) = known.find(|it| is_same(it) && it.bytes != memory.bytes) {
            let Memory { name, bytes, .. } = other;
            let problem = format!("{name} has {bytes} B elsewhere; shared memory has one size");
            return Err(fields.error("memory", problem));
        }
    }
    Ok(())
}

fn side(fields: &Fields<'_>) -> Result<Side, FileError> {
    match fields.text("side")? {
        "host" => Ok(Side::Host),
        "soc" => Ok(Side::Soc),
        other => Err(fields.error("side", format!("{other} is not host or soc"))),
    }
}

fn sequence(fields: &Fields<'_>, key: &str) -> Result<Vec<Repeated>, FileError> {
    let steps = fields.tables(key)?;
    if steps.len() > PARTS_MAX {
        return Err(fields.error(key, format!("a sequence has at most {PARTS_MAX} steps")));
    }
    steps.iter().map(step).collect()
}

fn step(fields: &Fields<'_>) -> Result<Repeated, FileError> {
    let action = match fields.text("do")? {
        "message" => {
            let (path, bytes) = message(fields)?;
            Action::Message { path, bytes }
        }
        "answer" => {
            let (path, bytes) = message(fields)?;
            Action::Answer { path, bytes }
        }
        "work" => {
            fields.only(&OF_WORK)?;
            let side = match fields.text("side")? {
                "client" => Side::Client,
                "peer" => Side::Peer,
                _ => side(fields)?,
            };
            Action::Work { side, ns: fields.number("ns", 0.0..=WORK_MAX)? }
        }
        other => match other.parse::<Operation>() {
            Ok(operation) => Action::Request(request(fields, operation)?),
            Err(_) => {
                let problem = format!("{other} is not read, write, send, message, answer or work");
                return Err(fields.error("do", problem));
            }
        },
    };
    let times = fields.number_if_there("times", 1e-6..=TIMES_MAX)?.unwrap_or(1.0);
    Ok(Repeated { action, times, is_compressed: fields.truth("compressed")? })
}

fn message(fields: &Fields<'_>) -> Result<(Path, u64), FileError> {
    fields.only(&OF_MESSAGES)?;
    let path = path(fields, Operation::Send)?;
    Ok((path, fields.whole("bytes", 0..=MESSAGE_MAX)?))
}

fn request(fields: &Fields<'_>, operation: Operation) -> Result<Request, FileError> {
    fields.only(&OF_REQUESTS)?;
    let most = if operation == Operation::Send { MESSAGE_MAX } else { BYTES_MAX };
    Ok(Request {
        path: path(fields, operation)?,
        operation,
        bytes: fields.whole("bytes", 0..=most)?,
        batch: fields.whole_if_there("batch", 1..=256)?.unwrap_or(1) as u32,
        range: fields.whole_if_there("range", 64..=MEMORY_MAX)?.unwrap_or(RANGE),
    })
}

fn path(fields: &Fields<'_>, operation: Operation) -> Result<Path, FileError> {
    let path: Path = fields.parsed("path")?;
    if is_possible(path, operation) {
        return Ok(path);
    }
    let problem = match path {
        Path::Rnic => "path rnic belongs to another device".to_owned(),
        _ => format!("path {path} has no {operation}"),
    };
    Err(fields.error("path", problem))
}
