//! The pipeline: a module, an input and a provider to chunks and one envelope.
