// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shells with connections: those that they read themselves, and those that they pass to commands,
//! in pipelines and in the background.

use crate::handing::Conversation;
use crate::harness::{Mode, find_or_skip};

const LINES: &str = include_str!("programs/lines.py");
/// Begin of all scripts: connections to both servers, the first of which is accelerated before its
/// lines are used.
const PROLOGUE: &str = "
    exec 5<>/dev/tcp/127.0.0.1/$TELLS 6<>/dev/tcp/127.0.0.1/$ECHOES || exit 1
    while read -r -u 5 line; do [ \"$line\" = before ] || break; done
    [ \"$line\" = now ] || exit 2
";

/// Runs a script with accelerated servers, plain and accelerated. The outputs must be equal.
fn run(script: &str, expected: &str) {
    let Some(bash) = find_or_skip("bash") else { return };
    let Some(conversation) = Conversation::new() else { return };
    let node = &conversation.node;
    node.write("lines.py", LINES);
    for mode in [Mode::Plain, Mode::Accelerated] {
        let leaves = if mode == Mode::Accelerated { "leaves" } else { "stays" };
        let serve = |role| conversation.serve(Mode::Accelerated, "lines.py", &[role, leaves]);
        let ((_tells, reported), (_echoes, echoed)) = (serve("tell"), serve("echo"));
        let before = node.moved();
        let mut command = node.command(mode, &bash);
        command.args(["-c", &format!("{PROLOGUE}{script}")]);
        command.env("TELLS", reported).env("ECHOES", echoed);
        assert_eq!(node.start("bash", command).finish(), expected, "{mode:?}: {script}");
        if mode == Mode::Accelerated {
            node.assert_moved(before.connections + 1, before.bytes + 4);
        } else {
            assert_eq!(node.moved(), before);
        }
    }
}

#[test]
#[ignore = "long: one more script beside that of pipelines"]
fn builtins_read_lines_past_the_kernel() {
    run(
        "for ((at = 0; at < 2000; at++)); do
           printf -v expected 'line %06d' $at
           read -r -u 5 line && [ \"$line\" = \"$expected\" ] || exit 3
         done
         read -r -N 24 -u 5 line; echo \"$line\"; echo $at",
        "line 002000\nline 002001\n\n2000\n",
    );
}

#[test]
#[ignore = "long: one more script beside that of pipelines"]
fn commands_read_on_where_builtins_have_stopped() {
    run(
        "read -r -u 5 line; echo \"$line\"
         x=$(head -c 24 <&5); echo \"$x\"
         (read -r line <&5; echo \"subshell: $line\")
         head -c 600 <&5 | tail -n 1
         read -r -u 5 line; echo \"$line\"
         cat <&5 > rest; tail -n 1 rest; wc -c < rest",
        "line 000000\nline 000001\nline 000002\nsubshell: line 000003\nline 000053\n\
         line 000054\nline 099999\n1199340\n",
    );
}

#[test]
#[ignore = "long: one more script beside that of pipelines"]
fn another_program_in_the_place_of_the_shell_reads_on() {
    run("exec bash -c 'head -c 12 <&5; cat <&5 | wc -c; cat <&5'", "line 000000\n1199988\n");
    run("read -r -u 5 line; exec cat <&5 > /dev/null", "");
}

#[test]
fn pipelines_have_connections_at_both_ends() {
    run(
        "cat <&5 | tr a-z A-Z >&6 &
         head -n 100000 <&6 > rest; tail -n 1 rest; wc -c < rest; wait",
        "LINE 099999\n1200000\n",
    );
}

#[test]
#[ignore = "long: one more script beside that of pipelines"]
fn children_in_the_background_share_a_connection() {
    run(
        "for ((at = 0; at < 200; at++)); do
           echo \"number $at\" >&6; read -r -u 6 line
           [ \"$line\" = \"number $at\" ] || exit 3
         done
         seq 1 100000 >&6 &
         head -n 100000 <&6 > rest; tail -n 1 rest; wc -c < rest; wait
         (read -r line <&6; echo \"child: $line\") &
         echo back >&6; wait
         coproc { cat <&5 | wc -c; }; read -r -u ${COPROC[0]} line; echo \"$line\"",
        "100000\n588895\nchild: back\n1200000\n",
    );
}
