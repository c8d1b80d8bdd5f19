//! Matrix instructions (PTX ISA §9.7.13), from text to memory, against products computed here element by
//! element.
//!
//! Data are small integers, so that every sum is exact in any order, except where a test says otherwise;
//! whole images of memory are compared, gaps between rows included.

mod fragments;
mod image;
mod misuse;
mod moves;
mod wider;
mod wmma;
