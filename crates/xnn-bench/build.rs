//! Linker options of the peer.

#![allow(clippy::print_stdout, reason = "how build scripts talk to cargo")]

#[path = "../../link/order.rs"]
mod order;

fn main() {
    order::tell_linker();
}
