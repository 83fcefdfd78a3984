// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures of a compiled program: length of its schedule, utilisation of its rows, and the benefit
//! of each pass and each lane.

use crate::compile::{compile_analysed, compile_measured};
use crate::image::{Image, Row};
use crate::machine::{LANES, Machine};
use crate::options::{Options, PASSES};
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::instruction::decode;
use freeport_ebpf::interpreter::Unsupported;
use freeport_ebpf::object::Program;

/// Size of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Number of rows: the cycles, if each was executed once without waiting.
    pub rows: usize,
    /// Number of operations; a long constant is one.
    pub operations: usize,
}

/// A program's schedule with its figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The schedule.
    pub image: Image,
    /// Number of eBPF instructions of the program. A wide load counts once.
    pub instructions: usize,
    /// Size of the schedule.
    pub size: Size,
    /// Number of rows that the longest dependence paths would need, with unlimited lanes.
    pub critical_rows: usize,
    /// Number of rows by the number of lanes in use, from 0 on; a long constant uses two.
    pub rows_by_lanes: Vec<usize>,
    /// Functions in the order of the image: name, and number of rows.
    pub functions: Vec<(String, usize)>,
}

/// Benefit of passes and lanes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effects {
    /// Size with every instruction kept.
    pub keeping_all: Size,
    /// Sizes with one more pass enabled at a time, in the order of [`PASSES`]; the last has all of
    /// them. Passes that are already on are not listed.
    pub cumulative: Vec<Effect>,
    /// Sizes with all passes but one.
    pub without: Vec<Effect>,
    /// Sizes with the requested passes, for each number of lanes.
    pub lanes: Vec<(u8, Size)>,
}

/// Benefit of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// One of [`PASSES`].
    pub pass: &'static str,
    /// Size of the schedule with the pass, or without it.
    pub size: Size,
}

impl Size {
    /// Returns the size of a schedule.
    pub fn of(image: &Image) -> Self {
        Self { rows: image.rows.len(), operations: image.operations() }
    }

    /// Returns the operations per row: the publication's static instructions per cycle.
    pub fn operations_per_row(&self) -> f64 {
        self.operations as f64 / self.rows.max(1) as f64
    }
}

impl Report {
    /// Compiles a program.
    ///
    /// # Errors
    /// As [`compile`](crate::compile()).
    pub fn of(
        program: &Program,
        analysis: &Analysis,
        options: &Options,
    ) -> Result<Self, Unsupported> {
        let (image, critical_rows) = compile_measured(program, analysis, options)?;
        let mut rows_by_lanes = vec![0; usize::from(image.machine.lanes) + 1];
        image.rows.iter().for_each(|row| rows_by_lanes[used_lanes(row)] += 1);
        let ends = image.functions.iter().skip(1).map(|next| next.row).chain([image.rows.len()]);
        let functions = image.functions.iter().zip(ends);
        let functions = functions.map(|(it, end)| (it.name.clone(), end - it.row)).collect();
        let (instructions, size) = (instructions(program), Size::of(&image));
        Ok(Self { image, instructions, size, critical_rows, rows_by_lanes, functions })
    }
}

impl Effects {
    /// Compiles a program with one more or one fewer pass at a time, for the machine of `options`,
    /// and with its passes for other machines.
    ///
    /// # Errors
    /// As [`compile`](crate::compile()).
    pub fn of(
        program: &Program,
        analysis: &Analysis,
        options: &Options,
    ) -> Result<Self, Unsupported> {
        let size = |options: &Options| {
            compile_analysed(program, analysis, options).map(|image| Size::of(&image))
        };
        let machine = options.machine;
        let mut steps = Options { machine, ..Options::keeping_all() };
        let keeping_all = size(&steps)?;
        let (mut cumulative, mut without) = (vec![], vec![]);
        for pass in PASSES {
            if !switch(&mut steps, pass, true) {
                cumulative.push(Effect { pass, size: size(&steps)? });
            }
            let mut all_but_it = Options { machine, ..Options::default() };
            switch(&mut all_but_it, pass, false);
            without.push(Effect { pass, size: size(&all_but_it)? });
        }
        let lanes = LANES.map(|lanes| {
            let machine = Machine { lanes };
            Ok((lanes, size(&Options { machine, ..*options })?))
        });
        let lanes = lanes.collect::<Result<_, _>>()?;
        Ok(Self { keeping_all, cumulative, without, lanes })
    }
}

/// Turns a pass on or off; returns whether it was on.
fn switch(options: &mut Options, pass: &str, is_on: bool) -> bool {
    options.pass_mut(pass).is_some_and(|switch| std::mem::replace(switch, is_on))
}

/// Returns the number of instructions of all functions.
fn instructions(program: &Program) -> usize {
    let (mut count, mut slot) = (0, 0);
    while slot < program.instructions.len() {
        slot += decode(&program.instructions, slot).map_or(1, |operation| operation.slots());
        count += 1;
    }
    count
}

fn used_lanes(row: &Row) -> usize {
    row.slots().map(|(_, slot)| slot.operation.lanes()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_ebpf::instruction::assemble;
    use freeport_ebpf::object::Function;

    const LENGTH: &str = "r2 = *(u32 *)(r1 + 0)\n\
        r3 = *(u32 *)(r1 + 4)\n\
        r4 = r2\n\
        r4 += 34\n\
        if r4 > r3 goto +5\n\
        r5 = *(u8 *)(r2 + 23)\n\
        r0 = 2\n\
        if r5 == 17 goto +3\n\
        r0 = 1\n\
        goto +1\n\
        r0 = 3\n\
        exit\n";

    fn program(text: &str) -> (Program, Analysis) {
        let instructions = assemble(text).unwrap();
        let program = Program { name: "filter".into(), instructions, ..Program::default() };
        let analysis = Analysis::of(&program, &[]).unwrap();
        (program, analysis)
    }

    #[test]
    fn numbers_are_those_of_the_schedule() {
        let (program, analysis) = program(LENGTH);
        for options in [Options::plain(), Options::keeping_all(), Options::default()] {
            let report = Report::of(&program, &analysis, &options).unwrap();
            let Report { image, size, rows_by_lanes, .. } = &report;
            assert_eq!(report.instructions, 12);
            assert_eq!((size.rows, size.operations), (image.rows.len(), image.operations()));
            assert_eq!(rows_by_lanes.len(), 5);
            assert_eq!(rows_by_lanes.iter().sum::<usize>(), size.rows);
            let used = rows_by_lanes.iter().enumerate().map(|(lanes, rows)| lanes * rows);
            assert_eq!(used.sum::<usize>(), size.operations, "no constant is long");
            assert!((1..=size.rows).contains(&report.critical_rows), "{report:?}");
            assert_eq!(report.functions, [("filter".to_owned(), size.rows)]);
        }
    }

    #[test]
    fn a_chain_is_as_long_as_its_dependences_and_a_lane_as_its_operations() {
        let (program, analysis) = program("r0 = *(u32 *)(r1 + 0)\nr0 *= r0\nr0 *= r0\nexit\n");
        let mut options = Options::default();
        for lanes in LANES {
            options.machine.lanes = lanes;
            let report = Report::of(&program, &analysis, &options).unwrap();
            assert_eq!((report.size.rows, report.critical_rows), (3, 3), "{}", report.image);
        }
    }

    #[test]
    fn rows_belong_to_functions() {
        let (mut program, _) = program(
            "r1 = *(u32 *)(r1 + 16)\ncall twice\nexit\ntwice:\nr0 = r1\nr0 += r0\nr0 += 1\nexit\n",
        );
        let function = |name: &str, slot| Function { name: name.into(), slot };
        program.functions = vec![function("filter", 0), function("twice", 3)];
        let analysis = Analysis::of(&program, &[]).unwrap();
        let report = Report::of(&program, &analysis, &Options::default()).unwrap();
        let names: Vec<&str> = report.functions.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["filter", "twice"]);
        let second = report.image.functions[1].row;
        assert_eq!(
            (report.functions[0].1, report.functions[1].1),
            (second, report.size.rows - second)
        );
        assert!(second > 0 && report.critical_rows <= report.size.rows, "{}", report.image);
    }

    #[test]
    fn effects_begin_with_nothing_and_end_with_everything() {
        let (program, analysis) = program(LENGTH);
        let options = Options::default();
        let effects = Effects::of(&program, &analysis, &options).unwrap();
        let size = |options| Report::of(&program, &analysis, &options).unwrap().size;
        assert_eq!(effects.keeping_all, size(Options::keeping_all()));
        assert_eq!(effects.cumulative.last().unwrap().size, size(options));
        assert!(size(options).rows < effects.keeping_all.rows);
        let names: Vec<&str> = effects.without.iter().map(|it| it.pass).collect();
        assert_eq!(names, PASSES);
        assert!(effects.cumulative.iter().all(|it| it.pass != "code-motion"));
        let bounds = Options { bounds: false, ..options };
        assert_eq!(effects.without[0].size, size(bounds));
        assert_ne!(effects.without[0].size, size(options));
        assert_eq!(effects.lanes[3], (4, size(options)));
    }

    #[test]
    fn a_long_constant_uses_two_lanes() {
        let (program, analysis) = program("r0 = 0x1234567890 ll\nexit\n");
        let report = Report::of(&program, &analysis, &Options::keeping_all()).unwrap();
        assert_eq!((report.instructions, report.rows_by_lanes[2]), (2, 1), "{}", report.image);
        assert_eq!(report.size.operations, 2);
    }
}
