// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that encrypt the traffic of others.

use super::{MODES, run, shell};
use crate::harness::{Mode, Node, content, find_or_skip, free_port};
use crate::nginx::{self, PLAIN};

const DOWNLOAD: usize = 8 << 20;

/// A key, and a self-signed certificate.
fn make_key(node: &Node) {
    let text = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
                -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -days 2 \
                -keyout key -out certificate 2> told || { cat told; exit 1; }
                cat key certificate > both";
    shell(node, Mode::Plain, text);
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn openssl_serves_files_and_echoes() {
    let Some(openssl) = find_or_skip("openssl") else { return };
    for modes in MODES {
        let (node, _monitor) = Node::new();
        make_key(&node);
        node.write("served", content(9, DOWNLOAD));
        for version in ["-tls1_3", "-tls1_2"] {
            let port = free_port();
            let mut command = node.command(modes[0], &openssl);
            command.args(["s_server", "-cert", "certificate", "-key", "key", version, "-WWW"]);
            command.args(["-accept", &format!("127.0.0.1:{port}")]);
            let server = node.serve("openssl", command, port);
            let curl = format!(
                "for n in 1 2 3; do curl -sS --fail --cacert certificate -o got \
                   https://127.0.0.1:{port}/served; cmp served got; rm got; done"
            );
            let text = format!(
                "printf 'GET /served HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet {version} \
                   -CAfile certificate -verify_return_error -connect 127.0.0.1:{port} \
                   2> told > got || true
                 tail -c {DOWNLOAD} got | cmp - served; rm got"
            );
            run(&node, modes, [1, DOWNLOAD as u64], || {
                if find_or_skip("curl").is_some() {
                    shell(&node, modes[1], &curl);
                }
                shell(&node, modes[1], &text);
            });
            drop(server);
        }
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn stunnel_encrypts_between_a_client_and_nginx() {
    let Some(stunnel) = find_or_skip("stunnel4") else { return };
    let (node, _monitor) = Node::new();
    make_key(&node);
    let behind = nginx::begin(&node, "behind", &PLAIN);
    let [encrypted, port] = [free_port(), free_port()];
    let start = |name: &str, role: &str, accepts: u16, connects: u16| {
        let at = node.path().display();
        let settings = format!(
            "foreground = yes\npid =\nsyslog = no\ndebug = warning\n[only]\n{role}\n\
             accept = 127.0.0.1:{accepts}\nconnect = 127.0.0.1:{connects}\n"
        );
        let settings = settings.replace("AT", &at.to_string());
        let mut command = node.command(Mode::Accelerated, &stunnel);
        command.arg(node.write(&format!("{name}.conf"), settings));
        node.serve(name, command, accepts)
    };
    let _server = start("server", "cert = AT/both", encrypted, behind.port);
    let client = "client = yes\nverifyChain = yes\nCAfile = AT/certificate";
    let _client = start("client", client, port, encrypted);
    for mode in [Mode::Accelerated, Mode::Plain] {
        // Between both, and from there to nginx; before the first one only if the client is
        // accelerated.
        let connections = if mode == Mode::Accelerated { 3 } else { 2 };
        node.run_until_moved(connections, 30 << 20, || {
            node.role(mode, "http client", &format!("{port} files")).finish();
        });
    }
    nginx::load_with_wrk(&node, port, "4096");
    behind.quit(&node, "behind");
}
