//! Decides which operators of a model go to XNNPACK, and lowers them to an XN01 graph.
