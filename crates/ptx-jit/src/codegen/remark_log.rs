//! The remarks of code generation, and the instruction that they are about.

use super::Codegen;
use crate::mem::remarks::Remark;
use crate::remarks::Remarks;
use crate::wir::{BlockId, Op, Site};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};

/// The remarks so far.
#[derive(Default)]
pub(super) struct RemarkLog {
    /// The instruction that remarks are about.
    pub(super) site: Cell<Option<Site>>,
    list: RefCell<Remarks>,
}

impl RemarkLog {
    /// The remarks, which are removed.
    pub(super) fn take(&self) -> Remarks {
        self.list.take()
    }
}

impl Codegen<'_> {
    /// Notes an optimisation of the instruction that is emitted.
    pub(super) fn applied(&self, pass: &'static str, reason: impl Into<Cow<'static, str>>) {
        self.remarks.list.borrow_mut().applied(pass, self.remarks.site.get(), reason);
    }

    /// Notes why the instruction that is emitted is not optimised.
    pub(super) fn missed(&self, pass: &'static str, reason: impl Into<Cow<'static, str>>) {
        self.remarks.list.borrow_mut().missed(pass, self.remarks.site.get(), reason);
    }

    /// Notes what a pass has decided about the instruction that is emitted.
    pub(super) fn remark(&self, pass: &'static str, (applied, reason): Remark) {
        match applied {
            true => self.applied(pass, reason),
            false => self.missed(pass, reason),
        }
    }

    /// The operation that remarks are about from here on, if it is an instruction.
    pub(super) fn remark_op(&self, op: &Op) {
        if let Some((site, _)) = op.insts().next() {
            self.remarks.site.set(Some(site));
        }
    }

    /// The first instruction of a block, or its terminator, that remarks are about from here on.
    pub(super) fn remark_block(&self, id: BlockId, end: bool) {
        let block = self.job.func.blocks[id.0 as usize].block;
        let insts = self.job.function.blocks.get(block as usize).map_or(0, |block| block.insts.len());
        self.remarks.site.set(Some(Site { block, index: if end { insts as u32 } else { 0 } }));
    }
}
