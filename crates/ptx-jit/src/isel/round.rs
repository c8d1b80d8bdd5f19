//! Directed roundings, and rounding to integral values.
//!
//! AVX-512 instructions have a rounding operand in their 512-bit forms; other levels would have to change
//! MXCSR. There, sums, products and fused multiply-adds of single precision are computed in double precision
//! instead, and the result that was rounded to nearest is corrected where it is on the wrong side of the
//! exact one. Directed roundings of other operations have no lowering there.

use crate::target::Level;
use ptx::isa::Rnd;

use super::Lower;
use super::query::Query;
use crate::llvm::{Builder, FloatPred, Type, Value};

/// A rounding of arithmetic that has a lowering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Round {
    /// To nearest even, by plain instructions.
    Nearest,
    /// The rounding operand of an AVX-512 instruction.
    Embedded(u32),
    /// To nearest from double precision, and a correction.
    Corrected(Direction),
}

/// The direction of a rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Down,
    Up,
    ToZero,
}

impl Query<'_> {
    /// The rounding of an arithmetic instruction; to nearest if none is given.
    pub(super) fn rounding(&self) -> Option<Round> {
        let directed = |code| (self.env.target.level() == Level::Avx512).then_some(Round::Embedded(code));
        match self.rnd() {
            None | Some(Rnd::Rn) => Some(Round::Nearest),
            Some(Rnd::Rm) => directed(9),
            Some(Rnd::Rp) => directed(10),
            Some(Rnd::Rz) => directed(11),
            Some(Rnd::Rni | Rnd::Rzi | Rnd::Rmi | Rnd::Rpi | Rnd::Rna | Rnd::Rs) => None,
        }
    }

    /// As [`Query::rounding`], of an operation whose exact result can be compared with singles.
    pub(super) fn rounding_of_exact(&self) -> Option<Round> {
        self.rounding().or_else(|| {
            let direction = match self.rnd()? {
                Rnd::Rm => Direction::Down,
                Rnd::Rp => Direction::Up,
                Rnd::Rz => Direction::ToZero,
                Rnd::Rn | Rnd::Rni | Rnd::Rzi | Rnd::Rmi | Rnd::Rpi | Rnd::Rna | Rnd::Rs => return None,
            };
            Some(Round::Corrected(direction))
        })
    }

    /// The rounding to an integral value, if one is given; `Some(None)` if none is.
    pub(super) fn integral(&self) -> Option<Option<Rnd>> {
        match self.rnd() {
            None => Some(None),
            Some(rnd @ (Rnd::Rni | Rnd::Rzi | Rnd::Rmi | Rnd::Rpi)) => Some(Some(rnd)),
            Some(Rnd::Rn | Rnd::Rm | Rnd::Rp | Rnd::Rz | Rnd::Rna | Rnd::Rs) => None,
        }
    }
}

impl Lower<'_, '_> {
    /// An AVX-512 intrinsic with a rounding on vectors of `chunk` elements, applied to all lanes.
    pub(super) fn embedded(
        &self,
        name: &str,
        code: u32,
        chunk: u32,
        result: fn(&Builder<'_>) -> Type,
        args: &[Value],
    ) -> Value {
        self.embedded_as(name, &[], code, chunk, result, args)
    }

    /// [`Lower::embedded`] of an overloaded intrinsic.
    pub(super) fn embedded_as(
        &self,
        name: &str,
        types: &[Type],
        code: u32,
        chunk: u32,
        result: fn(&Builder<'_>) -> Type,
        args: &[Value],
    ) -> Value {
        let b = self.b;
        let code = b.const_int(b.int(32), u64::from(code));
        let one = |args: Vec<Value>| {
            let args: Vec<Value> = args.into_iter().chain([code]).collect();
            b.intrinsic(name, types, &args)
        };
        let lanes = self.lanes;
        let element = result(b);
        if lanes < chunk {
            let whole = one(args.iter().map(|arg| self.widened(*arg, chunk)).collect());
            return b.bitcast(b.slice(whole, 0, lanes), b.vec(element, lanes));
        }
        let mut parts: Vec<Value> = (0..lanes / chunk)
            .map(|i| one(args.iter().map(|arg| b.slice(*arg, i * chunk, chunk)).collect()))
            .collect();
        while parts.len() > 1 {
            parts = parts.chunks(2).map(|pair| b.concat(pair[0], pair[1])).collect();
        }
        parts[0]
    }

    /// Rounds numbers of double precision to single precision in a direction. Each must be exact, or rounded
    /// to odd: then it is on the same side of every single as the exact number.
    ///
    /// The single that is nearest is next to the exact number. If it is on the wrong side, its neighbour on
    /// the other side is the result. The bits of a single, without its sign, count the steps from zero, also
    /// to infinity.
    pub(super) fn corrected(&self, exact: Value, direction: Direction) -> Value {
        let b = self.b;
        let nearest = b.fptrunc(exact, b.like(exact.ty(), b.f32()));
        let there = b.fpext(nearest, exact.ty());
        let bits = b.bitcast(nearest, self.int(32));
        let one = self.constant(bits, 1);
        let size = |number: Value| b.intrinsic("llvm.fabs", &[number.ty()], &[number]);
        let (wrong, step) = match direction {
            Direction::ToZero => {
                (b.fcmp(FloatPred::Ogt, size(there), size(exact)), b.sub(b.zero(bits.ty()), one))
            }
            Direction::Down | Direction::Up => {
                // All ones if the number is negative, or else zero; then -1 or 1.
                let sign = b.ashr(bits, self.constant(bits, 31));
                let away = b.or(sign, one);
                match direction {
                    Direction::Up => (b.fcmp(FloatPred::Olt, there, exact), away),
                    Direction::Down | Direction::ToZero => {
                        (b.fcmp(FloatPred::Ogt, there, exact), b.sub(b.zero(bits.ty()), away))
                    }
                }
            }
        };
        b.bitcast(b.select(wrong, b.add(bits, step), bits), nearest.ty())
    }

    /// A scalar or short vector, extended with zeros.
    pub(super) fn widened(&self, value: Value, lanes: u32) -> Value {
        let b = self.b;
        let ty = value.ty();
        let zero = b.zero(b.vec(ty.element(), lanes));
        if !ty.is_vector() {
            return b.insert(zero, value, 0);
        }
        let have = ty.lanes() as i32;
        let indices: Vec<i32> = (0..lanes as i32).map(|i| i.min(have)).collect();
        b.shuffle(value, b.zero(ty), &indices)
    }

    /// Rounds to an integral value. A NaN stays a NaN, with any bits.
    pub(super) fn integral(&self, number: Value, rnd: Rnd) -> Value {
        let b = self.b;
        if self.env.target.level() == Level::Baseline && cfg!(target_arch = "x86_64") {
            return self.integral_by_adding(number, rnd);
        }
        let name = match rnd {
            Rnd::Rni => "llvm.roundeven",
            Rnd::Rmi => "llvm.floor",
            Rnd::Rpi => "llvm.ceil",
            _ => "llvm.trunc",
        };
        b.intrinsic(name, &[number.ty()], &[number])
    }

    /// [`Lower::integral`] for processors without an instruction: adding and subtracting 2^23 (2^52) rounds
    /// to nearest; the result is then corrected if it moved in the wrong direction.
    fn integral_by_adding(&self, number: Value, rnd: Rnd) -> Value {
        let b = self.b;
        let ty = number.ty();
        let (digits, one) = match ty.element_bits() {
            32 => (0x4b00_0000, 0x3f80_0000),
            _ => (0x4330_0000_0000_0000, 0x3ff0_0000_0000_0000),
        };
        let (digits, one) = (b.const_splat(ty, digits), b.const_splat(ty, one));
        let size = b.intrinsic("llvm.fabs", &[ty], &[number]);
        let nearest = b.fsub(b.fadd(size, digits), digits);
        // Copying the sign is a selection by bits too (see `Builder::select`).
        let signed = |v| b.opaque(b.intrinsic("llvm.copysign", &[ty], &[v, number]));
        let rounded = match rnd {
            Rnd::Rni => signed(nearest),
            Rnd::Rmi => {
                let nearest = signed(nearest);
                let over = b.fcmp(FloatPred::Ogt, nearest, number);
                signed(b.select(over, b.fsub(nearest, one), nearest))
            }
            Rnd::Rpi => {
                let nearest = signed(nearest);
                let under = b.fcmp(FloatPred::Olt, nearest, number);
                signed(b.select(under, b.fadd(nearest, one), nearest))
            }
            _ => {
                let over = b.fcmp(FloatPred::Ogt, nearest, size);
                signed(b.select(over, b.fsub(nearest, one), nearest))
            }
        };
        // Beyond this limit every number is integral. The comparison keeps NaN and infinity too.
        let small = b.fcmp(FloatPred::Olt, size, digits);
        b.select(small, rounded, number)
    }
}
