// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Web servers other than nginx, a proxy, and unmodified clients.

use crate::harness::{Mode, Node, content, find_or_skip, free_port};
use crate::nginx::{self, PLAIN, SIZES, Settings, load_with_wrk};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A folder with the files of a server.
pub fn files(node: &Node) -> PathBuf {
    let folder = node.path().join("files");
    fs::create_dir(&folder).expect("it can be made");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("it is ours");
    for size in SIZES {
        fs::write(folder.join(size.to_string()), content(1, size)).expect("it can be written");
    }
    folder
}

/// Downloads every file from a server with plain and accelerated clients, and puts load on it.
pub fn visit(node: &Node, port: u16) {
    let argument = format!("{port} files");
    node.run_until_moved(1, 16 << 20, || {
        node.role(Mode::Accelerated, "http client", &argument).finish();
    });
    node.role(Mode::Plain, "http client", &argument).finish();
    for size in ["64", "65536"] {
        load_with_wrk(node, port, size);
    }
    for mode in [Mode::Accelerated, Mode::Plain] {
        load_with_ab(node, mode, port);
        download_with_wget(node, mode, port);
    }
}

fn load_with_ab(node: &Node, mode: Mode, port: u16) {
    let Some(ab) = find_or_skip("ab") else { return };
    let requests = 2000;
    for kept in [&["-k"][..], &[]] {
        let mut command = node.command(mode, &ab);
        command.args(kept).args(["-q", "-c", "10", "-n", &requests.to_string()]);
        command.arg(format!("http://127.0.0.1:{port}/4096"));
        let printed = node.start("ab", command).finish();
        let has = |name: &str, value: u32| {
            let mut lines = printed.lines().filter_map(|line| line.split_once(':'));
            lines.any(|(own, it)| own == name && it.trim() == value.to_string())
        };
        assert!(has("Complete requests", requests) && has("Failed requests", 0), "{printed}");
        assert!(!printed.contains("Non-2xx"), "{printed}");
    }
}

fn download_with_wget(node: &Node, mode: Mode, port: u16) {
    let Some(wget) = find_or_skip("wget") else { return };
    let mut command = node.command(mode, &wget);
    // All over one connection.
    command.args(["-q", "--tries=1", "-P", "got"]);
    command.args(SIZES.map(|size| format!("http://127.0.0.1:{port}/{size}")));
    node.start("wget", command).finish();
    for size in SIZES {
        let got = fs::read(node.path().join(format!("got/{size}"))).expect("it was written");
        assert!(got == content(1, size), "{size} bytes have changed");
    }
    fs::remove_dir_all(node.path().join("got")).expect("it is ours");
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn lighttpd_serves_in_all_its_ways() {
    let Some(lighttpd) = find_or_skip("lighttpd") else { return };
    for (waits, sends) in [("linux-sysepoll", "sendfile"), ("poll", "writev"), ("select", "write")]
    {
        let (node, _monitor) = Node::new();
        let (port, files) = (free_port(), files(&node));
        let settings = node.write(
            "lighttpd.conf",
            format!(
                "server.document-root = \"{}\"\nserver.port = {port}\n\
                 server.bind = \"127.0.0.1\"\nserver.event-handler = \"{waits}\"\n\
                 server.network-backend = \"{sends}\"\nserver.max-keep-alive-requests = 1000000\n",
                files.display()
            ),
        );
        let mut command = node.command(Mode::Accelerated, &lighttpd);
        command.arg("-D").arg("-f").arg(settings);
        let mut server = node.serve("lighttpd", command, port);
        visit(&node, port);
        server.signal(libc::SIGINT);
        assert!(server.wait().success(), "{}", server.printed());
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn haproxy_stands_before_nginx() {
    let Some(haproxy) = find_or_skip("haproxy") else { return };
    for (mode, options) in [("http", "http-reuse always"), ("tcp", "option splice-auto")] {
        let (node, _monitor) = Node::new();
        let path = node.path().join("behind/socket");
        let blocks = format!(
            "server {{ listen unix:{}; root {}/behind/files; }}",
            path.display(),
            node.path().display()
        );
        let behind = nginx::begin(&node, "behind", &Settings { blocks: &blocks, ..PLAIN });
        let port = free_port();
        let settings = node.write(
            "haproxy.cfg",
            format!(
                "global\nnbthread 2\ndefaults\nmode {mode}\ntimeout connect 60s\n\
                 timeout client 60s\ntimeout server 60s\nlisten all\nbind 127.0.0.1:{port}\n\
                 {options}\nserver one 127.0.0.1:{}\nserver two unix@{}\n",
                behind.port,
                path.display()
            ),
        );
        let mut command = node.command(Mode::Accelerated, &haproxy);
        command.arg("-db").arg("-f").arg(settings);
        let mut server = node.serve("haproxy", command, port);
        visit(&node, port);
        // To the server behind the proxy too, by port and by path.
        let is_unix = |it: &serde_json::Value| !it["ends"].to_string().contains("127.0.0.1");
        let has_unix = node.connections().iter().any(is_unix);
        assert!(mode == "tcp" || has_unix, "{:?}", node.connections());
        server.signal(libc::SIGUSR1);
        assert!(server.wait().success(), "{}", server.printed());
        behind.quit(&node, "behind");
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn varnish_keeps_what_nginx_has_served() {
    let Some(varnish) = find_or_skip("varnishd") else { return };
    let (node, _monitor) = Node::new();
    let behind = nginx::begin(&node, "behind", &PLAIN);
    let port = free_port();
    let mut command = node.command(Mode::Accelerated, &varnish);
    command.args(["-F", "-j", "none", "-s", "malloc,64m", "-a", &format!("127.0.0.1:{port}")]);
    command.args(["-b", &format!("127.0.0.1:{}", behind.port), "-n"]).arg(node.path().join("own"));
    let mut server = node.serve("varnishd", command, port);
    visit(&node, port);
    server.signal(libc::SIGTERM);
    server.wait();
    behind.quit(&node, "behind");
}
