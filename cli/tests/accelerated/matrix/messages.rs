// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that publish messages and subscribe to those of others.

use super::{MODES, run, shell};
use crate::harness::{Node, content, find_or_skip, free_port};

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn mosquitto_delivers_messages() {
    let Some(mosquitto) = find_or_skip("mosquitto") else { return };
    if find_or_skip("mosquitto_sub").is_none() {
        return;
    }
    let count = "20000";
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let port = free_port();
        let settings = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n\
             max_inflight_messages 1000\nset_tcp_nodelay true\n"
        );
        let settings = node.write("mosquitto.conf", settings);
        let mut command = node.command(modes[0], &mosquitto);
        command.arg("-c").arg(settings);
        let mut server = node.serve("mosquitto", command, port);
        node.write("sent", content(4, 3 << 20));
        // Subscriptions exist before the subscribers connect, so no message is lost.
        let text = "
            for n in 1 2 3; do mosquitto_sub -p PORT -c -i hears$n -q 1 -t news -E; done
            for n in 1 2 3; do
              mosquitto_sub -p PORT -c -i hears$n -q 1 -t news -C COUNT > heard$n &
            done
            seq COUNT > said; mosquitto_pub -p PORT -q 1 -t news -l < said; wait
            for n in 1 2 3; do cmp said heard$n; done
            mosquitto_sub -p PORT -N -C 1 -t file > got &
            mosquitto_pub -p PORT -r -q 2 -t file -f sent; wait; cmp sent got
            mosquitto_sub -p PORT -N -C 1 -t file > got; cmp sent got";
        let text = text.replace("PORT", &port.to_string()).replace("COUNT", count);
        run(&node, modes, [4, 1 << 20], || {
            shell(&node, modes[1], &text);
        });
        server.signal(libc::SIGTERM);
        assert!(server.wait().success(), "{}", server.printed());
    }
}
