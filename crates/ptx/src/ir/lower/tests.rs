//! Lowering of hand-written texts, reviewed line by line.
