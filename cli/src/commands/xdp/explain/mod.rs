// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp explain`: source lines, instructions, rows and cycles side by side.

mod count;
mod json;
pub(super) mod text;

use super::estimate::Packets;
use super::run::profile;
use super::schedule::Schedule;
use super::subject::{Preparation, choose, open};
use anyhow::{Context, bail};
use clap::Args;
use count::{Counted, environment};
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::object::{Object, Program};
use freeport_vliw::fate::{Fate, fates};
use freeport_vliw::image::Image;
use freeport_vliw::svg::{Heat, svg, svg_with_heat};
use freeport_vliw::{Options, Unsupported, compile};
use freeport_xdp::{Profiles, Setting};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport xdp explain filter.bpf.o\n  \
    freeport xdp explain filter.bpf.c --trace packets.pcap --profile\n  \
    freeport xdp explain filter.bpf.o --trace packets.pcap --ifindex 2 \\\n      \
    --map 'inside key 0 0 0 0 value 2 0 0 0' --svg filter.svg\n\n\
    Without packets, each instruction is shown with its row and lane, with the instructions that\n\
    share its operation, or with the pass that removed it. With packets, which arrive at the\n\
    simulated card back to back, it also shows how often each row was executed, and the cycles.")]
pub struct Arguments {
    /// An object, or its source (.c)
    object: PathBuf,
    /// The program, if the object has several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Packets to count cycles for: a pcap or pcapng file of Ethernet frames
    #[arg(long, value_name = "CAPTURE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    preparation: Preparation,
    /// Index of the interface that packets arrive on
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    ifindex: u32,
    /// Run the packets in the interpreter first, and schedule for the paths that they take, if that
    /// fits the card and is not slower
    #[arg(long, requires = "trace")]
    profile: bool,
    /// Draw the rows by lane as SVG; hot rows are dark
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A program, its schedule, and the fates of its instructions.
struct Explained<'o> {
    program: &'o Program,
    schedule: Schedule,
    image: Image,
    /// Fate of each instruction.
    fates: Vec<Fate>,
    /// With packets.
    counted: Option<Counted>,
}

/// Prints the explanation of a program.
///
/// # Errors
/// A malformed object, setting or capture, or a program that the processor or the card does not
/// support.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let file = arguments.object.display();
    if arguments.trace.is_none() && !arguments.preparation.has_no_values() {
        bail!("--map, --map-file and --set need --trace: without packets, values have no effect");
    }
    let (_, mut object) = open(&arguments.object)?;
    let settings = arguments.preparation.apply(&mut object)?;
    let program = choose(&object, arguments.program.as_deref());
    let program = program.with_context(|| file.to_string())?;
    let explained = explain(&object, program, &settings, arguments).with_context(|| {
        format!("{file}: `freeport xdp show {file}` lists where its programs can run")
    })?;
    if let Some(path) = &arguments.svg {
        draw(&explained, path)?;
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&explained.as_json()).context("as JSON")?);
    } else {
        print!("{}", text::of(&explained));
    }
    Ok(ExitCode::SUCCESS)
}

fn explain<'o>(
    object: &'o Object,
    program: &'o Program,
    settings: &[Setting],
    arguments: &Arguments,
) -> anyhow::Result<Explained<'o>> {
    let options = Options::default();
    let number = object.programs.iter().position(|it| it.name == program.name);
    let number = number.context("the program is not part of this object")?;
    let analysis = Analysis::of(program, &object.maps).map_err(|malformed| Unsupported {
        program: program.name.clone(),
        slot: malformed.slot,
        reason: malformed.reason,
    })?;
    let packets = arguments.trace.as_ref().map(|trace| Packets::read(trace, 1)).transpose()?;
    let scheduled = |profiles: Option<&Profiles>| {
        let profile = profiles.and_then(|profiles| profiles.of(number));
        let (image, fates) = fates(program, &analysis, profile, &options)?;
        let counted = packets.as_ref().map(|packets| {
            let others = object.programs.iter().enumerate().map(|(at, other)| match profiles {
                _ if at == number => Ok(image.clone()),
                Some(profiles) => profiles.compile(at, other, &object.maps, &options),
                None => compile(other, &object.maps, &options),
            });
            let images = others.map(|image| image.map_err(|refusal| refusal.to_string()));
            let images = images.collect();
            count::count(object, number, images, settings, packets, arguments.ifindex)
        });
        anyhow::Ok((image, fates, counted.transpose()?))
    };
    let plain = scheduled(None)?;
    let (schedule, (image, fates, counted)) = match profiles(object, program, settings, arguments)?
    {
        None => (Schedule::Plain, plain),
        Some(profiles) => Schedule::best(plain, scheduled(Some(&profiles)), |(.., counted)| {
            counted.as_ref().map_or(0.0, |counted| counted.per_packet(counted.total))
        }),
    };
    Ok(Explained { program, schedule, image, fates, counted })
}

/// The paths that packets take, with `--profile`.
fn profiles(
    object: &Object,
    program: &Program,
    settings: &[Setting],
    arguments: &Arguments,
) -> anyhow::Result<Option<Profiles>> {
    let Some(trace) = arguments.trace.as_ref().filter(|_| arguments.profile) else {
        return Ok(None);
    };
    let source = profile::Source {
        trace,
        ingress_ifindex: arguments.ifindex,
        rx_queue_index: 0,
        environment: environment(),
        follows_capture: true,
    };
    profile::take(object, program, settings, source).map(Some)
}

fn draw(explained: &Explained<'_>, path: &Path) -> anyhow::Result<()> {
    let Explained { image, program, counted, .. } = explained;
    let picture = match counted {
        None => svg(image, program),
        Some(counted) => {
            let rows = counted.rows.iter().map(|row| counted.per_packet(row.sum())).collect();
            let all = counted.per_packet(counted.total);
            svg_with_heat(image, program, &Heat { rows, all })
        }
    };
    if let Err(error) = std::fs::write(path, picture) {
        bail!("{}: cannot be written: {error}", path.display());
    }
    Ok(())
}
