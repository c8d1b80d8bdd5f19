//! Versioning on indices: a copy of a block's accesses for warps in which a clamp changes no index, or a
//! division gives all lanes the same quotient.
//!
//! Kernels clamp indices at the edges of an image, `in[min(max(x, 0), w - 1)]`, mirror them,
//! `in[x < w ? abs(x) : 2 * w - 2 - x]`, wrap them around, `in[(x + 1) % w]`, or divide them, `row[i / n]`.
//! The result may differ from lane to lane in any way, so each lane has an address of its own. But in nearly
//! all warps the clamp changes nothing, or the quotient is one number. If the index is affine and the limit
//! or divisor uniform, the first and the last lane show that. So a block with such accesses becomes
//!
//! ```text
//!              head     what the tests need, and the tests (`OpKind::Picks`, `OpKind::SameQuotient`)
//!             /    \
//!          fast     plain    the accesses: with simpler indices, and as they were
//!             \    /
//!              tail     phis of what both compute, and the rest of the block
//! ```
//!
//! In the fast copy the result of a clamp is its operand, and that of a selection is the operand that is also
//! compared; a quotient is uniform, and a remainder is its dividend minus a uniform number. So addresses
//! computed from them are affine. That may show that another index has a simple form, too, whose test then
//! follows, with the same plain copy.
//!
//! Invariants: a test has no effect, and where it holds the replaced value is equal in every lane. Both
//! copies have the side exits of the block, with the same registers. A loop's header stays its header.
//!
//! Behind the copies the value is a phi, so only accesses in the block of the index profit. Where others do,
//! in code of single warps, all code behind the fast copy is duplicated ([`version_rest`]): an index that is
//! clamped before a loop is affine in the loop then. A coarse warp of several CTAs has no plain copy: it
//! leaves where a test fails ([`assume`]), so that all blocks behind the test profit.
//!
//! What it does not do: only full copies of blocks have versions, and at most one block of a function has a
//! version of all code behind it.

use super::duplicate::duplicate;
use super::{dce, phi_elim};
use crate::analysis::expr::{Arith, Expr, Operand, may_change_index, operands};
use crate::effects::reads_parameter;
use crate::tuning::{ASSUMED_INDICES_MAX_ROUNDS, VERSION_MAX_OPS, VERSION_MAX_ROUNDS, VERSION_REST_MAX_OPS};
use crate::wir::uses::Readers;
use crate::wir::{
    Block, BlockId, Cond, Effects, Exit, Func, Kind, Op, OpKind, Phi, Shape, Site, Term, Value,
};
use ptx::ir::{Dst, Function, Inst, RegClass};
use ptx::isa::{Cmp, Op as O, Ty};
use std::collections::{HashMap, HashSet};

/// What the fast copy assumes of an operation's result.
#[derive(Clone)]
enum Form {
    /// It is the operand, which is the first or the second.
    Operand { index: Value, second: bool },
    /// It is the operand of a selection that the comparison at a site decides by. That reads these values,
    /// and is false if the operand is the second.
    Compared { index: Value, second: bool, site: Site, uses: Vec<Value> },
    /// It is uniform: the quotient.
    Quotient,
    /// It is the dividend minus a uniform number.
    Remainder { dividend: Value },
}

/// An operation whose result has a simpler form in nearly all warps.
struct Guess {
    /// The index of the operation.
    at: usize,
    site: Site,
    form: Form,
}

/// A block with two versions of its accesses.
struct Version {
    head: BlockId,
    fast: BlockId,
    plain: BlockId,
}

/// Makes versions of blocks; returns whether there are any. `classify` infers the shapes of the function's
/// values.
pub(crate) fn version<E: Effects>(
    func: &mut Func,
    function: &Function,
    effects: &E,
    classify: impl Fn(&mut Func),
) -> bool {
    let mut blocks = (0..func.blocks.len() as u32).map(BlockId).filter(|id| func.blocks[id.0 as usize].full);
    if blocks.all(|id| guesses(func, function, effects, (id, &HashSet::new())).is_empty()) {
        return false;
    }
    let before = func.clone();
    // Blocks whose versions would access memory alike.
    let mut left_out: HashSet<BlockId> = HashSet::new();
    loop {
        let versions = attempt(func, function, effects, &classify, &left_out);
        let useless = versions.iter().filter(|version| {
            let [fast, plain] =
                [version.fast, version.plain].map(|id| varying_addresses(func, function, effects, id));
            fast >= plain
        });
        let useless: Vec<BlockId> = useless.map(|version| version.head).collect();
        if useless.is_empty() {
            return !versions.is_empty();
        }
        left_out.extend(useless);
        func.clone_from(&before);
    }
}

/// Makes a version of all code behind one block: indices that are clamped before a loop are affine in the
/// whole loop then. For code of single warps; returns whether there is one.
pub(crate) fn version_rest<E: Effects>(
    func: &mut Func,
    function: &Function,
    effects: &E,
    classify: impl Fn(&mut Func),
) -> bool {
    let sought = address_values(func, function, effects);
    let readers = Readers::new(func);
    let passed: HashSet<Value> =
        func.blocks.iter().flat_map(|block| &block.phis).flat_map(|phi| phi.from.iter().copied()).collect();
    // Some address of another block depends on what it computes, and differs from lane to lane in any way.
    let serves_others = |id: &BlockId| {
        let block = &func.blocks[id.0 as usize];
        let is_read =
            |def: &Value| passed.contains(def) || readers.of(*def).iter().any(|reader| reader != id);
        let varies = |def: &&Value| sought.contains(def) && func.shapes[def.0 as usize] == Shape::Varying;
        block.full && block.ops.iter().flat_map(|op| &op.defs).filter(varies).any(is_read)
    };
    let ids = (0..func.blocks.len() as u32).map(BlockId).filter(serves_others);
    let found = ids.map(|id| (id, guesses(func, function, effects, (id, &sought))));
    let mut found = found.filter(|(_, guesses)| !guesses.is_empty());
    let Some((head, first)) = found.next() else { return false };
    let before = func.clone();
    let parts = copied_parts(func, function, effects, (head, &first));
    let (mut version, tail) = split(func, head, &first, parts, &readers);
    relink(func, &HashMap::from([(head, tail)]));
    classify(func);
    for _ in 0..ASSUMED_INDICES_MAX_ROUNDS {
        let sought = address_values(func, function, effects);
        let more = guesses(func, function, effects, (version.fast, &sought));
        if more.is_empty() {
            break;
        }
        let parts = copied_parts(func, function, effects, (version.fast, &more));
        let fast = narrow(func, version.fast, &more, parts, version.plain);
        relink(func, &HashMap::from([(version.fast, fast)]));
        classify(func);
        version.fast = fast;
    }
    let varying = |func: &Func, id: BlockId| varying_addresses(func, function, effects, id);
    let copies = duplicate(func, tail, version.fast, VERSION_REST_MAX_OPS).inspect(|_| {
        relink(func, &HashMap::new());
        phi_elim::simplify(func);
        dce::sweep(func, function, effects);
        classify(func);
    });
    let gains = |(original, copy): (&BlockId, &BlockId)| varying(func, *copy) < varying(func, *original);
    if copies.is_some_and(|copies| copies.iter().any(gains)) {
        return true;
    }
    *func = before;
    false
}

/// Assumes in a coarse warp of several CTAs that the guesses hold: where one does not, the coarse warp
/// leaves. So there is no plain copy, and the values behind the tests are affine in all blocks, also in
/// loops. CTAs at the edges, where clamps change indices, are not in such coarse warps
/// ([`CoarseCode::edges_alone`](ptx_exec::native::CoarseCode::edges_alone)). Returns whether anything is
/// assumed.
pub(crate) fn assume<E: Effects>(
    func: &mut Func,
    function: &Function,
    effects: &E,
    classify: impl Fn(&mut Func),
) -> bool {
    let ids = |func: &Func| (0..func.blocks.len() as u32).map(BlockId);
    let varying = |func: &Func| -> usize {
        let full = ids(func).filter(|id| func.blocks[id.0 as usize].full);
        full.map(|id| varying_addresses(func, function, effects, id)).sum()
    };
    let (before, most) = (func.clone(), varying(func));
    let mut budget = VERSION_MAX_OPS;
    for _ in 0..ASSUMED_INDICES_MAX_ROUNDS {
        let addresses = address_values(func, function, effects);
        let found: Vec<(BlockId, Vec<Guess>)> = ids(func)
            .filter(|id| func.blocks[id.0 as usize].full)
            .filter(|id| exit_at_start(&func.blocks[id.0 as usize].ops).is_some())
            .map(|id| (id, guesses(func, function, effects, (id, &addresses))))
            .filter(|(_, guesses)| !guesses.is_empty())
            .collect();
        let readers = Readers::new(func);
        let mut renamed = HashMap::new();
        for (id, guesses) in found {
            let parts = copied_parts(func, function, effects, (id, &guesses));
            if parts.own.len() > budget {
                continue;
            }
            budget -= parts.own.len();
            let (version, tail) = split(func, id, &guesses, parts, &readers);
            let plain = &mut func.blocks[version.plain.0 as usize];
            let (at, exit) = exit_at_start(&plain.ops).expect("ptxvm bug: a copy without a side exit");
            plain.term = Term::Exit(exit);
            plain.ops.truncate(at);
            renamed.insert(id, tail);
        }
        if renamed.is_empty() {
            break;
        }
        relink(func, &renamed);
        phi_elim::simplify(func);
        dce::sweep(func, function, effects);
        classify(func);
    }
    if varying(func) < most {
        return true;
    }
    *func = before;
    false
}

/// The side exit at the start of a block, with its index, if the block has one.
fn exit_at_start(ops: &[Op]) -> Option<(usize, Box<Exit>)> {
    ops.iter().enumerate().find_map(|(at, op)| match &op.kind {
        OpKind::Ahead(exit) => Some((at, exit.clone())),
        _ => None,
    })
}

/// The values that addresses of accesses are computed from by linear arithmetic.
fn address_values(func: &Func, function: &Function, effects: &impl Effects) -> HashSet<Value> {
    let mut from: HashMap<Value, &[Value]> = HashMap::new();
    let mut left: Vec<Value> = Vec::new();
    for block in &func.blocks {
        from.extend(block.phis.iter().map(|phi| (phi.def, phi.from.as_slice())));
        for op in &block.ops {
            let OpKind::Inst(site) = op.kind else { continue };
            let Some(inst) = site.inst(function) else { continue };
            if effects.accesses(inst) {
                left.extend(op.uses.get(1));
            } else if let ([def], true) = (&op.defs[..], computes_addresses(inst)) {
                from.insert(*def, &op.uses[1..]);
            }
        }
    }
    let mut found = HashSet::new();
    while let Some(value) = left.pop() {
        if found.insert(value) {
            left.extend(from.get(&value).copied().unwrap_or_default());
        }
    }
    found
}

/// How many accesses of a block have an address of each lane's own.
fn varying_addresses(func: &Func, function: &Function, effects: &impl Effects, id: BlockId) -> usize {
    let varies = |op: &&Op| {
        let OpKind::Inst(site) = op.kind else { return false };
        let address = op.uses.get(1).map(|address| &func.shapes[address.0 as usize]);
        address == Some(&Shape::Varying) && site.inst(function).is_some_and(|inst| effects.accesses(inst))
    };
    func.blocks[id.0 as usize].ops.iter().filter(varies).count()
}

/// Makes versions of all blocks but some.
fn attempt<E: Effects>(
    func: &mut Func,
    function: &Function,
    effects: &E,
    classify: &impl Fn(&mut Func),
    left_out: &HashSet<BlockId>,
) -> Vec<Version> {
    let mut versions: Vec<Version> = Vec::new();
    let mut budget = VERSION_MAX_OPS;
    for _ in 0..VERSION_MAX_ROUNDS {
        let blocks = (0..func.blocks.len() as u32).map(BlockId);
        let found: Vec<(BlockId, Vec<Guess>)> = blocks
            .filter(|id| func.blocks[id.0 as usize].full && !left_out.contains(id))
            .filter(|id| versions.iter().all(|version| version.plain != *id))
            .map(|id| (id, guesses(func, function, effects, (id, &HashSet::new()))))
            .filter(|(_, guesses)| !guesses.is_empty())
            .collect();
        let readers = Readers::new(func);
        let mut renamed = HashMap::new();
        for (id, guesses) in found {
            let parts = parts(&func.blocks[id.0 as usize], function, effects, (&guesses, 0));
            match versions.iter_mut().find(|version| version.fast == id) {
                Some(version) => {
                    version.fast = narrow(func, id, &guesses, parts, version.plain);
                    renamed.insert(id, version.fast);
                }
                None if parts.own.len() <= budget => {
                    budget -= parts.own.len();
                    let (version, tail) = split(func, id, &guesses, parts, &readers);
                    versions.push(version);
                    renamed.insert(id, tail);
                }
                None => {}
            }
        }
        if renamed.is_empty() {
            break;
        }
        relink(func, &renamed);
        dce::sweep(func, function, effects);
        classify(func);
    }
    versions
}

/// The operations of a block on an affine index and a uniform number that these values, or addresses of
/// accesses in the block, depend on, and whose results have a simpler form in nearly all warps.
fn guesses(
    func: &Func,
    function: &Function,
    effects: &impl Effects,
    (id, sought): (BlockId, &HashSet<Value>),
) -> Vec<Guess> {
    let block = &func.blocks[id.0 as usize];
    let mut addresses: HashSet<Value> = HashSet::new();
    let mut found = Vec::new();
    for (at, op) in block.ops.iter().enumerate().rev() {
        let OpKind::Inst(site) = op.kind else { continue };
        let Some(inst) = site.inst(function) else { continue };
        if effects.accesses(inst) {
            addresses.extend(op.uses.get(1));
            continue;
        }
        let [def] = op.defs[..] else { continue };
        let is_sought = addresses.contains(&def) || sought.contains(&def);
        if !is_sought || inst.guard.is_some() || !computes_addresses(inst) {
            continue;
        }
        addresses.extend(&op.uses[1..]);
        if let Some(form) = form(func, function, block, (inst, op)) {
            found.push(Guess { at, site, form });
        }
    }
    found.reverse();
    if found.is_empty() {
        return found;
    }
    // The head computes the operands of the tests, and nothing that depends on a guessed result.
    let (_, early) = movable_ops(block, function, effects, &found, |_| true);
    let own: HashSet<Value> = block.ops.iter().flat_map(|op| &op.defs).copied().collect();
    let is_early = |value: &Value| early.contains(value) || !own.contains(value);
    found.retain(|guess| block.ops[guess.at].uses.iter().all(is_early));
    found
}

/// Whether an affine result of the instruction follows from affine operands, or is guessed.
fn computes_addresses(inst: &Inst) -> bool {
    inst.op == O::Abs || Expr::of(inst).is_some_and(|expr| is_linear(expr.arith))
}

/// Whether an affine result follows from affine operands, or is guessed.
fn is_linear(arith: Arith) -> bool {
    match arith {
        Arith::Copy
        | Arith::Convert(_)
        | Arith::ToGeneric(_)
        | Arith::FromGeneric(_)
        | Arith::Add
        | Arith::Sub
        | Arith::Neg
        | Arith::Mul { .. }
        | Arith::Mad { .. }
        | Arith::Shl
        | Arith::Min
        | Arith::Max
        | Arith::Div
        | Arith::Rem
        | Arith::Select => true,
        Arith::Shr | Arith::And | Arith::Or | Arith::Xor | Arith::Compare(_) => false,
    }
}

/// The simpler form that the result of an operation on an affine and a uniform operand may have.
fn form(func: &Func, function: &Function, block: &Block, (inst, op): (&Inst, &Op)) -> Option<Form> {
    let is_simple = match &func.shapes[op.defs.first()?.0 as usize] {
        Shape::Varying => false,
        Shape::Affine(affine) => !affine.by_chunk,
        Shape::Bottom | Shape::Uniform(_) => true,
    };
    if is_simple {
        return None;
    }
    let affine = |operand: &Operand<'_>| {
        let value = operand.value()?;
        let Shape::Affine(affine) = &func.shapes[value.0 as usize] else { return None };
        affine.span().map(|_| value)
    };
    let uniform = |operand: &Operand<'_>| match operand {
        Operand::Imm(_) => true,
        other => other.value().is_some_and(|value| func.shapes[value.0 as usize].is_uniform()),
    };
    let sources = operands(inst, op);
    if inst.op == O::Abs {
        let index = sources.first().filter(|_| inst.mods.ty() == Ty::S32).and_then(affine)?;
        return Some(Form::Operand { index, second: false });
    }
    let expr = Expr::of(inst)?;
    if let (Arith::Select, [a, b, by]) = (expr.arith, sources.as_slice()) {
        let by = by.value()?;
        let defines = |op: &&Op| op.defs.contains(&by);
        // A test before may have left the comparison in a block that dominates this one.
        let elsewhere = || func.blocks.iter().flat_map(|block| &block.ops).find(defines);
        let compares = block.ops.iter().find(defines).or_else(elsewhere)?;
        let OpKind::Inst(site) = compares.kind else { return None };
        let comparison = site.inst(function).filter(|inst| inst.guard.is_none())?;
        // A second result is the opposite.
        if compares.defs != [by] || comparison.dsts.first().and_then(Dst::reg).is_none() {
            return None;
        }
        let Expr { arith: Arith::Compare(cmp), ty: Ty::S32 | Ty::U32 } = Expr::of(comparison)? else {
            return None;
        };
        let compared = operands(comparison, compares);
        let number = match compared.as_slice() {
            [x, limit] | [limit, x] if uniform(limit) => affine(x)?,
            _ => return None,
        };
        // Of two indices, that one is picked which is compared; a clamp picks between an index and a limit.
        let (index, second) = match (affine(a), affine(b)) {
            (Some(index), _) if index == number => (index, false),
            (_, Some(index)) if index == number => (index, true),
            (Some(index), None) => (index, false),
            (None, Some(index)) => (index, true),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        // Whether all lanes are equal to a number is no matter of the first and the last one.
        let fits = if second { cmp != Cmp::Ne } else { cmp != Cmp::Eq };
        return fits.then(|| Form::Compared { index, second, site, uses: compares.uses.clone() });
    }
    let Expr { arith, ty: Ty::S32 | Ty::U32 } = expr else { return None };
    match (arith, sources.as_slice()) {
        (Arith::Min | Arith::Max, [a, b]) if uniform(b) => {
            Some(Form::Operand { index: affine(a)?, second: false })
        }
        (Arith::Min | Arith::Max, [a, b]) if uniform(a) => {
            Some(Form::Operand { index: affine(b)?, second: true })
        }
        (Arith::Div, [a, b]) if uniform(b) => affine(a).map(|_| Form::Quotient),
        (Arith::Rem, [a, b]) if uniform(b) => Some(Form::Remainder { dividend: affine(a)? }),
        _ => None,
    }
}

/// The operations of a block, by index.
struct Parts {
    /// Those of the head: what the tests and both copies need.
    head: Vec<usize>,
    /// Those of each copy, up to the last access.
    own: Vec<usize>,
    /// Those of the tail.
    tail: Vec<usize>,
}

/// Which operations depend on nothing that happens in the block, and the values that they define. `without`:
/// guesses, whose operations are not moved. `loads`: whether the load of a constant variable at an index is
/// moved; parameters always are, since much is known of their values.
fn movable_ops(
    block: &Block,
    function: &Function,
    effects: &impl Effects,
    without: &[Guess],
    loads: impl Fn(usize) -> bool,
) -> (HashSet<usize>, HashSet<Value>) {
    let guarded: HashSet<Site> = block
        .ops
        .iter()
        .filter_map(|op| match op.kind {
            OpKind::Guard(site, ..) => Some(site),
            // A load that names a parameter takes no side exit.
            OpKind::Spare(site, _) => {
                Some(site).filter(|site| !site.inst(function).is_some_and(reads_parameter))
            }
            _ => None,
        })
        .collect();
    let own: HashSet<Value> = block.ops.iter().flat_map(|op| &op.defs).copied().collect();
    let (mut ops, mut values) = (HashSet::new(), HashSet::new());
    for (at, op) in block.ops.iter().enumerate() {
        let fits = match op.kind {
            OpKind::Mask(_) => true,
            OpKind::Inst(site) => site.inst(function).is_some_and(|inst| {
                let alone = inst.guard.is_none() && !guarded.contains(&site);
                let constant = || effects.reads_constant(inst) && (reads_parameter(inst) || loads(at));
                alone && (effects.is_pure(inst) || constant())
            }),
            _ => false,
        };
        let ready = op.uses.iter().all(|value| !own.contains(value) || values.contains(value));
        if fits && ready && without.iter().all(|guess| guess.at != at) {
            ops.insert(at);
            values.extend(&op.defs);
        }
    }
    (ops, values)
}

/// Which of some operations others depend on, which are behind them.
fn needed_by(block: &Block, some: &HashSet<usize>, others: impl Iterator<Item = usize>) -> HashSet<usize> {
    let mut values: HashSet<Value> = others.flat_map(|at| block.ops[at].uses.iter().copied()).collect();
    let mut needed = HashSet::new();
    for (at, op) in block.ops.iter().enumerate().rev() {
        if some.contains(&at) && op.defs.iter().any(|def| values.contains(def)) {
            needed.insert(at);
            values.extend(&op.uses);
        }
    }
    needed
}

/// Divides a block with guesses. The copies have all operations up to the last access, and up to `until`.
fn parts(
    block: &Block,
    function: &Function,
    effects: &impl Effects,
    (guesses, until): (&[Guess], usize),
) -> Parts {
    // A variable that no test needs is loaded where it is used, since the head would keep it in a register.
    let (all, _) = movable_ops(block, function, effects, guesses, |_| true);
    let tested = needed_by(block, &all, guesses.iter().map(|guess| guess.at));
    let (movable, _) = movable_ops(block, function, effects, guesses, |at| tested.contains(&at));
    let stays = |op: &Op| match op.kind {
        OpKind::Inst(site) => site.inst(function).is_some_and(|inst| effects.accesses(inst)),
        OpKind::Guard(..) | OpKind::Ahead(_) | OpKind::Spare(..) => true,
        _ => false,
    };
    let end = block.ops.iter().rposition(stays).map_or(0, |last| last + 1).max(until);
    let own: Vec<usize> = (0..end).filter(|at| !movable.contains(at)).collect();
    let mut needed: HashSet<Value> = HashSet::new();
    own.iter().for_each(|at| block.ops[*at].for_each_use(&mut |value| _ = needed.insert(value)));
    let mut head = Vec::new();
    let mut tail: Vec<usize> = (end..block.ops.len()).rev().collect();
    for at in (0..end).rev().filter(|at| movable.contains(at)) {
        let op = &block.ops[at];
        if op.defs.iter().any(|def| needed.contains(def)) {
            needed.extend(&op.uses);
            head.push(at);
        } else {
            tail.push(at);
        }
    }
    head.reverse();
    tail.reverse();
    Parts { head, own, tail }
}

/// Divides a block with guesses. The copies have all operations up to the last that may change an index:
/// indices that are affine in the fast copy may show that others are, behind them.
fn copied_parts(
    func: &Func,
    function: &Function,
    effects: &impl Effects,
    (id, guesses): (BlockId, &[Guess]),
) -> Parts {
    let block = &func.blocks[id.0 as usize];
    let changes = |op: &Op| match op.kind {
        OpKind::Inst(site) => site.inst(function).is_some_and(may_change_index),
        _ => false,
    };
    let until = block.ops.iter().rposition(changes).map_or(0, |last| last + 1);
    parts(block, function, effects, (guesses, until))
}

/// Adds a full block behind the others.
fn add(func: &mut Func, block: u32, ops: Vec<Op>, term: Term) -> BlockId {
    func.blocks.push(Block::new(block, true, ops, term));
    BlockId(func.blocks.len() as u32 - 1)
}

fn value(func: &mut Func, kind: Kind) -> Value {
    func.kinds.push(kind);
    Value(func.kinds.len() as u32 - 1)
}

/// A test, and what it makes of the operation in the fast copy.
struct Test {
    /// The operation that is replaced.
    at: usize,
    op: Op,
    /// The value that the result has in the fast copy.
    result: Value,
    /// The operation of the fast copy that defines this value, if the head does not.
    in_copy: Option<Op>,
}

/// The tests of guesses.
fn tests(func: &mut Func, id: BlockId, guesses: &[Guess]) -> Vec<Test> {
    let mut tests = Vec::new();
    for Guess { at, site, form } in guesses {
        let uses = func.blocks[id.0 as usize].ops[*at].uses.clone();
        let holds = value(func, Kind::Reg(RegClass::Pred));
        let new = |kind: OpKind, uses: Vec<Value>, defs: Vec<Value>| Op {
            kind,
            uses,
            defs,
            access: None,
            prefetch: None,
        };
        tests.push(match form.clone() {
            Form::Compared { index, second, site, uses } => {
                let op = new(OpKind::Picks { site, second }, uses, vec![holds]);
                Test { at: *at, op, result: index, in_copy: None }
            }
            Form::Operand { index, second } => {
                let op = new(OpKind::Picks { site: *site, second }, uses, vec![holds]);
                Test { at: *at, op, result: index, in_copy: None }
            }
            Form::Quotient => {
                let first = value(func, Kind::Reg(RegClass::R32));
                let op = new(OpKind::SameQuotient(*site), uses, vec![holds, first]);
                Test { at: *at, op, result: first, in_copy: None }
            }
            Form::Remainder { dividend } => {
                let first = value(func, Kind::Reg(RegClass::R32));
                let result = value(func, Kind::Reg(RegClass::R32));
                let op = new(OpKind::SameQuotient(*site), uses, vec![holds, first]);
                let moved = new(OpKind::Rebase, vec![dividend, first], vec![result]);
                Test { at: *at, op, result, in_copy: Some(moved) }
            }
        });
    }
    tests
}

/// Ends a block with the tests: to the fast copy where all hold, else to the plain one.
fn branch(func: &mut Func, id: BlockId, tests: Vec<Test>, fast: BlockId, plain: BlockId) {
    let block = func.blocks[id.0 as usize].block;
    let (mut at, count) = (id, tests.len());
    for (number, Test { op, .. }) in tests.into_iter().enumerate() {
        let cond = Cond::Pred { value: op.defs[0], negated: false };
        func.blocks[at.0 as usize].ops.push(op);
        let last = number + 1 == count;
        let then = if last { fast } else { add(func, block, Vec::new(), Term::Goto(fast)) };
        func.blocks[at.0 as usize].term = Term::If { cond, then, els: plain, likely: Some(true) };
        at = then;
    }
}

/// Replaces values that an operation reads.
fn rename(op: &mut Op, names: &HashMap<Value, Value>) {
    op.for_each_use_mut(&mut |value| {
        if let Some(other) = names.get(value) {
            *value = *other;
        }
    });
}

/// Makes a block the head of two copies; returns these and the tail. Values that are read behind the copies
/// keep their names there.
fn split(
    func: &mut Func,
    id: BlockId,
    guesses: &[Guess],
    parts: Parts,
    readers: &Readers,
) -> (Version, BlockId) {
    let tests = tests(func, id, guesses);
    let Block { block, ops, term, .. } = func.blocks[id.0 as usize].clone();
    let pick = |all: &[usize]| -> Vec<Op> { all.iter().map(|at| ops[*at].clone()).collect() };
    let tail_ops = pick(&parts.tail);
    let mut read = HashSet::new();
    tail_ops.iter().for_each(|op| op.for_each_use(&mut |value| _ = read.insert(value)));
    term.for_each_use(&mut |value| _ = read.insert(value));
    for to in term.successors().into_iter().map(|to| &func.blocks[to.0 as usize]) {
        let operands = |phi: &Phi| -> Vec<Value> {
            let ways = phi.from.iter().zip(&to.preds).filter(|(_, from)| **from == id);
            ways.map(|(value, _)| *value).collect()
        };
        read.extend(to.phis.iter().flat_map(operands));
    }
    let is_read = |value: Value| read.contains(&value) || readers.of(value).iter().any(|block| *block != id);
    let (mut fast_names, mut plain_names) = (HashMap::new(), HashMap::new());
    let (mut fast_ops, mut plain_ops, mut phis) = (Vec::new(), Vec::new(), Vec::new());
    for at in parts.own {
        let (mut fast, mut plain) = (ops[at].clone(), ops[at].clone());
        rename(&mut fast, &fast_names);
        rename(&mut plain, &plain_names);
        let test = tests.iter().find(|test| test.at == at);
        for (number, def) in ops[at].defs.iter().copied().enumerate() {
            let kind = func.kinds[def.0 as usize];
            fast.defs[number] = match test {
                Some(test) => test.result,
                None => value(func, kind),
            };
            fast_names.insert(def, fast.defs[number]);
            if is_read(def) {
                plain.defs[number] = value(func, kind);
                plain_names.insert(def, plain.defs[number]);
                phis.push(Phi { def, from: vec![fast.defs[number], plain.defs[number]] });
            }
        }
        plain_ops.push(plain);
        match test {
            Some(test) => fast_ops.extend(test.in_copy.clone()),
            None => fast_ops.push(fast),
        }
    }
    let tail = add(func, block, tail_ops, term);
    let fast = add(func, block, fast_ops, Term::Goto(tail));
    let plain = add(func, block, plain_ops, Term::Goto(tail));
    let joined = &mut func.blocks[tail.0 as usize];
    (joined.preds, joined.phis) = (vec![fast, plain], phis);
    func.blocks[id.0 as usize].ops = pick(&parts.head);
    branch(func, id, tests, fast, plain);
    (Version { head: id, fast, plain }, tail)
}

/// Makes a fast copy the head of one with more guesses, beside the same plain copy; returns the new one.
fn narrow(func: &mut Func, id: BlockId, guesses: &[Guess], parts: Parts, plain: BlockId) -> BlockId {
    let tests = tests(func, id, guesses);
    let Block { block, ops, term, .. } = func.blocks[id.0 as usize].clone();
    let names: HashMap<Value, Value> = tests.iter().map(|test| (ops[test.at].defs[0], test.result)).collect();
    let mut rest = Vec::new();
    for at in parts.own.into_iter().chain(parts.tail) {
        match tests.iter().find(|test| test.at == at) {
            Some(test) => rest.extend(test.in_copy.clone()),
            None => rest.push(ops[at].clone()),
        }
    }
    rest.iter_mut().for_each(|op| rename(op, &names));
    for to in term.successors() {
        for value in func.blocks[to.0 as usize].phis.iter_mut().flat_map(|phi| &mut phi.from) {
            *value = names.get(value).copied().unwrap_or(*value);
        }
    }
    let fast = add(func, block, rest, term);
    func.blocks[id.0 as usize].ops = parts.head.iter().map(|at| ops[*at].clone()).collect();
    branch(func, id, tests, fast, plain);
    fast
}

/// Finds the predecessors of all blocks again, and gives the operands of phis their order. `renamed`: blocks
/// whose terminator another block has now.
fn relink(func: &mut Func, renamed: &HashMap<BlockId, BlockId>) {
    let before: Vec<Vec<BlockId>> = func.blocks.iter().map(|block| block.preds.clone()).collect();
    func.link();
    for (block, before) in func.blocks.iter_mut().zip(before) {
        if block.phis.is_empty() {
            continue;
        }
        let mut left: Vec<Option<BlockId>> =
            before.iter().map(|pred| Some(renamed.get(pred).copied().unwrap_or(*pred))).collect();
        // A block that branches twice to another is two predecessors.
        let place = |pred: &BlockId| {
            let at = left.iter().position(|have| *have == Some(*pred));
            let at = at.expect("ptxvm bug: a predecessor without operands of phis");
            left[at] = None;
            at
        };
        let order: Vec<usize> = block.preds.iter().map(place).collect();
        for phi in &mut block.phis {
            phi.from = order.iter().map(|at| phi.from[*at]).collect();
        }
    }
}
