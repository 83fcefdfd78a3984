// SPDX-License-Identifier: Apache-2.0 OR MIT
//! nginx: a master with workers of another user, files, uploads, and another nginx as upstream.

use crate::harness::{Mode, Node, Program, content, find, free_port, is_long, wait_until};
use crate::http::{Connection, read_head};
use crate::nginx_upgrade::children;
use crate::roles;
use std::fs;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Sizes of the files that it serves.
pub const SIZES: [usize; 8] = [0, 1, 64, 4096, 65_536, 100_000, 1 << 20, 8 << 20];

/// Number of bytes after which the load on a server suffices.
const LOAD: u64 = 256 << 10;

/// A server with its upstream.
pub struct Site {
    program: Program,
    pub port: u16,
}

/// Differences between tests.
pub struct Settings<'a> {
    /// Directives outside of blocks.
    pub directives: &'a str,
    pub workers: usize,
    pub has_sendfile: bool,
    /// Further blocks inside `http`, and locations of the server.
    pub blocks: &'a str,
    pub locations: &'a str,
}

pub const PLAIN: Settings = Settings {
    directives: "daemon off;",
    workers: 1,
    has_sendfile: true,
    blocks: "",
    locations: "",
};

pub fn begin(node: &Node, name: &str, settings: &Settings) -> Site {
    let (command, port) = configure(node, name, settings);
    Site { program: node.serve(name, command, port), port }
}

/// The command that starts it, and its port.
pub fn configure(node: &Node, name: &str, settings: &Settings) -> (Command, u16) {
    let port = free_port();
    let folder = node.path().join(name);
    let files = folder.join("files");
    fs::create_dir_all(&files).expect("they can be made");
    // Workers run as another user if this process is root.
    for path in [&folder, &files] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
    for size in SIZES {
        fs::write(files.join(size.to_string()), content(1, size)).expect("it can be written");
    }
    let Settings { directives, workers, has_sendfile, blocks, locations } = settings;
    let sendfile = if *has_sendfile { "on" } else { "off" };
    let at = folder.display();
    let text = format!(
        "{directives} worker_processes {workers}; pid {at}/pid; error_log {at}/errors error;
         worker_shutdown_timeout 60s;
         events {{ worker_connections 512; }}
         http {{
           access_log off; sendfile {sendfile}; keepalive_requests 1000000;
           client_max_body_size 64m; client_body_temp_path {at}/body;
           proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u;
           scgi_temp_path {at}/s;
           {blocks}
           server {{ listen 127.0.0.1:{port}; root {at}/files; {locations} }}
         }}"
    );
    fs::write(folder.join("conf"), text).expect("it can be written");
    let nginx = find("nginx").expect("nginx is installed: scripts/install.sh");
    let mut command = node.command(Mode::Accelerated, &nginx);
    command.arg("-c").arg(folder.join("conf"));
    (command, port)
}

impl Site {
    /// Stops it gracefully: it answers requests that it has received.
    pub fn quit(mut self, node: &Node, name: &str) {
        self.program.signal(libc::SIGQUIT);
        assert!(self.program.wait().success());
        let errors = fs::read_to_string(node.path().join(name).join("errors"));
        assert_eq!(errors.expect("there are errors to read"), "");
    }
}

pub fn load_with_wrk(node: &Node, port: u16, path: &str) {
    let wrk = find("wrk").expect("wrk is installed: scripts/install.sh");
    let mut command = node.command(Mode::Accelerated, &wrk);
    // Until all of its connections are accelerated and carry data.
    command.args(["-c", "20", "-t", "2", "-d", "1h"]);
    command.arg(format!("http://127.0.0.1:{port}/{path}"));
    let mut wrk = node.start("wrk", command);
    let pid = wrk.pid();
    wrk.wait_until("all leave the kernel", || node.accelerated_by(pid) >= 20);
    let before = node.moved().bytes;
    let bytes = if is_long() { 64 << 20 } else { 4 << 20 };
    wrk.wait_until("they are used there", || node.moved().bytes >= before + bytes);
    wrk.signal(libc::SIGINT);
    let printed = wrk.finish();
    assert!(printed.contains(" requests in "), "{printed}");
    for complaint in ["Socket errors", "Non-2xx"] {
        assert!(!printed.contains(complaint), "{path}: {printed}");
    }
}

#[test]
fn files_come_as_they_are_from_one_worker_and_from_four() {
    for (workers, has_sendfile) in [(1, true), (4, false)] {
        let (node, _monitor) = Node::new();
        let site = begin(&node, "nginx", &Settings { workers, has_sendfile, ..PLAIN });
        let argument = format!("{} files", site.port);
        node.run_until_moved(1, 16 << 20, || {
            node.role(Mode::Accelerated, "http client", &argument).finish();
        });
        // Plain clients get the same from it, through the kernel.
        let before = node.moved();
        node.role(Mode::Plain, "http client", &argument).finish();
        assert_eq!(node.moved().bytes, before.bytes);
        for size in ["64", "100000", "1048576"] {
            load_with_wrk(&node, site.port, size);
        }
        site.quit(&node, "nginx");
    }
}

#[test]
fn bodies_reach_what_is_behind_a_proxy() {
    let (node, _monitor) = Node::new();
    let behind = begin(&node, "behind", &Settings { workers: 2, ..PLAIN });
    let (echo_port, to_files) = (free_port(), behind.port);
    let echo = node.role(Mode::Accelerated, "http echo", &echo_port.to_string());
    let blocks = format!(
        "upstream files {{ server 127.0.0.1:{to_files}; keepalive 8; }}
         upstream echo {{ server 127.0.0.1:{echo_port}; keepalive 8; }}
         proxy_http_version 1.1; proxy_set_header Connection '';"
    );
    let locations = "location /files/ { proxy_pass http://files/; }
         location /echo { proxy_pass http://echo; }
         location /put/ { root PUT; dav_methods PUT DELETE; create_full_put_path on; }";
    let locations = locations.replace("PUT;", &format!("{}/before;", node.path().display()));
    let settings = Settings { blocks: &blocks, locations: &locations, ..PLAIN };
    let site = begin(&node, "before", &settings);
    // Connections between the client and the proxy, and between the proxy and its upstream, if it
    // has one.
    for (what, connections) in [("files/", 2), ("echo", 2), ("put/", 1)] {
        let argument = format!("{} {what}", site.port);
        node.run_until_moved(connections, 16 << 20, || {
            node.role(Mode::Accelerated, "http client", &argument).finish();
        });
    }
    load_with_wrk(&node, site.port, "files/4096");
    site.quit(&node, "before");
    behind.quit(&node, "behind");
    drop(echo);
}

#[test]
fn what_is_behind_a_proxy_listens_on_a_path() {
    let (node, _monitor) = Node::new();
    let (path, files) = (node.path().join("behind/socket"), node.path().join("behind/files"));
    let (path, files) = (path.display(), files.display());
    let blocks = format!("server {{ listen unix:{path}; root {files}; }}");
    let behind = begin(&node, "behind", &Settings { blocks: &blocks, ..PLAIN });
    let blocks = format!(
        "upstream files {{ server unix:{path}; keepalive 8; }}
         proxy_http_version 1.1; proxy_set_header Connection '';"
    );
    let locations = "location /files/ { proxy_pass http://files/; }";
    let site = begin(&node, "before", &Settings { blocks: &blocks, locations, ..PLAIN });
    let argument = format!("{} files/", site.port);
    node.run_until_moved(2, 16 << 20, || {
        node.role(Mode::Accelerated, "http client", &argument).finish();
    });
    // Connections that are not between the client and the proxy are those to the Unix socket.
    let is_unix = |it: &serde_json::Value| !it["ends"].to_string().contains("127.0.0.1");
    wait_until("the path is past the kernel", || {
        load_with_wrk(&node, site.port, "files/4096");
        node.connections().iter().any(is_unix)
    });
    site.quit(&node, "before");
    behind.quit(&node, "behind");
}

/// Waits until clients have accelerated connections with the current workers.
pub fn await_load(node: &Node, clients: &mut Program) {
    let before = node.moved().bytes;
    clients.wait_until("they are served", || node.moved().bytes >= before + LOAD);
}

#[test]
fn new_workers_take_over_under_load() {
    let (node, _monitor) = Node::new();
    let site = begin(&node, "nginx", &Settings { workers: 2, ..PLAIN });
    let stop = node.path().join("stop");
    let argument = format!("{} {}", site.port, stop.display());
    let mut clients = node.role(Mode::Accelerated, "http load", &argument);
    for _ in 0..if is_long() { 20 } else { 3 } {
        let old = children(site.program.pid());
        await_load(&node, &mut clients);
        site.program.signal(libc::SIGHUP);
        clients.wait_until("the new workers have begun", || {
            let all = children(site.program.pid());
            all.iter().filter(|it| !old.contains(it)).count() >= 2
        });
    }
    await_load(&node, &mut clients);
    clients.wait_until("all leave the kernel", || {
        let moved = node.moved();
        moved.connections >= 4 && moved.bytes > 1 << 20
    });
    fs::write(stop, "").expect("it can be written");
    clients.finish();
    site.quit(&node, "nginx");
}

fn port_and_rest(argument: &str) -> (u16, &str) {
    let (port, rest) = argument.split_once(' ').expect("two words");
    (port.parse().expect("a port"), rest)
}

/// Role: downloads and uploads bodies, and checks each byte.
pub fn client(argument: &str) {
    let (port, what) = port_and_rest(argument);
    for continues in [true, false] {
        let mut connection = Connection::open(port).expect("it can be connected");
        for round in 0..if is_long() { 20 } else { 2 } {
            for size in SIZES {
                if !continues {
                    connection = Connection::open(port).expect("it can be connected");
                }
                ask(&mut connection, what, &format!("{round}-{size}"), size, continues);
            }
        }
        if !continues {
            continue;
        }
        wait_until("it leaves the kernel, if it can", || {
            ask(&mut connection, what, "again", 4096, true);
            connection.is_accelerated() == roles::is_preloaded()
        });
    }
}

/// Downloads a file, or uploads it to `name` and downloads it again.
fn ask(connection: &mut Connection, what: &str, name: &str, size: usize, continues: bool) {
    let sent = content(1, size);
    let got = match what {
        "echo" => connection.ask("POST", "/echo", &sent, continues),
        "put/" => {
            let path = format!("/put/{name}-{continues}");
            let put = connection.ask("PUT", &path, &sent, true).expect("put");
            // Created, or replaced.
            assert!([201, 204].contains(&put.status), "{}", put.status);
            connection.get(&path, continues)
        }
        "files" => connection.get(&format!("/{size}"), continues),
        folder => connection.get(&format!("/{folder}{size}"), continues),
    };
    let got = got.expect("it is answered");
    assert_eq!(got.status, 200);
    assert!(got.body == sent, "{size} bytes have changed");
}

/// Role: sends requests over several connections until a file exists; closed connections are opened
/// again.
pub fn load(argument: &str) {
    let (port, stop) = port_and_rest(argument);
    let stops = AtomicBool::new(false);
    let sent = content(1, 4096);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stops.load(Ordering::Relaxed) {
                    ask_until_the_end(port, &sent, &stops);
                }
            });
        }
        wait_until("it is told to stop", || fs::exists(stop).unwrap_or(false));
        stops.store(true, Ordering::Relaxed);
    });
}

/// Sends requests over one connection until it ends, which is allowed only between two answers.
fn ask_until_the_end(port: u16, sent: &[u8], stops: &AtomicBool) {
    let mut connection = Connection::open(port).expect("it can be connected");
    let mut answers = 0;
    while !stops.load(Ordering::Relaxed) {
        match connection.get("/4096", true) {
            Ok(answer) => {
                assert!((answer.status, &*answer.body) == (200, sent), "another answer");
                answers += 1;
                if !answer.continues {
                    return;
                }
            }
            // A request that arrives while the server closes is not read.
            Err(error) => {
                let ends =
                    [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
                assert!(answers > 0 && ends.contains(&error.kind()), "{error:?}");
                return;
            }
        }
    }
}

/// Role: an echo server.
pub fn echo(port: &str) {
    let port: u16 = port.parse().expect("a port");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let stream = stream.expect("somebody comes");
            scope.spawn(move || {
                let mut reader = BufReader::new(stream);
                while let Ok((_, length, _)) = read_head(&mut reader) {
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).expect("the body comes");
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                    reader.get_mut().write_all(head.as_bytes()).expect("it can be sent");
                    reader.get_mut().write_all(&body).expect("it can be sent");
                }
            });
        }
    });
}
