//! The meaning of one PTX instruction on values: pure scalar functions, written once.
#![forbid(unsafe_code)]
