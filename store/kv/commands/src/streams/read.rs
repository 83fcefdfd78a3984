// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `XREAD` and `XREADGROUP`: entries behind given ids, of several streams, for which a client may
//! wait.
//!
//! A wait executes the command again when an entry arrives. An id `$` then has to mean the place
//! where the stream ended at first, so the wait has arguments of its own. An id `>` means the
//! position of the group at any time.

use freeport_kv_protocol::resp::{Version, Writer};
use freeport_kv_types::stream::{GroupRead, ReadFrom};
use freeport_kv_types::{Stream, StreamId};

use super::read_options::{Member, Read};
use super::reply;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key ... id ...`
pub fn xread(call: &mut Call<'_>) -> Result<(), Error> {
    let read = Read::parse(call.arguments, false, call.now_ms())?;
    let mut positions = Vec::with_capacity(read.ids.len());
    for (key, id) in read.streams() {
        positions.push(position(call, key, id)?);
    }
    let most = if read.count == 0 { usize::MAX } else { read.count as usize };
    let start = call.reply.len();
    let mut served = 0;
    for ((key, _), after) in read.streams().zip(&positions) {
        let stream = call.database.read::<Stream>(key)?;
        let Some(stream) = stream.filter(|stream| stream.has_after(*after)) else { continue };
        key_of_stream(&mut call.reply, key);
        reply::entries(&mut call.reply, stream.after(*after).take(most));
        served += 1;
    }
    if served > 0 {
        call.reply.before(start, |reply| streams(reply, served));
    } else {
        let has_relative = read.ids.iter().any(|id| *id == b"$");
        read.wait(call, has_relative.then_some(&positions));
    }
    Ok(())
}

/// Position behind which `XREAD` reads a stream.
fn position(call: &Call<'_>, key: &[u8], id: &[u8]) -> Result<StreamId, Error> {
    const OF_GROUPS: Error = Error::fixed(
        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
         <consumer> option.",
    );

    let stream = call.database.read::<Stream>(key)?;
    match id {
        b"$" => Ok(stream.map_or(StreamId::MIN, |stream| stream.last_id())),
        b">" => Err(OF_GROUPS),
        _ => Ok(StreamId::parse_strict(id, 0)?),
    }
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK]
/// STREAMS key ... id ...`
pub fn xreadgroup(call: &mut Call<'_>) -> Result<(), Error> {
    const NO_MEMBER: Error = Error::fixed("ERR Missing GROUP option for XREADGROUP");

    let read = Read::parse(call.arguments, true, call.now_ms())?;
    let member = read.member.ok_or(NO_MEMBER)?;
    let mut positions = Vec::with_capacity(read.ids.len());
    for (key, id) in read.streams() {
        positions.push(position_of_group(call, key, member.group, id)?);
    }
    let start = call.reply.len();
    let mut served = 0;
    for ((key, _), from) in read.streams().zip(&positions) {
        served += usize::from(read_as_member(call, key, member, &read, *from)?);
    }
    if served > 0 {
        call.reply.before(start, |reply| streams(reply, served));
    } else {
        read.wait(call, None);
    }
    Ok(())
}

/// Entries of a stream that `XREADGROUP` reads.
fn position_of_group(
    call: &Call<'_>,
    key: &[u8],
    group: &[u8],
    id: &[u8],
) -> Result<ReadFrom, Error> {
    const MEANINGLESS: Error = Error::fixed(
        "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of \
         this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID \
         would just return an empty result set.",
    );

    if !call.database.read::<Stream>(key)?.is_some_and(|stream| stream.has_group(group)) {
        let (key, group) = (Error::shown(key), Error::shown(group));
        return Err(Error::new(format!(
            "NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP \
             option"
        )));
    }
    match id {
        b"$" => Err(MEANINGLESS),
        _ => Ok(ReadFrom::parse(id)?),
    }
}

/// Reads one stream, and returns whether there is something to reply: pending entries always, even
/// if there are none.
fn read_as_member(
    call: &mut Call<'_>,
    key: &[u8],
    Member { group, consumer }: Member<'_>,
    read: &Read<'_>,
    from: ReadFrom,
) -> Result<bool, Error> {
    note_new_consumer(call, key, group, consumer)?;
    let now_ms = call.now_ms();
    let options =
        GroupRead { from, count: read.count, is_acknowledged: read.is_acknowledged, now_ms };
    let (start, output) = (call.reply.len(), &mut call.reply);
    key_of_stream(output, key);
    let entries_start = output.len();
    let entries = call.database.shrink(key, |stream: &mut Stream, _| {
        stream.read_group(group, consumer, &options, |id, fields| {
            output.array(2);
            reply::id(output, id);
            match fields {
                Some(fields) => reply::fields(output, fields),
                None => output.null_array(),
            }
        })
    })??;
    if entries == 0 && from == ReadFrom::New {
        call.reply.truncate(start);
        return Ok(false);
    }
    call.reply.before(entries_start, |reply| reply.array(entries as usize));
    call.database.changed_unwatched(key, None);
    Ok(true)
}

/// Tells that a command makes a consumer, if it is about to.
pub fn note_new_consumer(
    call: &mut Call<'_>,
    key: &[u8],
    group: &[u8],
    consumer: &[u8],
) -> Result<(), Error> {
    let stream = call.database.read::<Stream>(key)?;
    if stream.is_some_and(|stream| !stream.has_consumer(group, consumer)) {
        call.database.changed_unwatched(key, Some((Class::Stream, "xgroup-createconsumer")));
    }
    Ok(())
}

/// Header of the streams of a reply.
fn streams(reply: &mut Writer<'_>, count: usize) {
    match reply.version() {
        Version::Two => reply.array(count),
        Version::Three => reply.map(count),
    }
}

/// The key of a stream; its entries follow.
fn key_of_stream(reply: &mut Writer<'_>, key: &[u8]) {
    if reply.version() == Version::Two {
        reply.array(2);
    }
    reply.bulk(key);
}
