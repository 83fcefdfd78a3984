// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that echoes what it receives, over any number of connections, until it is killed.

use super::epoll::Epoll;
use anyhow::Result;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Number of the listener; connections have others.
const LISTENER: usize = 0;

/// Serves forever.
///
/// # Errors
/// The system fails; connections that fail are closed.
pub fn serve(listener: &TcpListener) -> Result<()> {
    let epoll = Epoll::new()?;
    epoll.add(listener, LISTENER)?;
    let mut connections: HashMap<usize, TcpStream> = HashMap::new();
    let mut buffer = vec![0; 1 << 16];
    let mut next = LISTENER;
    loop {
        for number in epoll.wait(-1)? {
            if number == LISTENER {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                next += 1;
                epoll.add(&stream, next)?;
                connections.insert(next, stream);
            } else if let Some(stream) = connections.get_mut(&number) {
                let is_open = match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => false,
                    Ok(count) => stream.write_all(&buffer[..count]).is_ok(),
                };
                if !is_open {
                    connections.remove(&number);
                }
            }
        }
    }
}
