// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of others that know Redis Cluster.

use std::process::Command;

use super::nodes::Nodes;

/// Runs `redis-cli` at the first node; returns what it prints. None: it is not installed.
fn redis_cli(nodes: &Nodes, arguments: &[&str]) -> Option<String> {
    let port = nodes.all[0].port().to_string();
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new("redis-cli");
    match arguments {
        ["--cluster", word] => command.args(["--cluster", word, &address]),
        _ => command.args(["-p", &port]).args(arguments),
    };
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Some(text)
}

#[test]
#[ignore = "long: needs redis-cli"]
fn redis_cli_understands_a_cluster() {
    let mut nodes = Nodes::start(4, 1);
    nodes.set(&[("0-5000,6000", &[0, 3]), ("5001-5999", &[1]), ("6001-16383", &[2])]);
    let Some(checked) = redis_cli(&nodes, &["--cluster", "check"]) else {
        freeport_testbed::skip("redis-cli is not installed");
        return;
    };
    for line in ["[OK] All nodes agree about slots configuration.", "[OK] All 16384 slots covered."]
    {
        assert!(checked.contains(line), "{checked}");
    }
    assert!(checked.contains("1 additional replica(s)"), "{checked}");
    // It follows redirects, for keys of all nodes.
    for number in 0..20 {
        let key = format!("key{number}");
        let reply = redis_cli(&nodes, &["-c", "SET", &key, "value"]);
        assert_eq!(reply.as_deref(), Some("OK\n"));
        let reply = redis_cli(&nodes, &["-c", "GET", &key]);
        assert_eq!(reply.as_deref(), Some("value\n"));
    }
    let info = redis_cli(&nodes, &["--cluster", "info"]).expect("it is installed");
    assert!(info.contains("[OK] 20 keys in 3 masters."), "{info}");
}
