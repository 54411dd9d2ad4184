//! Safe, complete wrapper of XNNPACK's subgraph API.
