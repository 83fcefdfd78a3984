// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments that several commands share: the program, its packets, and the initial contents of its
//! maps.

use anyhow::{Context, bail};
use clap::Args;
use freeport_clicknp::source::without_mark;
use freeport_ebpf::object::{Error, Object, Program, ProgramKind};
use freeport_xdp::{MapSize, Setting, Variable, prepare};
use std::path::{Path, PathBuf};

/// A program and a capture to run it on.
#[derive(Args)]
pub struct Subject {
    /// An object, or its source (.c)
    pub object: PathBuf,
    /// The packets: a pcap or pcapng file of Ethernet frames
    #[arg(long, value_name = "CAPTURE")]
    pub trace: PathBuf,
    /// The program, if the object has several
    #[arg(long, value_name = "NAME")]
    pub program: Option<String>,
    #[command(flatten)]
    pub preparation: Preparation,
    /// Index of the interface that packets arrive on
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub ifindex: u32,
}

impl Subject {
    /// Reads the object; returns its bytes and the parsed object.
    ///
    /// # Errors
    /// A file that cannot be read or compiled, or a malformed object.
    pub fn open(&self) -> anyhow::Result<(Vec<u8>, Object)> {
        open(&self.object)
    }

    /// The selected program.
    ///
    /// # Errors
    /// Those of [`choose`].
    pub fn choose<'o>(&self, object: &'o Object) -> anyhow::Result<&'o Program> {
        let program = choose(object, self.program.as_deref());
        program.with_context(|| self.object.display().to_string())
    }

    /// Applies sizes and variables to the object; returns the settings for the loaded maps.
    ///
    /// # Errors
    /// Those of [`Preparation::apply`].
    pub fn prepare(&self, object: &mut Object) -> anyhow::Result<Vec<Setting>> {
        self.preparation.apply(object)
    }
}

/// Settings that are applied before the first packet.
#[derive(Args)]
pub struct Preparation {
    /// Change a map before the first packet; may be repeated
    #[arg(long, value_name = "SETTING")]
    pub map: Vec<Setting>,
    /// Read such settings from a file, one per line, and apply them before those of --map; `#`
    /// begins a comment
    #[arg(long, value_name = "FILE")]
    pub map_file: Vec<PathBuf>,
    /// Set the size of a map before the object is loaded; may be repeated
    #[arg(long, value_name = "NAME=ENTRIES")]
    pub map_size: Vec<MapSize>,
    /// Set the initial value of a variable or constant of the program before the object is loaded:
    /// a number, a name of its enum, all elements of an array with commas, or a text in quotes. The
    /// variable may be a part of one, such as `config.max` or `limits[2]`; may be repeated
    #[arg(long, value_name = "VARIABLE=VALUE")]
    pub set: Vec<Variable>,
}

impl Preparation {
    /// Whether only sizes of maps are set.
    pub fn has_no_values(&self) -> bool {
        self.map.is_empty() && self.map_file.is_empty() && self.set.is_empty()
    }

    /// Applies sizes and variables to an object; returns the settings for the loaded maps.
    ///
    /// # Errors
    /// A file that cannot be read, a malformed line of it, or a map or variable that does not
    /// exist.
    pub fn apply(&self, object: &mut Object) -> anyhow::Result<Vec<Setting>> {
        let settings = settings(&self.map_file, &self.map)?;
        Ok(prepare(object, &self.map_size, &self.set, settings)?)
    }
}

/// Reads an object or the source of one; returns its bytes and the parsed object.
///
/// # Errors
/// A file that cannot be read or compiled, or a malformed object.
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

/// The program of that name or, without a name, the only one that is run for received packets.
///
/// # Errors
/// No such program or, without a name, several.
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
        (None, _) => bail!("choose one with --program; there are: {}", names(&all)),
    })
}

/// The settings of the files, then those of the command line.
///
/// # Errors
/// A file that cannot be read, or a malformed line of it.
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
