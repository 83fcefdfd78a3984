// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets top` and `list`, while programs talk.

use crate::harness::{Mode, Node, wait_until};
use crate::pings::Pings;
use serde_json::Value;

/// Members of an array that belong to a process.
fn of<'v>(reported: &'v Value, name: &str, pid: i32) -> Vec<&'v Value> {
    let all = reported[name].as_array().expect("a list").iter();
    all.filter(|it| it["pid"].as_i64() == Some(pid.into())).collect()
}

fn number(reported: &Value, name: &str) -> f64 {
    reported[name].as_f64().unwrap_or_else(|| panic!("no {name} in {reported}"))
}

#[test]
fn top_tells_what_each_program_and_connection_does() {
    let (node, _monitor) = Node::new();
    let Some(pings) = Pings::new(&node) else { return };
    let server = pings.serve(&node);
    let (few, _) = pings.ask(&node, Mode::Accelerated, "8", "0.001");
    let (much, _) = pings.ask(&node, Mode::Accelerated, "30000", "0.001");
    let (plain, _) = pings.ask(&node, Mode::Plain, "8", "0.001");
    let look = |sort: &str| {
        let words = ["sockets", "top", "--json", "--once", "-d", "0.2", "--sort", sort];
        node.ask(&words).expect("it can be asked")
    };
    let mut reported = Value::Null;
    wait_until("all do something", || {
        reported = look("bytes");
        let is_busy = |pid| {
            of(&reported, "connections", pid)
                .iter()
                .any(|it| it["transport"] == "shm" && number(it, "sent_bytes_per_second") > 0.0)
        };
        let in_kernel = of(&reported, "connections", server.pid());
        let in_kernel = in_kernel.iter().any(|it| it["reason"] == "PeerPlain");
        is_busy(few.pid()) && is_busy(much.pid()) && in_kernel
    });
    // The order is checked against the numbers of the same output.
    let bytes =
        |it: &Value| number(it, "sent_bytes_per_second") + number(it, "received_bytes_per_second");
    let programs = reported["programs"].as_array().expect("a list");
    let all: Vec<f64> = programs.iter().map(bytes).collect();
    assert!(all.is_sorted_by(|one, other| one >= other), "{reported}");
    assert!(
        number(&reported, "seconds") > 0.0 && number(&reported, "unix_seconds") > 1.7e9,
        "{reported}"
    );
    let [client] = of(&reported, "connections", much.pid())[..] else { panic!("{reported}") };
    assert_eq!((&client["peer_pid"], &client["family"]), (&server.pid().into(), &"tcp".into()));
    let messages = number(client, "sent_messages_per_second");
    assert!(number(client, "sent_bytes_per_second") >= messages, "{client}");
    for name in ["estimated_saved_processors", "estimated_gain"] {
        assert!(client[name].is_number(), "{client}");
    }
    let costs = &reported["costs"]["kernel_tcp"];
    assert!(number(costs, "send_nanoseconds") > 0.0, "{reported}");
    assert!(
        of(&reported, "programs", plain.pid()).is_empty(),
        "it has not the library: {reported}"
    );
    let [server_reported] = of(&reported, "programs", server.pid())[..] else {
        panic!("{reported}")
    };
    assert_eq!(
        (&server_reported["accelerated"], &server_reported["in_kernel"]),
        (&2.into(), &1.into())
    );
    drop((few, much, plain));
    let output =
        node.freeport(&["sockets", "top", "-n", "2", "-d", "0.1"]).output().expect("it is");
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(output.status.success() && text.matches("PROGRAM").count() == 2, "{text}");
}

#[test]
fn the_list_has_what_exists_and_what_each_program_gained() {
    let (node, _monitor) = Node::new();
    let Some(pings) = Pings::new(&node) else { return };
    let server = pings.serve(&node);
    let (few, _) = pings.ask(&node, Mode::Accelerated, "8", "0.001");
    let (much, end) = pings.ask(&node, Mode::Accelerated, "30000", "0.001");
    let list = || node.ask(&["sockets", "list", "--json"]).expect("it can be asked");
    let sent = |connection: &Value| {
        let ends = connection["ends"].as_array().expect("two");
        ends.iter().map(|end| number(end, "sent_bytes")).sum::<f64>()
    };
    let mut reported = Value::Null;
    wait_until("both are past the kernel, and one has moved more", || {
        reported = list();
        let all = reported["connections"].as_array().expect("a list");
        all.len() == 2 && all.iter().map(sent).fold(0.0, f64::max) > 1e6
    });
    let all: Vec<f64> =
        reported["connections"].as_array().expect("a list").iter().map(sent).collect();
    assert!(all.is_sorted_by(|one, other| one >= other), "{reported}");
    let [program] = of(&reported, "programs", much.pid())[..] else { panic!("{reported}") };
    assert!(number(program, "sent_bytes") > 0.0 && program["estimated_gain"].is_number());
    // The totals of the server keep connections of clients that have exited.
    let before = number(of(&reported, "programs", server.pid())[0], "received_bytes");
    drop((few, much));
    wait_until("the connections are gone", || list()["connections"] == serde_json::json!([]));
    let reported = list();
    let [program] = of(&reported, "programs", server.pid())[..] else { panic!("{reported}") };
    assert!(number(program, "received_bytes") >= before, "{program}");
    assert_eq!(program["accelerated"], 0);

    // Two refused clients, one of which exits.
    let (gone, _) = pings.ask(&node, Mode::Plain, "8", "0.001");
    let (_stays, _) = pings.ask(&node, Mode::Plain, "8", "0.001");
    wait_until("both were refused", || {
        list()["refused"].as_array().is_some_and(|it| it.len() == 2)
    });
    drop(gone);
    wait_until("one is gone", || {
        let list = list();
        let refused = list["refused"].as_array().expect("a list");
        let exists = |is| refused.iter().filter(|it| it["exists"] == is).count();
        (exists(true), exists(false)) == (1, 1)
    });
    let shown = node.listed();
    let summary =
        format!("program {} python3: 0 accelerated ends, 1 in the kernel; ", server.pid());
    assert!(shown.contains(&summary) && shown.contains(" (est.)"), "{shown}");
    let counted = format!("kernel  {} python3: 1 PeerPlain: ", server.pid());
    assert!(shown.contains(&counted) && shown.contains("refused and closed: 1;"), "{shown}");
    let output = node.freeport(&["sockets", "list", "--all"]).output().expect("it can be begun");
    let shown = String::from_utf8(output.stdout).expect("it is text");
    let lines = shown.lines().filter(|line| line.starts_with("kernel "));
    assert_eq!(lines.clone().count(), 2, "{shown}");
    assert_eq!(lines.filter(|line| line.ends_with(", closed")).count(), 1, "{shown}");
    assert!(!end.is_empty());
}
