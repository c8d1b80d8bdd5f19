//! Kernels in native code under initcheck.
//!
//! Native code tracks no undefined bits. It executes a warp only while every register that is still read is
//! defined, loads only defined bytes, and marks the bytes that it stores as defined. Where it would load an
//! undefined byte, the warp continues in the interpreter, whose events the tool follows; it returns to native
//! code at the start of a block at which no live register has an undefined bit.
//!
//! Invariant: at every instruction that native code executes, all source registers are defined.

use super::Initcheck;
use ptx::analysis::cfg;
use ptx::analysis::liveness::Liveness;
use ptx::ir::{Program, Reg, Terminator};
use ptx_exec::lanes::LaneMask;
use ptx_exec::watch::{KernelFacts, NativeChecks, Site};
use std::collections::HashMap;
use std::sync::Arc;

/// For each function of a program that native code executes, the registers that are live at the start of each
/// block.
#[derive(Default)]
pub(super) struct LiveRegisters {
    program: Option<Arc<Program>>,
    functions: HashMap<u32, Vec<Vec<Reg>>>,
}

impl LiveRegisters {
    /// The registers that are live at the start of a block.
    fn at(&mut self, program: &Arc<Program>, function: u32, block: u32) -> &[Reg] {
        if self.program.as_ref().is_none_or(|known| !Arc::ptr_eq(known, program)) {
            *self = Self { program: Some(Arc::clone(program)), functions: HashMap::new() };
        }
        let blocks = self.functions.entry(function).or_insert_with(|| {
            program.functions.get(function as usize).map_or_else(Vec::new, |function| {
                let live = Liveness::new(function, &cfg::graph(function));
                let blocks = live.live_in.iter();
                blocks.map(|set| set.iter().map(|number| live.registers.reg(number)).collect()).collect()
            })
        });
        blocks.get(block as usize).map_or(&[], Vec::as_slice)
    }
}

/// What native code of a kernel must check; the error says why it must be interpreted.
pub(super) fn checks(kernel: &KernelFacts<'_>) -> Result<NativeChecks, String> {
    // The condition of a branch whose two targets are one block is reported, but native code does not
    // compute it.
    let blocks = kernel.program.functions.get(kernel.kernel.0 as usize).map(|kernel| &kernel.blocks);
    let idle = blocks.into_iter().flatten().find_map(|block| match &block.term {
        Terminator::Branch { then, els, inst, .. } if then == els => Some(inst),
        _ => None,
    });
    if let Some(inst) = idle {
        let line = kernel.program.source.line(inst.span);
        return Err(format!("initcheck follows the condition of the branch without effect in line {line}"));
    }
    let live = LiveRegisters::default().at(kernel.program, kernel.kernel.0, 0).len();
    match live {
        0 => Ok(NativeChecks { defined: true, ..NativeChecks::default() }),
        1 => Err("initcheck follows a register that may be read before it is written".to_owned()),
        _ => Err(format!("initcheck follows {live} registers that may be read before they are written")),
    }
}

impl Initcheck {
    /// Lanes continue behind native code: their registers are defined.
    pub(super) fn leave_native(&mut self, site: &Site, lanes: LaneMask) {
        self.loaded = None;
        self.pending.clear();
        self.frames.at(site).for_each(|_, register| register.lanes &= !lanes);
        if let Some(carry) = self.carry.get_mut(&site.warp.slot) {
            *carry &= !lanes;
        }
    }

    /// Whether everything that lanes may still read is defined at the start of a block.
    pub(super) fn is_defined(&mut self, site: &Site, lanes: LaneMask) -> bool {
        if self.carry.get(&site.warp.slot).is_some_and(|carry| carry & lanes != 0) {
            return false;
        }
        let frame = self.frames.at(site);
        let live = self.live.at(&site.launch.program, site.place.function, site.place.block);
        live.iter().all(|reg| frame.get(*reg).is_none_or(|register| register.lanes & lanes == 0))
    }
}
