// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program that a command is about, the packets that it gets, and what is in its maps before.

use anyhow::{Context, bail};
use clap::Args;
use freeport_clicknp::source::without_mark;
use freeport_ebpf::object::{Error, Object, Program, ProgramKind};
use freeport_xdp::{MapSize, Setting, Variable, prepare};
use std::path::{Path, PathBuf};

/// What commands that run a program on a capture are told of both.
#[derive(Args)]
pub struct Subject {
    /// An object, or its source (.c)
    pub object: PathBuf,
    /// The packets: a pcap or pcapng file of Ethernet
    #[arg(long, value_name = "CAPTURE")]
    pub trace: PathBuf,
    /// Which program, where there are several
    #[arg(long, value_name = "NAME")]
    pub program: Option<String>,
    #[command(flatten)]
    pub preparation: Preparation,
    /// The device by which packets come
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub ifindex: u32,
}

impl Subject {
    /// What is in the object, and its bytes.
    ///
    /// # Errors
    /// A file that cannot be read or compiled, and an object that is broken.
    pub fn open(&self) -> anyhow::Result<(Vec<u8>, Object)> {
        open(&self.object)
    }

    /// The program that is asked for.
    ///
    /// # Errors
    /// As of [`choose`].
    pub fn choose<'o>(&self, object: &'o Object) -> anyhow::Result<&'o Program> {
        let program = choose(object, self.program.as_deref());
        program.with_context(|| self.object.display().to_string())
    }

    /// Sets in the object what is set before it is loaded; gives the settings that are left.
    ///
    /// # Errors
    /// As of [`Preparation::apply`].
    pub fn prepare(&self, object: &mut Object) -> anyhow::Result<Vec<Setting>> {
        self.preparation.apply(object)
    }
}

/// What is set before the first packet.
#[derive(Args)]
pub struct Preparation {
    /// Change a map before the first packet; may be given several times
    #[arg(long, value_name = "SETTING")]
    pub map: Vec<Setting>,
    /// The same, a line each, before those of --map; `#` begins a comment
    #[arg(long, value_name = "FILE")]
    pub map_file: Vec<PathBuf>,
    /// Give a map another size before the object is loaded; may be given several times
    #[arg(long, value_name = "NAME=ENTRIES")]
    pub map_size: Vec<MapSize>,
    /// Give a variable of the program its first value before the object is loaded, a constant too:
    /// a number, a name of its enum, all elements of an array with commas, or a text in quotes. The
    /// variable may be a part of one, such as `config.max` or `limits[2]`; may be given several
    /// times
    #[arg(long, value_name = "VARIABLE=VALUE")]
    pub set: Vec<Variable>,
}

impl Preparation {
    /// Whether there is nothing to set but sizes of maps.
    pub fn has_no_values(&self) -> bool {
        self.map.is_empty() && self.map_file.is_empty() && self.set.is_empty()
    }

    /// Sets in an object what is set before it is loaded; gives the settings that are left.
    ///
    /// # Errors
    /// A file that cannot be read, a line of it that is no setting, and what the object does not
    /// have.
    pub fn apply(&self, object: &mut Object) -> anyhow::Result<Vec<Setting>> {
        let settings = settings(&self.map_file, &self.map)?;
        Ok(prepare(object, &self.map_size, &self.set, settings)?)
    }
}

/// What is in an object, or the source of one, and its bytes.
///
/// # Errors
/// A file that cannot be read or compiled, and an object that is broken.
pub fn open(file: &Path) -> anyhow::Result<(Vec<u8>, Object)> {
    let bytes = read(file)?;
    let object = Object::parse(&bytes);
    let object = object.map_err(|error| Error { file: Some(file.to_owned()), ..error })?;
    Ok((bytes, object))
}

/// The bytes of an object; a source (`.c`) is compiled first.
fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    if file.extension().is_some_and(|extension| extension == "c") {
        return Ok(freeport_xdp::compile(file)?);
    }
    std::fs::read(file).with_context(|| format!("{}: cannot be read", file.display()))
}

/// The program that is asked for, or the only one for packets that are received.
///
/// # Errors
/// No such program, or several.
pub fn choose<'o>(object: &'o Object, name: Option<&str>) -> anyhow::Result<&'o Program> {
    let is_xdp = |program: &&Program| !matches!(program.kind, ProgramKind::Other(_));
    let all: Vec<&Program> = object.programs.iter().filter(is_xdp).collect();
    let names = |programs: &[&Program]| {
        programs.iter().map(|program| program.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    if all.is_empty() {
        bail!("there is no XDP program in it");
    }
    let received: Vec<&Program> =
        all.iter().copied().filter(|program| program.kind == ProgramKind::Xdp).collect();
    Ok(match (name, received.as_slice()) {
        (Some(name), _) => match all.iter().find(|program| program.name == name) {
            Some(program) => *program,
            None => bail!("there is no XDP program `{name}`; there are: {}", names(&all)),
        },
        (None, [program]) => *program,
        (None, _) => bail!("say which with --program; there are: {}", names(&all)),
    })
}

/// Those of the files, then those of the command line.
///
/// # Errors
/// A file that cannot be read, and a line of it that is no setting.
fn settings(files: &[PathBuf], more: &[Setting]) -> anyhow::Result<Vec<Setting>> {
    let mut settings = vec![];
    for file in files {
        settings.extend(settings_of(file)?);
    }
    settings.extend(more.iter().cloned());
    Ok(settings)
}

fn settings_of(file: &Path) -> anyhow::Result<Vec<Setting>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let lines = without_mark(&text).lines();
    let lines = lines.map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines = lines.enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(at, line)| {
            line.parse().with_context(|| format!("{}: line {}", file.display(), at + 1))
        })
        .collect()
}
