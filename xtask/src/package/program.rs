//! A program outside this repository: runs a classifier on a gray image.

use xnn_delegate::Runner;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = std::env::args_os().nth(1).ok_or("usage: program MODEL")?;
    let mut runner = Runner::builder(model).threads(2).build()?;
    println!("{}", runner.coverage());
    runner.input_as_mut::<f32>(0)?.fill(0.5);
    runner.run()?;
    let probabilities: &[f32] = runner.output_as(0)?;
    println!("{probabilities:?}");
    let sum: f32 = probabilities.iter().sum();
    if (sum - 1.0).abs() > 1e-4 {
        return Err(format!("probabilities add up to {sum}, not to 1").into());
    }
    Ok(())
}
