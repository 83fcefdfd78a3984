// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters over HTTP, for Prometheus: `GET /metrics`. It implements as much of HTTP/1.1 as a
//! scraper uses: one request per connection, limited in bytes and time.
//!
//! Each client has a thread, so none waits for another. Their number is limited: when one more
//! connects, the client that has been connected longest without completing its request, or else
//! without reading its answer, is disconnected.

use super::handle::Answer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes of a request's head.
const MOST_HEAD_BYTES: usize = 8 << 10;
/// Maximum time of a client, from its connection to the last byte of its answer.
const MOST_TIME: Duration = Duration::from_secs(2);
/// Maximum number of clients served at once.
const MOST_CLIENTS: usize = 16;

/// Serves the text that `counters` returns at `address`, for the lifetime of the process. Returns
/// the address, with the port that the system chose if none was given.
///
/// # Errors
/// The address cannot be bound, or no thread can be started.
pub fn serve_metrics(
    address: SocketAddr,
    counters: impl Fn() -> Answer + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let (clients, counters) = (Clients::default(), Arc::new(counters));
    let serve = move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => clients.serve(stream, counters.clone()),
                // No descriptors, or no memory: a later attempt may succeed.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    };
    std::thread::Builder::new().name("metrics".into()).spawn(serve)?;
    Ok(address)
}

/// State of a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Asks,
    Reads,
    /// The server is collecting the counters, which does not count against the client's time.
    Waits,
}

/// The clients that are being served.
#[derive(Clone, Default)]
struct Clients(Arc<Mutex<Served>>);

#[derive(Default)]
struct Served {
    next: u64,
    /// Oldest client first.
    streams: BTreeMap<u64, (Phase, TcpStream)>,
}

impl Clients {
    /// Serves a client in a thread of its own. If no thread can be started, the client is
    /// disconnected.
    fn serve(
        &self,
        mut stream: TcpStream,
        counters: Arc<impl Fn() -> Answer + Send + Sync + 'static>,
    ) {
        let Some(client) = self.enter(&stream) else { return };
        let thread = std::thread::Builder::new().name("metrics-client".into());
        // An error of a scraper's connection ends only that connection.
        let _ = thread.spawn(move || answer(&mut stream, &client, &*counters));
    }

    /// Makes room for a client. Returns none if all others wait for the counters.
    fn enter(&self, stream: &TcpStream) -> Option<Client> {
        let copy = stream.try_clone().ok()?;
        let mut served = self.served();
        if served.streams.len() >= MOST_CLIENTS {
            let phases = served.streams.iter().map(|(id, (phase, _))| (*phase, *id));
            let (_, oldest) = phases.filter(|(phase, _)| *phase != Phase::Waits).min()?;
            let (_, stream) = served.streams.remove(&oldest)?;
            // Its thread sees the end of the stream. If the client has already disconnected,
            // nothing is left to do.
            let _ = stream.shutdown(Shutdown::Both);
        }
        let id = served.next;
        served.next += 1;
        served.streams.insert(id, (Phase::Asks, copy));
        Some(Client { clients: self.clone(), id })
    }

    /// Locks the list. No code panics while holding the lock, and the data stay consistent if it
    /// did.
    fn served(&self) -> MutexGuard<'_, Served> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among the served clients; dropping it frees the place.
struct Client {
    clients: Clients,
    id: u64,
}

impl Client {
    fn is_about(&self, phase: Phase) {
        if let Some((before, _)) = self.clients.served().streams.get_mut(&self.id) {
            *before = phase;
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.clients.served().streams.remove(&self.id);
    }
}

fn answer(
    stream: &mut TcpStream,
    client: &Client,
    counters: &impl Fn() -> Answer,
) -> io::Result<()> {
    let until = Instant::now() + MOST_TIME;
    let head = head(stream, until)?;
    client.is_about(Phase::Waits);
    let (status, kind, body) = response(&head, counters);
    client.is_about(Phase::Reads);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    // The counters may have taken long, which does not count against the client's time.
    let until = until.max(Instant::now() + MOST_TIME / 2);
    write_all(stream, head.as_bytes(), until)?;
    write_all(stream, body.as_bytes(), until)
}

/// Returns the time left until then.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Writes all bytes, at most until then, however slowly they are read.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the request up to its empty line, or up to the maximum length.
fn head(stream: &mut TcpStream, until: Instant) -> io::Result<Vec<u8>> {
    let mut head = vec![];
    let mut piece = [0; 1_024];
    let is_whole = |head: &[u8]| head.windows(4).any(|four| four == b"\r\n\r\n");
    while !is_whole(&head) && head.len() < MOST_HEAD_BYTES {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut piece)? {
            0 => break,
            count => head.extend_from_slice(&piece[..count]),
        }
    }
    Ok(head)
}

/// Returns status, content type and body of the response to a request.
fn response(head: &[u8], counters: &impl Fn() -> Answer) -> (&'static str, &'static str, String) {
    let text = "text/plain";
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    if method != Some(b"GET") {
        return ("405 Method Not Allowed", text, "only GET\n".into());
    }
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    if path != b"/metrics" {
        return ("404 Not Found", text, "counters are at /metrics\n".into());
    }
    match counters() {
        Ok(Value::String(counters)) => ("200 OK", "text/plain; version=0.0.4", counters),
        Ok(_) => ("500 Internal Server Error", text, "no counters\n".into()),
        Err(error) => ("503 Service Unavailable", text, error + "\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::handle::Progress;
    use crate::server::{Request, StatsFormat, jobs};
    use freeport_testbed::wait::PATIENCE;
    use freeport_testbed::wait_until;
    use serde_json::json;
    use std::sync::mpsc::channel;

    /// Returns status line and body of the response to these bytes.
    fn asked(address: SocketAddr, request: &[u8]) -> (String, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    #[test]
    fn counters_are_at_their_path_and_nothing_else_is_anywhere() {
        let (handle, mut jobs) = jobs().unwrap();
        let counters = move || handle.ask(Request::Stats(StatsFormat::Prometheus));
        let address = serve_metrics("127.0.0.1:0".parse().unwrap(), counters).unwrap();
        let worker = std::thread::spawn(move || {
            let mut is_served = false;
            while !is_served {
                jobs.serve(Duration::ZERO, |request: Request, _| {
                    assert_eq!(request, Request::Stats(StatsFormat::Prometheus));
                    is_served = true;
                    Progress::Done(Ok(json!("freeport_frames_total 7\n")))
                });
                std::thread::yield_now();
            }
        });
        let (status, body) = asked(address, b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((&status[..], &body[..]), ("HTTP/1.1 200 OK", "freeport_frames_total 7\n"));
        worker.join().unwrap();
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "HTTP/1.1 404 Not Found"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"),
            (b"", "HTTP/1.1 405 Method Not Allowed"),
            (b"GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 503 Service Unavailable"),
        ] {
            assert_eq!(asked(address, request).0, status);
        }
        let long = [b"GET /", &[b'x'; 2 * MOST_HEAD_BYTES][..]].concat();
        let mut stream = TcpStream::connect(address).unwrap();
        // It answers before it has read everything, and then closes: the client may see either
        // first.
        let _ = stream.write_all(&long);
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 404"));
        assert_eq!(asked(address, b"GET /x HTTP/1.1\r\n\r\n").0, "HTTP/1.1 404 Not Found");
    }

    #[test]
    fn a_client_that_waits_for_counters_holds_up_no_others() {
        let (done, is_done) = channel();
        let is_done = Mutex::new(is_done);
        let counters = move || {
            is_done.lock().unwrap().recv_timeout(PATIENCE).expect("the other one is answered");
            Ok(json!("late\n"))
        };
        let address = serve_metrics("127.0.0.1:0".parse().unwrap(), counters).unwrap();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(asked(address, b"GET /x HTTP/1.1\r\n\r\n").0, "HTTP/1.1 404 Not Found");
        done.send(()).unwrap();
        let mut answer = String::new();
        slow.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("late\n"), "{answer}");
    }

    #[test]
    fn slow_clients_are_cut_off_for_others() {
        let long = "x".repeat(64 << 20);
        let counters = move || Ok(json!(long));
        let address = serve_metrics("127.0.0.1:0".parse().unwrap(), counters).unwrap();
        let connect = |_| TcpStream::connect(address).unwrap();
        // Some do not read, others send nothing.
        let mut slow: Vec<TcpStream> = (0..MOST_CLIENTS / 2).map(connect).collect();
        for stream in &mut slow {
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        }
        slow.extend((0..4 * MOST_CLIENTS).map(connect));
        assert_eq!(asked(address, b"GET /x HTTP/1.1\r\n\r\n").0, "HTTP/1.1 404 Not Found");
        for mut silent in slow.split_off(MOST_CLIENTS / 2) {
            silent.set_read_timeout(Some(PATIENCE)).unwrap();
            match silent.read(&mut [0]) {
                Ok(count) => assert_eq!(count, 0, "it has not asked"),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
            }
        }
        // They find their connections closed without having read half of the answer.
        for mut stream in slow {
            wait_until("it is cut off", || stream.write_all(b"?").is_err());
        }
    }
}
