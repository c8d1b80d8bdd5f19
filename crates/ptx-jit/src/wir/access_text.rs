//! The plan of an access as text, for the comment behind its operation.
//!
//! # Shape
//! `FORM: STRATEGY`, where the strategy of an access by chunks is a list of runs, such as `vector x2`.
//! Lanes that may be inactive follow a chunk: `/mask`, or `/` and their bits.

use super::access::{Active, Atomic, Chunk, Form, PerLane, Plan, Strategy};
use std::fmt;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.form)?;
        match &self.strategy {
            Strategy::Scalar(None) => write!(f, "scalar"),
            Strategy::Scalar(Some(lane)) => write!(f, "scalar of lane {lane}"),
            Strategy::Chunks { chunks, .. } => self.chunks(f, chunks),
            Strategy::PerLane(chunks) => self.chunks(f, chunks),
            Strategy::SpanTest { apart, permuted } => {
                f.write_str(if *permuted { "span test, else " } else { "contiguity test, else " })?;
                self.chunks(f, apart)
            }
            Strategy::LocalWords => write!(f, "words"),
            Strategy::Atomic(how) => {
                f.write_str(match how {
                    Atomic::Combined => "combined",
                    Atomic::SameAddressTest => "same-address test",
                    Atomic::InRegister => "in a register",
                    Atomic::EachLane => "each lane",
                })?;
                f.write_str(if self.access.postponed { ", postponed" } else { "" })
            }
        }
    }
}

impl Plan {
    /// Runs of chunks that read alike.
    fn chunks(&self, f: &mut fmt::Formatter<'_>, chunks: &[impl fmt::Display]) -> fmt::Result {
        let texts: Vec<String> = chunks
            .iter()
            .zip(&self.active.chunks)
            .map(|(chunk, active)| format!("{chunk}{active}"))
            .collect();
        for (number, run) in texts.chunk_by(|a, b| a == b).enumerate() {
            write!(f, "{}{}", if number == 0 { "" } else { ", " }, run[0])?;
            if run.len() > 1 {
                write!(f, " x{}", run.len())?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Active::All | Active::None => Ok(()),
            Active::Known(bits) => write!(f, "/{bits:#x}"),
            Active::Computed => write!(f, "/mask"),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Same => write!(f, "same"),
            Form::Affine(_) => write!(f, "affine"),
            Form::Rows(_) => write!(f, "rows"),
            Form::ScaledIndex(scale) => write!(f, "index*{scale}"),
            Form::Each => write!(f, "each"),
            Form::Local => write!(f, "local"),
            Form::EachLocal => write!(f, "each local"),
        }
    }
}

impl fmt::Display for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Chunk::Off => write!(f, "off"),
            Chunk::Transposed => write!(f, "transposed"),
            Chunk::Broadcast => write!(f, "broadcast"),
            Chunk::FewLanes(lanes) => write!(f, "lanes {lanes:?}"),
            Chunk::Vector => write!(f, "vector"),
            Chunk::WordParts => write!(f, "parts of words"),
            Chunk::Covered(cluster) => write!(f, "covered by {}", cluster.vectors.len()),
            Chunk::Segments(step) => write!(f, "segments of step {step}"),
            Chunk::PerLane(how) => how.fmt(f),
        }
    }
}

impl fmt::Display for PerLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerLane::WordParts => write!(f, "parts of gathered words"),
            PerLane::Wide => write!(f, "wide per lane"),
            PerLane::FewLanes(lanes) => write!(f, "per lane {lanes:?}"),
            PerLane::Masked => write!(f, "per lane"),
        }
    }
}
