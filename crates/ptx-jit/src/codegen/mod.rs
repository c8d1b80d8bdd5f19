//! Code generation: from WIR to LLVM IR.
//!
//! A value of all lanes is a scalar, or one scalar for all lanes or for each chunk beside a constant vector,
//! or a vector for each chunk, as its shape says ([`Repr`]). An instruction is lowered for one chunk at a
//! time; an instruction without a lowering is executed by the interpreter's own step.
//!
//! Invariants: blocks are emitted in reverse postorder, so values exist before they are used. Registers of
//! lanes that this call does not own (others wait in the same frame) are never written. Inactive lanes hold
//! any value but poison.

mod active_guard;
pub(crate) mod atomic;
mod barrier_slots;
mod bit_vectors;
mod check_coalesce;
mod check_elim;
mod check_emit;
mod chunk_loop;
mod coalesce_gathers;
mod coarse_warp;
mod collective;
mod const_prop;
mod control_flow;
mod covering_loads;
mod cta_loop;
mod definedness;
mod edge;
mod emitted_values;
mod endpoint_test;
mod entry_values;
mod exit_saves;
mod facts;
mod float_chain;
mod funnel_shift;
mod index_tests;
mod inst;
mod interleaved;
mod lane_loops;
pub(crate) mod load_store;
mod local_words;
mod loop_predication;
mod mask;
mod mask_tree;
mod masked;
mod matrix;
mod move_elements;
mod nan_canonical;
mod narrow_lanes;
mod ordering;
mod permuted;
mod position;
mod postponed;
mod prefetch_deferred;
mod prefetch_grid_stride;
mod prefetch_next_cta;
mod prefetches;
mod remark_log;
mod scalar_threads;
mod scaled_index;
mod segmented;
mod side_exit;
mod sink_masks;
mod span_test;
mod speculate_unmasked;
pub(crate) mod state_map;
mod step_call;
mod strip_vectors;
mod symbolic_stride;
mod transposed;
mod value;
mod version_prefix;
mod warp_loop;
mod warp_strips;
mod wide_gather;

use crate::analysis::Analyses;
use crate::analysis::loop_kind::LoopKind;
use crate::frame::Frame;
use crate::isel::Env;
use crate::llvm::{Block, Builder, Flush, Function, Likely, Module, Type, Value};
use crate::remarks::Remarks;
use crate::target::Target;
use crate::wir;
use crate::wir::{BlockId, Func, Kind, LaunchShape, Op, OpKind, Shape, Site, Term};
use control_flow::ControlFlow;
use emitted_values::EmittedValues;
use entry_values::EntryValues;
use facts::Facts;
use mask::Mask;
use position::Position;
use prefetches::Prefetches;
use ptx::ir::RegClass;
use ptx_exec::layout::Layout;
use ptx_exec::watch::AccessObjects;
use remark_log::RemarkLog;
use std::collections::HashMap;

/// Lanes of a warp.
const LANES: u32 = 32;

/// How a value is held.
#[derive(Clone, Debug)]
enum Repr {
    /// The same in all lanes.
    Scalar(Value),
    /// A mask.
    Mask(Mask),
    /// The value of the first lane, or of the first lane of each chunk.
    Bases(Vec<Value>),
    /// A vector for each chunk.
    Chunks(Vec<Value>),
    /// A predicate as one number ([`bit_vectors`]).
    Number(Mask),
    /// A vector for each warp, with narrow lanes ([`narrow_lanes`]).
    Narrow(Vec<Value>),
    /// A vector for each chunk, in the memory of a coarse warp's barrier slots, at this offset in bytes
    /// ([`barrier_slots`]).
    Kept(u32),
}

/// What an access does to its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// It reads them.
    Read,
    /// It writes them.
    Write,
    /// It updates them by an atomic operation.
    Update,
}

/// The result of generating a function, beside its LLVM IR.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emitted {
    /// The number of cached bounds that it needs.
    pub(crate) windows: u32,
    /// Instructions without native code, by name, with their number.
    pub(crate) fallbacks: std::collections::BTreeMap<String, u32>,
    /// Symbols that the code names: functions of the host, and variables and functions of the program.
    pub(crate) externals: Vec<String>,
    /// How the scheduler hands a CTA to the code.
    pub(crate) cta: ptx_exec::native::CtaCode,
    /// Where registers are at entries and side exits.
    pub(crate) handed: state_map::StateMap,
    /// The side exits of single warps.
    pub(crate) exits: Vec<ptx_exec::native::ExitPoint>,
    /// The side exits of a coarse warp, which end it.
    pub(crate) leaves: Vec<ptx_exec::native::SideExit>,
    /// Of a coarse warp: whether an operation has no code for several warps.
    pub(crate) unfit: bool,
    /// The process is ending: the function is not complete and must not be used.
    pub(crate) given_up: bool,
    /// Whether reductions are kept in the reduction buffer before they reach memory.
    pub(crate) postpones: bool,
    /// Whether it updates global memory itself, by atomic operations or ordered stores.
    pub(crate) updates: bool,
    /// What became of each decision.
    pub(crate) remarks: Remarks,
}

/// What code is generated from.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The PTX function.
    pub(crate) function: &'a ptx::ir::Function,
    /// Addresses of variables and functions.
    pub(crate) layout: &'a Layout,
    /// The objects that accesses must stay in, if observers need that.
    pub(crate) objects: Option<&'a AccessObjects>,
    /// Whether a CTA of which a thread has exited must leave native code at a barrier, for observers.
    pub(crate) whole: bool,
    /// Whether only defined bytes may be loaded, for observers.
    pub(crate) defined: bool,
    /// Whether accesses are compared with stamps, for observers.
    pub(crate) ordered: bool,
    /// The program of the function.
    pub(crate) program: &'a ptx::ir::Program,
    /// The function as WIR.
    pub(crate) func: &'a Func,
    /// The launch that the WIR was built for.
    pub(crate) shape: LaunchShape,
    /// Whether the processor flushes subnormal numbers while the function runs.
    pub(crate) flush: bool,
    /// The processor that code is generated for.
    pub(crate) target: Target,
    /// The number of its first cached bounds.
    pub(crate) windows: u32,
    /// Whether a launch of the kernel may read clocks of warps.
    pub(crate) clocks: bool,
    /// Whether vectors are computed by warp loops, and the code declines CTAs whose threads do not all do the
    /// same ([`warp_loop`]).
    pub(crate) by_warp: bool,
}

impl Input<'_> {
    /// Whether accesses may leave native code, for observers.
    fn exits_at_accesses(&self) -> bool {
        self.defined || self.ordered
    }
}

struct Codegen<'a> {
    job: Input<'a>,
    b: Builder<'a>,
    env: Env,
    function: Function,
    /// Lanes of a chunk.
    width: u32,
    /// Lanes that execute as one: of a warp, of a coarse warp, or of the chunk of a chunk loop.
    lanes: u32,
    /// What is known of the function.
    facts: Facts,
    /// What the function loads where it begins.
    entry: EntryValues,
    /// The WIR values that are emitted.
    values: EmittedValues,
    /// The LLVM blocks, and the edges between them.
    flow: ControlFlow,
    /// What is emitted now.
    position: Position,
    /// The state of the optimisations that are made while code is emitted.
    passes: PassStates,
    prefetches: Prefetches,
    remarks: RemarkLog,
    out: Emitted,
}

/// The optimisations that are made while code is emitted: what each has found, and what it has emitted.
struct PassStates {
    written_slots: barrier_slots::WrittenSlots,
    chunk_loops: chunk_loop::ChunkLoops,
    in_bounds_until: loop_predication::InBoundsUntil,
    matrices: matrix::Matrices,
    /// Masks that are computed where they are read.
    sunk_masks: sink_masks::SunkMasks,
    warp_strips: warp_strips::WarpStrips,
    stride_reads: symbolic_stride::StrideReads,
    /// The number of the cached bounds of each site. Copies of a site whose accesses have another size have
    /// bounds of their own, since bounds say where an access of that many bytes may begin; so have those that
    /// write, and those that add combined reductions.
    cached_bounds: HashMap<(Site, u32, bool, bool), u32>,
}

/// Emits a function of that name into the module. `analyses`: what is known of the function.
pub(crate) fn emit(module: &Module, name: &str, job: Input<'_>, analyses: Analyses) -> Emitted {
    let b = Builder::new(module);
    let ty = b.fn_type(Some(b.int(64)), &[b.ptr()]);
    let function = module.function(name, ty, if job.flush { Flush::Always } else { Flush::Never });
    let rooms = b.append_block(function, "rooms");
    let head = b.append_block(function, "head");
    b.position_at_end(head);
    let frame = b.param(function, 0);
    let env = Env {
        target: job.target,
        flush: if job.flush { Flush::Always } else { Flush::Never },
        sm: u32::from(job.program.target.sm.number),
    };
    let mut emit = Codegen {
        job,
        function,
        env,
        width: job.shape.chunk,
        lanes: job.shape.lanes(),
        facts: Facts::new(job, analyses, &env),
        entry: EntryValues::new(frame, b.zero(b.int(64))),
        values: EmittedValues::new(job.func.kinds.len()),
        flow: ControlFlow::new(head, job.func),
        position: Position::default(),
        passes: PassStates {
            written_slots: barrier_slots::WrittenSlots::default(),
            chunk_loops: chunk_loop::ChunkLoops::new(rooms),
            in_bounds_until: loop_predication::InBoundsUntil::default(),
            matrices: matrix::Matrices::default(),
            sunk_masks: sink_masks::SunkMasks::default(),
            warp_strips: warp_strips::WarpStrips::default(),
            stride_reads: symbolic_stride::StrideReads::default(),
            cached_bounds: HashMap::new(),
        },
        prefetches: Prefetches::default(),
        remarks: RemarkLog::default(),
        out: Emitted::default(),
        b,
    };
    emit.start();
    emit.b.position_at_end(rooms);
    emit.find_warp_strips();
    emit.b.position_at_end(head);
    emit.blocks();
    if emit.out.given_up {
        return emit.out;
    }
    emit.store_joined_masks();
    emit.b.position_at_end(rooms);
    emit.b.br(head);
    emit.b.split_long_chains();
    emit.out.externals = emit.b.externals();
    emit.out.remarks = emit.remarks.take();
    emit.out
}

impl Codegen<'_> {
    fn int(&self, bits: u32) -> Type {
        self.b.int(bits)
    }

    fn c32(&self, value: u32) -> Value {
        self.b.const_int(self.int(32), u64::from(value))
    }

    fn c64(&self, value: u64) -> Value {
        self.b.const_int(self.int(64), value)
    }

    fn chunks(&self) -> u32 {
        self.lanes / self.width
    }

    fn shape(&self, name: wir::Value) -> &Shape {
        self.passes.chunk_loops.shapes.get(&name).unwrap_or(&self.job.func.shapes[name.0 as usize])
    }

    fn kind(&self, name: wir::Value) -> Kind {
        self.job.func.kinds[name.0 as usize]
    }

    /// The scalar type of a value.
    fn scalar_type(&self, kind: Kind) -> Type {
        self.int(match kind {
            Kind::Reg(RegClass::Pred) => 1,
            Kind::Reg(RegClass::R16) => 16,
            Kind::Reg(RegClass::R32) => 32,
            Kind::Mask => self.lanes,
            Kind::Reg(RegClass::R64) | Kind::Count => 64,
        })
    }

    fn blocks(&mut self) {
        let order = self.job.func.reverse_postorder();
        for node in &order {
            let block = self.b.append_block(self.function, "");
            self.flow.starts[node.0 as usize] = Some(block);
        }
        // The code of the entry selects where execution begins.
        self.report_barrier_slots();
        self.assign_entry_areas();
        let block = self.dispatch();
        let unknown = self.b.append_block(self.function, "unknown");
        self.flow.unreachable_block = Some(unknown);
        let entries = &self.job.func.entries;
        let mut cases: Vec<_> =
            entries.iter().map(|entry| (u64::from(entry.block), self.at(entry.node))).collect();
        cases.extend(self.beginnings());
        self.b.switch(block, unknown, &cases);
        self.b.position_at_end(unknown);
        self.declined();
        for node in order {
            if crate::llvm::is_ending() {
                self.out.given_up = true;
                return;
            }
            self.node(node);
        }
    }

    fn at(&self, node: BlockId) -> Block {
        self.flow.reached.borrow_mut().insert(node);
        self.flow.starts[node.0 as usize].expect("every node that is reached has a block")
    }

    fn node(&mut self, id: BlockId) {
        let func = self.job.func;
        let node = &func.blocks[id.0 as usize];
        let start = self.flow.starts[id.0 as usize].expect("every node has a block");
        let fused = self.is_fused(id);
        if fused {
            self.b.delete_block(start);
        } else {
            self.b.position_at_end(start);
        }
        // Code of a coarse warp that executes warp by warp declines where lanes diverge.
        if !self.flow.reached.borrow().contains(&id) {
            self.b.unreachable();
            return self.at_first();
        }
        debug_assert!(self.passes.warp_strips.fused.is_none(), "another block continues the warp strip");
        self.position.node = Some(id);
        self.passes.written_slots.begin();
        self.position.full = node.full;
        self.position.loop_kind =
            self.facts.loops.get(node.block as usize).copied().unwrap_or(LoopKind::Loop);
        self.begin_deferred_prefetches(id);
        for (index, phi) in node.phis.iter().enumerate().filter(|_| !fused) {
            // A constant needs no phi, so the entry passes no value.
            let fixed = self.constant(phi.def);
            let wanted = if fixed.is_some() { Repr::Chunks(Vec::new()) } else { self.phi(phi.def) };
            self.values.define(phi.def, fixed.unwrap_or_else(|| wanted.clone()));
            self.flow.phis.insert((id.0, index), wanted);
        }
        if !fused {
            self.begin_predicated_loop(id);
        }
        // Operands from blocks that were emitted before this one.
        if let Some(pending) = self.flow.pending.remove(&id.0) {
            for (block, values) in pending {
                self.arrive(id, block, &values);
            }
        }
        self.prefixes(id);
        self.emit_sunk_masks(id);
        self.unmasked(id);
        self.content(id);
        self.end_deferred_prefetches();
    }

    /// Emits the operations of a block and its terminator.
    fn content(&mut self, id: BlockId) {
        let func = self.job.func;
        let node = &func.blocks[id.0 as usize];
        if self.job.by_warp {
            return self.warp_by_warp(id, node);
        }
        if self.position.versioned_block != Some(id) {
            self.begin_section(node);
        }
        let mut foreseen = self.as_all(|emit| emit.ahead(node));
        self.begin_deferred_issue(id);
        // The groups are for code that executes instruction by instruction, and for the block's own masks.
        let apart = self.in_section() || self.is_unmasked();
        let (mut pieces, mut bunches) = match apart {
            true => Default::default(),
            false => (self.begin_groups(node, &mut foreseen), self.begin_gathers(node)),
        };
        let mut test = self
            .test_of(id)
            .filter(|test| !(0..node.ops.len()).any(|at| test.has(at) && foreseen.is_done(at)))
            .filter(|_| !self.in_section());
        self.remark_endpoint_test(id, test.is_some());
        let mut piece = 0;
        self.position.scalarized_cost.set(0);
        let mut sections =
            if self.position.versioned_block == Some(id) { [].iter() } else { node.sections.iter() }
                .peekable();
        let first = node.ops.iter().position(|op| op.insts().next().is_some());
        // The index up to which operations are emitted.
        let mut emitted = 0;
        for (at, op) in node.ops.iter().enumerate() {
            if at < emitted {
                continue;
            }
            if !foreseen.is_done(at) && !test.as_ref().is_some_and(|test| test.has(at)) {
                self.sink_mask(id, at);
            }
            if self.passes.sunk_masks.has(id, at) {
                continue;
            }
            // A block that continues a warp strip has no chunk loops.
            if Some(at) == first && self.in_section() {
                sections = [].iter().peekable();
            }
            if let Some(section) = sections.next_if(|section| section.start <= at) {
                self.remark_section(node, section);
                if section.is_chunk_loop() {
                    // The operands of the endpoint test are emitted before it.
                    if let Some(test) = test.take() {
                        (0..at).filter(|at| test.has(*at)).for_each(|at| self.op(node, at));
                    }
                    self.emit_chunk_loop(node, section, &foreseen, &mut pieces);
                    emitted = section.end;
                    piece = 0;
                    self.position.scalarized_cost.set(0);
                    continue;
                }
            }
            self.begin_issue_at(node, at);
            self.interleaved_groups_at(node, &mut pieces, at);
            if !foreseen.is_done(at) && !test.as_ref().is_some_and(|test| test.has(at)) {
                self.position.access_checked = foreseen.fits(at);
                self.coalesced_gather_at(node, &mut bunches, at);
                self.op(node, at);
                self.issue_prefetch_between_ops(op);
                piece += self.chunks() * op.insts().count().max(1) as u32;
                if piece + self.position.scalarized_cost.get() >= self.block_end() && !self.in_section() {
                    self.split_llvm_block();
                    piece = 0;
                    self.position.scalarized_cost.set(0);
                }
            }
        }
        self.issue_remaining_prefetches();
        self.position.access_checked = false;
        if let (Some(test), Term::If { then, .. }) = (test, &node.term) {
            self.test(id, *then, &test);
        }
        self.end(id, &node.term);
    }

    /// Begins a new LLVM block, after a branch that is always taken but that LLVM cannot fold.
    fn split_llvm_block(&mut self) {
        let on = self.b.append_block(self.function, "piece");
        self.branch_opaquely(on);
        self.b.position_at_end(on);
    }

    /// Branches to a block by a branch that LLVM cannot fold.
    fn branch_opaquely(&self, on: Block) {
        let Some(unknown) = self.flow.unreachable_block else { return self.b.br(on) };
        let some = self.b.icmp(crate::llvm::IntPred::Ne, self.entry.frame, self.b.zero(self.b.ptr()));
        self.b.cond_br(some, on, unknown, Likely::Yes);
    }

    /// Emits the operation of a block with that index.
    fn op(&mut self, node: &wir::Block, at: usize) {
        if node.strips.as_ref().is_some_and(|strips| strips.ends_before(at)) {
            self.close_section();
        }
        let op = &node.ops[at];
        match op.kind {
            OpKind::Add(_) | OpKind::AddLanes(_) | OpKind::AddWarps(_) => self.at_last(),
            _ => {}
        }
        self.emit_op(op);
        self.at_first();
    }

    fn emit_op(&mut self, op: &Op) {
        use std::mem::offset_of;
        let rep = match &op.kind {
            OpKind::Inst(site) => return self.as_all(|emit| emit.inst(*site, op)),
            OpKind::Chain(chain) => return self.as_all(|emit| emit.float_chain(chain, op)),
            OpKind::Guard(site, lanes, exit) => return self.guard((*site, *lanes), exit, &op.uses),
            OpKind::SameQuotient(site) => return self.same_quotient(*site, op),
            OpKind::Rebase => return self.rebase(op),
            // Emitted at the start of the block.
            OpKind::Ahead(_) => return,
            OpKind::Spare(site, exit) => {
                self.position.pending_exit = Some((*site, (**exit).clone()));
                return;
            }
            OpKind::SelectMask => {
                return self.select_mask(op);
            }
            OpKind::SelectPred { negated } => return self.select_pred(*negated, op),
            OpKind::Reload(reg) => {
                let rep = self.load_reg(*reg, op.defs[0], self.entry.own);
                self.values.define(op.defs[0], rep);
                return;
            }
            OpKind::Spill(reg) => {
                let mask = self.mask(op.uses[0]);
                return self.store_reg(*reg, op.uses[1], Some(mask));
            }
            OpKind::Load(reg) => {
                let rep = self.load(*reg, op.defs[0]);
                self.values.define(op.defs[0], rep);
                return;
            }
            OpKind::Restore(resume, reg) => {
                let fixed = self.constant(op.defs[0]);
                let rep = fixed.unwrap_or_else(|| self.restore(*resume, *reg, op.defs[0]));
                self.values.define(op.defs[0], rep);
                return;
            }
            OpKind::Reduced(resume, _) => return self.reduced(*resume, op.defs[0]),
            OpKind::Mask(0) => Repr::Mask(self.no_lane()),
            OpKind::Mask(_) => Repr::Mask(self.all_lanes()),
            OpKind::EntryMask => Repr::Mask(self.own_mask()),
            OpKind::EntryLive => Repr::Mask(self.new_mask(self.entry.live)),
            OpKind::EntryCarry => {
                let carry = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, carry)), 8);
                Repr::Mask(self.new_mask(self.b.load(self.int(32), carry, 4)))
            }
            OpKind::EntryTurns => Repr::Scalar(self.load64(offset_of!(Frame, turns))),
            OpKind::Count(number) => {
                self.note_count(op.defs[0], Some(*number));
                Repr::Scalar(self.c64(*number))
            }
            OpKind::Truths { negated } => Repr::Mask(self.truths(op.uses[0], *negated)),
            OpKind::InRange { first, count } => Repr::Mask(self.in_range(op.uses[0], *first, *count)),
            OpKind::Picks { site, second } => Repr::Scalar(self.picks(*site, *second, op)),
            OpKind::And | OpKind::AndNot | OpKind::Or if self.facts.analyses.rare[op.defs[0].0 as usize] => {
                self.values.later.insert(op.defs[0], op.clone());
                return;
            }
            OpKind::And | OpKind::AndNot | OpKind::Or => Repr::Mask(self.mask_op(op)),
            OpKind::Add(number) => {
                let known = self.constant_count(op.uses[0]);
                self.note_count(op.defs[0], known.map(|known| known.wrapping_add(*number as u64)));
                let a = self.scalar(op.uses[0]);
                Repr::Scalar(self.b.add(a, self.c64(*number as u64)))
            }
            OpKind::AddLanes(number) => {
                let (a, mask) = (self.scalar(op.uses[0]), self.mask(op.uses[1]));
                let lanes = self.known_lanes_in(mask).map(|lanes| lanes.wrapping_mul(*number));
                let known = self.constant_count(op.uses[0]).zip(lanes);
                self.note_count(op.defs[0], known.map(|(a, lanes)| a.wrapping_add(lanes)));
                let count = self.lanes_in(mask);
                let count = self.b.mul(count, self.c64(*number));
                Repr::Scalar(self.b.add(a, count))
            }
            OpKind::AddWarps(number) => {
                let (a, mask) = (self.scalar(op.uses[0]), self.mask(op.uses[1]));
                if let Some(words) = self.mask_words(mask) {
                    let some = words.iter().filter(|word| **word != 0).count() as u64;
                    let known = self.constant_count(op.uses[0]);
                    self.note_count(op.defs[0], known.map(|known| known.wrapping_add(some * number)));
                    let sum = self.b.add(a, self.c64(some * number));
                    self.values.define(op.defs[0], Repr::Scalar(sum));
                    return;
                }
                self.note_count(op.defs[0], None);
                let count = match self.joined_vector(mask, LANES) {
                    Some(words) => {
                        let some = self.b.icmp(crate::llvm::IntPred::Ne, words, self.b.zero(words.ty()));
                        let bits = self.b.bitcast(some, self.int(self.job.shape.team));
                        let bits = self.b.zext(bits, self.int(64));
                        self.b.intrinsic("llvm.ctpop", &[self.int(64)], &[bits])
                    }
                    None => self.warps_in(self.word(mask)),
                };
                let count = self.b.mul(count, self.c64(*number));
                Repr::Scalar(self.b.add(a, count))
            }
        };
        self.values.define(op.defs[0], rep);
    }

    /// How many lanes are in a mask that is known.
    fn known_lanes_in(&self, mask: Mask) -> Option<u64> {
        Some(self.mask_words(mask)?.iter().map(|word| u64::from(word.count_ones())).sum())
    }

    /// How many warps have lanes in a mask that is one number, as a 64-bit number. Two warps at a time, in
    /// integer registers: a vector of the words would be loaded from where parts of it have just been stored,
    /// and such a load waits until they are in the cache.
    fn warps_in(&self, word: Value) -> Value {
        let low = self.c64(0x7fff_ffff_7fff_ffff);
        let mut sum = None;
        for at in (0..self.lanes).step_by(64) {
            let part = match at {
                0 => word,
                _ => self.b.lshr(word, self.b.const_int(word.ty(), at.into())),
            };
            let part = self.as_long(part);
            // The highest bit of each half is set if one of the half's bits is.
            let carried = self.b.or(self.b.add(self.b.and(part, low), low), part);
            let some = self.b.and(carried, self.c64(0x8000_0000_8000_0000));
            let count = self.b.intrinsic("llvm.ctpop", &[self.int(64)], &[some]);
            sum = Some(sum.map_or(count, |sum| self.b.add(sum, count)));
        }
        sum.expect("a mask has lanes")
    }

    /// How many lanes are in a mask, as a 64-bit number.
    fn lanes_in(&mut self, mask: Mask) -> Value {
        if let Some(lanes) = self.known_lanes_in(mask) {
            return self.c64(lanes);
        }
        let count = match self.joined_vector(mask, LANES) {
            Some(words) => {
                let counts = self.b.intrinsic("llvm.ctpop", &[words.ty()], &[words]);
                self.b.intrinsic("llvm.vector.reduce.add", &[words.ty()], &[counts])
            }
            None => {
                let word = self.word(mask);
                self.b.intrinsic("llvm.ctpop", &[word.ty()], &[word])
            }
        };
        self.as_long(count)
    }
}
