//! How benchmarks talk to the runtimes that they compare.
//!
//! Each runtime is a process of its own, a peer. It opens one model with one number of threads, says in a
//! line of JSON what that cost ([`Opened`]), and then answers [`Request`]s on its standard input, each with
//! a line of JSON. In between it sleeps, so that peers can be timed in turns ([`in_turns`]).
//!
//! All peers take `--model FILE --inputs FOLDER --threads N`. Peers in Rust are a [`Runtime`] given to
//! [`serve`]; the one in Python is `tools/python/bench_peer.py`.

mod client;
mod inputs;
mod memory;
mod processor;
mod protocol;
mod serve;
mod turns;

pub use client::Peer;
pub use inputs::Input;
pub use protocol::{Facts, Memory, Opened, Request, Runs, Side, Start};
pub use serve::{Instance, Runtime, serve};
pub use turns::{in_turns, median, quantile, ratio};
