// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Draws a schedule: a line for each row, a column for each lane, a box for each operation, and the
//! targets of jumps on the right. With execution counts, hot rows are darker.

mod heat;
mod jumps;

use crate::image::{Image, Slot};
use crate::operation::{Operation, Target};
use freeport_ebpf::object::Program;
use freeport_svg::Drawing;
pub use heat::Heat;
use jumps::Jumps;
use std::collections::BTreeSet;
use std::fmt::Write;

const STYLE: &str = "\
text { font: 11px ui-monospace, monospace; fill: #1c2733 }
.title { font-weight: bold; font-size: 13px }
.function { font-weight: bold; font-size: 12px }
.dim { fill: #5b6b7b }
.line { stroke: #e3e8ee }
rect { stroke-width: 1px }
.arithmetic { fill: #eef3f9; stroke: #41566b }
.load { fill: #e3f1e6; stroke: #3c7a4b }
.store { fill: #fdf0d5; stroke: #b07d1c }
.control { fill: #f9e0dc; stroke: #b3412e }
.call { fill: #ece3f6; stroke: #6b4a9c }
.skip { stroke-dasharray: 4 3 }
.jump { fill: none; stroke-width: 1.2px }";

const MARGIN: f64 = 16.0;
/// Top of the first row, below the header.
const TOP: f64 = 84.0;
const ROW: f64 = 22.0;
const BOX_HEIGHT: f64 = 19.0;
const NUMBER_WIDTH: f64 = 40.0;
const LANE: f64 = 196.0;
const BOX_WIDTH: f64 = 190.0;
/// Width of an entry of the legend, and of all entries.
const LEGEND: f64 = 104.0;
const LEGEND_WIDTH: f64 = 5.0 * LEGEND + 190.0;

/// Draws a schedule of this program.
pub fn svg(image: &Image, program: &Program) -> String {
    draw(image, program, None)
}

/// Draws a schedule of this program with the cycles that its rows take.
pub fn svg_with_heat(image: &Image, program: &Program, heat: &Heat) -> String {
    draw(image, program, Some(heat))
}

fn draw(image: &Image, program: &Program, heat: Option<&Heat>) -> String {
    let left = MARGIN + NUMBER_WIDTH + heat.map_or(0.0, |_| heat::WIDTH);
    let places = Places::of(image, left);
    let jumps = Jumps::of(image);
    let end = left + f64::from(image.machine.lanes) * LANE;
    let width = (end + jumps.width()).max(LEGEND_WIDTH) + MARGIN;
    let height = places.end + MARGIN;
    let title = format!("Schedule of {}", image.name);
    let mut out = Drawing::titled((width, height), &title, STYLE);
    draw_definitions(&mut out);
    out.background("#fff");
    let (operations, rows) = (image.operations(), image.rows.len());
    let title = format!("program {}: {operations} operations in {rows} rows", image.name);
    text(&mut out, "title", "start", (MARGIN, 26.0), &title);
    draw_legend(&mut out);
    for lane in 0..image.machine.lanes {
        let x = left + f64::from(lane) * LANE;
        text(&mut out, "dim", "start", (x, TOP - 8.0), &format!("lane {lane}"));
    }
    for function in &image.functions {
        if let Some(y) = places.rows.get(function.row) {
            let at = (MARGIN, y - 6.0);
            text(&mut out, "function", "start", at, &format!("{}:", function.name));
        }
    }
    if let Some(heat) = heat {
        heat.draw(&mut out, &places, end);
    }
    draw_rows(&mut out, image, program, &places);
    jumps.draw(&mut out, &places, end);
    out.finish()
}

/// Positions of rows.
struct Places {
    /// Tops, by row.
    rows: Vec<f64>,
    /// Bottom of the last one.
    end: f64,
    /// Left edge of the lanes.
    left: f64,
}

impl Places {
    /// Computes the positions; each first row of a function has room for its name above.
    fn of(image: &Image, left: f64) -> Self {
        let begins: BTreeSet<usize> = image.functions.iter().map(|function| function.row).collect();
        let (mut rows, mut end) = (vec![], TOP);
        for row in 0..image.rows.len() {
            end += if begins.contains(&row) { ROW } else { 0.0 };
            rows.push(end);
            end += ROW;
        }
        Self { rows, end, left }
    }
}

/// Defines clips that keep text inside its box: one for boxes of one lane, one for those of two.
fn draw_definitions(out: &mut Drawing) {
    out.open("defs", &[]);
    for lanes in [1, 2] {
        out.open("clipPath", &[("id", &format_args!("lanes{lanes}"))]);
        let width = box_width(lanes) - 3.0;
        out.element("rect", &[("width", &width), ("height", &BOX_HEIGHT)]);
        out.close("clipPath");
    }
    out.close("defs");
}

fn draw_legend(out: &mut Drawing) {
    let kinds = ["arithmetic", "load", "store", "control", "call", "control skip"];
    for (at, class) in kinds.into_iter().enumerate() {
        let x = MARGIN + at as f64 * LEGEND;
        let name = if class == "control skip" { "skips later lanes" } else { class };
        out.element(
            "rect",
            &[
                ("class", &class),
                ("x", &x),
                ("y", &38),
                ("width", &14),
                ("height", &14),
                ("rx", &2),
            ],
        );
        text(out, "", "start", (x + 20.0, 49.0), name);
    }
}

fn draw_rows(out: &mut Drawing, image: &Image, program: &Program, places: &Places) {
    let width = places.left + f64::from(image.machine.lanes) * LANE;
    for (number, (row, y)) in image.rows.iter().zip(&places.rows).enumerate() {
        let below = y + (ROW + BOX_HEIGHT) / 2.0;
        let line = format!("M{MARGIN} {below}H{width}");
        out.element("path", &[("class", &"line"), ("d", &line)]);
        let at = (places.left - 8.0, y + 14.0);
        text(out, "dim", "end", at, &number.to_string());
        for (lane, slot) in row.slots() {
            let at = (places.left + lane as f64 * LANE, *y);
            draw_operation(out, program, slot, (number, lane), at);
        }
    }
}

fn draw_operation(
    out: &mut Drawing,
    program: &Program,
    slot: &Slot,
    (row, lane): (usize, usize),
    (x, y): (f64, f64),
) {
    let skips = slot.operation.target() == Some(Target::Row(row + 1));
    let class = if skips { "control skip" } else { kind(&slot.operation) };
    let lanes = slot.operation.lanes();
    let place = format!("translate({x} {y})");
    out.open("g", &[("class", &"operation"), ("transform", &place)]);
    out.text("title", &[], &explanation(program, slot, row, lane));
    let width = box_width(lanes);
    out.element(
        "rect",
        &[("class", &class), ("width", &width), ("height", &BOX_HEIGHT), ("rx", &3)],
    );
    out.open("g", &[("clip-path", &format_args!("url(#lanes{lanes})"))]);
    out.text("text", &[("x", &5), ("y", &13.5)], &slot.operation.to_string());
    out.close("g");
    out.close("g");
}

fn box_width(lanes: usize) -> f64 {
    (lanes.max(1) - 1) as f64 * LANE + BOX_WIDTH
}

/// Describes an operation, its place, and its origins.
fn explanation(program: &Program, slot: &Slot, row: usize, lane: usize) -> String {
    let origins: Vec<String> = slot.origins.iter().map(ToString::to_string).collect();
    let mut all = format!("{}\nrow {row}, lane {lane}\n", slot.operation);
    let _ = write!(all, "eBPF {}", origins.join(", "));
    let mut reported = BTreeSet::new();
    for line in slot.origins.iter().filter_map(|origin| program.line(*origin)) {
        if reported.insert((&line.file, line.line)) {
            let _ = write!(all, "\n{}:{}: {}", line.file, line.line, line.text.trim());
        }
    }
    all
}

/// Returns the class that determines its colour.
fn kind(operation: &Operation) -> &'static str {
    match operation {
        Operation::Alu { .. }
        | Operation::Negate { .. }
        | Operation::MoveSigned { .. }
        | Operation::Swap { .. }
        | Operation::Constant { .. } => "arithmetic",
        Operation::Load { .. } => "load",
        Operation::Store { .. } | Operation::Atomic { .. } => "store",
        Operation::Jump { .. } | Operation::Bound { .. } | Operation::Goto(_) | Operation::Exit => {
            "control"
        }
        Operation::Call { .. } | Operation::CallFunction(_) => "call",
    }
}

fn text(out: &mut Drawing, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
    let attributes: freeport_svg::Attributes =
        &[("class", &class), ("text-anchor", &anchor), ("x", &x), ("y", &y)];
    out.text("text", attributes, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, compile};
    use freeport_ebpf::instruction::assemble;
    use freeport_ebpf::object::{Function, Line};

    fn program() -> Program {
        let text = "r2 = *(u32 *)(r1 + 0)\n\
            r3 = *(u32 *)(r1 + 4)\n\
            r4 = r2\n\
            r4 += 14\n\
            r6 = 0x1234567890 ll\n\
            if r4 > r3 goto +4\n\
            r5 = *(u8 *)(r2 + 13)\n\
            *(u64 *)(r10 - 8) = r6\n\
            if r5 < 8 goto -3\n\
            call 5\n\
            r0 = 1\n\
            exit\n";
        let instructions = assemble(text).unwrap();
        let line = |slot, text: &str| Line {
            slot,
            file: "a&b.c".into(),
            line: slot as u32 + 1,
            column: 1,
            text: text.into(),
        };
        let functions = vec![Function { name: "fil<ter>".into(), slot: 0 }];
        let lines = vec![line(0, "\tif (a < b && c > \"d\")\u{1}"), line(7, "  return;")];
        let name = "fil<ter>".into();
        Program { name, instructions, functions, lines, ..Program::default() }
    }

    fn drawn(options: &Options) -> (Image, String) {
        let image = compile(&program(), &[], options).unwrap();
        let svg = svg(&image, &program());
        (image, svg)
    }

    /// Checks that every opened element is closed, in order, and that every `&` begins an entity;
    /// returns the names of all elements.
    fn elements(document: &str) -> Vec<&str> {
        let (mut open, mut all) = (vec![], vec![]);
        for piece in document.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').expect("a tag ends");
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            assert!(!text.contains('>'), "{piece}");
            let name = tag.split([' ', '\n', '/']).find(|it| !it.is_empty()).expect("a name");
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closed));
            } else {
                all.push(name);
                if !tag.ends_with('/') {
                    open.push(name);
                }
            }
            let entities = ["amp;", "lt;", "gt;", "quot;"];
            let mut ands = piece.split('&').skip(1);
            assert!(ands.all(|it| entities.iter().any(|entity| it.starts_with(entity))), "{piece}");
        }
        assert!(open.is_empty(), "{open:?} are not closed");
        all
    }

    #[test]
    fn every_operation_has_a_box_in_a_document_that_is_well_formed() {
        for lanes in 2..=8 {
            for mut options in [Options::plain(), Options::keeping_all(), Options::default()] {
                options.machine.lanes = lanes;
                let (image, svg) = drawn(&options);
                let boxes = svg.matches("<g class=\"operation\"").count();
                assert_eq!(boxes, image.operations());
                let all = elements(&svg);
                assert_eq!(all[0], "svg");
                let kinds = 6;
                let others = kinds + 3; // Both clips, and the page.
                assert_eq!(all.iter().filter(|it| **it == "rect").count(), boxes + others);
            }
        }
    }

    #[test]
    fn what_an_object_says_cannot_break_the_document() {
        let (_, svg) = drawn(&Options::keeping_all());
        assert!(svg.contains(">fil&lt;ter&gt;:</text>"), "{svg}");
        assert!(
            svg.contains("\na&amp;b.c:1: if (a &lt; b &amp;&amp; c &gt; &quot;d&quot;)"),
            "{svg}"
        );
        assert!(!svg.contains('\u{1}') && !svg.contains("fil<"));
    }

    #[test]
    fn a_box_is_coloured_and_explained() {
        let (image, svg) = drawn(&Options::plain());
        let class = |text: &str| {
            let (before, _) = svg.split_once(&format!(">{text}</text>")).expect(text);
            let (_, class) = before.rsplit_once("<rect class=\"").expect("a box");
            class.split('"').next().expect("it ends").to_owned()
        };
        assert_eq!(class("r5 = *(u8 *)(r2 + 13)"), "load");
        assert_eq!(class("*(u64 *)(r10 - 8) = r6"), "store");
        assert_eq!(class("call ktime_get_ns"), "call");
        assert_eq!(class("exit r0"), "control");
        assert_eq!(class("r6 = 0x1234567890"), "arithmetic");
        let row = image.rows.iter().position(|row| {
            row.slots().any(|(_, slot)| slot.operation.to_string().starts_with("call"))
        });
        let reported = format!("<title>call ktime_get_ns\nrow {}, lane 0\n", row.expect("a call"));
        assert!(svg.contains(&reported), "{svg}");
        assert!(svg.contains("eBPF 10\na&amp;b.c:8: return;</title>"), "{svg}");
    }

    #[test]
    fn functions_have_room_for_their_names() {
        let (mut image, _) = drawn(&Options::default());
        image.functions.push(crate::image::Function { name: "behind".into(), row: 2 });
        let Places { rows, end, .. } = Places::of(&image, 0.0);
        assert_eq!((rows[0], rows[1], rows[2]), (TOP + ROW, TOP + 2.0 * ROW, TOP + 4.0 * ROW));
        assert_eq!(end, TOP + (image.rows.len() + 2) as f64 * ROW);
        let svg = svg(&image, &program());
        assert!(svg.contains(&format!("y=\"{}\">behind:</text>", rows[2] - 6.0)), "{svg}");
    }

    #[test]
    fn the_hottest_row_is_the_darkest() {
        let (image, plain) = drawn(&Options::plain());
        let mut rows = vec![0.0; image.rows.len()];
        (rows[0], rows[2]) = (1.0, 3.0);
        let svg = svg_with_heat(&image, &program(), &Heat { rows, all: 8.0 });
        elements(&svg);
        let opacities = svg.split("fill-opacity=\"").skip(1);
        let opacities: Vec<&str> = opacities.filter_map(|it| it.split('"').next()).collect();
        assert_eq!(opacities, ["0.287", "0.700"]);
        assert!(svg.contains("<title>row 2: 3.00 cycles per packet, 37.5 %</title>"), "{svg}");
        assert!(!plain.contains("fill-opacity"), "{plain}");
    }

    #[test]
    fn a_long_constant_is_two_lanes_wide() {
        let (_, svg) = drawn(&Options::plain());
        assert_eq!(svg.matches("url(#lanes2)").count(), 1, "{svg}");
        assert!(
            svg.contains(&format!("width=\"{}\" height=\"{BOX_HEIGHT}\" rx", LANE + BOX_WIDTH))
        );
    }
}
