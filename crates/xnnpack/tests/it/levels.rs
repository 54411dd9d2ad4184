//! The tests of microkernels at each level of instruction sets that this processor has, in processes
//! with `XNN_MAX_ISA`.

use std::env;
use std::process::{Command, Stdio};

use xnnpack::{isa_levels, isa_limit, processor};

/// Tests that run at each level: products, convolutions and depthwise convolutions of each type, other 8-bit operators, special
/// values, and damaged weights.
const TESTS: [&str; 18] = [
    "microkernels::products_of_",
    "microkernels::depthwise_of_",
    "microkernels::single_rows",
    "microkernels::deep_products",
    "microkernels::dynamic::",
    "microkernels::images::",
    "microkernels::floats::",
    "microkernels::elementwise::all_",
    "microkernels::elementwise::conversions",
    "microkernels::long::",
    "microkernels::matrices::",
    "microkernels::moves::transpositions",
    "microkernels::rescaling::",
    "microkernels::resize::images_of_8_bits",
    "microkernels::transposed::",
    "microkernels::special::",
    "microkernels::tall_images",
    "damaged_weights::",
];

/// This program, under the emulator that `XNN_TEST_RUNNER` names if it is for another processor.
fn at(level: &str) -> Command {
    let program = env::current_exe().unwrap();
    let runner = env::var("XNN_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = Command::new(words.next().map_or(program.as_os_str(), AsRef::as_ref));
    if !runner.is_empty() {
        command.args(words).arg(&program);
    }
    command.env("XNN_MAX_ISA", level);
    command
}

/// Prints the features in use, for a parent process.
#[test]
#[ignore = "prints for the test of all levels"]
#[allow(clippy::print_stdout, reason = "the parent process reads it")]
fn print_processor() {
    println!("processor: {}", processor());
}

fn processor_at(level: &str) -> String {
    let args = ["--exact", "levels::print_processor", "--ignored", "--nocapture"];
    let output = at(level).args(args).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let line = output.lines().find_map(|line| line.split_once("processor: "));
    line.unwrap_or_else(|| panic!("{level}: {output}")).1.to_owned()
}

#[test]
fn each_level_agrees_with_plain_loops() {
    // A process with a limit is one of those that this test starts, or the user's choice.
    if isa_limit().unwrap().is_some() {
        return;
    }
    let mut done = vec![processor().to_owned()];
    let mut children = Vec::new();
    for level in isa_levels() {
        let processor = processor_at(level);
        if done.contains(&processor) {
            continue;
        }
        done.push(processor);
        let mut command = at(level);
        command.args(TESTS).stdout(Stdio::piped()).stderr(Stdio::piped());
        children.push((level, command.spawn().unwrap()));
    }
    for (level, child) in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "XNN_MAX_ISA={level}:\n{text}");
        assert!(!text.contains("running 0 tests"), "XNN_MAX_ISA={level}:\n{text}");
    }
}
