// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places, lengths and units among the arguments, and coordinates in replies.

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::geo::{Point, Shape, Unit, push_coordinate};

use crate::arguments::float;
use crate::error::Error;

const NO_UNIT: Error = Error::fixed("ERR unsupported unit provided. please use M, KM, FT, MI");
const NO_RADIUS: Error = Error::fixed("ERR need numeric radius");
const NEGATIVE_RADIUS: Error = Error::fixed("ERR radius cannot be negative");
const NO_WIDTH: Error = Error::fixed("ERR need numeric width");
const NO_HEIGHT: Error = Error::fixed("ERR need numeric height");
const NEGATIVE_LENGTH: Error = Error::fixed("ERR height or width cannot be negative");

/// A place of a longitude and a latitude.
pub fn point(longitude: &[u8], latitude: &[u8]) -> Result<Point, Error> {
    let (longitude, latitude) = (float(longitude)?, float(latitude)?);
    Point::new(longitude, latitude).ok_or_else(|| {
        Error::new(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}"))
    })
}

/// A unit of lengths.
pub fn unit(name: &[u8]) -> Result<Unit, Error> {
    Unit::parse(name).ok_or(NO_UNIT)
}

/// A circle of a radius, and the unit that the client measures in.
pub fn circle(radius: &[u8], name: &[u8]) -> Result<(Shape, Unit), Error> {
    let radius = float(radius).map_err(|_| NO_RADIUS)?;
    if radius < 0.0 {
        return Err(NEGATIVE_RADIUS);
    }
    let unit = unit(name)?;
    Ok((Shape::Circle { radius_m: radius * unit.meters() }, unit))
}

/// A rectangle of a width and a height, and the unit that the client measures in.
pub fn rectangle(width: &[u8], height: &[u8], name: &[u8]) -> Result<(Shape, Unit), Error> {
    let width = float(width).map_err(|_| NO_WIDTH)?;
    let height = float(height).map_err(|_| NO_HEIGHT)?;
    if width < 0.0 || height < 0.0 {
        return Err(NEGATIVE_LENGTH);
    }
    let unit = unit(name)?;
    let (width_m, height_m) = (width * unit.meters(), height * unit.meters());
    Ok((Shape::Rectangle { width_m, height_m }, unit))
}

/// Writes longitude and latitude.
pub fn write_point(reply: &mut Writer<'_>, point: Point) {
    reply.array(2);
    for degrees in [point.longitude, point.latitude] {
        let mut text = vec![];
        push_coordinate(degrees, &mut text);
        reply.double_text(&text);
    }
}
