// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stream commands on one key, as a server would put them on top of the crate: just enough to
//! compare replies. Times are left out of the replies.

use crate::redis::server::Reply;
use freeport_kv_types::stream::{
    AutoClaim, Claim, ClaimTime, Fields, GroupRead, GroupStart, NewId, PendingQuery, ReadFrom,
    StreamEntry, Trim,
};
use freeport_kv_types::{Limits, Stream, StreamError, StreamId};

type Outcome = Result<Reply, StreamError>;

/// The arguments behind the name of the command and the key.
type Arguments<'a> = &'a [&'a str];

const NOW_MS: u64 = 1 << 41;

/// Runs a command on the key `s`.
pub fn run(stream: &mut Stream, command: &[String], limits: &Limits) -> Reply {
    let parts: Vec<&str> = command.iter().map(String::as_str).collect();
    let outcome = match parts[0] {
        "XADD" => add(stream, &parts[2..], limits),
        "XDEL" => ids(&parts[2..]).map(|ids| number(stream.delete(&ids))),
        "XTRIM" => trim(&parts[2..]).map(|(trim, _)| number(stream.trim(&trim))),
        "XSETID" => set_id(stream, &parts[2..]),
        "XRANGE" | "XREVRANGE" => range(stream, &parts),
        "XREAD" => read(stream, &parts),
        "XGROUP" => group(stream, &parts),
        // The group is looked up before the ids are read.
        "XACK" if !stream.view().has_group(parts[2].as_bytes()) => Ok(number(0)),
        "XACK" => ids(&parts[3..])
            .and_then(|ids| stream.acknowledge(parts[2].as_bytes(), &ids))
            .map(number),
        "XREADGROUP" => read_group(stream, &parts),
        "XPENDING" => pending(stream, &parts[2..]),
        "XCLAIM" => claim(stream, &parts[2..]),
        "XAUTOCLAIM" => claim_idle(stream, &parts[2..]),
        "XINFO" => info(stream, &parts),
        other => panic!("unknown command {other}"),
    };
    outcome.unwrap_or_else(|error| {
        let text = error.to_string();
        let has_code = matches!(error, StreamError::GroupExists | StreamError::NoGroup);
        Reply::Error(if has_code { text } else { format!("ERR {text}") })
    })
}

fn number(value: u64) -> Reply {
    Reply::from(value)
}

fn text(value: impl ToString) -> Reply {
    name(value.to_string().as_bytes())
}

fn name(bytes: &[u8]) -> Reply {
    Reply::Text(bytes.to_vec())
}

fn integer(value: &str) -> u64 {
    value.parse().expect("the test writes numbers")
}

fn ids(texts: Arguments) -> Result<Vec<StreamId>, StreamError> {
    texts.iter().map(|text| StreamId::parse_strict(text.as_bytes(), 0)).collect()
}

fn fields(fields: Fields) -> Reply {
    Reply::Array(fields.flat_map(|(field, value)| [name(field), name(&value.to_vec())]).collect())
}

fn entry(entry: StreamEntry) -> Reply {
    Reply::Array(vec![text(entry.id), fields(entry.fields)])
}

/// Reads a trim and returns it with the number of arguments.
fn trim(parts: Arguments) -> Result<(Trim, usize), StreamError> {
    let is_approximate = parts[1] == "~";
    let at = if is_approximate || parts[1] == "=" { 2 } else { 1 };
    let trim = match parts[0] {
        "MAXLEN" => Trim::to_length(integer(parts[at])),
        _ => Trim::to_id(StreamId::parse_strict(parts[at].as_bytes(), 0)?),
    };
    match parts.get(at + 1) {
        Some(&"LIMIT") => Ok((trim.approximately(integer(parts[at + 2])), at + 3)),
        _ if is_approximate => Ok((trim.approximately(0), at + 1)),
        _ => Ok((trim, at + 1)),
    }
}

fn add(stream: &mut Stream, parts: Arguments, limits: &Limits) -> Outcome {
    let has_trim = matches!(parts[0], "MAXLEN" | "MINID");
    let trim = if has_trim { Some(trim(parts)?) } else { None };
    let at = trim.map_or(0, |(_, length)| length);
    let id = NewId::parse(parts[at].as_bytes())?;
    let fields: Vec<&[u8]> = parts[at + 1..].iter().map(|part| part.as_bytes()).collect();
    let id = stream.add(limits, id, &fields, NOW_MS)?;
    if let Some((trim, _)) = trim {
        stream.trim(&trim);
    }
    Ok(text(id))
}

fn set_id(stream: &mut Stream, parts: Arguments) -> Outcome {
    let id = StreamId::parse_strict(parts[0].as_bytes(), 0)?;
    let (mut added, mut deleted) = (None, None);
    for option in parts[1..].chunks(2) {
        match option[0] {
            "ENTRIESADDED" => added = Some(integer(option[1])),
            _ => deleted = Some(StreamId::parse_strict(option[1].as_bytes(), 0)?),
        }
    }
    stream.set_id(id, added, deleted).map(|()| text("OK"))
}

fn range(stream: &Stream, parts: Arguments) -> Outcome {
    let is_reversed = parts[0] == "XREVRANGE";
    let (start, end) = if is_reversed { (parts[3], parts[2]) } else { (parts[2], parts[3]) };
    let (start, end) =
        (StreamId::parse_start(start.as_bytes())?, StreamId::parse_end(end.as_bytes())?);
    let count = parts.get(5).map_or(usize::MAX, |count| integer(count) as usize);
    if count == 0 {
        return Ok(Reply::Nil);
    }
    let view = stream.view();
    let entries = if is_reversed {
        view.range_reversed(start, end).take(count).map(entry).collect()
    } else {
        view.range(start, end).take(count).map(entry).collect()
    };
    Ok(Reply::Array(entries))
}

/// `XREAD COUNT n STREAMS s id`
fn read(stream: &Stream, parts: Arguments) -> Outcome {
    let view = stream.view();
    let after = match parts[5] {
        "$" => view.last_id(),
        id => StreamId::parse_strict(id.as_bytes(), 0)?,
    };
    if !view.has_after(after) {
        return Ok(Reply::Nil);
    }
    let entries = view.after(after).take(integer(parts[2]) as usize).map(entry).collect();
    Ok(Reply::Array(vec![Reply::Array(vec![text("s"), Reply::Array(entries)])]))
}

fn group(stream: &mut Stream, parts: Arguments) -> Outcome {
    let group = parts[3].as_bytes();
    let read = || parts.get(6).map(|read| integer(read));
    match parts[1] {
        "CREATE" => {
            stream.create_group(group, GroupStart::parse(parts[4].as_bytes())?, read())?;
            Ok(text("OK"))
        }
        "SETID" => {
            stream.set_group(group, GroupStart::parse_any(parts[4].as_bytes())?, read())?;
            Ok(text("OK"))
        }
        "DESTROY" => Ok(number(stream.destroy_group(group).into())),
        "CREATECONSUMER" => {
            stream.create_consumer(group, parts[4].as_bytes(), NOW_MS).map(|it| number(it.into()))
        }
        _ => stream.delete_consumer(group, parts[4].as_bytes()).map(number),
    }
}

/// `XREADGROUP GROUP g c COUNT n [NOACK] STREAMS s id`
fn read_group(stream: &mut Stream, parts: Arguments) -> Outcome {
    let from = ReadFrom::parse(parts[parts.len() - 1].as_bytes())?;
    let is_acknowledged = parts[6] == "NOACK";
    let read = GroupRead { from, count: integer(parts[5]), is_acknowledged, now_ms: NOW_MS };
    let mut entries = vec![];
    let (group, consumer) = (parts[2].as_bytes(), parts[3].as_bytes());
    stream.read_group(group, consumer, &read, |id, found| {
        entries.push(Reply::Array(vec![text(id), found.map_or(Reply::Nil, fields)]))
    })?;
    if entries.is_empty() && from == ReadFrom::New {
        return Ok(Reply::Nil);
    }
    Ok(Reply::Array(vec![Reply::Array(vec![text("s"), Reply::Array(entries)])]))
}

/// `XPENDING s g [start end count [consumer]]`
fn pending(stream: &Stream, parts: Arguments) -> Outcome {
    let (group, view) = (parts[0].as_bytes(), stream.view());
    if parts.len() == 1 {
        let summary = view.pending_summary(group)?;
        let Some((first, last)) = summary.bounds else {
            return Ok(Reply::Array(vec![number(0), Reply::Nil, Reply::Nil, Reply::Nil]));
        };
        let consumers = summary.consumers.iter();
        let consumers =
            consumers.map(|(consumer, count)| Reply::Array(vec![name(consumer), text(count)]));
        let consumers = Reply::Array(consumers.collect());
        return Ok(Reply::Array(vec![number(summary.count), text(first), text(last), consumers]));
    }
    let query = PendingQuery {
        first: StreamId::parse_start(parts[1].as_bytes())?,
        last: StreamId::parse_end(parts[2].as_bytes())?,
        min_idle_ms: 0,
        consumer: parts.get(4).map(|consumer| consumer.as_bytes()),
    };
    let entries = view.pending(group, &query, NOW_MS)?.take(integer(parts[3]) as usize);
    let entries = entries.map(|it| {
        Reply::Array(vec![text(it.id), name(it.consumer), text("time"), number(it.deliveries)])
    });
    Ok(Reply::Array(entries.collect()))
}

/// `XCLAIM s g c min-idle id... [options]`
fn claim(stream: &mut Stream, parts: Arguments) -> Outcome {
    let is_id = |part: &&&str| part.as_bytes()[0].is_ascii_digit();
    let count = parts[3..].iter().take_while(is_id).count();
    let ids = ids(&parts[3..3 + count])?;
    let mut claim = Claim { min_idle_ms: integer(parts[2]), now_ms: NOW_MS, ..Claim::default() };
    let mut options = parts[3 + count..].iter();
    let mut is_just_id = false;
    while let Some(option) = options.next() {
        let mut value = || integer(options.next().expect("the test writes a value"));
        match *option {
            "FORCE" => claim.is_forced = true,
            "JUSTID" => is_just_id = true,
            "TIME" => claim.delivered = ClaimTime::At(value() as i64),
            "RETRYCOUNT" => claim.deliveries = Some(value()),
            _ => claim.last_id = Some(StreamId::new(value(), 0)),
        }
    }
    claim.is_silent = is_just_id;
    let (group, consumer) = (parts[0].as_bytes(), parts[1].as_bytes());
    let mut found = vec![];
    stream.claim(group, consumer, &ids, &claim, |it| {
        found.push(if is_just_id { text(it.id) } else { entry(it) })
    })?;
    Ok(Reply::Array(found))
}

/// `XAUTOCLAIM s g c min-idle start COUNT n [JUSTID]`
fn claim_idle(stream: &mut Stream, parts: Arguments) -> Outcome {
    let is_just_id = parts.len() == 7;
    let claim = AutoClaim {
        min_idle_ms: integer(parts[2]),
        start: StreamId::parse_start(parts[3].as_bytes())?,
        count: integer(parts[5]),
        is_silent: is_just_id,
        now_ms: NOW_MS,
    };
    let mut found = vec![];
    let (group, consumer) = (parts[0].as_bytes(), parts[1].as_bytes());
    let result = stream.claim_idle(group, consumer, &claim, |it| {
        found.push(if is_just_id { text(it.id) } else { entry(it) })
    })?;
    let deleted = result.deleted.iter().map(text).collect();
    Ok(Reply::Array(vec![text(result.next), Reply::Array(found), Reply::Array(deleted)]))
}

fn info(stream: &Stream, parts: Arguments) -> Outcome {
    let view = stream.view();
    let option = |value: Option<i64>| value.map_or(Reply::Nil, Reply::Integer);
    if parts[1] == "GROUPS" {
        let groups = view.groups().map(|it| {
            let read = option(it.entries_read.map(|read| read as i64));
            let (consumers, pending) = (number(it.consumers), number(it.pending));
            let last = text(it.last_delivered_id);
            let values = [name(it.name), consumers, pending, last, read, option(it.lag)];
            let keys = ["name", "consumers", "pending", "last-delivered-id", "entries-read", "lag"];
            Reply::Array(keys.iter().zip(values).flat_map(|(key, it)| [text(key), it]).collect())
        });
        return Ok(Reply::Array(groups.collect()));
    }
    if parts.last() == Some(&"FULL") {
        return Ok(full_info(stream));
    }
    let info = view.info();
    let values = [
        ("length", number(info.length)),
        ("radix-tree-keys", text("nodes")),
        ("radix-tree-nodes", text("tree")),
        ("last-generated-id", text(info.last_generated_id)),
        ("max-deleted-entry-id", text(info.max_deleted_entry_id)),
        ("entries-added", number(info.entries_added)),
        ("recorded-first-entry-id", text(info.recorded_first_entry_id)),
        ("groups", number(info.groups)),
        ("first-entry", info.first_entry.map_or(Reply::Nil, entry)),
        ("last-entry", info.last_entry.map_or(Reply::Nil, entry)),
    ];
    Ok(Reply::Array(values.into_iter().flat_map(|(key, value)| [text(key), value]).collect()))
}

/// `XINFO STREAM s FULL`, apart from the counters of the stream. Redis 7.0 has no active time.
fn full_info(stream: &Stream) -> Reply {
    let option = |value: Option<i64>| value.map_or(Reply::Nil, Reply::Integer);
    let info = stream.view().full_info(10);
    let groups = info.groups.iter().map(|it| {
        let group = &it.group;
        let pending = it.pending.iter().map(|it| {
            let deliveries = number(it.deliveries);
            Reply::Array(vec![text(it.id), name(it.consumer), text("time"), deliveries])
        });
        let consumers = it.consumers.iter().map(|it| {
            let pending = it
                .pending
                .iter()
                .map(|it| Reply::Array(vec![text(it.id), text("time"), number(it.deliveries)]));
            Reply::Array(vec![
                name(it.name),
                number(it.pending_count),
                Reply::Array(pending.collect()),
            ])
        });
        Reply::Array(vec![
            name(group.name),
            text(group.last_delivered_id),
            option(group.entries_read.map(|read| read as i64)),
            option(group.lag),
            number(group.pending),
            Reply::Array(pending.collect()),
            Reply::Array(consumers.collect()),
        ])
    });
    let entries = info.entries.iter().map(|it| entry(*it));
    Reply::Array(vec![Reply::Array(entries.collect()), Reply::Array(groups.collect())])
}
