//! Tests every meaning function against independently derived values: the manual's pseudocode transcribed to
//! 128-bit integers, its tables and examples, exact comparison, or `rustc_apfloat`.

mod approx;
mod atom_warp;
mod bfloat;
mod compare;
mod cvt;
mod extended;
mod extremum;
mod float;
mod half;
mod int;
mod logic;
mod matrix;
mod newer;
mod oracle;
mod values;
mod video;
