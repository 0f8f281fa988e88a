//! Raw material for tests: mock servers that speak wire JSON, byte splitters.
