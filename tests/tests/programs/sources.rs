// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that generate packets, on every device: they send all their packets, and while they
//! wait for a time they block neither frames nor the thread that runs them.

use freeport_clicknp::{Options, compile_text};
use freeport_ir::{Bits, InstanceId};
use freeport_native::Options as Native;
use freeport_port::trace::Trace;
use freeport_port::{Generator, Sink};
use freeport_runtime::cpu::CpuDevice;
use freeport_runtime::device::{Device, Ports, RunEnd};
use freeport_runtime::interpreter::InterpreterDevice;
use freeport_runtime::workers::WorkersDevice;
use freeport_testbed::cache::Cache;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sends `left` packets from time `next` on, beside frames that only pass through.
const PROGRAM: &str = "
.element Alarm (-> packet out) {
    .state { ulong next = 0xffffffffffffffff; uint left = 300; }
    .handler {
        if (left == 0) return;
        ulong time = now();
        if (time < next) return;
        left--;
        packet p = new_packet(60);
        *(uint *)(p.data + 20) = left;
        set_output_port(out, p);
    }
}
.element Through (packet in -> packet out) {
    .handler { set_output_port(out, read_input_port(in)); }
}
Alarm :: alarm
Through :: through
alarm -> to_nic
from_tor -> through -> to_tor
";

const FRAMES: usize = 700;

/// Returns every device, with its name.
fn devices(cache: &std::path::Path) -> Vec<(&'static str, Box<dyn Device>)> {
    let compiled = compile_text("alarm.cnp", PROGRAM, &Options::default());
    let program = Arc::new(compiled.unwrap_or_else(|failure| panic!("{failure}")).program);
    let options = Native { cache: Some(cache.to_owned()), ..Native::default() };
    let workers = |places: [usize; 2]| {
        WorkersDevice::load(program.clone(), &places, &[], &options, 0).unwrap()
    };
    vec![
        (
            "interpreter",
            Box::new(InterpreterDevice::load(program.clone(), &<_>::default()).unwrap()),
        ),
        ("native", Box::new(CpuDevice::load(program.clone(), &options).unwrap())),
        ("source elsewhere", Box::new(workers([1, 0]))),
        ("pass elsewhere", Box::new(workers([0, 1]))),
    ]
}

#[test]
fn who_waits_for_a_time_holds_up_nobody() {
    let cache = Cache::of("native");
    for (name, mut device) in devices(cache.path()) {
        let trace = Trace { frames: FRAMES, ..Trace::default() }.generate();
        let mut source = Generator::once(&trace).unwrap();
        let (mut passed, mut made) = (Sink::counting(), Sink::keeping());
        let mut run = |device: &mut dyn Device| {
            let never = AtomicBool::new(false);
            let mut ports = Ports::new()
                .with_input("from_tor", &mut source)
                .with_output("to_tor", &mut passed)
                .with_output("to_nic", &mut made)
                .with_pause(8, &never);
            device.run(&mut ports).unwrap().end
        };
        // More runs than the frames could need, for any batch size.
        let ends: Vec<RunEnd> = (0..FRAMES).map(|_| run(&mut *device)).collect();
        let waits = |end: &RunEnd| matches!(end, RunEnd::Paused | RunEnd::Waiting { .. });
        assert!(ends.last().is_some_and(waits), "{name}: it waits");
        let alarm = InstanceId(0);
        device.write_variable(alarm, "next", 0, &Bits::zero(64)).unwrap();
        let end = (0..10_000).map(|_| run(&mut *device)).find(|end| !waits(end));
        assert_eq!(end, Some(RunEnd::Ended), "{name}: it has sent all");
        assert_eq!(passed.frame_count(), FRAMES as u64, "{name}");
        let numbers = made
            .kept()
            .iter()
            .map(|frame| u32::from_le_bytes(frame.bytes[20..24].try_into().unwrap()));
        assert!(numbers.eq((0..300).rev()), "{name}");
        let counters = device.counters();
        assert_eq!(counters.instances[0].out_of_range, 0);
    }
}
