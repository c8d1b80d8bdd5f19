//! Lowers one PTX instruction on one chunk of lanes to LLVM values.
//!
//! [`choose`] decides from the instruction alone whether there is a native lowering, and which one; the
//! [`Lowering`] then emits it for any number of lanes, once for each chunk. The interpreter's step executes
//! instructions without a lowering.
//!
//! Invariants:
//! * A lowering gives the same bits as the interpreter's step (a test compares them for every spelling of
//!   every row), for every bit pattern in every lane: inactive lanes hold arbitrary values, which must not
//!   cause poison or traps.
//! * A lowering accesses no memory. It emits control flow only around code that often no lane needs
//!   ([`Lower::rarely`]).
//! * The chosen lowering has looked at every modifier word of the instruction ([`Query::finish`]).
//! * The same code serves scalars (one lane) and vectors.
//!
//! NaN of `.f32` arithmetic: the semantics demands 0x7fffffff. Computing these bits after every instruction
//! would double the cost of arithmetic, and arithmetic does not depend on the bits of a NaN. So a lowering
//! may leave **any** NaN and says so ([`Lowering::loose_nan`]); code that makes the bits observable (a store,
//! an integer instruction) corrects them by [`Lower::canonical_f32`].

mod approx;
mod bits;
mod compare;
mod cvt;
mod divide;
mod float;
mod half;
mod int;
pub(crate) mod matrix;
mod moves;
mod query;
mod round;
#[cfg(test)]
mod tests;
mod tiny;
mod video;

use crate::target::Target;
use ptx::ir::{Dst, Inst, RegClass, Src};
use ptx::isa::{Mods, Op, RowId, Ty};

use crate::llvm::{Builder, FloatPred, Flush, IntPred, Likely, Type, Value};
pub(crate) use compare::{Comparison, int_pred};
use query::Query;

/// The environment that code is generated for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Env {
    /// The processor.
    pub(crate) target: Target,
    /// Whether MXCSR flushes subnormals while the code runs (DAZ and FTZ). Then `.ftz` costs nothing, and
    /// arithmetic without `.ftz` has no lowering.
    pub(crate) flush: Flush,
    /// The `NN` of the module's target `sm_NN`.
    pub(crate) sm: u32,
}

/// A source as the code generator passes it. The lowering itself applies `!p`, `-a` and the selectors of
/// video operands: the operand is the plain value of the register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    /// A register, special register or address: an integer of its class (`i1` for predicates), for each lane
    /// of the chunk.
    Value(Value, Known),
    /// Bits of an immediate.
    Imm(u64),
    /// An optional operand that is absent.
    Absent,
}

/// What is known of the lanes of an operand when code is generated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// Nothing.
    Nothing,
    /// All lanes of the chunk have this scalar.
    Same(Value),
    /// Each lane is a constant.
    Constant,
}

impl Operand {
    /// What is known of the lanes, if the operand is read as a number of so many bits.
    fn known(self, bits: u32) -> Known {
        match self {
            // The scalar has the width of its register.
            Operand::Value(_, Known::Same(scalar)) if scalar.ty().element_bits() != bits => Known::Nothing,
            Operand::Value(_, known) => known,
            Operand::Imm(_) | Operand::Absent => Known::Constant,
        }
    }

    /// Whether each lane is a constant.
    fn is_constant(&self) -> bool {
        match self {
            Operand::Value(_, Known::Nothing | Known::Same(_)) => false,
            Operand::Value(_, Known::Constant) | Operand::Imm(_) | Operand::Absent => true,
        }
    }
}

/// The state that a lowering emits code with.
pub(crate) struct Lower<'b, 'm> {
    /// The builder.
    pub(crate) b: &'b Builder<'m>,
    /// The environment that code is generated for.
    pub(crate) env: Env,
    /// The number of lanes of the chunk; 1 for a scalar.
    pub(crate) lanes: u32,
    /// The carry flag, as `i1`s; required if [`Lowering::reads_carry`].
    pub(crate) carry_in: Option<Value>,
    /// The new carry flag, if the instruction writes one.
    pub(crate) carry_out: Option<Value>,
    /// Whether NaNs of double precision may have any bits if [`Lowering::nan_follows`] is set.
    pub(crate) any_nan: bool,
}

/// Emits an instruction. Returns one value for each destination, typed as its register.
type Emit = Box<dyn Fn(&mut Lower<'_, '_>, &[Operand]) -> Vec<Value> + Send + Sync>;

/// How one instruction is lowered.
pub(crate) struct Lowering {
    emit: Emit,
    /// Sources (bit `i` for source `i`) that are read as `.f32` numbers: the bits of their NaNs do not affect
    /// the result.
    pub(crate) number_srcs: u32,
    /// The same of `.f64` numbers.
    pub(crate) double_srcs: u32,
    /// Sources whose bits may be copied to the destination: if they may hold any NaN, so may the destination.
    pub(crate) copied_srcs: u32,
    /// Whether the destination may hold any NaN in place of 0x7fffffff.
    pub(crate) loose_nan: bool,
    /// Whether the carry flag is read.
    pub(crate) reads_carry: bool,
    /// Whether it emits branches: emission then continues in another block.
    pub(crate) branches: bool,
    /// Whether a result in double precision is a NaN in each lane where a source is one, and
    /// [`Lower::any_nan`] leaves out what gives it the right bits.
    pub(crate) nan_follows: bool,
    /// Whether, besides, most of the cost is for these bits.
    pub(crate) rare_nan: bool,
}

impl Lowering {
    fn new(emit: Emit) -> Lowering {
        Lowering {
            emit,
            number_srcs: 0,
            double_srcs: 0,
            copied_srcs: 0,
            loose_nan: false,
            reads_carry: false,
            branches: false,
            nan_follows: false,
            rare_nan: false,
        }
    }

    /// Emits the instruction for the chunk that `cx` is set to.
    pub(crate) fn emit(&self, cx: &mut Lower<'_, '_>, srcs: &[Operand]) -> Vec<Value> {
        (self.emit)(cx, srcs)
    }
}

/// The lowering of an instruction; `None` if the interpreter must execute it. The caller handles the guard.
pub(crate) fn choose(inst: &Inst, env: &Env) -> Option<Lowering> {
    let query = Query::new(inst, env);
    let lowering = choose_op(&query)?;
    if !query.finish() {
        return None;
    }
    // Only a 32-bit register may hold any NaN; in a wider one the number is extended.
    let wide = matches!(inst.dsts.first(), Some(Dst::Reg(reg)) if reg.class == RegClass::R64);
    if !(lowering.loose_nan && wide) {
        return Some(lowering);
    }
    let inner = lowering.emit;
    let emit = move |l: &mut Lower<'_, '_>, srcs: &[Operand]| {
        let mut values = inner(l, srcs);
        for value in &mut values {
            let number = l.b.trunc(*value, l.int(32));
            *value = l.b.zext(l.canonical_f32(number), l.int(64));
        }
        values
    };
    Some(Lowering { emit: Box::new(emit), loose_nan: false, ..lowering })
}

/// Emits an instruction for one chunk, with the interpreter's bits; `None` if it has no native lowering.
#[cfg(test)]
pub(crate) fn lower(cx: &mut Lower<'_, '_>, inst: &Inst, lanes: u32, srcs: &[Operand]) -> Option<Vec<Value>> {
    let lowering = choose(inst, &cx.env)?;
    cx.lanes = lanes;
    let mut values = lowering.emit(cx, srcs);
    if lowering.loose_nan
        && let Some(first) = values.first_mut()
    {
        *first = cx.canonical_f32(*first);
    }
    Some(values)
}

/// Whether an instruction of this row with these modifiers has a native lowering on that processor. Emits no
/// code.
pub(crate) fn native(row: RowId, mods: &Mods, target: Target) -> bool {
    let env = Env { target, flush: Flush::Never, sm: 70 };
    ptx_exec::bind::sample(row, mods).is_some_and(|inst| choose(&inst, &env).is_some())
}

#[deny(clippy::wildcard_enum_match_arm, reason = "a new op is decided on here")]
fn choose_op(q: &Query<'_>) -> Option<Lowering> {
    match q.inst.op {
        Op::Add => int::add(q),
        Op::Sub => int::sub(q),
        Op::Mul => int::mul(q),
        Op::Mad => int::mad(q),
        Op::Mul24 => int::mul24(q),
        Op::Mad24 => int::mad24(q),
        Op::Sad => int::sad(q),
        Op::Div => int::div(q),
        Op::Rem => int::rem(q),
        Op::Abs => int::abs(q),
        Op::Neg => int::neg(q),
        Op::Min => int::min(q),
        Op::Max => int::max(q),
        Op::Dp4a => int::dp4a(q),
        Op::Dp2a => int::dp2a(q),
        Op::AddCc | Op::Addc => int::add_carry(q),
        Op::SubCc | Op::Subc => int::sub_carry(q),
        Op::MadCc | Op::Madc => int::mad_carry(q),

        Op::Popc => bits::popc(q),
        Op::Clz => bits::clz(q),
        Op::Bfind => bits::bfind(q),
        Op::Brev => bits::brev(q),
        Op::Bfe => bits::bfe(q),
        Op::Bfi => bits::bfi(q),
        Op::And => bits::logic(q, |b, x, y| b.and(x, y)),
        Op::Or => bits::logic(q, |b, x, y| b.or(x, y)),
        Op::Xor => bits::logic(q, |b, x, y| b.xor(x, y)),
        Op::Not => bits::not(q),
        Op::Cnot => bits::cnot(q),
        Op::Lop3 => bits::lop3(q),
        Op::Shf => bits::shf(q),
        Op::Shl => bits::shl(q),
        Op::Shr => bits::shr(q),
        Op::Prmt => bits::prmt(q),

        Op::Setp => compare::setp(q),
        Op::Set => compare::set(q),
        Op::Selp => compare::selp(q),
        Op::Slct => compare::slct(q),

        Op::Mov => moves::mov(q),
        Op::MovPack => moves::pack(q),
        Op::MovUnpack => moves::unpack(q),
        Op::MovVec => moves::vector(q),
        Op::Cvt => cvt::cvt(q),

        Op::Testp => float::testp(q),
        Op::Copysign => float::copysign(q),
        Op::Fma => float::fma(q),
        Op::Rcp => approx::rcp(q),
        Op::Sqrt => float::sqrt(q),

        Op::Rsqrt => approx::rsqrt(q),

        Op::Sin => approx::sin(q),
        Op::Cos => approx::cos(q),
        Op::Lg2 => approx::lg2(q),
        Op::Ex2 => approx::ex2(q),

        // Rarely used instructions.
        Op::Tanh
        | Op::Fns
        | Op::Szext
        | Op::Bmsk
        | Op::CvtPack
        | Op::Createpolicy
        | Op::MbarrierPendingCount => None,

        Op::Vadd | Op::Vsub | Op::Vabsdiff | Op::Vmin | Op::Vmax | Op::Vshl | Op::Vshr | Op::Vset => {
            video::scalar(q)
        }
        Op::Vmad => video::vmad(q),
        Op::Vadd2 | Op::Vsub2 | Op::Vavrg2 | Op::Vabsdiff2 | Op::Vmin2 | Op::Vmax2 | Op::Vset2 => {
            video::packed(q, 2)
        }
        Op::Vadd4 | Op::Vsub4 | Op::Vavrg4 | Op::Vabsdiff4 | Op::Vmin4 | Op::Vmax4 | Op::Vset4 => {
            video::packed(q, 4)
        }

        // Not functions of values: memory, other lanes, control.
        Op::Isspacep
        | Op::Cvta
        | Op::CvtaTo
        | Op::Shfl
        | Op::ShflSync
        | Op::Ld
        | Op::LdNc
        | Op::Ldu
        | Op::St
        | Op::Prefetch
        | Op::Prefetchu
        | Op::CpAsync
        | Op::CpAsyncCommitGroup
        | Op::CpAsyncWaitGroup
        | Op::CpAsyncWaitAll
        | Op::Tex
        | Op::Tld4
        | Op::Txq
        | Op::Istypep
        | Op::Suld
        | Op::Sust
        | Op::Sured
        | Op::Suq
        | Op::Bra
        | Op::BrxIdx
        | Op::Call
        | Op::CallIndirect
        | Op::Ret
        | Op::Exit
        | Op::BarSync
        | Op::BarArrive
        | Op::BarRed
        | Op::BarWarpSync
        | Op::Membar
        | Op::Fence
        | Op::Atom
        | Op::Red
        | Op::Vote
        | Op::VoteSync
        | Op::MatchAny
        | Op::MatchAll
        | Op::Activemask
        | Op::ReduxSync
        | Op::ElectSync
        | Op::Applypriority
        | Op::Discard
        | Op::Griddepcontrol
        | Op::MbarrierInit
        | Op::MbarrierInval
        | Op::MbarrierArrive
        | Op::MbarrierArriveDrop
        | Op::MbarrierTestWait
        | Op::CpAsyncMbarrierArrive
        | Op::WmmaLoad
        | Op::WmmaStore
        | Op::WmmaMma
        | Op::Mma
        | Op::Ldmatrix
        | Op::Stmatrix
        | Op::Movmatrix
        | Op::Brkpt
        | Op::Nanosleep
        | Op::Pmevent
        | Op::Trap => None,
    }
}

/// The width of a register of a class, in bits.
fn class_bits(class: RegClass) -> u32 {
    match class {
        RegClass::Pred => 1,
        RegClass::R16 => 16,
        RegClass::R32 => 32,
        RegClass::R64 => 64,
    }
}

impl Lower<'_, '_> {
    /// Integers of that width in every lane of the chunk.
    pub(crate) fn int(&self, bits: u32) -> Type {
        self.b.vec(self.b.int(bits), self.lanes)
    }

    /// Single precision in every lane of the chunk.
    fn f32(&self) -> Type {
        self.b.vec(self.b.f32(), self.lanes)
    }

    /// Double precision in every lane of the chunk.
    fn f64(&self) -> Type {
        self.b.vec(self.b.f64(), self.lanes)
    }

    /// The type that values of a PTX type have here: `.f32` and `.f64` are floating-point numbers, all others
    /// integers of their width.
    fn raw(&self, ty: Ty) -> Type {
        if ty == Ty::F32 {
            self.f32()
        } else if ty == Ty::F64 {
            self.f64()
        } else {
            self.int(ty.bits())
        }
    }

    /// A constant of the type of `like`, given as bits.
    fn constant(&self, like: Value, bits: u64) -> Value {
        self.b.const_splat(like.ty(), bits)
    }

    /// A source as a value of a PTX type: the low bits of a wider register; a narrower one is zero-extended.
    fn read(&self, operand: Operand, ty: Ty) -> Value {
        let bits = self.int(ty.bits());
        let value = match operand {
            Operand::Imm(imm) => self.b.const_int(bits, imm),
            Operand::Value(value, _) => self.resized(value, bits),
            // The query refused instructions that lack an operand that the lowering reads.
            Operand::Absent => self.b.zero(bits),
        };
        self.b.bitcast(value, self.raw(ty))
    }

    /// A source that is a predicate, negated if the source says so.
    fn read_pred(&self, operand: Operand, src: &Src) -> Value {
        let value = self.read(operand, Ty::Pred);
        if matches!(src, Src::Not(_)) { self.b.not(value) } else { value }
    }

    /// An integer, truncated or zero-extended.
    fn resized(&self, value: Value, to: Type) -> Value {
        let (from, bits) = (value.ty().element_bits(), to.element_bits());
        if from > bits { self.b.trunc(value, to) } else { self.b.zext(value, to) }
    }

    /// A result of a PTX type as a value of the destination register: extended according to the sign of the
    /// type (§9.4.1).
    fn write(&self, value: Value, ty: Ty, dst: Dst) -> Value {
        let value = self.b.bitcast(value, self.int(ty.bits()));
        let class = match dst {
            Dst::Reg(reg) | Dst::Video { reg, .. } => class_bits(reg.class),
            // 8-bit values have 16-bit registers.
            Dst::Sink => ty.bits().max(if ty == Ty::Pred { 1 } else { 16 }),
        };
        let to = self.int(class);
        if is_signed(ty) { self.b.sext(value, to) } else { self.b.zext(value, to) }
    }

    /// The values `plain`; in the lanes where `wanted` is true, the results of `f`, which is executed only if
    /// there is such a lane (active or not). The lowering [branches](Lowering::branches).
    fn rarely(&self, wanted: Value, plain: &[Value], f: impl FnOnce(&Self) -> Vec<Value>) -> Vec<Value> {
        let b = self.b;
        let some = if self.lanes == 1 {
            wanted
        } else {
            let word = b.bitcast(wanted, b.int(self.lanes));
            b.icmp(IntPred::Ne, word, b.zero(b.int(self.lanes)))
        };
        let (from, rare, on) = (b.current_block(), b.append_block_here(), b.append_block_here());
        b.cond_br(some, rare, on, Likely::No);
        b.position_at_end(rare);
        let values = f(self);
        let values: Vec<Value> = values.iter().zip(plain).map(|(v, p)| b.select(wanted, *v, *p)).collect();
        let end = b.current_block();
        b.br(on);
        b.position_at_end(on);
        let merge = |(value, plain): (&Value, &Value)| {
            let phi = b.phi(plain.ty());
            b.add_incoming(phi, *plain, from);
            b.add_incoming(phi, *value, end);
            phi
        };
        values.iter().zip(plain).map(merge).collect()
    }

    /// `.f32` bits with canonical NaNs. Takes and returns integers or numbers.
    pub(crate) fn canonical_f32(&self, value: Value) -> Value {
        let ty = value.ty();
        let number = self.b.bitcast(value, self.b.like(ty, self.b.f32()));
        let nan = self.b.fcmp(FloatPred::Uno, number, number);
        let nan_bits = self.b.const_splat(ty, 0x7fff_ffff);
        self.b.select(nan, nan_bits, value)
    }

    /// `.f32` or `.f64` numbers; subnormals become zeros of their sign, by integer instructions.
    fn flushed(&self, number: Value) -> Value {
        let b = self.b;
        let ty = number.ty();
        let int = b.like(ty, b.int(ty.element_bits()));
        let (exponent, sign) = match ty.element_bits() {
            32 => (0x7f80_0000, 0x8000_0000),
            _ => (0x7ff0_0000_0000_0000, 1 << 63),
        };
        let bits = b.bitcast(number, int);
        let small = b.icmp(IntPred::Eq, b.and(bits, b.const_int(int, exponent)), b.zero(int));
        let zero = b.and(bits, b.const_int(int, sign));
        b.bitcast(b.select(small, zero, bits), ty)
    }
}

/// Whether a register extends a value of that type by its sign.
fn is_signed(ty: Ty) -> bool {
    matches!(ty, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
}
