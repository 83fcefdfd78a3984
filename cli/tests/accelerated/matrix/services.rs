// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Application servers behind a web server.

use super::web::{files, visit};
use crate::harness::{Mode, Node, find_or_skip, free_port};
use crate::nginx::{self, PLAIN, Settings};

/// The application, with the WSGI interface.
const ANSWERS: &str = "
import os
def application(environ, start_response):
    name = environ['PATH_INFO'].strip('/')
    with open(os.path.join(FOLDER, name), 'rb') as file:
        body = file.read()
    start_response('200 OK', [('Content-Length', str(len(body)))])
    return [body]
";

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn uwsgi_answers_behind_nginx() {
    let Some(uwsgi) = find_or_skip("uwsgi-core") else { return };
    let (node, _monitor) = Node::new();
    let (port, files) = (free_port(), files(&node));
    node.write("answers.py", ANSWERS.replace("FOLDER", &format!("'{}'", files.display())));
    let mut command = node.command(Mode::Accelerated, &uwsgi);
    command.args(["--plugin", "python3", "--master", "--processes", "2", "--die-on-term"]);
    command.args(["--socket", &format!("127.0.0.1:{port}"), "--wsgi-file", "answers.py"]);
    let mut server = node.serve("uwsgi", command, port);
    let locations = format!(
        "location / {{ uwsgi_pass 127.0.0.1:{port}; uwsgi_param PATH_INFO $uri;
           uwsgi_param REQUEST_METHOD $request_method; }}"
    );
    let site = nginx::begin(&node, "before", &Settings { locations: &locations, ..PLAIN });
    visit(&node, site.port);
    site.quit(&node, "before");
    server.signal(libc::SIGTERM);
    server.wait();
}
