// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a client finds the node that has its keys: it asks one after the other and follows their
//! answers.

use std::io;
use std::net::SocketAddr;

use freeport_kv_protocol::resp::Value;

use super::connection::Connection;
use super::connection::{Answer, Waiting};
use crate::crash::model::Times;
use crate::crash::reading::{Reading, now_ms, read_keys};

/// Nodes that are asked, whether they are there or not.
#[derive(Clone, Debug)]
pub struct Routes(pub Vec<SocketAddr>);

impl Routes {
    /// Connects to the node that executes commands on a key; none if there is none at present, or
    /// if it is the node to avoid, which is not asked.
    pub fn find(&self, key: &str, avoided: Option<SocketAddr>) -> Option<Connection> {
        let asked = self.0.iter().filter(|address| Some(**address) != avoided);
        asked.filter_map(|address| follow(*address, key, avoided).ok()).flatten().next()
    }
}

fn follow(
    mut address: SocketAddr,
    key: &str,
    avoided: Option<SocketAddr>,
) -> io::Result<Option<Connection>> {
    // Nodes may disagree for a moment, so the way has an end.
    for _ in 0..3 {
        let mut connection = Connection::new(address)?;
        match ask(&mut connection, key)? {
            Answer::Reply(_) => return Ok(Some(connection)),
            Answer::Refused(Some(other)) if Some(other) != avoided => address = other,
            Answer::Refused(_) => return Ok(None),
        }
    }
    Ok(None)
}

fn ask(connection: &mut Connection, key: &str) -> io::Result<Answer> {
    connection.send(Waiting::Look, key);
    Ok(connection.receive()?.1)
}

/// Reads all keys with a prefix, if the node has their slot from the begin to the end.
///
/// # Errors
/// The node has ended, or refuses.
pub fn read(connection: &mut Connection, prefix: &str) -> io::Result<Option<Reading>> {
    let has_slot = |connection: &mut Connection| match ask(connection, prefix) {
        Ok(answer) => Ok(answer == Answer::Reply(Value::Null)),
        Err(error) => Err(error),
    };
    let earliest_ms = now_ms();
    if !has_slot(connection)? {
        return Ok(None);
    }
    let entries = read_keys(&mut connection.client, &format!("{prefix}*"))?;
    let times = Times { earliest_ms, latest_ms: now_ms() };
    Ok(has_slot(connection)?.then_some(Reading { entries, times }))
}
