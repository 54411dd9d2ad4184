//! Runs a model with the crate `tflitec`: `PROGRAM MODEL INPUT OUTPUT RUNS`. Input and output are raw elements. Prints the
//! median time of a run in microseconds.

use std::time::Instant;
use std::{env, fs};

use tflitec::interpreter::{Interpreter, Options};
use tflitec::model::Model;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, model, input, output, runs] = arguments.as_slice() else { panic!("four arguments") };
    let model = Model::new(model).expect("the model");
    let options = Options { thread_count: 1, ..Options::default() };
    let interpreter = Interpreter::new(&model, Some(options)).expect("the interpreter");
    interpreter.allocate_tensors().expect("the tensors");
    interpreter.copy(&fs::read(input).expect("the input"), 0).expect("the input's size");
    let mut times: Vec<u128> = Vec::new();
    for _ in 0..runs.parse::<usize>().expect("a number") {
        let start = Instant::now();
        interpreter.invoke().expect("the run");
        times.push(start.elapsed().as_micros());
    }
    times.sort_unstable();
    let tensor = interpreter.output(0).expect("the output");
    fs::write(output, tensor.data::<u8>()).expect("the file");
    println!("{}", times[times.len() / 2]);
}
