//! Facts against lanes that really run: random programs on random graphs, executed lowest block first.

use super::*;
use crate::analysis::cfg::tests::ordered;
use crate::check::module::Performance;
use crate::ir::graph::random::{self, Rng};
use crate::ir::{Block, BlockId, Dst, Guard, RegCounts};
use crate::isa::matching::Body;
use crate::isa::{OperandShape, select};

const LANES: usize = 8;
const REGS: usize = 5;
const PREDS: usize = 3;

fn inst(text: &str, dsts: Vec<Dst>, srcs: Vec<Src>) -> Inst {
    let mut words = text.split('.');
    let mnemonic = words.next().expect("a mnemonic");
    let words: Vec<&str> = words.collect();
    let written = dsts.iter().filter(|dst| **dst != Dst::Sink).count() + srcs.len();
    let shapes = vec![OperandShape::from(Body::Name); written];
    let found = select(mnemonic, &words, &shapes).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    Inst {
        op: found.row.row().op,
        row: found.row,
        mods: found.mods,
        guard: None,
        dsts,
        srcs,
        span: crate::Span::default(),
        loc: None,
        object: None,
    }
}

fn r(index: usize) -> Reg {
    Reg { class: RegClass::R32, index: index as u32 }
}

fn p(index: usize) -> Reg {
    Reg { class: RegClass::Pred, index: index as u32 }
}

/// A function with random instructions on this graph (in block order). Register 0 holds the lane, and the last predicate
/// depends on it; the others mostly do not, so that facts are there to be broken by control flow.
fn function(graph: &Graph, rng: &mut Rng) -> Function {
    let any = |rng: &mut Rng| Src::Reg(r(1 + rng.below(REGS - 1)));
    let random_inst = |rng: &mut Rng| {
        let d = vec![Dst::Reg(r(1 + rng.below(REGS - 1)))];
        let imm = Src::Imm(1 + rng.below(5) as u64);
        let mut made = match rng.below(14) {
            0..=3 => inst("mov.u32", d, vec![imm]),
            4 if rng.below(4) == 0 => inst("mov.u32", d, vec![Src::Reg(r(0))]),
            4 => inst("mov.u32", d, vec![Src::Sreg(Sreg::Ctaid, 0)]),
            5..=8 => inst("add.s32", d, vec![any(rng), imm]),
            9 => inst("mul.lo.s32", d, vec![any(rng), imm]),
            10 => inst("selp.b32", d, vec![any(rng), any(rng), Src::Reg(p(rng.below(PREDS - 1)))]),
            11 => {
                inst("setp.lt.s32", vec![Dst::Reg(p(PREDS - 1)), Dst::Sink], vec![Src::Reg(r(0)), any(rng)])
            }
            _ => {
                let operands = if rng.below(2) == 0 { vec![any(rng), imm] } else { vec![any(rng), any(rng)] };
                inst("setp.lt.s32", vec![Dst::Reg(p(rng.below(PREDS - 1))), Dst::Sink], operands)
            }
        };
        if rng.below(12) == 0 {
            made.guard = Some(Guard { pred: p(rng.below(PREDS)), negated: rng.below(2) == 0 });
        }
        made
    };
    let block = |v: usize, rng: &mut Rng| {
        let mut insts: Vec<Inst> = (0..rng.below(4)).map(|_| random_inst(rng)).collect();
        if v == 0 {
            insts.insert(0, inst("mov.u32", vec![Dst::Reg(r(0))], vec![Src::Sreg(Sreg::Laneid, 0)]));
        }
        let to: Vec<BlockId> = graph.succs(v).iter().map(|s| BlockId(*s as u32)).collect();
        let term = match to[..] {
            [] => Terminator::Ret(None),
            [to] => Terminator::Goto(to, None),
            [then, els] => Terminator::Branch {
                cond: Guard { pred: p(PREDS - 1 - rng.below(PREDS + 1) % PREDS), negated: rng.below(2) == 0 },
                then,
                els,
                inst: inst("bra", vec![], vec![Src::Absent]),
            },
            _ => Terminator::Switch {
                targets: to,
                inst: inst("brx.idx", vec![], vec![Src::Reg(r(rng.below(REGS))), Src::Absent]),
            },
        };
        Block { label: None, insts, term }
    };
    Function {
        name: "random".into(),
        kind: FunctionKind::Entry,
        regs: RegCounts { pred: PREDS as u32, r16: 0, r32: REGS as u32, r64: 0 },
        reg_names: Default::default(),
        objects: Vec::new(),
        param_names: Vec::new(),
        param_types: Vec::new(),
        params: vec![],
        returns: vec![],
        param_bytes: 0,
        frame_bytes: 0,
        frame_align: 1,
        performance: Performance::default(),
        blocks: (0..graph.len()).map(|v| block(v, rng)).collect(),
        builtin: None,
        span: crate::Span::default(),
    }
}

/// Registers of all lanes: predicates (0 or 1), then the others.
type State = Vec<[u32; LANES]>;

struct Machine<'a> {
    function: &'a Function,
    registers: Registers,
    state: State,
}

impl Machine<'_> {
    fn read(&self, src: &Src, lane: usize) -> u32 {
        match src {
            Src::Reg(reg) => self.state[self.registers.number(*reg)][lane],
            Src::Imm(bits) => *bits as u32,
            Src::Sreg(Sreg::Laneid, _) => lane as u32,
            Src::Sreg(_, _) => 7,
            _ => 0,
        }
    }

    fn holds(&self, guard: Guard, lane: usize) -> bool {
        (self.state[self.registers.number(guard.pred)][lane] != 0) != guard.negated
    }

    fn run(&mut self, inst: &Inst, lane: usize) {
        if inst.guard.is_some_and(|guard| !self.holds(guard, lane)) {
            return;
        }
        let src = |i: usize| self.read(&inst.srcs[i], lane);
        let value = match inst.op {
            Op::Mov => src(0),
            Op::Add => src(0).wrapping_add(src(1)),
            Op::Mul => src(0).wrapping_mul(src(1)),
            Op::Selp => [src(1), src(0)][(src(2) != 0) as usize],
            Op::Setp => ((src(0) as i32) < (src(1) as i32)) as u32,
            other => panic!("{other:?}"),
        };
        let to = inst.dsts[0].reg().expect("a register");
        self.state[self.registers.number(to)][lane] = value;
    }

    fn next(&self, block: usize, lane: usize) -> Option<usize> {
        match &self.function.blocks[block].term {
            Terminator::Goto(to, _) => Some(to.0 as usize),
            Terminator::Branch { cond, then, els, .. } => {
                Some(if self.holds(*cond, lane) { then } else { els }.0 as usize)
            }
            Terminator::Switch { targets, inst } => {
                Some(targets[self.read(&inst.srcs[0], lane) as usize % targets.len()].0 as usize)
            }
            _ => None,
        }
    }

    /// Every live register keeps its fact in these lanes.
    fn check(&self, facts: &Uniformity, live: &BitSet, lanes: &[usize], what: &str) -> usize {
        let mut checked = 0;
        for number in live.iter() {
            let stride = match facts.of(self.registers.reg(number)) {
                Lanes::Uniform => 0,
                Lanes::Affine { stride } => stride as u32,
                Lanes::Varying => continue,
            };
            checked += lanes.len() - 1;
            let base = |lane: usize| self.state[number][lane].wrapping_sub(stride.wrapping_mul(lane as u32));
            for &lane in lanes {
                assert_eq!(base(lane), base(lanes[0]), "{what}: {}", self.registers.reg(number));
            }
        }
        checked
    }
}

/// Runs a function and checks the facts on the way: how many facts were seen with several lanes.
fn execute(function: &Function, facts: &Uniformity, what: &str) -> usize {
    let registers = Registers::new(function);
    let liveness = Liveness::new(function, &cfg::graph(function));
    let mut machine = Machine { function, registers, state: vec![[0; LANES]; registers.len()] };
    let mut pending: Vec<Vec<usize>> = vec![Vec::new(); function.blocks.len()];
    pending[0] = (0..LANES).collect();
    let mut checked = 0;
    for _ in 0..300 {
        let Some(block) = pending.iter().position(|lanes| !lanes.is_empty()) else { break };
        let mut lanes = std::mem::take(&mut pending[block]);
        lanes.sort_unstable();
        let at = format!("{what} bb{block}");
        checked += machine.check(facts, &liveness.live_in[block], &lanes, &at);
        for (i, inst) in function.blocks[block].insts.iter().enumerate() {
            lanes.iter().for_each(|lane| machine.run(inst, *lane));
            let live = liveness.before(function, block, i + 1);
            checked += machine.check(facts, &live, &lanes, &format!("{at} behind {i}"));
        }
        if !pending.iter().all(Vec::is_empty) {
            assert!(facts.is_partial(block), "{at} has only lanes {lanes:?}");
        }
        let next: Vec<Option<usize>> = lanes.iter().map(|lane| machine.next(block, *lane)).collect();
        if !facts.diverges(block) {
            assert!(next.iter().all(|n| *n == next[0]), "{at} diverges");
        }
        for (lane, next) in lanes.iter().zip(next) {
            if let Some(next) = next {
                pending[next].push(*lane);
            }
        }
    }
    checked
}

#[test]
fn facts_hold_for_lanes_that_run() {
    let (mut checked, mut uniform, mut varying) = (0, 0, 0);
    for seed in 0..6000 {
        let graph = match seed % 3 {
            0 => random::graph(seed, 9),
            1 => random::structured(seed, 12),
            _ => random::structured(seed, 25),
        };
        let graph = ordered(&graph);
        let function = function(&graph, &mut Rng::new(seed + 99));
        let facts = Uniformity::new(&function, Assumptions::default());
        for index in 0..REGS {
            match facts.of(r(index)) {
                Lanes::Varying => varying += 1,
                Lanes::Uniform | Lanes::Affine { .. } => uniform += 1,
            }
        }
        checked += execute(&function, &facts, &format!("seed {seed}"));
    }
    assert!(checked > 10_000 && uniform > 1000 && varying > 1000, "{checked} {uniform} {varying}");
}
