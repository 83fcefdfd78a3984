// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs with different monitors or without one, and the choice of a monitor for ordinary users.

use super::name;
use crate::harness::{Mode, Node, Program, find, wait_until};
use crate::pings::Pings;
use freeport_testbed::skip;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The report about an end, once it has this reason.
fn reported(node: &Node, end: &str, reason: &str) -> String {
    let mut reported = Value::Null;
    wait_until(reason, || {
        reported = node.ask(&["sockets", "why", end, "--json"]).expect("it can be asked");
        let is_it = name(&reported) == reason;
        if !is_it {
            eprintln!("{reported}");
        }
        is_it
    });
    reported["text"].as_str().expect("a text").to_owned()
}

#[test]
fn both_monitors_are_named_where_the_ends_have_two() {
    let (here, _monitor) = Node::new();
    let (there, _other) = Node::new();
    let Some(pings) = Pings::new(&here) else { return };
    let server = pings.serve(&here);
    let (client, end) = pings.ask(&there, Mode::Accelerated, "64", "0.001");
    // Either end gives the same answer.
    for node in [&here, &there] {
        let text = reported(node, &end, "PeerMonitor");
        let paths = [&here, &there].map(|it| it.monitor_path().display().to_string());
        assert!(paths.iter().all(|path| text.contains(path)), "{text}");
        let pids = [server.pid(), client.pid()];
        assert!(pids.iter().all(|pid| text.contains(&format!("process {pid}"))), "{text}");
        assert!(text.contains("restart process ") && text.contains("FREEPORT_MONITOR="), "{text}");
    }
}

/// The monitor holds the end of the server briefly for each claim.
#[test]
fn few_descriptors_are_the_reason_and_never_the_monitor() {
    let (node, monitor) = Node::new();
    let Some(pings) = Pings::new(&node) else { return };
    let server = pings.serve(&node);
    let plain = pings.client(&node, Mode::Accelerated, "64", "0.001");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 16; exec \"$@\"", "sh"]).arg(plain.get_program());
    limited.args(plain.get_args()).current_dir(node.path()).env_remove("LD_PRELOAD");
    limited.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (client, end) = pings.begin(&node, limited);
    let text = reported(&node, &end, "Resources");
    assert!(text.contains("may have 16 descriptors") && text.contains("49"), "{text}");
    let numbers = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it lives");
    let numbers: Vec<String> =
        numbers.filter_map(|it| it.ok()?.file_name().into_string().ok()).collect();
    let mut is_reported = false;
    for _ in 0..20 {
        for number in &numbers {
            let end = format!("{}:{number}", server.pid());
            let reported = node.ask(&["sockets", "why", &end, "--json"]).expect("it can be asked");
            let text = reported["text"].as_str().unwrap_or_default();
            assert!(!text.contains(&format!("process {}", monitor.pid())), "{text}");
            let peer = format!("the peer, process {}, may have 16 descriptors", client.pid());
            is_reported |= text.contains(&peer);
        }
    }
    assert!(is_reported, "{}", node.listed());
}

/// Runs a script as root with a private `/run`, so that the monitor of the machine is that of this
/// test.
fn on_a_machine_of_its_own(node: &Node, script: &str) -> Option<Program> {
    // SAFETY: the call has no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        skip("only root begins a monitor for all users");
        return None;
    }
    let (Some(unshare), Some(_)) = (find("unshare"), find("setpriv")) else {
        skip("there is no unshare, or no setpriv");
        return None;
    };
    let may = Command::new(&unshare).args(["--mount", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        skip("this process may not make tables of mounts");
        return None;
    }
    let freeport = node.write("freeport", fs::read(env!("CARGO_BIN_EXE_freeport")).expect("it is"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&freeport, mode).expect("it is ours");
    let script = format!(
        "set -u; mount -t tmpfs none /run; unset FREEPORT_MONITOR
         export FREEPORT_PRELOAD={library} XDG_RUNTIME_DIR={own}
         nobody() {{ setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"; }}
         freeport={freeport}
         {script}",
        library = node.library().display(),
        own = node.path().join("own").display(),
        freeport = freeport.display(),
    );
    let own = node.path().join("own");
    fs::create_dir(&own).expect("it can be made");
    std::os::unix::fs::chown(&own, Some(65_534), Some(65_534)).expect("root may");
    let mut command = Command::new(unshare);
    command.args(["--mount", "--propagation", "private", "bash", "-c", &script]);
    command.env_remove("LD_PRELOAD").env_remove("FREEPORT_MONITOR").current_dir(node.path());
    Some(node.start("machine", command))
}

#[test]
fn an_ordinary_user_gets_the_monitor_of_the_machine_if_its_rules_allow_that() {
    let node = Node::without_monitor();
    let script = "
        tells() { nobody $freeport exec sh -c 'echo $FREEPORT_MONITOR'; }
        ends() { kill $(cat $1.lock); while [ -e $1 ]; do sleep 0.01; done; }
        echo without: $(tells); ends own/freeport/monitor.sock
        $freeport node --background
        echo with: $(tells)
        $freeport sockets policy deny other-user > /dev/null
        echo with some: $(tells)
        $freeport sockets policy deny user 65534 > /dev/null
        echo forbidden: $(tells)
        ends own/freeport/monitor.sock
        echo set: $(FREEPORT_MONITOR=own/it nobody $freeport exec sh -c 'echo $FREEPORT_MONITOR')
        ends own/it
        ends /run/freeport/monitor.sock
        # Where another user listens in its place, nobody is shown to them.
        mkdir -p /run/freeport; chown 65533 /run/freeport
        export FREEPORT_MONITOR=/run/freeport/monitor.sock
        setpriv --reuid 65533 --regid 65533 --clear-groups $freeport node --background
        unset FREEPORT_MONITOR
        echo stranger: $(tells); ends own/freeport/monitor.sock; ends /run/freeport/monitor.sock";
    let Some(machine) = on_a_machine_of_its_own(&node, script) else { return };
    let printed = machine.finish();
    let own = node.path().join("own/freeport/monitor.sock").display().to_string();
    let host = "/run/freeport/monitor.sock";
    let set = node.path().join("own/it").display().to_string();
    for (what, expected) in [
        ("without", own.as_str()),
        ("with", host),
        ("with some", host),
        ("forbidden", own.as_str()),
        ("set", set.as_str()),
        ("stranger", own.as_str()),
    ] {
        let line = format!("{what}: {expected}");
        assert!(printed.lines().any(|it| it == line), "{line}\n{printed}");
    }
}

#[test]
fn a_server_of_root_and_a_client_of_another_user_meet_by_themselves() {
    let node = Node::without_monitor();
    let Some(pings) = Pings::new(&node) else { return };
    let port = pings.port;
    let script = format!(
        "$freeport exec python3 -B pings.py serve {port} & server=$!
         until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2> /dev/null; do sleep 0.02; done
         nobody $freeport exec python3 -B pings.py ask {port} 64 0.001 & client=$!
         is_past() {{
             $freeport sockets list --json | grep -q '\"accelerated\":1'
         }}
         # Until both ends have left the kernel.
         for turn in $(seq 2000); do is_past && break; sleep 0.02; done
         is_past && echo past
         nobody $freeport sockets list | grep -c '^program' 
         kill $server $client; kill $(cat /run/freeport/monitor.sock.lock); wait"
    );
    let Some(machine) = on_a_machine_of_its_own(&node, &script) else { return };
    let printed = machine.finish();
    assert!(printed.lines().any(|line| line == "past"), "{printed}");
}
