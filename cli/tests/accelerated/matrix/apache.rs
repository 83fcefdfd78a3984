// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Apache with threads that share an epoll instance and with processes: files, CGI programs, a
//! proxied server, and processes that are replaced under load.

use super::shell;
use super::web::{files, visit};
use crate::harness::{Mode, Node, Program, content, find_or_skip, free_port};
use crate::nginx::{self, PLAIN};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A CGI program that reads the whole request first: Apache reads no answer before it has sent all.
const PROGRAM: &str = "#!/bin/sh
printf 'Content-Type: text/plain\\n\\n'
sha256sum
head -c 2000000 /dev/zero
";

/// Starts Apache with one of its process models, as a proxy of another server; `cgi` is the module
/// that runs programs.
fn begin(node: &Node, apache: &Path, [way, cgi]: [&str; 2], behind: u16) -> (Program, u16) {
    let (port, files) = (free_port(), files(node));
    let program = files.join("run");
    fs::write(&program, PROGRAM).expect("it can be written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
    // SAFETY: the call has no arguments and cannot fail.
    let user = match unsafe { libc::geteuid() } {
        0 => "User nobody\nGroup nogroup\n",
        _ => "",
    };
    let socket = if cgi == "cgid" { "ScriptSock cgi\n" } else { "" };
    let modules = format!("mpm_{way} authz_core alias {cgi} proxy proxy_http");
    let modules = modules
        .split(' ')
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"));
    let modules: String = modules.collect();
    let (at, files) = (node.path().display(), files.display());
    let settings = node.write(
        "apache.conf",
        format!(
            "{modules}ServerRoot {at}\nDefaultRuntimeDir {at}\nPidFile {at}/pid\n\
             ServerName localhost\nListen 127.0.0.1:{port}\n{user}{socket}ErrorLog {at}/errors\n\
             LogLevel warn\nDocumentRoot {files}\n<Directory {files}>\nRequire all granted\n\
             </Directory>\nScriptAlias /run {files}/run\n\
             ProxyPass /there/ http://127.0.0.1:{behind}/\n\
             KeepAliveTimeout 300\nMaxKeepAliveRequests 0\nEnableSendfile On\nStartServers 3\n\
             <IfModule mpm_prefork_module>\nStartServers 50\nMaxSpareServers 60\n</IfModule>\n"
        ),
    );
    let mut command = node.command(Mode::Accelerated, apache);
    // Processes of another user have no access to the build folder.
    command.env("FREEPORT_PRELOAD", node.library());
    command.arg("-DFOREGROUND").arg("-f").arg(settings);
    (node.serve("apache2", command, port), port)
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn apache_serves_and_runs_and_leads_on_with_threads_and_with_processes() {
    let Some(apache) = find_or_skip("apache2") else { return };
    for way in [["event", "cgid"], ["prefork", "cgi"]] {
        let (node, _monitor) = Node::new();
        let behind = nginx::begin(&node, "behind", &PLAIN);
        let (mut server, port) = begin(&node, &apache, way, behind.port);
        visit(&node, port);
        let argument = format!("{port} there/");
        node.role(Mode::Accelerated, "http client", &argument).finish();
        nginx::load_with_wrk(&node, port, "there/4096");
        node.write("sent", content(3, 1 << 20));
        let ask = format!(
            "(sha256sum < sent; head -c 2000000 /dev/zero) > expected
             for n in 1 2 3 4 5; do
               curl -sS --fail --data-binary @sent -o got http://127.0.0.1:{port}/run
               cmp expected got; rm got
             done"
        );
        shell(&node, Mode::Accelerated, &ask);
        replace_processes(&node, &mut server, port);
        server.signal(libc::SIGTERM);
        assert!(server.wait().success(), "{}", server.printed());
        behind.quit(&node, "behind");
        let errors = fs::read_to_string(node.path().join("errors")).expect("there are errors");
        for complaint in ["exit signal", "error]", "crit]", "alert]"] {
            assert!(!errors.contains(complaint), "{errors}");
        }
    }
}

/// Processes are replaced after they have answered.
fn replace_processes(node: &Node, server: &mut Program, port: u16) {
    let stop = node.path().join("stop");
    let argument = format!("{port} {}", stop.display());
    let mut clients = node.role(Mode::Accelerated, "http load", &argument);
    for _ in 0..5 {
        nginx::await_load(node, &mut clients);
        server.signal(libc::SIGUSR1);
    }
    nginx::await_load(node, &mut clients);
    assert_eq!(clients.ended(), None, "{}", clients.printed());
    fs::write(stop, "").expect("it can be written");
    clients.finish();
}
