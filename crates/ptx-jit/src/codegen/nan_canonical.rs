//! Elision of NaN canonicalisation: values that may hold any NaN
//! ([`analysis::any_nan`](crate::analysis::any_nan)) get canonical bits where these are read.
//!
//! Invariant: [`Codegen::scalar`], [`Codegen::base`] and [`Codegen::chunk`] return canonical bits. A caller
//! that accepts other NaNs uses the functions that say so.

use super::Codegen;
use crate::isel::{Lower, Lowering};
use crate::llvm::Value;
use crate::wir;
use crate::wir::Site;
use ptx::ir::Inst;
use std::rc::Rc;

impl Codegen<'_> {
    /// The lowering of an instruction, if it has one.
    pub(super) fn lowering(&mut self, site: Site, inst: &Inst) -> Option<Rc<Lowering>> {
        self.facts.lowerings.of(site, inst, &self.env)
    }

    /// A chunk of a value that `def` copies; non-canonical if `def` may be.
    pub(super) fn chunk_for(&mut self, def: wir::Value, name: wir::Value, chunk: u32) -> Value {
        if self.may_be_noncanonical(def) {
            self.noncanonical_chunk(name, chunk)
        } else {
            self.chunk(name, chunk)
        }
    }

    /// Whether a value may be a non-canonical NaN.
    pub(super) fn may_be_noncanonical(&self, name: wir::Value) -> bool {
        self.facts.any_nan.get(name.0 as usize).copied().unwrap_or(false)
    }

    /// The canonical bits of a value that may be a non-canonical NaN.
    pub(super) fn exact(&self, value: Value) -> Value {
        let lanes = value.ty().lanes();
        let cx = Lower { b: &self.b, env: self.env, lanes, carry_in: None, carry_out: None, any_nan: false };
        cx.canonical_f32(value)
    }
}
