// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a command uses each of its keys. A user of a server may have rights to read some keys and to
//! write others, and `COMMAND GETKEYSANDFLAGS` shows the same properties.

use crate::arguments::is;
use crate::command::Flags;

/// How a command uses a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Properties as `COMMAND` names them.
    pub names: &'static [&'static str],
    /// The reply, or another key, gets something of the value.
    pub reads: bool,
    /// The value is changed or removed.
    pub writes: bool,
}

/// The access to the keys of a call, by its arguments.
type OfCall = fn(&[&[u8]]) -> Access;

/// How a command uses all of its keys.
#[derive(Clone, Copy, Debug)]
pub struct Uses {
    first: Access,
    others: Access,
    /// The words of a call decide it.
    of_call: Option<OfCall>,
}

/// Only the existence, the type or the size of the value matters.
const INSPECT: Access = access(&["RO"], false, false);
const READ: Access = access(&["RO", "access"], true, false);
const REPLACE: Access = access(&["OW", "update"], false, true);
const CREATE: Access = access(&["OW", "insert"], false, true);
const REMOVE: Access = access(&["RM", "delete"], false, true);
const INSERT: Access = access(&["RW", "insert"], false, true);
const UPDATE: Access = access(&["RW", "update"], false, true);
const DELETE: Access = access(&["RW", "delete"], false, true);
const TAKE: Access = access(&["RW", "access", "delete"], true, true);
const CHANGE: Access = access(&["RW", "access", "update"], true, true);
const MERGE: Access = access(&["RW", "access", "insert"], true, true);
/// The value has a cache, which is renewed.
const COUNT: Access = access(&["RW", "access"], true, false);

const fn access(names: &'static [&'static str], reads: bool, writes: bool) -> Access {
    Access { names, reads, writes }
}

/// Commands by the access to their first key and to their other keys. Commands that are not listed
/// read all their keys, and those marked as writes change them as well.
const USES: &[(Access, Access, &[&str])] = &[
    (
        INSPECT,
        INSPECT,
        &[
            "exists",
            "hexists",
            "hlen",
            "hstrlen",
            "llen",
            "memory|usage",
            "object|encoding",
            "object|freq",
            "object|idletime",
            "object|refcount",
            "scard",
            "sismember",
            "strlen",
            "touch",
            "type",
            "watch",
            "xlen",
            "zcard",
        ],
    ),
    (READ, READ, &["xreadgroup"]),
    (READ, REPLACE, &["copy", "georadius", "georadiusbymember", "sort"]),
    (CREATE, CREATE, &["msetnx", "setnx"]),
    (REPLACE, REPLACE, &["mset", "psetex", "restore", "set", "setex"]),
    (
        REPLACE,
        READ,
        &[
            "bitop",
            "geosearchstore",
            "sdiffstore",
            "sunionstore",
            "zdiffstore",
            "zinterstore",
            "zrangestore",
            "zunionstore",
        ],
    ),
    (REMOVE, REMOVE, &["del", "unlink"]),
    (COUNT, COUNT, &["pfcount", "pfdebug"]),
    (
        TAKE,
        TAKE,
        &[
            "blmpop", "blpop", "brpop", "bzmpop", "bzpopmax", "bzpopmin", "getdel", "lmpop",
            "lpop", "rpop", "spop", "zmpop", "zpopmax", "zpopmin",
        ],
    ),
    (TAKE, CREATE, &["renamenx"]),
    (TAKE, REPLACE, &["rename"]),
    (TAKE, INSERT, &["blmove", "brpoplpush", "lmove", "rpoplpush", "smove"]),
    (MERGE, READ, &["pfmerge"]),
    (CHANGE, CHANGE, &["eval", "evalsha", "fcall"]),
    (
        DELETE,
        DELETE,
        &[
            "hdel",
            "lrem",
            "ltrim",
            "srem",
            "xautoclaim",
            "xdel",
            "xgroup|delconsumer",
            "xgroup|destroy",
            "xtrim",
            "zrem",
            "zremrangebylex",
            "zremrangebyrank",
            "zremrangebyscore",
        ],
    ),
    (
        INSERT,
        INSERT,
        &[
            "append",
            "hsetnx",
            "linsert",
            "lpush",
            "lpushx",
            "pfadd",
            "rpush",
            "rpushx",
            "sadd",
            "xgroup|create",
            "xgroup|createconsumer",
        ],
    ),
    (
        UPDATE,
        UPDATE,
        &[
            "expire",
            "expireat",
            "geoadd",
            "hmset",
            "hset",
            "lset",
            "persist",
            "pexpire",
            "pexpireat",
            "setrange",
            "xack",
            "xadd",
            "xclaim",
            "xgroup|setid",
            "xsetid",
            "zadd",
        ],
    ),
    (UPDATE, READ, &["sinterstore"]),
];

impl Uses {
    /// Uses of a command or subcommand, such as `get` or `xgroup|create`.
    pub fn of(name: &str, flags: Flags) -> Self {
        let listed = USES.iter().find(|(_, _, names)| names.contains(&name));
        let (first, others) = match listed {
            Some((first, others, _)) => (*first, *others),
            None if flags.has(Flags::WRITE) => (CHANGE, CHANGE),
            None => (READ, READ),
        };
        let of_call: Option<OfCall> = match name {
            "set" => Some(of_set),
            "bitfield" => Some(of_bitfield),
            _ => None,
        };
        Self { first, others, of_call }
    }

    /// How a call uses one of its keys, by the number of the key in the order of
    /// [`crate::Keys::visit`].
    pub fn at(&self, number: usize, arguments: &[&[u8]]) -> Access {
        match (self.of_call, number) {
            (Some(of_call), _) => of_call(arguments),
            (None, 0) => self.first,
            (None, _) => self.others,
        }
    }

    /// The access to the first key, and to the others, if no words decide it.
    pub fn usual(&self) -> (Access, Access) {
        match self.of_call {
            Some(_) => (CHANGE, CHANGE),
            None => (self.first, self.others),
        }
    }
}

/// `SET` replies the old value if it is asked to.
fn of_set(arguments: &[&[u8]]) -> Access {
    let is_read = arguments.iter().skip(3).any(|word| is(word, "get"));
    if is_read { CHANGE } else { REPLACE }
}

/// `BITFIELD` changes nothing if it only has `GET`.
fn of_bitfield(arguments: &[&[u8]]) -> Access {
    let mut words = arguments.get(2..).unwrap_or_default();
    loop {
        words = match words {
            [] => return READ,
            [word, _, _, rest @ ..] if is(word, "get") => rest,
            [word, _, rest @ ..] if is(word, "overflow") => rest,
            _ => return CHANGE,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &str, number: usize, flags: Flags) -> Access {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        Uses::of(line.split(' ').next().unwrap_or_default(), flags).at(number, &words)
    }

    #[test]
    fn words_decide_the_access_of_some_commands() {
        assert_eq!(at("set k v", 0, Flags::WRITE), REPLACE);
        assert_eq!(at("set get v", 0, Flags::WRITE), REPLACE);
        assert_eq!(at("set k v ex 5 GET", 0, Flags::WRITE), CHANGE);
        assert_eq!(at("bitfield k", 0, Flags::WRITE), READ);
        assert_eq!(at("bitfield k get u8 0 overflow wrap get u8 1", 0, Flags::WRITE), READ);
        assert_eq!(at("bitfield k get u8 0 set u8 0 1", 0, Flags::WRITE), CHANGE);
        assert_eq!(at("bitfield k get u8", 0, Flags::WRITE), CHANGE);
    }

    #[test]
    fn first_and_other_keys_differ() {
        assert_eq!([0, 1].map(|key| at("copy a b", key, Flags::WRITE)), [READ, REPLACE]);
        assert_eq!([0, 1].map(|key| at("bitop not a b", key, Flags::WRITE)), [REPLACE, READ]);
        assert_eq!(at("kv.update k", 0, Flags::WRITE), CHANGE);
        assert_eq!(at("get k", 0, Flags::READ), READ);
    }

    #[test]
    fn a_command_is_listed_once() {
        let mut names: Vec<_> = USES.iter().flat_map(|(_, _, names)| *names).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
