// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `XADD` and `XTRIM`: the two ends of a stream.

use freeport_kv_types::stream::NewId;
use freeport_kv_types::{Stream, StreamError};

use super::reply;
use super::trim::{TrimOption, TrimReader, exact_words};
use crate::arguments::is;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// The arguments of `XADD` before the fields.
struct Addition {
    id: Result<NewId, StreamError>,
    trim: Option<TrimOption>,
    is_stream_made: bool,
    fields_at: usize,
}

/// `XADD key [NOMKSTREAM] [MAXLEN|MINID [=|~] threshold [LIMIT count]] *|id field value ...`
pub fn xadd(call: &mut Call<'_>) -> Result<(), Error> {
    let addition = Addition::parse(call.arguments)?;
    let fields = &call.arguments[addition.fields_at..];
    if fields.is_empty() || !fields.len().is_multiple_of(2) {
        return Err(Error::arity("xadd"));
    }
    let id = addition.id?;
    let (key, now_ms) = (call.arguments[1], call.now_ms());
    if !addition.is_stream_made && call.database.read::<Stream>(key)?.is_none() {
        call.reply.null();
        return Ok(());
    }
    let (id, trimmed, length) = call.database.change(key, |stream: &mut Stream, limits| {
        let id = stream.add(limits, id, fields, now_ms)?;
        let trimmed = addition.trim.map_or(0, |trim| stream.trim(&trim.rule(limits)));
        Ok::<_, StreamError>((id, trimmed, stream.view().len()))
    })??;
    if call.database.effects.records && addition.trim.is_some_and(|it| it.is_approximate()) {
        let mut words = vec![b"XADD".to_vec(), key.to_vec()];
        words.extend(exact_words(length));
        words.push(id.to_string().into_bytes());
        words.extend(fields.iter().map(|field| field.to_vec()));
        call.database.effects.logged = Some(words);
    }
    call.database.changed(key, Class::Stream, "xadd");
    if trimmed > 0 {
        call.database.changed(key, Class::Stream, "xtrim");
    }
    reply::id(&mut call.reply, id);
    Ok(())
}

impl Addition {
    fn parse(arguments: &[&[u8]]) -> Result<Self, Error> {
        let mut trim = TrimReader::default();
        let mut is_stream_made = true;
        let mut at = 2;
        // Without an id, the options end the command, which the number of fields shows.
        let mut id = Ok(NewId::Auto);
        while let Some(word) = arguments.get(at) {
            if *word == b"*" {
                break;
            } else if let Some(words) = trim.option(&arguments[at..])? {
                at += words;
            } else if is(word, "nomkstream") {
                is_stream_made = false;
                at += 1;
            } else {
                id = NewId::parse(word);
                if let Err(error) = id
                    && error != StreamError::ZeroId
                {
                    return Err(error.into());
                }
                break;
            }
        }
        let fields_at = arguments.len().min(at + 1);
        Ok(Self { id, trim: trim.finish(false)?, is_stream_made, fields_at })
    }
}

/// `XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count]`
pub fn xtrim(call: &mut Call<'_>) -> Result<(), Error> {
    let mut trim = TrimReader::default();
    let mut at = 2;
    while at < call.arguments.len() {
        at += trim.option(&call.arguments[at..])?.ok_or(Error::SYNTAX)?;
    }
    let trim = trim.finish(true)?.ok_or(Error::SYNTAX)?;
    let key = call.arguments[1];
    let (removed, length) = match call.database.read::<Stream>(key)? {
        None => (0, 0),
        Some(_) => call.database.shrink(key, |stream: &mut Stream, limits| {
            let removed = stream.trim(&trim.rule(limits));
            (removed, stream.view().len())
        })?,
    };
    if removed > 0 {
        if call.database.effects.records && trim.is_approximate() {
            let mut words = vec![b"XTRIM".to_vec(), key.to_vec()];
            words.extend(exact_words(length));
            call.database.effects.logged = Some(words);
        }
        call.database.changed(key, Class::Stream, "xtrim");
    }
    reply::count(&mut call.reply, removed);
    Ok(())
}
