//! JSON that is still arriving: a push parser, the value tree, and a writer.
