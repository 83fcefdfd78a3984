// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that names itself: `/` returns its name, `/bytes/N` returns N bytes, and every answer
//! has the name in `X-Backend`.

use super::super::{Host, PATIENCE, Service};
use super::{field, read_head};
use anyhow::Result;
use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum size of `/bytes/N`.
const MOST_BYTES: usize = 16 << 20;

/// A running server; it ends when it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    counts: Arc<Counts>,
    _service: Service,
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
}

impl HttpServer {
    /// Listens on all addresses of a host, under a name.
    ///
    /// # Errors
    /// The port is in use.
    pub fn start(host: &Host, port: u16, name: &str) -> Result<Self> {
        let counts = Arc::new(Counts::default());
        let service = Service::start(host, port, {
            let (counts, name) = (Arc::clone(&counts), name.to_owned());
            move |stream| {
                counts.connections.fetch_add(1, Ordering::Relaxed);
                // The client reports broken connections.
                drop(serve(&stream, &name, &counts));
            }
        })?;
        Ok(Self { counts, _service: service })
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::Relaxed)
    }

    /// Returns the number of requests answered so far.
    pub fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::Relaxed)
    }
}

/// Serves requests until the client closes, or requests that.
fn serve(stream: &TcpStream, name: &str, counts: &Counts) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    while let Some(head) = read_head(&mut reader)? {
        let is_last = field(&head, "connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
        let (status, body) = answer(&head[0], name);
        let mut response =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nX-Backend: {name}\r\n", body.len());
        response += if is_last { "Connection: close\r\n\r\n" } else { "\r\n" };
        let mut writer = stream;
        // Counted before the answer, so that a client that has the answer finds it counted.
        counts.requests.fetch_add(1, Ordering::Relaxed);
        writer.write_all(&[response.as_bytes(), &body].concat())?;
        if is_last {
            break;
        }
    }
    Ok(())
}

fn answer(request: &str, name: &str) -> (&'static str, Vec<u8>) {
    let mut words = request.split(' ');
    let (Some("GET"), Some(path), Some("HTTP/1.1")) = (words.next(), words.next(), words.next())
    else {
        return ("400 Bad Request", vec![]);
    };
    if path == "/" {
        return ("200 OK", format!("{name}\n").into_bytes());
    }
    let bytes = path.strip_prefix("/bytes/").and_then(|number| number.parse().ok());
    match bytes.filter(|bytes| *bytes <= MOST_BYTES) {
        Some(bytes) => ("200 OK", vec![b'x'; bytes]),
        None => ("404 Not Found", vec![]),
    }
}
