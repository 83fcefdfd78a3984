// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CLIENT TRACKING` and what belongs to it: a client keeps copies of what it reads, and wants to
//! know when they become invalid.

use std::collections::BTreeSet;

use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_commands::{Error, Reader};
use freeport_kv_protocol::resp::reply::shared;

use super::super::{Context, Flow};
use crate::client::Client;
use crate::clients::Clients;
use crate::tracking::{Mode, Tracking};

/// Options of `CLIENT TRACKING`.
#[derive(Debug, Default)]
struct Options<'a> {
    redirect: u64,
    prefixes: Vec<&'a [u8]>,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    is_no_loop: bool,
}

impl<'a> Options<'a> {
    fn parse(mut words: &[&'a [u8]], registry: &Clients) -> Result<Self, Error> {
        const TWO: Error = Error::fixed("ERR A client can only redirect to a single other client");
        const GONE: Error = Error::fixed("ERR The client ID you want redirect to does not exist");
        let mut options = Self::default();
        while let [word, rest @ ..] = words {
            words = rest;
            match *rest {
                [id, ref rest @ ..] if is(word, "redirect") => {
                    if options.redirect != 0 {
                        return Err(TWO);
                    }
                    let id = u64::try_from(integer(id)?).map_err(|_| GONE)?;
                    options.redirect = registry.get(id).ok_or(GONE)?.origin.id;
                    words = rest;
                }
                [prefix, ref rest @ ..] if is(word, "prefix") => {
                    options.prefixes.push(prefix);
                    words = rest;
                }
                _ if is(word, "bcast") => options.is_broadcast = true,
                _ if is(word, "optin") => options.is_opt_in = true,
                _ if is(word, "optout") => options.is_opt_out = true,
                _ if is(word, "noloop") => options.is_no_loop = true,
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(options)
    }

    /// Checks that the options fit together, and fit how the client tracks already.
    fn check(&self, present: Option<&Tracking>) -> Result<(), Error> {
        const PREFIX: Error = Error::fixed("ERR PREFIX option requires BCAST mode to be enabled");
        const BROADCAST: Error = Error::fixed(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, \
             and then re-enabling it with a different mode.",
        );
        const NOT_BOTH: Error = Error::fixed("ERR OPTIN and OPTOUT are not compatible with BCAST");
        const IN_AND_OUT: Error =
            Error::fixed("ERR You can't specify both OPTIN mode and OPTOUT mode");
        const OPTION: Error = Error::fixed(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, \
             and then re-enabling it with a different mode.",
        );
        let mode = present.map(|present| present.mode);
        if !self.is_broadcast && !self.prefixes.is_empty() {
            return Err(PREFIX);
        }
        if mode.is_some_and(|mode| (mode == Mode::Broadcast) != self.is_broadcast) {
            return Err(BROADCAST);
        }
        if self.is_broadcast && (self.is_opt_in || self.is_opt_out) {
            return Err(NOT_BOTH);
        }
        if self.is_opt_in && self.is_opt_out {
            return Err(IN_AND_OUT);
        }
        let is_other =
            |mode| mode == Mode::OptOut && self.is_opt_in || mode == Mode::OptIn && self.is_opt_out;
        if mode.is_some_and(is_other) {
            return Err(OPTION);
        }
        self.check_prefixes(present.map(|present| &present.prefixes))
    }

    /// No key has two prefixes.
    fn check_prefixes(&self, present: Option<&BTreeSet<Vec<u8>>>) -> Result<(), Error> {
        let overlap = |prefix: &[u8], what: &str, other: &[u8]| {
            let text = String::from_utf8_lossy;
            Error::new(format!(
                "ERR Prefix '{}' overlaps with {what} prefix '{}'. Prefixes for a single client \
                 must not overlap.",
                text(prefix),
                text(other)
            ))
        };
        let meet = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
        for (at, prefix) in self.prefixes.iter().enumerate() {
            if let Some(other) = present.into_iter().flatten().find(|other| meet(prefix, other)) {
                return Err(overlap(prefix, "an existing", other));
            }
            if let Some(other) = self.prefixes[at + 1..].iter().find(|other| meet(prefix, other)) {
                return Err(overlap(prefix, "another provided", other));
            }
        }
        Ok(())
    }

    fn mode(&self) -> Mode {
        match (self.is_broadcast, self.is_opt_in, self.is_opt_out) {
            (true, _, _) => Mode::Broadcast,
            (_, true, _) => Mode::OptIn,
            (_, _, true) => Mode::OptOut,
            _ => Mode::All,
        }
    }
}

pub(super) fn tracking(context: &mut Context<'_>) -> Result<Flow, Error> {
    let (word, words) = (context.arguments[2], &context.arguments[3..]);
    let options = Options::parse(words, &context.core.shared.registry)?;
    if is(word, "on") {
        options.check(context.client.tracking.as_deref())?;
        start(context, options);
    } else if is(word, "off") {
        context.client.stop_tracking(&context.core.shared);
    } else {
        return Err(Error::SYNTAX);
    }
    // The prefixes may have changed.
    context.core.follow();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn start(context: &mut Context<'_>, mut options: Options<'_>) {
    let Client { tracking, record, .. } = &mut *context.client;
    let tracking = tracking.get_or_insert_default();
    tracking.mode = options.mode();
    tracking.is_no_loop = options.is_no_loop;
    tracking.redirect = options.redirect;
    tracking.is_broken = false;
    if options.is_broadcast && options.prefixes.is_empty() {
        options.prefixes.push(b"");
    }
    tracking.prefixes.extend(options.prefixes.iter().map(|prefix| prefix.to_vec()));
    let origin = &record.origin;
    let worker = u16::try_from(origin.worker).expect("there are at most 64 workers");
    let reader = Reader { client: origin.id, worker };
    context.core.shared.trackers.add(reader, options.prefixes.into_iter());
    context.client.follow_tracking();
}

pub(super) fn info(context: &mut Context<'_>) -> Result<Flow, Error> {
    let Context { client, output, .. } = context;
    let mut reply = freeport_kv_protocol::resp::Writer::new(output, client.session.version);
    let tracking = client.tracking.as_deref();
    let flags = tracking.map_or_else(|| vec!["off"], flags);
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirect(tracking));
    reply.bulk(b"prefixes");
    reply.array(tracking.map_or(0, |tracking| tracking.prefixes.len()));
    tracking.into_iter().flat_map(|it| &it.prefixes).for_each(|prefix| reply.bulk(prefix));
    Ok(Flow::Continue)
}

/// Flags of `CLIENT TRACKINGINFO`.
fn flags(tracking: &Tracking) -> Vec<&'static str> {
    let is_decided = tracking.is_decided;
    let mut flags = vec!["on"];
    match tracking.mode {
        Mode::All => {}
        Mode::Broadcast => flags.push("bcast"),
        Mode::OptIn if is_decided => flags.extend(["optin", "caching-yes"]),
        Mode::OptIn => flags.push("optin"),
        Mode::OptOut if is_decided => flags.extend(["optout", "caching-no"]),
        Mode::OptOut => flags.push("optout"),
    }
    if tracking.is_no_loop {
        flags.push("noloop");
    }
    if tracking.is_broken {
        flags.push("broken_redirect");
    }
    flags
}

fn redirect(tracking: Option<&Tracking>) -> i64 {
    tracking.map_or(-1, |tracking| i64::try_from(tracking.redirect).unwrap_or(i64::MAX))
}

pub(super) fn caching(context: &mut Context<'_>) -> Result<Flow, Error> {
    const OFF: Error = Error::fixed(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
         OPTOUT mode enabled",
    );
    const NO_OPT_IN: Error = Error::fixed(
        "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
    );
    const NO_OPT_OUT: Error = Error::fixed(
        "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
    );
    let word = context.arguments[2];
    let tracking = context.client.tracking.as_mut().ok_or(OFF)?;
    match tracking.mode {
        Mode::OptIn if is(word, "yes") => {}
        Mode::OptOut if is(word, "no") => {}
        _ if is(word, "yes") => return Err(NO_OPT_IN),
        _ if is(word, "no") => return Err(NO_OPT_OUT),
        _ => return Err(Error::SYNTAX),
    }
    tracking.is_decided = true;
    context.client.follow_tracking();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

pub(super) fn redirection(context: &mut Context<'_>) -> Result<Flow, Error> {
    let redirect = redirect(context.client.tracking.as_deref());
    context.reply().integer(redirect);
    Ok(Flow::Continue)
}
