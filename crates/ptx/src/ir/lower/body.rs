//! From statements to blocks in the order of [`crate::ir::order`].
//!
//! Invariant: blocks end as in rule 2 of [`crate::ir`]; guarded control flow is a branch around a separate
//! block. Labels at the same place are one block, which has the name of the first.

use super::Context;
use super::layout::Layout;
use super::operand::Lowering;
use crate::check::module::{self, Body, LabelId, Loc, Operand, Statement};
use crate::ir::flow::{Flow, flow};
use crate::ir::graph::Graph;
use crate::ir::order::block_order;
use crate::ir::{Block, BlockId, Inst, Terminator};

/// Lowers the statements of a body.
pub(super) fn lower(
    context: &Context<'_>,
    function: &module::Function,
    body: &Body,
    layout: &Layout,
) -> Vec<Block> {
    let lowering = Lowering { context, kind: function.kind, layout };
    let mut builder = Builder::new(body.labels.len());
    let mut loc = None;
    for statement in &body.statements {
        match statement {
            Statement::Label(label) => builder.label(*label),
            Statement::Loc(new) => loc = Some(*new),
            Statement::Inst(inst) => builder.inst(&lowering, body, inst, loc),
        }
    }
    builder.finish(body)
}

/// Blocks in the order of the text, before their final numbering.
struct Builder {
    blocks: Vec<Draft>,
    /// Placed blocks, in the order of the text.
    placed: Vec<usize>,
    /// The block of each label, once it is used.
    labels: Vec<Option<usize>>,
    /// The current block; `None` after an unconditional jump.
    current: Option<usize>,
}

#[derive(Default)]
struct Draft {
    label: Option<LabelId>,
    insts: Vec<Inst>,
    term: Option<Terminator>,
    /// Another block at the same place, of which this one is an alias.
    same_as: Option<usize>,
    placed: bool,
}

impl Builder {
    fn new(labels: usize) -> Self {
        let mut builder =
            Self { blocks: Vec::new(), placed: Vec::new(), labels: vec![None; labels], current: None };
        let entry = builder.draft();
        builder.place(entry);
        builder
    }

    fn draft(&mut self) -> usize {
        self.blocks.push(Draft::default());
        self.blocks.len() - 1
    }

    /// Places a block here, and makes it the current block.
    fn place(&mut self, block: usize) {
        self.blocks[block].placed = true;
        self.placed.push(block);
        self.current = Some(block);
    }

    fn end(&mut self, term: Terminator) {
        if let Some(current) = self.current.take() {
            self.blocks[current].term = Some(term);
        }
    }

    /// The block of a label. A label that is never placed is an empty block at the end.
    fn target(&mut self, label: LabelId) -> usize {
        match self.labels.get(label.0 as usize).copied().flatten() {
            Some(block) => block,
            None => {
                let block = self.draft();
                if let Some(known) = self.labels.get_mut(label.0 as usize) {
                    *known = Some(block);
                }
                block
            }
        }
    }

    fn label(&mut self, label: LabelId) {
        let block = self.target(label);
        if self.blocks[block].placed || self.blocks[block].same_as.is_some() {
            return;
        }
        if let Some(current) = self.current
            && self.blocks[current].insts.is_empty()
        {
            self.blocks[block].same_as = Some(current);
            self.blocks[current].label.get_or_insert(label);
            return;
        }
        self.end(Terminator::Goto(id(block), None));
        self.blocks[block].label = Some(label);
        self.place(block);
    }

    fn inst(&mut self, lowering: &Lowering<'_>, body: &Body, inst: &module::Inst, loc: Option<Loc>) {
        let current = match self.current {
            Some(current) => current,
            None => {
                let unreachable = self.draft();
                self.place(unreachable);
                unreachable
            }
        };
        let flow = flow(inst.row.row().op);
        let mut lowered = lowering.inst(inst, loc);
        let guard = inst.guard.map(|guard| lowering.guard(guard));
        match (flow, guard) {
            (Flow::Straight, guard) => {
                lowered.guard = guard;
                self.blocks[current].insts.push(lowered);
            }
            (Flow::Bra, None) => {
                let to = self.bra_target(inst);
                self.end(Terminator::Goto(id(to), Some(lowered)));
            }
            (Flow::Bra, Some(cond)) => {
                let (then, els) = (self.bra_target(inst), self.draft());
                self.end(Terminator::Branch { cond, then: id(then), els: id(els), inst: lowered });
                self.place(els);
            }
            (_, None) => {
                let next = self.draft();
                let term = self.terminator(flow, lowering, body, inst, lowered, next);
                let goes_on = !term.successors().is_empty() && flow != Flow::Switch;
                self.end(term);
                if goes_on {
                    self.place(next);
                }
            }
            (_, Some(cond)) => {
                let (then, next) = (self.draft(), self.draft());
                let branch =
                    Terminator::Branch { cond, then: id(then), els: id(next), inst: lowered.clone() };
                self.end(branch);
                self.place(then);
                let term = self.terminator(flow, lowering, body, inst, lowered, next);
                self.end(term);
                self.place(next);
            }
        }
    }

    fn bra_target(&mut self, inst: &module::Inst) -> usize {
        let label = inst
            .operands
            .iter()
            .find_map(|operand| if let Operand::Label(label) = operand { Some(*label) } else { None });
        match label {
            Some(label) => self.target(label),
            None => self.draft(),
        }
    }

    /// The terminator for an unguarded instruction; `next` is the following block.
    fn terminator(
        &mut self,
        flow: Flow,
        lowering: &Lowering<'_>,
        body: &Body,
        inst: &module::Inst,
        lowered: Inst,
        next: usize,
    ) -> Terminator {
        let next = id(next);
        match flow {
            Flow::Straight | Flow::Bra => Terminator::Goto(next, Some(lowered)),
            Flow::Switch => {
                let list = inst.operands.iter().find_map(|operand| {
                    if let Operand::BranchTargets(list) = operand { Some(*list as usize) } else { None }
                });
                let labels =
                    list.and_then(|list| body.branch_targets.get(list)).map_or(&[][..], Vec::as_slice);
                let targets = labels.iter().map(|label| id(self.target(*label))).collect();
                Terminator::Switch { targets, inst: lowered }
            }
            Flow::Call => Terminator::Call(Box::new(lowering.call(body, inst, lowered.loc, next))),
            Flow::Ret => Terminator::Ret(Some(lowered)),
            Flow::Exit => Terminator::Exit(lowered),
            Flow::WarpSync => Terminator::WarpSync { inst: lowered, next },
            Flow::Barrier => Terminator::Barrier { inst: lowered, next },
        }
    }

    /// Orders the reachable blocks, and numbers them.
    fn finish(mut self, body: &Body) -> Vec<Block> {
        self.end(Terminator::Ret(None));
        for block in 0..self.blocks.len() {
            if !self.blocks[block].placed && self.blocks[block].same_as.is_none() {
                self.place(block);
                self.end(Terminator::Ret(None));
            }
        }
        let mut node = vec![0; self.blocks.len()];
        for (i, block) in self.placed.iter().enumerate() {
            node[*block] = i;
        }
        // `same_as` names a placed block, never an alias.
        let node_of = |block: BlockId| {
            let block = block.0 as usize;
            node[self.blocks[block].same_as.unwrap_or(block)]
        };
        let mut edges = Vec::new();
        for (from, block) in self.placed.iter().enumerate() {
            if let Some(term) = &self.blocks[*block].term {
                edges.extend(term.successors().into_iter().map(|to| (from, node_of(to))));
            }
        }
        let order = block_order(&Graph::new(self.placed.len(), &edges));
        let mut number = vec![0; self.placed.len()];
        for (new, old) in order.iter().enumerate() {
            number[*old] = new;
        }
        let target: Vec<BlockId> = (0..self.blocks.len()).map(|b| id(number[node_of(id(b))])).collect();
        let take = |old: &usize| {
            let draft = std::mem::take(&mut self.blocks[self.placed[*old]]);
            let mut term = draft.term.unwrap_or(Terminator::Ret(None));
            term.for_each_successor_mut(&mut |to| *to = target[to.0 as usize]);
            let name = draft.label.and_then(|label| body.labels.get(label.0 as usize));
            Block { label: name.map(|(name, _)| name.clone()), insts: draft.insts, term }
        };
        order.iter().map(take).collect()
    }
}

fn id(block: usize) -> BlockId {
    BlockId(block as u32)
}
