//! The one place that turns a scalar function into a step of 32 lanes.
//!
//! The input is a scalar function: a function of `ptx_sem`, or a composition of several. The output is a
//! [`StepFn`] that reads its [`Operand`]s, computes all lanes in one loop that the compiler vectorises, and
//! writes the lanes of `Exec::mask`. Every lift is generic over the function, so a step makes no indirect
//! calls.
//!
//! There are two kinds. [`lift1`] to [`lift3`] and [`compare`] compute all 32 lanes, also the inactive ones
//! (the functions are total), and then blend by the mask. [`active1`] to [`active3`] visit only the active
//! lanes; they are for functions that cost more than a blend.
//!
//! Invariants: inactive lanes keep their destination. A destination may be one of the sources, because all
//! sources of a lane are read before it is written. Register indices are bounds-checked; binding has
//! validated them.

use crate::bound::{Exec, StepFn, Stepped};
use crate::lanes::{Bits, LANES, Lane, LaneMask, Registers, lanes_of};
use crate::mem::Addresses;
use crate::warp::WarpState;
use ptx::ir::RegClass;

/// The element type of a register file: `u16`, `u32` or `u64`.
pub trait Slot: Bits + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// The class of these registers.
    const CLASS: RegClass;
    /// The registers of that class.
    fn file(regs: &Registers) -> &[Lane<Self>];
    /// The registers of that class, mutable.
    fn file_mut(regs: &mut Registers) -> &mut [Lane<Self>];
    /// The low bits.
    fn from_bits(bits: u64) -> Self;
    /// Zero-extended.
    fn bits(self) -> u64;
}

macro_rules! slot {
    ($($ty:ty, $class:ident, $file:ident;)+) => {$(
        impl Slot for $ty {
            const CLASS: RegClass = RegClass::$class;
            #[inline(always)]
            fn file(regs: &Registers) -> &[Lane<Self>] {
                &regs.$file
            }
            #[inline(always)]
            fn file_mut(regs: &mut Registers) -> &mut [Lane<Self>] {
                &mut regs.$file
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self)
            }
        }
    )+};
}
slot! {
    u16, R16, r16;
    u32, R32, r32;
    u64, R64, r64;
}

/// A value as a scalar function takes it, with the register slot that holds it. An 8-bit value is in the low
/// half of a 16-bit slot.
pub trait Value: Copy + Send + Sync + 'static {
    /// The slot type.
    type Slot: Slot;
    /// Reads the value from its slot.
    fn of(slot: Self::Slot) -> Self;
    /// The slot that holds the value; an 8-bit value is extended as its type says.
    fn slot(self) -> Self::Slot;
    /// The value's bits in a 64-bit register: sign-extended for signed integers, zero-extended otherwise.
    fn extended(self) -> u64;
}

macro_rules! value {
    ($($ty:ty, $slot:ty;)+) => {$(
        impl Value for $ty {
            type Slot = $slot;
            #[inline(always)]
            fn of(slot: $slot) -> Self {
                slot as Self
            }
            #[inline(always)]
            fn slot(self) -> $slot {
                self as $slot
            }
            #[inline(always)]
            fn extended(self) -> u64 {
                self as u64
            }
        }
    )+};
}
value! {
    u8, u16; i8, u16; u16, u16; i16, u16;
    u32, u32; i32, u32;
    u64, u64; i64, u64;
}

macro_rules! float_value {
    ($($ty:ty, $slot:ty;)+) => {$(
        impl Value for $ty {
            type Slot = $slot;
            #[inline(always)]
            fn of(slot: $slot) -> Self {
                Self::from_bits(slot)
            }
            #[inline(always)]
            fn slot(self) -> $slot {
                self.to_bits()
            }
            #[inline(always)]
            fn extended(self) -> u64 {
                u64::from(self.to_bits())
            }
        }
    )+};
}
float_value! { f32, u32; f64, u64; }

/// The state from which sources are read: the parts of [`Exec`] without memory.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Registers.
    pub regs: &'a Registers,
    /// The warp.
    pub warp: &'a WarpState,
    /// Offset of the frame in local memory.
    pub frame: u32,
}

impl<'a> Inputs<'a> {
    /// The inputs of a step.
    #[inline(always)]
    pub fn of(exec: &'a Exec<'_>) -> Self {
        Self { regs: exec.regs, warp: exec.warp, frame: exec.frame }
    }
}

/// Reads a source that is no plain register into all lanes: a special register, an address, or a register
/// wider than the type.
pub type ReadFn<S> = Box<dyn Fn(Inputs<'_>, &mut Lane<S>) + Send + Sync>;

/// Writes a destination that is no plain register of the slot's class.
pub type WriteFn<S> = Box<dyn Fn(&mut Registers, LaneMask, &Lane<S>) + Send + Sync>;

/// A source of a step.
pub enum Operand<S> {
    /// The register of that number in the class of `S`.
    Reg(usize),
    /// An immediate, splatted.
    Const(Box<Lane<S>>),
    /// Any other source.
    Other(ReadFn<S>),
}

impl<S: Slot> Operand<S> {
    /// The same value in every lane.
    pub fn splat(value: S) -> Self {
        Operand::Const(Box::new(Lane::splat(value)))
    }

    /// The value in every lane; `scratch` holds it if it must be computed.
    #[inline(always)]
    pub fn read<'a>(&'a self, inputs: Inputs<'a>, scratch: &'a mut Option<Lane<S>>) -> &'a Lane<S> {
        match self {
            Operand::Reg(index) => &S::file(inputs.regs)[*index],
            Operand::Const(lanes) => lanes,
            Operand::Other(read) => compute(read, inputs, scratch),
        }
    }

    /// A copy of the value in every lane.
    pub fn get(&self, inputs: Inputs<'_>) -> Lane<S> {
        *self.read(inputs, &mut None)
    }
}

/// Not inlined, to keep the many steps small.
#[inline(never)]
fn compute<'a, S: Slot>(
    read: &ReadFn<S>,
    inputs: Inputs<'_>,
    scratch: &'a mut Option<Lane<S>>,
) -> &'a Lane<S> {
    let lanes = scratch.insert(Lane([S::default(); LANES]));
    read(inputs, lanes);
    lanes
}

/// The address of a memory operand, in the instruction's state space.
pub enum Address {
    /// A source.
    Value(Operand<u64>),
    /// A 64-bit register plus a constant.
    Plus(usize, u64),
    /// The activation's frame plus a constant.
    Frame(u64),
}

impl Address {
    /// The address in every lane; `scratch` holds it if it must be computed.
    #[inline(always)]
    pub fn read<'a>(&'a self, inputs: Inputs<'a>, scratch: &'a mut Option<Lane<u64>>) -> Addresses<'a> {
        match self {
            Address::Plus(index, offset) => Addresses::Lanes(&inputs.regs.r64[*index], *offset),
            Address::Value(Operand::Const(lanes)) => Addresses::Same(lanes.0[0]),
            Address::Value(operand) => Addresses::Lanes(operand.read(inputs, scratch), 0),
            Address::Frame(offset) => Addresses::Same(u64::from(inputs.frame).wrapping_add(*offset)),
        }
    }
}

/// A destination of a step.
pub enum Target<S> {
    /// The register of that number in the class of `S`.
    Reg(usize),
    /// `_`: the value is dropped.
    Sink,
    /// Any other destination: a register wider than the type.
    Other(WriteFn<S>),
}

impl<S: Slot> Target<S> {
    /// Writes the lanes of the mask.
    #[inline(always)]
    pub fn write(&self, regs: &mut Registers, mask: LaneMask, new: &Lane<S>) {
        match self {
            Target::Reg(index) => S::file_mut(regs)[*index].blend(mask, new),
            Target::Sink => {}
            Target::Other(write) => write(regs, mask, new),
        }
    }
}

/// A predicate source of a step.
#[derive(Clone, Copy, Debug)]
pub enum PredOperand {
    /// A predicate register.
    Reg(usize),
    /// `!p`
    Not(usize),
    /// A constant, as a mask of all lanes or of none.
    Const(LaneMask),
}

impl PredOperand {
    /// The lanes where it is true.
    #[inline(always)]
    pub fn read(self, regs: &Registers) -> LaneMask {
        match self {
            PredOperand::Reg(index) => regs.pred[index],
            PredOperand::Not(index) => !regs.pred[index],
            PredOperand::Const(mask) => mask,
        }
    }
}

/// A predicate destination of a step; `None` drops the value.
#[derive(Clone, Copy, Debug)]
pub struct PredTarget(pub Option<usize>);

impl PredTarget {
    /// Writes the lanes of the mask.
    #[inline(always)]
    pub fn write(self, regs: &mut Registers, mask: LaneMask, new: LaneMask) {
        if let Some(index) = self.0 {
            let old = &mut regs.pred[index];
            *old = *old & !mask | new & mask;
        }
    }
}

/// The mask of the lanes for which `f` returns true.
#[inline(always)]
pub fn mask_of(f: impl Fn(usize) -> bool) -> LaneMask {
    let mut mask = 0;
    for lane in 0..LANES {
        mask |= if f(lane) { 1 << lane } else { 0 };
    }
    mask
}

/// A destination and one source.
pub struct One<A, D> {
    /// Destination.
    pub d: Target<D>,
    /// Source.
    pub a: Operand<A>,
}

/// A destination and two sources.
pub struct Two<A, B, D> {
    /// Destination.
    pub d: Target<D>,
    /// First source.
    pub a: Operand<A>,
    /// Second source.
    pub b: Operand<B>,
}

/// A destination and three sources.
pub struct Three<A, B, C, D> {
    /// Destination.
    pub d: Target<D>,
    /// First source.
    pub a: Operand<A>,
    /// Second source.
    pub b: Operand<B>,
    /// Third source.
    pub c: Operand<C>,
}

/// `d = f(a)` in every lane.
pub fn lift1<A: Value, D: Value>(
    o: One<A::Slot, D::Slot>,
    f: impl Fn(A) -> D + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| step1(&o, exec, f))
}

/// The body of a step that [`lift1`] makes.
#[inline(always)]
pub(crate) fn step1<A: Value, D: Value>(
    o: &One<A::Slot, D::Slot>,
    exec: &mut Exec<'_>,
    f: impl Fn(A) -> D + Copy,
) -> Stepped {
    let mut scratch = None;
    let a = o.a.read(Inputs::of(exec), &mut scratch);
    let mut out = Lane([D::Slot::default(); LANES]);
    for lane in 0..LANES {
        out.0[lane] = f(A::of(a.0[lane])).slot();
    }
    o.d.write(exec.regs, exec.mask, &out);
    Ok(())
}

/// `d = f(a, b)` in every lane.
pub fn lift2<A: Value, B: Value, D: Value>(
    o: Two<A::Slot, B::Slot, D::Slot>,
    f: impl Fn(A, B) -> D + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| step2(&o, exec, f))
}

/// The body of a step that [`lift2`] makes.
#[inline(always)]
pub(crate) fn step2<A: Value, B: Value, D: Value>(
    o: &Two<A::Slot, B::Slot, D::Slot>,
    exec: &mut Exec<'_>,
    f: impl Fn(A, B) -> D + Copy,
) -> Stepped {
    let (mut scratch_a, mut scratch_b) = (None, None);
    let a = o.a.read(Inputs::of(exec), &mut scratch_a);
    let b = o.b.read(Inputs::of(exec), &mut scratch_b);
    let mut out = Lane([D::Slot::default(); LANES]);
    for lane in 0..LANES {
        out.0[lane] = f(A::of(a.0[lane]), B::of(b.0[lane])).slot();
    }
    o.d.write(exec.regs, exec.mask, &out);
    Ok(())
}

/// `d = f(a, b, c)` in every lane.
pub fn lift3<A: Value, B: Value, C: Value, D: Value>(
    o: Three<A::Slot, B::Slot, C::Slot, D::Slot>,
    f: impl Fn(A, B, C) -> D + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| step3(&o, exec, f))
}

/// The body of a step that [`lift3`] makes.
#[inline(always)]
pub(crate) fn step3<A: Value, B: Value, C: Value, D: Value>(
    o: &Three<A::Slot, B::Slot, C::Slot, D::Slot>,
    exec: &mut Exec<'_>,
    f: impl Fn(A, B, C) -> D + Copy,
) -> Stepped {
    let (mut scratch_a, mut scratch_b, mut scratch_c) = (None, None, None);
    let a = o.a.read(Inputs::of(exec), &mut scratch_a);
    let b = o.b.read(Inputs::of(exec), &mut scratch_b);
    let c = o.c.read(Inputs::of(exec), &mut scratch_c);
    let mut out = Lane([D::Slot::default(); LANES]);
    for lane in 0..LANES {
        out.0[lane] = f(A::of(a.0[lane]), B::of(b.0[lane]), C::of(c.0[lane])).slot();
    }
    o.d.write(exec.regs, exec.mask, &out);
    Ok(())
}

/// `d = f(a, b)` in every lane. First computes all lanes with `quick`, which also returns whether its result
/// is certain. If an active lane is uncertain, the active lanes are computed with `f`. Certain results are
/// equal to those of `f`.
pub fn lift2_quick<A: Value, B: Value, D: Value>(
    o: Two<A::Slot, B::Slot, D::Slot>,
    quick: impl Fn(A, B) -> (D, bool) + Copy + Send + Sync + 'static,
    f: impl Fn(A, B) -> D + Copy + Send + Sync + 'static,
) -> StepFn {
    #[cold]
    #[inline(never)]
    fn again<A: Value, B: Value, D: Value>(
        a: &Lane<A::Slot>,
        b: &Lane<B::Slot>,
        mask: LaneMask,
        out: &mut Lane<D::Slot>,
        f: impl Fn(A, B) -> D,
    ) {
        for lane in lanes_of(mask) {
            out.0[lane] = f(A::of(a.0[lane]), B::of(b.0[lane])).slot();
        }
    }
    Box::new(move |exec| {
        let o = &o;
        let (mut scratch_a, mut scratch_b) = (None, None);
        let a = o.a.read(Inputs::of(exec), &mut scratch_a);
        let b = o.b.read(Inputs::of(exec), &mut scratch_b);
        let mut out = Lane([D::Slot::default(); LANES]);
        let mut doubts = 0u32;
        for lane in 0..LANES {
            let (value, certain) = quick(A::of(a.0[lane]), B::of(b.0[lane]));
            out.0[lane] = value.slot();
            doubts |= u32::from(!certain);
        }
        if doubts != 0 {
            again(a, b, exec.mask, &mut out, f);
        }
        o.d.write(exec.regs, exec.mask, &out);
        Ok(())
    })
}

/// `d = f(a, b, c)` in every lane. First computes all lanes with `quick`, which also returns whether its
/// result is certain. If an active lane is uncertain, the active lanes are computed with `f`. Certain results
/// are equal to those of `f`.
pub fn lift3_quick<A: Value, B: Value, C: Value, D: Value>(
    o: Three<A::Slot, B::Slot, C::Slot, D::Slot>,
    quick: impl Fn(A, B, C) -> (D, bool) + Copy + Send + Sync + 'static,
    f: impl Fn(A, B, C) -> D + Copy + Send + Sync + 'static,
) -> StepFn {
    #[cold]
    #[inline(never)]
    fn again<A: Value, B: Value, C: Value, D: Value>(
        a: &Lane<A::Slot>,
        b: &Lane<B::Slot>,
        c: &Lane<C::Slot>,
        mask: LaneMask,
        out: &mut Lane<D::Slot>,
        f: impl Fn(A, B, C) -> D,
    ) {
        for lane in lanes_of(mask) {
            out.0[lane] = f(A::of(a.0[lane]), B::of(b.0[lane]), C::of(c.0[lane])).slot();
        }
    }
    Box::new(move |exec| {
        let o = &o;
        let (mut scratch_a, mut scratch_b, mut scratch_c) = (None, None, None);
        let a = o.a.read(Inputs::of(exec), &mut scratch_a);
        let b = o.b.read(Inputs::of(exec), &mut scratch_b);
        let c = o.c.read(Inputs::of(exec), &mut scratch_c);
        let mut out = Lane([D::Slot::default(); LANES]);
        let mut doubts = 0u32;
        for lane in 0..LANES {
            let (value, certain) = quick(A::of(a.0[lane]), B::of(b.0[lane]), C::of(c.0[lane]));
            out.0[lane] = value.slot();
            doubts |= u32::from(!certain);
        }
        if doubts != 0 {
            again(a, b, c, exec.mask, &mut out, f);
        }
        o.d.write(exec.regs, exec.mask, &out);
        Ok(())
    })
}

/// `d = f(a, b, c, e)` in every lane: the four-operand bit instructions.
pub fn lift4<A: Value, B: Value, C: Value, E: Value, D: Value>(
    o: Three<A::Slot, B::Slot, C::Slot, D::Slot>,
    e: Operand<E::Slot>,
    f: impl Fn(A, B, C, E) -> D + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| {
        let (o, e) = (&o, &e);
        let (mut scratch_a, mut scratch_b, mut scratch_c, mut scratch_e) = (None, None, None, None);
        let a = o.a.read(Inputs::of(exec), &mut scratch_a);
        let b = o.b.read(Inputs::of(exec), &mut scratch_b);
        let c = o.c.read(Inputs::of(exec), &mut scratch_c);
        let e = e.read(Inputs::of(exec), &mut scratch_e);
        let mut out = Lane([D::Slot::default(); LANES]);
        for lane in 0..LANES {
            out.0[lane] = f(A::of(a.0[lane]), B::of(b.0[lane]), C::of(c.0[lane]), E::of(e.0[lane])).slot();
        }
        o.d.write(exec.regs, exec.mask, &out);
        Ok(())
    })
}

/// `d = f(a)` in the active lanes only.
pub fn active1<A: Value, D: Value>(
    o: One<A::Slot, D::Slot>,
    f: impl Fn(A) -> D + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| {
        let o = &o;
        let mut scratch = None;
        let a = o.a.read(Inputs::of(exec), &mut scratch);
        let mut out = Lane([D::Slot::default(); LANES]);
        for lane in lanes_of(exec.mask) {
            out.0[lane] = f(A::of(a.0[lane])).slot();
        }
        write_apart(&o.d, exec, &out);
        Ok(())
    })
}

/// `d = f(a, b)` in the active lanes only.
pub fn active2<A: Value, B: Value, D: Value>(
    o: Two<A::Slot, B::Slot, D::Slot>,
    f: impl Fn(A, B) -> D + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| {
        let o = &o;
        let (mut scratch_a, mut scratch_b) = (None, None);
        let a = o.a.read(Inputs::of(exec), &mut scratch_a);
        let b = o.b.read(Inputs::of(exec), &mut scratch_b);
        let mut out = Lane([D::Slot::default(); LANES]);
        for lane in lanes_of(exec.mask) {
            out.0[lane] = f(A::of(a.0[lane]), B::of(b.0[lane])).slot();
        }
        write_apart(&o.d, exec, &out);
        Ok(())
    })
}

/// `d = f(a, b, c)` in the active lanes only.
pub fn active3<A: Value, B: Value, C: Value, D: Value>(
    o: Three<A::Slot, B::Slot, C::Slot, D::Slot>,
    f: impl Fn(A, B, C) -> D + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| {
        let o = &o;
        let (mut scratch_a, mut scratch_b, mut scratch_c) = (None, None, None);
        let a = o.a.read(Inputs::of(exec), &mut scratch_a);
        let b = o.b.read(Inputs::of(exec), &mut scratch_b);
        let c = o.c.read(Inputs::of(exec), &mut scratch_c);
        let mut out = Lane([D::Slot::default(); LANES]);
        for lane in lanes_of(exec.mask) {
            out.0[lane] = f(A::of(a.0[lane]), B::of(b.0[lane]), C::of(c.0[lane])).slot();
        }
        write_apart(&o.d, exec, &out);
        Ok(())
    })
}

/// Writes a destination. Not inlined: its callers' functions cost much more than a call.
#[inline(never)]
fn write_apart<S: Slot>(d: &Target<S>, exec: &mut Exec<'_>, new: &Lane<S>) {
    d.write(exec.regs, exec.mask, new);
}

/// A predicate that is combined with the result of a comparison: the operation on masks, and the predicate.
pub type Combine = Option<(fn(LaneMask, LaneMask) -> LaneMask, PredOperand)>;

/// Combines the result of a comparison with the predicate, if there is one.
#[inline(always)]
fn combined(combine: &Combine, regs: &Registers, truth: LaneMask) -> LaneMask {
    match combine {
        Some((op, c)) => op(truth, c.read(regs)),
        None => truth,
    }
}

/// The destination of a comparison.
pub enum Verdict {
    /// `setp`: `p` is the combined result, `q` the combined complement.
    Pred {
        /// First destination.
        p: PredTarget,
        /// Second destination.
        q: PredTarget,
        /// Predicate to combine with.
        combine: Combine,
    },
    /// `set` with a 16-bit destination: the pattern for true; false is zero.
    Set16(Target<u16>, u16, Combine),
    /// `set` with a 32-bit destination.
    Set32(Target<u32>, u32, Combine),
}

impl Verdict {
    /// Writes the destinations.
    #[inline(always)]
    fn write(&self, exec: &mut Exec<'_>, truth: LaneMask) {
        match self {
            Verdict::Pred { p, q, combine } => {
                let (yes, no) = (combined(combine, exec.regs, truth), combined(combine, exec.regs, !truth));
                p.write(exec.regs, exec.mask, yes);
                q.write(exec.regs, exec.mask, no);
            }
            Verdict::Set16(d, on, combine) => write_set(exec, d, *on, combine, truth),
            Verdict::Set32(d, on, combine) => write_set(exec, d, *on, combine, truth),
        }
    }
}

fn write_set<S: Slot>(exec: &mut Exec<'_>, d: &Target<S>, on: S, combine: &Combine, truth: LaneMask) {
    let truth = combined(combine, exec.regs, truth);
    let out = Lane(std::array::from_fn(|lane| if truth & (1 << lane) != 0 { on } else { S::default() }));
    d.write(exec.regs, exec.mask, &out);
}

/// Compares `a` with `b` in every lane, and writes the destinations.
pub fn compare<A: Value>(
    verdict: Verdict,
    a: Operand<A::Slot>,
    b: Operand<A::Slot>,
    f: impl Fn(A, A) -> bool + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| {
        let (mut scratch_a, mut scratch_b) = (None, None);
        let a = a.read(Inputs::of(exec), &mut scratch_a);
        let b = b.read(Inputs::of(exec), &mut scratch_b);
        let truth = mask_of(|lane| f(A::of(a.0[lane]), A::of(b.0[lane])));
        verdict.write(exec, truth);
        Ok(())
    })
}

/// The destination of two packed comparisons.
pub enum PackedVerdict {
    /// `setp.f16x2`: the predicates of the low and of the high half.
    Pred(PredTarget, PredTarget),
    /// `set.f16x2`: a word for each of the four results, indexed by low + 2 * high.
    Set(Target<u32>, [u32; 4]),
}

/// Compares the low and the high halves of `a` and `b` in every lane, and combines both with a predicate.
pub fn compare_halves(
    verdict: PackedVerdict,
    a: Operand<u32>,
    b: Operand<u32>,
    combine: Combine,
    f: impl Fn(u16, u16) -> bool + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| {
        let (mut scratch_a, mut scratch_b) = (None, None);
        let a = a.read(Inputs::of(exec), &mut scratch_a);
        let b = b.read(Inputs::of(exec), &mut scratch_b);
        let low = mask_of(|lane| f(a.0[lane] as u16, b.0[lane] as u16));
        let high = mask_of(|lane| f((a.0[lane] >> 16) as u16, (b.0[lane] >> 16) as u16));
        let (low, high) = (combined(&combine, exec.regs, low), combined(&combine, exec.regs, high));
        match &verdict {
            PackedVerdict::Pred(p, q) => {
                p.write(exec.regs, exec.mask, low);
                q.write(exec.regs, exec.mask, high);
            }
            PackedVerdict::Set(d, words) => {
                let out = Lane(std::array::from_fn(|lane| {
                    words[(low >> lane & 1 | (high >> lane & 1) << 1) as usize]
                }));
                d.write(exec.regs, exec.mask, &out);
            }
        }
        Ok(())
    })
}

/// `p = f(a)` in every lane.
pub fn test<A: Value>(
    p: PredTarget,
    a: Operand<A::Slot>,
    f: impl Fn(A) -> bool + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| {
        let mut scratch = None;
        let a = a.read(Inputs::of(exec), &mut scratch);
        let truth = mask_of(|lane| f(A::of(a.0[lane])));
        p.write(exec.regs, exec.mask, truth);
        Ok(())
    })
}

/// Combines predicates of all lanes at once: a mask is 32 predicates, and `f` is a bitwise operation.
pub fn lift_pred2(
    d: PredTarget,
    a: PredOperand,
    b: PredOperand,
    f: impl Fn(LaneMask, LaneMask) -> LaneMask + Copy + Send + Sync + 'static,
) -> StepFn {
    Box::new(move |exec| {
        let new = f(a.read(exec.regs), b.read(exec.regs));
        d.write(exec.regs, exec.mask, new);
        Ok(())
    })
}

/// `d = c ? a : b` in every lane.
pub fn select<S: Slot>(d: Target<S>, a: Operand<S>, b: Operand<S>, c: PredOperand) -> StepFn {
    Box::new(move |exec| {
        let (mut scratch_a, mut scratch_b) = (None, None);
        let c = c.read(exec.regs);
        let a = a.read(Inputs::of(exec), &mut scratch_a);
        let mut out = *b.read(Inputs::of(exec), &mut scratch_b);
        out.blend(c, a);
        d.write(exec.regs, exec.mask, &out);
        Ok(())
    })
}

/// The use of the carry flag by an extended-precision instruction.
#[derive(Clone, Copy, Debug)]
pub struct Carry {
    /// Whether it reads the flag.
    pub reads: bool,
    /// Whether it writes the flag.
    pub writes: bool,
}

/// `d, CC.CF = f(a, b, c, CC.CF)` in every lane. The carry-in is false if the instruction does not read the
/// flag.
pub fn carrying<T: Value>(
    d: Target<T::Slot>,
    sources: [Operand<T::Slot>; 3],
    carry: Carry,
    f: impl Fn(T, T, T, bool) -> (T, bool) + Copy + Send + Sync + 'static,
) -> StepFn {
    let [a, b, c] = sources;
    Box::new(move |exec| {
        let (mut scratch_a, mut scratch_b, mut scratch_c) = (None, None, None);
        let flags = if carry.reads { exec.warp.carry } else { 0 };
        let a = a.read(Inputs::of(exec), &mut scratch_a);
        let b = b.read(Inputs::of(exec), &mut scratch_b);
        let c = c.read(Inputs::of(exec), &mut scratch_c);
        let mut out = Lane([T::Slot::default(); LANES]);
        let mut carries = 0;
        for lane in 0..LANES {
            let flag = flags & (1 << lane) != 0;
            let (value, carry) = f(T::of(a.0[lane]), T::of(b.0[lane]), T::of(c.0[lane]), flag);
            out.0[lane] = value.slot();
            carries |= if carry { 1 << lane } else { 0 };
        }
        d.write(exec.regs, exec.mask, &out);
        if carry.writes {
            exec.warp.carry = exec.warp.carry & !exec.mask | carries & exec.mask;
        }
        Ok(())
    })
}
