//! All that is true of a PTX program without running it: table, syntax, checks, IR, analyses.
#![forbid(unsafe_code)]
