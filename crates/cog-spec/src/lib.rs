//! The data of the specification, and what passes between the stages of a run.
