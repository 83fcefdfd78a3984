// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that are made and closed. The server closes first, so that ports stay free on the
//! client.

use crate::between::desk::Desk;
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// Connections to one listener that count as first ones.
const FIRST: u64 = 24;
/// Connections made before those that count as repeated.
const BEFORE: u64 = 500;

/// Connects `count` times, to another listener after every few connections: the last connection to
/// each announces the next port.
///
/// # Errors
/// A connection fails, or has unexpected data.
pub fn connect(mut port: u16, count: u64, desk: &Desk) -> Result<()> {
    desk.meet(2);
    desk.begin();
    for number in 1..=count {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        if number % FIRST == 0 {
            let mut next = [0; 2];
            stream.read_exact(&mut next)?;
            port = u16::from_ne_bytes(next);
        }
        ensure!(stream.read(&mut [0])? == 0, "an unexpected byte arrived");
    }
    desk.end();
    Ok(())
}

/// The server of [`connect`].
///
/// # Errors
/// A connection fails.
pub fn accept(mut listener: TcpListener, count: u64, desk: &Desk) -> Result<()> {
    desk.meet(2);
    for number in 1..=count {
        let (mut stream, _) = listener.accept()?;
        if number % FIRST == 0 {
            let next = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .context("no other port can be listened on")?;
            stream.write_all(&next.local_addr()?.port().to_ne_bytes())?;
            listener = next;
        }
    }
    Ok(())
}

/// Connects `count` times to the same listener, after some connections that are not counted.
///
/// # Errors
/// A connection fails, or has unexpected data.
pub fn reconnect(port: u16, count: u64, desk: &Desk) -> Result<()> {
    desk.meet(2);
    make(port, BEFORE)?;
    desk.begin();
    make(port, count)?;
    desk.end();
    Ok(())
}

fn make(port: u16, count: u64) -> Result<()> {
    for _ in 0..count {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        ensure!(stream.read(&mut [0])? == 0, "an unexpected byte arrived");
    }
    Ok(())
}

/// The server of [`reconnect`].
///
/// # Errors
/// A connection fails.
pub fn reaccept(listener: &TcpListener, count: u64, desk: &Desk) -> Result<()> {
    desk.meet(2);
    for _ in 0..BEFORE + count {
        drop(listener.accept()?);
    }
    Ok(())
}
