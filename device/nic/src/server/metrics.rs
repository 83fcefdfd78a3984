// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters over HTTP, for Prometheus: `GET /metrics`. It is as much of HTTP/1.1 as a scraper uses:
//! one request a connection, bounded in bytes and time.

use super::handle::Answer;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Most bytes of a request's head.
const MOST_HEAD_BYTES: usize = 8 << 10;
/// How long a client may take.
const MOST_TIME: Duration = Duration::from_secs(2);

/// Serves at `address`, for as long as the process lives, the text that `counters` gives; gives the
/// address, with the port that the system chose where none was.
///
/// # Errors
/// The address cannot be had, or no thread.
pub fn serve_metrics(
    address: SocketAddr,
    counters: impl Fn() -> Answer + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let serve = move || {
        for stream in listener.incoming() {
            match stream {
                // What goes wrong with a scraper's connection is the scraper's end.
                Ok(mut stream) => drop(answer(&mut stream, &counters)),
                // No descriptors, or no memory: they may come back.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    };
    std::thread::Builder::new().name("metrics".into()).spawn(serve)?;
    Ok(address)
}

fn answer(stream: &mut TcpStream, counters: &impl Fn() -> Answer) -> io::Result<()> {
    stream.set_write_timeout(Some(MOST_TIME))?;
    let head = head(stream)?;
    let (status, kind, body) = response(&head, counters);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The request up to its empty line, or as much of it as there may be.
fn head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let begin = Instant::now();
    let mut head = vec![];
    let mut piece = [0; 1_024];
    let is_whole = |head: &[u8]| head.windows(4).any(|four| four == b"\r\n\r\n");
    while !is_whole(&head) && head.len() < MOST_HEAD_BYTES {
        let left = MOST_TIME.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => break,
            count => head.extend_from_slice(&piece[..count]),
        }
    }
    Ok(head)
}

/// Status, kind and body of what answers a request.
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
    use serde_json::json;

    /// Status line and body of the answer to these bytes.
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
        // It answers before it has read all, and then closes: either may be seen first.
        let _ = stream.write_all(&long);
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 404"));
        assert_eq!(asked(address, b"GET /x HTTP/1.1\r\n\r\n").0, "HTTP/1.1 404 Not Found");
    }
}
