//! The contract of a module: compiled once, checked, projected, sampled.
