// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules for which connections may be accelerated; the first matching rule decides.
//!
//! A rule is a line: `allow` or `deny`, then the conditions on one end, and optionally `with` and
//! the conditions on the other: `allow user 33 with user 0`, `deny port 22`, `deny any`. An end
//! must meet all its conditions. If no rule matches, the connection is allowed: both ends are
//! connected anyway, and their processes share only the memory of their connections, which neither
//! trusts. A server that drops root privileges and its clients are a typical case for acceleration.

use crate::Error;
use crate::end::Place;
use crate::process::Process;
use freeport_sockets_proto::Reason;
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::{FromStr, SplitWhitespace};

/// Maximum number of rules, and maximum length of one in bytes.
const RULES_MAX: usize = 1000;
const RULE_BYTES_MAX: usize = 1000;

/// The rules, in order.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// Decision of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The connection is accelerated.
    Allow,
    /// The connection stays in the kernel.
    Deny,
}

/// A rule, which matches the two ends in either order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    decision: Decision,
    ends: [Vec<Condition>; 2],
}

/// A condition on an end.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Condition {
    User(u32),
    /// The user differs from that of the other end.
    OtherUser,
    Net(u64),
    Cgroup(String),
    Address {
        address: IpAddr,
        bits: u8,
    },
    Port(RangeInclusive<u16>),
}

/// One end of a connection.
#[derive(Clone, Copy)]
pub struct Party<'a> {
    /// Process of the end.
    pub process: &'a Process,
    /// Address of the end.
    pub place: &'a Place,
}

impl Party<'_> {
    /// Address of a TCP end: Unix sockets have neither an IP address nor a port.
    fn address(&self) -> Option<SocketAddr> {
        match self.place {
            Place::Internet(address) => Some(*address),
            Place::Unix(_) => None,
        }
    }
}

impl Policy {
    /// Parses rules, one per line; empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// [`Error::Rule`]: a line is no rule, or there are too many.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut policy = Self::default();
        for line in lines {
            policy.check_room()?;
            policy.rules.push(line.parse()?);
        }
        Ok(policy)
    }

    /// Inserts a rule before all others.
    ///
    /// # Errors
    /// [`Error::Rule`]: there are too many.
    pub fn put_first(&mut self, rule: Rule) -> Result<(), Error> {
        self.check_room()?;
        self.rules.insert(0, rule);
        Ok(())
    }

    /// Removes the rule at this position, counted from 1.
    pub fn remove(&mut self, place: usize) -> Option<Rule> {
        let at = place.checked_sub(1)?;
        (at < self.rules.len()).then(|| self.rules.remove(at))
    }

    /// Returns the rules in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns a process as the rules have to see it: in its present state, if a rule depends on
    /// something that the process can change. `None` if it has exited.
    pub fn seen<'p>(&self, process: &'p Process) -> Option<Cow<'p, Process>> {
        let asks = self.rules.iter().any(|rule| rule.ends.iter().flatten().any(Condition::asks));
        if asks { process.again().map(Cow::Owned) } else { Some(Cow::Borrowed(process)) }
    }

    /// Returns whether the connection between two ends may be accelerated.
    pub fn decide(&self, ends: [Party<'_>; 2]) -> Result<(), Reason> {
        match self.rules.iter().find(|rule| rule.fits(ends)).map(|rule| rule.decision) {
            Some(Decision::Allow) => Ok(()),
            Some(Decision::Deny) => Err(Reason::Policy),
            None => Ok(()),
        }
    }

    /// Returns whether any connection of a user may be accelerated: false if a rule forbids all of
    /// them before another one can allow one.
    pub fn may_have_any(&self, user: u32) -> bool {
        let decides = |rule: &&Rule| match rule.decision {
            Decision::Allow => rule.concerns(user),
            Decision::Deny => rule.has_all_of(user),
        };
        let decision = self.rules.iter().find(decides).map(|rule| rule.decision);
        decision != Some(Decision::Deny)
    }

    fn check_room(&self) -> Result<(), Error> {
        let what = format!("a monitor has at most {RULES_MAX} rules");
        if self.rules.len() < RULES_MAX { Ok(()) } else { Err(Error::Refused(what)) }
    }
}

impl Rule {
    /// Whether it can match a connection with an end of this user, depending on its other
    /// conditions.
    fn concerns(&self, user: u32) -> bool {
        let may_be = |end: &Vec<Condition>| {
            end.iter().all(|it| !matches!(it, Condition::User(other) if *other != user))
        };
        self.ends.iter().any(may_be)
    }

    /// Whether it matches all connections with an end of this user.
    fn has_all_of(&self, user: u32) -> bool {
        let [one, other] = &self.ends;
        let is_user = |end: &[Condition]| end.iter().all(|it| *it == Condition::User(user));
        (other.is_empty() && is_user(one)) || (one.is_empty() && is_user(other))
    }

    fn fits(&self, [one, other]: [Party<'_>; 2]) -> bool {
        let fits = |one, other| {
            self.ends[0].iter().all(|it| it.holds(one, other))
                && self.ends[1].iter().all(|it| it.holds(other, one))
        };
        fits(one, other) || fits(other, one)
    }
}

impl Condition {
    /// Whether the condition depends on something that a process can change.
    fn asks(&self) -> bool {
        match self {
            Self::User(_) | Self::OtherUser | Self::Net(_) | Self::Cgroup(_) => true,
            Self::Address { .. } | Self::Port(_) => false,
        }
    }

    fn holds(&self, end: Party<'_>, opposite: Party<'_>) -> bool {
        let process = end.process;
        match self {
            Self::User(user) => process.user == *user,
            Self::OtherUser => process.user != opposite.process.user,
            Self::Net(net) => process.net == *net,
            Self::Cgroup(path) => {
                let below = process.cgroup.strip_prefix(path.as_str());
                below.is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with('/') || path.ends_with('/')
                })
            }
            Self::Address { address, bits } => {
                end.address().is_some_and(|it| is_inside(it.ip(), *address, *bits))
            }
            Self::Port(ports) => end.address().is_some_and(|it| ports.contains(&it.port())),
        }
    }

    /// Parses the condition of that name from the words that follow.
    fn parse(name: &str, words: &mut SplitWhitespace<'_>) -> Result<Self, String> {
        const NAMES: &str = "`any`, `user`, `other-user`, `net`, `cgroup`, `address` or `port`";
        if name == "other-user" {
            return Ok(Self::OtherUser);
        }
        if !["user", "net", "cgroup", "address", "port"].contains(&name) {
            return Err(format!("`{name}` where {NAMES} is expected"));
        }
        let value = words.next().ok_or_else(|| format!("a value is missing after `{name}`"))?;
        let wrong = |expected: &str| format!("`{value}` where {expected} is expected");
        match name {
            "user" => user_of(value).map(Self::User).ok_or_else(|| wrong("a user")),
            "net" => {
                let inode = value.strip_prefix("net:[").and_then(|it| it.strip_suffix(']'));
                let inode = inode.unwrap_or(value).parse();
                inode.map(Self::Net).map_err(|_| wrong("the inode of a network namespace"))
            }
            "cgroup" if value.starts_with('/') => Ok(Self::Cgroup(value.to_owned())),
            "cgroup" => Err(wrong("the path of a control group, from `/` on,")),
            "address" => network(value).ok_or_else(|| wrong("an address, or 10.0.0.0/8,")),
            _ => ports(value).map(Self::Port).ok_or_else(|| wrong("a port, or 8000-8999,")),
        }
    }
}

/// Resolves a user by name or number. Names are those of `/etc/passwd`.
fn user_of(value: &str) -> Option<u32> {
    value.parse().ok().or_else(|| {
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        let line = users.lines().find(|line| line.split(':').next() == Some(value))?;
        line.split(':').nth(2)?.parse().ok()
    })
}

fn network(value: &str) -> Option<Condition> {
    let (address, bits) = match value.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (value, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    (bits <= most).then_some(Condition::Address { address, bits })
}

fn ports(value: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(first..=last)
}

/// Returns whether the first `bits` bits of two addresses are equal.
fn is_inside(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let (one, other, length) = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            (u128::from(one.to_bits()), u128::from(other.to_bits()), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits(), other.to_bits(), 128),
        _ => return false,
    };
    bits == 0 || (one ^ other) >> (length - u32::from(bits)) == 0
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |what: String| {
            let rule = text.chars().take(100).collect();
            Error::Rule { rule, what: format!("{what}; see docs/guide/sockets.md") }
        };
        if text.len() > RULE_BYTES_MAX {
            return Err(wrong(format!("it is longer than {RULE_BYTES_MAX} bytes")));
        }
        let mut words = text.split_whitespace();
        let decision = match words.next() {
            Some("allow") => Decision::Allow,
            Some("deny") => Decision::Deny,
            _ => return Err(wrong("a rule begins with `allow` or `deny`".to_owned())),
        };
        let mut ends = [None, None];
        let mut at = 0;
        while let Some(word) = words.next() {
            let end: &mut Option<Vec<Condition>> = &mut ends[at];
            match word {
                "with" if at == 0 && end.is_some() => at = 1,
                "any" if end.is_none() => *end = Some(vec![]),
                word => {
                    let condition = Condition::parse(word, &mut words).map_err(wrong)?;
                    end.get_or_insert_default().push(condition);
                }
            }
        }
        match (ends, at) {
            ([Some(one), Some(other)], _) => Ok(Self { decision, ends: [one, other] }),
            ([Some(one), None], 0) => Ok(Self { decision, ends: [one, vec![]] }),
            _ => Err(wrong("a condition on an end is missing; `any` matches every end".to_owned())),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = match self.decision {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
        };
        let [one, other] = &self.ends;
        write!(out, "{decision}{}", Shown(one))?;
        if other.is_empty() { Ok(()) } else { write!(out, " with{}", Shown(other)) }
    }
}

/// Conditions of an end, each preceded by a space.
struct Shown<'a>(&'a [Condition]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return out.write_str(" any");
        }
        self.0.iter().try_for_each(|condition| match condition {
            Condition::User(user) => write!(out, " user {user}"),
            Condition::OtherUser => out.write_str(" other-user"),
            Condition::Net(net) => write!(out, " net {net}"),
            Condition::Cgroup(path) => write!(out, " cgroup {path}"),
            Condition::Address { address, bits } => write!(out, " address {address}/{bits}"),
            Condition::Port(ports) if ports.start() == ports.end() => {
                write!(out, " port {}", ports.start())
            }
            Condition::Port(ports) => write!(out, " port {}-{}", ports.start(), ports.end()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Since;

    fn process(user: u32, cgroup: &str) -> Process {
        let (command, cgroup) = ("it".to_owned(), cgroup.to_owned());
        Process { pid: 1, user, command, net: 4026531840, cgroup, since: Since::Hidden }
    }

    /// Decides about a connection from a client, of user 33 in `/web/one`, to root's server at this
    /// address.
    fn decided(rules: &str, to: &str) -> Result<(), Reason> {
        let place = |address: &str| Place::Internet(address.parse().unwrap());
        decided_between(rules, &place("10.1.2.3:40000"), &place(to))
    }

    /// As [`decided`], with these addresses.
    fn decided_between(rules: &str, from: &Place, to: &Place) -> Result<(), Reason> {
        let (client, server) = (process(33, "/web/one"), process(0, "/"));
        let policy = Policy::parse(rules).unwrap();
        let client = Party { process: &client, place: from };
        let server = Party { process: &server, place: to };
        let there = policy.decide([client, server]);
        assert_eq!(there, policy.decide([server, client]), "either end may come first");
        there
    }

    #[test]
    fn a_user_may_have_some_connections_unless_all_are_forbidden() {
        let may = |text: &str| Policy::parse(text).unwrap().may_have_any(1000);
        for text in [
            "",
            "deny other-user",
            "deny port 22",
            "deny user 33",
            "deny user 1000 with user 33",
            "allow user 1000\ndeny any",
            "allow port 80\ndeny any",
            "allow user 33 with user 1000\ndeny any",
        ] {
            assert!(may(text), "{text}");
        }
        for text in [
            "deny any",
            "deny user 1000",
            "deny any with user 1000",
            "deny any\nallow any",
            "allow user 33 with user 34\ndeny any",
        ] {
            assert!(!may(text), "{text}");
        }
    }

    #[test]
    fn without_a_rule_all_may() {
        let (one, other) = (process(33, ""), process(0, ""));
        let place = &Place::Internet("127.0.0.1:1".parse().unwrap());
        let [one, other] = [&one, &other].map(|process| Party { process, place });
        assert_eq!(Policy::default().decide([one, one]), Ok(()));
        assert_eq!(Policy::default().decide([one, other]), Ok(()));
        let deny = Policy::parse("deny any").unwrap();
        assert_eq!(deny.decide([one, one]), Err(Reason::Policy));
        let apart = Policy::parse("deny other-user").unwrap();
        assert_eq!(apart.decide([one, one]), Ok(()));
        assert_eq!(apart.decide([one, other]), Err(Reason::Policy));
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let (web, other) = ("10.0.0.1:80", Err(Reason::Policy));
        assert_eq!(decided("allow any", web), Ok(()));
        assert_eq!(decided("deny port 80\nallow any", web), Err(Reason::Policy));
        assert_eq!(decided("deny port 80\nallow any", "10.0.0.1:81"), Ok(()));
        assert_eq!(decided("allow user 33 with user 0", web), Ok(()));
        assert_eq!(decided("allow user 33 with user 1\ndeny any", web), other);
        assert_eq!(decided("allow user 33 user 0\ndeny any", web), other, "no end has two users");
        assert_eq!(
            decided("allow user 0 port 40000\ndeny any", web),
            other,
            "that is the other end"
        );
        assert_eq!(decided("allow user 0 port 80-90", web), Ok(()));
        assert_eq!(decided("allow net 4026531840 with cgroup /web", web), Ok(()));
        assert_eq!(decided("allow cgroup /we\ndeny any", web), other);
        assert_eq!(decided("allow address 10.1.0.0/16", web), Ok(()));
        assert_eq!(decided("allow address 10.2.0.0/16\ndeny any", web), other);
        assert_eq!(decided("# none\n\n allow address 0.0.0.0/0", web), Ok(()));
        assert_eq!(decided("allow address ::/0\ndeny any", web), other);
        assert_eq!(decided("allow address ::/0", "[fe80::1]:80"), Ok(()));
    }

    #[test]
    fn unix_sockets_have_users_and_no_addresses() {
        let (client, server) = (Place::Unix(String::new()), Place::Unix("/run/it".to_owned()));
        let decided = |rules| decided_between(rules, &client, &server);
        for rules in ["deny port 0-65535", "deny address 0.0.0.0/0", "deny user 33 port 1-9"] {
            assert_eq!(decided(rules), Ok(()));
        }
        for rules in ["deny any", "deny other-user", "deny user 33", "deny cgroup /web with user 0"]
        {
            assert_eq!(decided(rules), Err(Reason::Policy), "{rules}");
        }
    }

    #[test]
    fn a_rule_is_printed_as_it_is_read() {
        for rule in [
            "allow any",
            "deny any with user 12",
            "allow user 33 cgroup /web with net 7 address 10.0.0.0/8 port 1-9",
            "deny port 22 other-user",
        ] {
            assert_eq!(rule.parse::<Rule>().unwrap().to_string(), rule);
        }
        let rule: Rule = "allow user root net net:[12] address ::1".parse().unwrap();
        assert_eq!(rule.to_string(), "allow user 0 net 12 address ::1/128");
    }

    #[test]
    fn what_is_no_rule_is_refused_with_the_reason() {
        for (rule, what) in [
            ("", "begins with `allow`"),
            ("permit any", "begins with `allow`"),
            ("allow", "condition on an end is missing"),
            ("allow with any", "`with` where `any`"),
            ("allow any with", "condition on an end is missing"),
            ("allow any with any with any", "`with` where"),
            ("allow port", "missing after `port`"),
            ("allow port 9-8", "`9-8` where a port"),
            ("allow port 65536", "`65536` where a port"),
            ("allow user no-such-user", "where a user"),
            ("allow address 10.0.0.0/33", "where an address"),
            ("allow cgroup web", "from `/` on"),
        ] {
            let error = rule.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(what), "{rule}: {error}");
        }
        assert!("allow any ".repeat(200).parse::<Rule>().is_err());
        assert!(Policy::parse(&"deny any\n".repeat(RULES_MAX + 1)).is_err());
    }
}
