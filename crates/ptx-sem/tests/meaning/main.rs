//! Tests of every meaning function against values that are derived independently: the manual's pseudocode transcribed over 128-bit
//! integers, its tables and examples, exact comparison, or `rustc_apfloat`.

mod compare;
mod extended;
mod int;
mod logic;
mod values;
