//! From a model's reply to chunks and one checked envelope.
