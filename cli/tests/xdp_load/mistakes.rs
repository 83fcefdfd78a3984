// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Error messages name the mistake and what to do.

use super::place::{Net, word};
use crate::hosts::may_make_hosts;
use freeport_testbed::skip;
use freeport_xdp::Kernel;
use std::os::unix::process::CommandExt;

/// Reads memory outside its bounds, which only the kernel detects before it runs.
const STRAY: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
    SEC(\"xdp\") int stray(struct xdp_md *context) {\n\
    char *data = (void *)(long)context->data;\n\
    return data[60] ? XDP_DROP : XDP_PASS;\n}\n";

#[test]
fn what_is_wrong_with_ports_is_said() {
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let object = net.object("redirect_map");
    let object = object.to_str().unwrap();
    let load = |words: &[&str]| {
        net.complaint(&[&["xdp", "load", object, "--program", "by_map"], words].concat())
    };
    for (words, reason) in [
        (&["--on", "interpreter", "--port", "gone"][..], "xdp:gone: it cannot be found: "),
        (&["--on", "interpreter", "--port", "m0", "--port", "m0"], "xdp:m0 is named twice"),
        (&["--on", "interpreter", "--port", "m0", "--port", "m0/0"], "it is asked for twice"),
        (&["--on", "interpreter", "--port", "m0,host=xdp:m0"], "xdp:m0 is named twice"),
        (
            &["--on", "interpreter", "--port", "m0,ifindex=9", "--port", "m1,ifindex=9"],
            "xdp:m0 and xdp:m1 both have the number 9: give one of them another",
        ),
        (&["--on", "interpreter", "--port", "m0", "--mode", "native"], "are for --on kernel"),
        (&["--on", "sim", "--port", "m0", "--lanes", "2"], "--lanes is for --on vliw"),
        (
            &["--on", "kernel", "--port", "m0,host=tap:h0"],
            "passed packets go to its own network stack",
        ),
        (&["--on", "kernel", "--port", "tap:t0"], "attaches programs to whole interfaces"),
        (
            &["--on", "interpreter", "--port", "m0", "--map", "gone key 0 value 0"],
            "map `gone`: there is none; there are: counters, devices",
        ),
        (&["--on", "interpreter"], "--port"),
    ] {
        let error = load(words);
        assert!(error.contains(reason), "{words:?}: {error}");
    }
    let error = net.complaint(&["xdp", "load", object, "--on", "interpreter", "--port", "m0"]);
    assert!(error.contains("choose one with --program; there are: by_map, by_number"), "{error}");
    let program = ["--program", "on_the_way_out", "--on", "interpreter", "--port", "m0"];
    let error = net.complaint(&[&["xdp", "load", object][..], &program].concat());
    assert!(error.contains("`on_the_way_out` is a program of kind"), "{error}");
    // Operations on a map of the running program.
    let loaded = net.load(
        &net.object("redirect_map"),
        &["--program", "by_map", "--on", "interpreter", "--port", "m0"],
    );
    for (words, reason) in [
        (&["dump", "gone"][..], "there is no map `gone`; there are: counters, devices"),
        (&["lookup", "devices", "key", "0"], "its key has 4 bytes, and 1 are given"),
        (&["update", "devices", "key", "0"], "there is no value"),
        (&["fly"], "`fly` is not a command for maps"),
    ] {
        let error = net.complaint(&[&["xdp", "map"], words].concat());
        assert!(error.contains(reason), "{words:?}: {error}");
    }
    let again = ["--name", "it", "--on", "interpreter", "--port", "m1"];
    let error = load(&again);
    assert!(error.contains("it is already running"), "{error}");
    let error = net.complaint(&["call", "a.b()"]);
    assert!(error.contains("it may be maps, map_dump"), "{error}");
    loaded.stop();
}

#[test]
fn who_may_not_is_told_and_what_the_target_refuses_too() {
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let sampler = net.object("sampler");
    let object = sampler.to_str().unwrap();
    let words = ["xdp", "load", object, "--on", "sim", "--port", "m0"];
    let error = net.complaint(&words);
    assert!(error.contains("on the simulated card: program `"), "{error}");
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    let stray = net.object(STRAY);
    let kernel = ["xdp", "load", stray.to_str().unwrap(), "--on", "kernel", "--port", "m0"];
    let error = net.complaint(&kernel);
    assert!(error.contains("invalid access to packet"), "{error}");
    let drop = net.object("xdp1");
    let kernel = ["xdp", "load", drop.to_str().unwrap(), "--on", "kernel", "--port"];
    let error = net.complaint(&[&kernel[..], &["gone"]].concat());
    assert!(error.contains("xdp:gone: there is no such interface"), "{error}");
    let error = net.complaint(&[&kernel[..], &["m0", "--port", "m0"]].concat());
    assert!(error.contains("an interface can be named once only"), "{error}");
    let links = net.middle.run("ip", &["link", "show", "dev", "m0"]).unwrap();
    assert!(!links.contains("xdp"), "none has it then: {links}");
    let mut command = net.command(&[&kernel[..], &["m0"]].concat());
    let drop_capabilities = || {
        // CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF of linux/capability.h.
        for capability in [12, 21, 38, 39] {
            // SAFETY: no memory is passed.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability as libc::c_ulong, 0, 0, 0) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec, only system calls are made; nothing is allocated.
    unsafe { command.pre_exec(drop_capabilities) };
    let output = net.middle.within(|| Ok(command.output()?)).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("it takes CAP_BPF and CAP_NET_ADMIN, or root"), "{error}");
}

#[test]
fn where_a_program_was_ended_is_told_with_its_line() {
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let words = ["xdp", "load", "--on", "interpreter", "--port", "gen:54x5"];
    let object = net.object(STRAY);
    let reported = net.reported(&[&words[..], &[object.to_str().unwrap()]].concat());
    assert!(reported.contains("ended: 5 packets, program `stray`, instruction "), "{reported}");
    assert!(reported.contains("is outside the packet (at 60 of 54 bytes)"), "{reported}");
    assert!(reported.contains("\n    return data[60] ? XDP_DROP : XDP_PASS;\n"), "{reported}");
    let words_on_card = ["xdp", "load", "--on", "sim", "--port", "gen:54x5"];
    let reported = net.reported(&[&words_on_card[..], &[object.to_str().unwrap()]].concat());
    let expected =
        "ended: 5 packets, stopped by the card: it accessed memory that does not belong to it";
    assert!(reported.contains(expected), "{reported}");
    // A redirection without a target is a drop with a reason.
    let object = net.object("redirect_map");
    let map = format!("devices key 0 0 0 0 value {} 0 0 0 0", word(77));
    let words = [&words[..], &[object.to_str().unwrap(), "--program", "by_map", "--map", &map]];
    let reported = net.reported(&words.concat());
    let expected = "dropped, gen:54x5: 5 redirected to device 77, which is not a port";
    assert!(reported.contains(expected), "{reported}");
}
