// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A caller that has a Redis server run the commands of scripts.

use super::server::{Connection, Server};
use freeport_kv_protocol::resp::{Version, Writer};
use freeport_kv_scripting::{Caller, Flags, LogLevel, StopReason};

/// Forwards commands.
pub struct Forward {
    two: Connection,
    three: Connection,
    refuses_writes: bool,
    pub read_only: bool,
    pub log: Vec<(LogLevel, String)>,
}

const WRITES: [&[u8]; 8] =
    [b"set", b"incr", b"lpush", b"rpush", b"hset", b"sadd", b"zadd", b"lpop"];

impl Forward {
    pub fn new(server: &Server) -> Self {
        Self {
            two: server.connect(Version::Two),
            three: server.connect(Version::Three),
            refuses_writes: false,
            read_only: false,
            log: vec![],
        }
    }

    pub fn connection(&mut self, version: Version) -> &mut Connection {
        match version {
            Version::Two => &mut self.two,
            Version::Three => &mut self.three,
        }
    }
}

impl Caller for Forward {
    fn begin(&mut self, flags: Flags) -> Result<(), String> {
        self.refuses_writes = self.read_only || flags.contains(Flags::NO_WRITES);
        Ok(())
    }

    fn call(&mut self, arguments: &[&[u8]], version: Version, reply: &mut Vec<u8>) {
        let name = arguments[0].to_ascii_lowercase();
        let mut fail = |text: &str| Writer::new(reply, version).error(text);
        if [&b"multi"[..], b"eval", b"fcall"].contains(&&name[..]) {
            return fail("ERR This Redis command is not allowed from script");
        }
        // The number of arguments is checked before the right to write.
        if self.refuses_writes
            && WRITES.contains(&&name[..])
            && arguments.len() > usize::from(name == b"set") + 1
        {
            return fail("ERR Write commands are not allowed from read-only scripts.");
        }
        let replied = self.connection(version).call(arguments);
        if replied.starts_with(b"-ERR unknown command") {
            fail("ERR Unknown Redis command called from script");
        } else if replied.starts_with(b"-ERR wrong number of arguments for") {
            fail("ERR Wrong number of args calling Redis command from script");
        } else {
            reply.extend_from_slice(&replied);
        }
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        self.log.push((level, String::from_utf8_lossy(text).into_owned()));
    }

    fn is_allowed(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        // The only unknown command of the samples.
        (arguments[0] != b"foo").then_some(true)
    }

    fn interrupt(&mut self) -> Option<StopReason> {
        None
    }
}
