// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page about the representation: its examples are valid programs, and it names every
//! operation.

use freeport_ir::schedule::{RunOptions, check, parse_pipeline, run};
use freeport_ir::text::{parse, print};
use freeport_ir::{Program, flit, verify};

const PAGE: &str = include_str!("../../../docs/reference/ir.md");

/// Returns the code blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let open = format!("\n```{language}\n");
    let ends = PAGE.split(open.as_str()).skip(1);
    ends.map(|rest| rest.split("\n```").next().expect("the first part")).collect()
}

fn programs() -> Vec<Program> {
    let parsed = |text| parse(text).unwrap_or_else(|error| panic!("{error}"));
    blocks("ir").into_iter().map(parsed).collect()
}

#[test]
fn every_example_is_a_sound_program() {
    let programs = programs();
    assert_eq!(programs.len(), 5);
    for program in programs {
        assert_eq!(verify(&program), Ok(()));
        assert_eq!(parse(&print(&program)), Ok(program));
    }
}

#[test]
fn the_pipeline_of_the_page_counts() {
    let programs = programs();
    let program = programs.last().expect("the page has programs");
    let [text] = blocks("pipeline")[..] else { panic!("the page has one pipeline") };
    let pipeline = parse_pipeline(program, text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(check(program, &pipeline), Ok(()));
    let flits: Vec<_> = [8, 8, 9, 8].iter().flat_map(|byte| flit::cut(&[*byte])).collect();
    let mut always = |_, _| true;
    let options = RunOptions { clock_limit: 100, reads_output: &mut always };
    let run = run(program, &pipeline, vec![flits], options).expect("it has no hazard");
    assert_eq!((run.state[0][8].to_u64(), run.state[0][9].to_u64()), (3, 1));
    assert_eq!(run.clocks, 6);
}

#[test]
fn every_operation_of_the_text_form_is_on_the_page() {
    let everything = include_str!("text/everything.ir");
    let mut words: Vec<&str> = everything
        .lines()
        .filter(|line| line.starts_with("      ") || line.starts_with("    %"))
        .map(|line| line.split_once(" = ").map_or(line, |(_, op)| op).trim())
        .filter_map(|op| op.split_whitespace().next())
        .collect();
    words.sort_unstable();
    words.dedup();
    assert!(words.len() > 60, "{words:?}");
    let named = |word: &&&str| {
        let starts = [format!("`{word}`"), format!("`{word} "), format!("`{word},")];
        starts.iter().any(|start| PAGE.contains(start))
    };
    let missing: Vec<_> = words.iter().filter(|word| !named(word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
