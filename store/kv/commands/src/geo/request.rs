// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The words of a search. `GEOSEARCH` names center and area in words; the older commands have them
//! in front, and words behind.

use freeport_kv_types::ZSetRef;
use freeport_kv_types::geo::{Order, Point, Search, Shape, Unit};

use super::arguments::{circle, point, rectangle};
use crate::arguments::{integer, is};
use crate::error::Error;

const NO_PLACE: Error = Error::fixed("ERR could not decode requested zset member");
const NO_COUNT: Error = Error::fixed("ERR COUNT must be > 0");
const ANY_WITHOUT_COUNT: Error = Error::fixed("ERR the ANY argument requires COUNT argument");

/// A command, as far as its words depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `GEOSEARCH`
    Search,
    /// `GEOSEARCHSTORE`
    SearchStored,
    /// `GEORADIUS`, `GEORADIUS_RO` and those by member.
    Radius {
        /// The center is a member.
        by_member: bool,
        /// The result may be stored.
        may_store: bool,
    },
}

/// A center in words.
#[derive(Clone, Copy, Debug)]
enum Center {
    Place(Point),
    /// The place of a member, or none if there is no set.
    Member(Option<Point>),
}

/// A search and what becomes of its results.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The search; none if there is no set.
    pub search: Option<Search>,
    /// The unit of distances.
    pub unit: Unit,
    /// The key that gets the result.
    pub target: Option<&'a [u8]>,
    /// Scores of the stored result are distances.
    pub stores_distances: bool,
    /// Results have their distance.
    pub has_distance: bool,
    /// Results have their geohash.
    pub has_hash: bool,
    /// Results have their coordinates.
    pub has_coordinates: bool,
}

/// Words as far as they were read.
struct Parser<'a, 'v> {
    form: Form,
    set: Option<ZSetRef<'v>>,
    center: Option<Center>,
    area: Option<(Shape, Unit)>,
    order: Option<Order>,
    count: Option<usize>,
    is_any: bool,
    target: Option<&'a [u8]>,
    stores_distances: bool,
    has_distance: bool,
    has_hash: bool,
    has_coordinates: bool,
}

impl<'a> Request<'a> {
    /// Reads the arguments of a command of a form. `set` has the places; errors of some arguments
    /// depend on whether it exists.
    pub fn parse(
        arguments: &'a [&'a [u8]],
        form: Form,
        set: Option<ZSetRef<'_>>,
    ) -> Result<Self, Error> {
        let mut parser = Parser::new(form, set);
        let words = match form {
            Form::Search => &arguments[2..],
            Form::SearchStored => {
                parser.target = Some(arguments[1]);
                &arguments[3..]
            }
            Form::Radius { by_member, .. } => parser.read_radius(arguments, by_member)?,
        };
        parser.read_words(words)?;
        parser.finish(arguments[0])
    }

    /// Number of parts of a result besides the member.
    pub fn parts(&self) -> usize {
        [self.has_distance, self.has_hash, self.has_coordinates].iter().filter(|has| **has).count()
    }
}

impl<'a, 'v> Parser<'a, 'v> {
    fn new(form: Form, set: Option<ZSetRef<'v>>) -> Self {
        Self {
            form,
            set,
            center: None,
            area: None,
            order: None,
            count: None,
            is_any: false,
            target: None,
            stores_distances: false,
            has_distance: false,
            has_hash: false,
            has_coordinates: false,
        }
    }

    /// Reads center and radius in front, and returns the words behind them.
    fn read_radius(
        &mut self,
        arguments: &'a [&'a [u8]],
        by_member: bool,
    ) -> Result<&'a [&'a [u8]], Error> {
        let (center, rest) = match by_member {
            true => (self.member(arguments[2])?, &arguments[3..]),
            false => (Center::Place(point(arguments[2], arguments[3])?), &arguments[4..]),
        };
        self.center = Some(center);
        // Without a set, there is no center, and Redis does not look at the radius.
        if !matches!(center, Center::Member(None)) {
            self.area = Some(circle(rest[0], rest[1])?);
        }
        Ok(&rest[2..])
    }

    fn member(&self, member: &[u8]) -> Result<Center, Error> {
        let Some(set) = self.set else { return Ok(Center::Member(None)) };
        let score = set.score(member).ok_or(NO_PLACE)?;
        Ok(Center::Member(Some(Point::from_score(score))))
    }

    fn read_words(&mut self, mut words: &'a [&'a [u8]]) -> Result<(), Error> {
        while let [word, rest @ ..] = words {
            words = if self.read_flag(word) {
                rest
            } else if is(word, "count") && !rest.is_empty() {
                let count = integer(rest[0])?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                self.count = Some(count.ok_or(NO_COUNT)?);
                &rest[1..]
            } else {
                match self.form {
                    Form::Radius { may_store, .. } if may_store => self.read_target(word, rest)?,
                    Form::Radius { .. } => return Err(Error::SYNTAX),
                    Form::Search | Form::SearchStored => self.read_area(word, rest)?,
                }
            };
        }
        Ok(())
    }

    /// Reads a word that stands alone; returns whether it is one.
    fn read_flag(&mut self, word: &[u8]) -> bool {
        match word {
            _ if is(word, "withdist") => self.has_distance = true,
            _ if is(word, "withhash") => self.has_hash = true,
            _ if is(word, "withcoord") => self.has_coordinates = true,
            _ if is(word, "any") => self.is_any = true,
            _ if is(word, "asc") => self.order = Some(Order::NearestFirst),
            _ if is(word, "desc") => self.order = Some(Order::FarthestFirst),
            _ if self.form == Form::SearchStored && is(word, "storedist") => {
                self.stores_distances = true;
            }
            _ => return false,
        }
        true
    }

    /// Reads `STORE` or `STOREDIST` with the key; the last one counts.
    fn read_target(&mut self, word: &[u8], rest: &'a [&'a [u8]]) -> Result<&'a [&'a [u8]], Error> {
        let [target, rest @ ..] = rest else { return Err(Error::SYNTAX) };
        self.stores_distances = match word {
            _ if is(word, "store") => false,
            _ if is(word, "storedist") => true,
            _ => return Err(Error::SYNTAX),
        };
        self.target = Some(target);
        Ok(rest)
    }

    /// Reads a center or an area. One of each kind is allowed.
    fn read_area(&mut self, word: &[u8], rest: &'a [&'a [u8]]) -> Result<&'a [&'a [u8]], Error> {
        let may_be_member = !matches!(self.center, Some(Center::Place(_)));
        let may_be_place = !matches!(self.center, Some(Center::Member(_)));
        let is_rectangle = self.area.map(|(shape, _)| matches!(shape, Shape::Rectangle { .. }));
        match rest {
            [member, rest @ ..] if may_be_member && is(word, "frommember") => {
                self.center = Some(self.member(member)?);
                Ok(rest)
            }
            [longitude, latitude, rest @ ..] if may_be_place && is(word, "fromlonlat") => {
                self.center = Some(Center::Place(point(longitude, latitude)?));
                Ok(rest)
            }
            [radius, unit, rest @ ..] if is_rectangle != Some(true) && is(word, "byradius") => {
                self.area = Some(circle(radius, unit)?);
                Ok(rest)
            }
            [width, height, unit, rest @ ..]
                if is_rectangle != Some(false) && is(word, "bybox") =>
            {
                self.area = Some(rectangle(width, height, unit)?);
                Ok(rest)
            }
            _ => Err(Error::SYNTAX),
        }
    }

    /// Checks what belongs together. The name of the command is that which the client wrote.
    fn finish(self, name: &[u8]) -> Result<Request<'a>, Error> {
        let is_search = !matches!(self.form, Form::Radius { .. });
        if self.target.is_some() && (self.has_distance || self.has_hash || self.has_coordinates) {
            let name = if is_search { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(Error::new(format!(
                "ERR {name} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let missing = |what: &str| {
            let name = String::from_utf8_lossy(name);
            Error::new(format!("ERR exactly one of {what} can be specified for {name}"))
        };
        if is_search && self.center.is_none() {
            return Err(missing("FROMMEMBER or FROMLONLAT"));
        }
        if is_search && self.area.is_none() {
            return Err(missing("BYRADIUS and BYBOX"));
        }
        if self.is_any && self.count.is_none() {
            return Err(ANY_WITHOUT_COUNT);
        }
        let center = self.center.and_then(|center| match center {
            Center::Place(point) => Some(point),
            Center::Member(point) => point,
        });
        let search = center.zip(self.area).map(|(center, (shape, _))| Search {
            center,
            shape,
            order: self.order,
            count: self.count,
            is_any: self.is_any,
        });
        Ok(Request {
            search,
            unit: self.area.map_or(Unit::Meters, |(_, unit)| unit),
            target: self.target,
            stores_distances: self.stores_distances,
            has_distance: self.has_distance,
            has_hash: self.has_hash,
            has_coordinates: self.has_coordinates,
        })
    }
}
